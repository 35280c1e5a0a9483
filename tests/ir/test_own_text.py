"""Which texts may stand in a function, and why others may not."""

from __future__ import annotations

import pytest

from pto_wsp.ir.own_text import directives, find_flaw

SOUND = [
    "", "return 0;", "for (;;) { a[0] = (1); }", "int a[2] = {1, 2};", 'char *s = "}{";', "char c = '}';", "char c = '\\'';", "/* } */ x;",
    "// } \\\n } still\nx;", "int a<:2:> = <%1, 2%>;", "#define TWICE(x) do { x; } \\\n    while (0)\nTWICE(f());", "#define STR(x) #x",
    "#ifdef A\nif (x) {\n#else\nif (y) {\n#endif\n}", "#if A\nx;\n#elif B\n{ y; }\n#endif", "#include <math.h>", '#include "pto_move.h"',
    "#error don't (do this",
]


@pytest.mark.parametrize("text", SOUND)
def test_sound_texts(text: str) -> None:
    assert find_flaw(text) is None


@pytest.mark.parametrize("text, what, line, column", [
    ("for (;;) {\n  x;", "`{` is not closed", 1, 10),
    ("x;\n  }", "`}` closes nothing that the text has opened", 2, 3),
    ("}\nint other(void) {", "`}` closes nothing that the text has opened", 1, 1),
    ("f(\n a[0)];", "`)` does not close the `[` of line 2", 2, 5),
    ("x;\n/* no end", "a comment is not closed", 2, 1),
    ('x;\nf("no end);', "a string is not closed", 2, 3),
    ("x = 'a;", "a character is not closed", 1, 5),
    ("%>", "`}` closes nothing that the text has opened", 1, 1),
    ("#if 0\n{\n#endif\n}\nint other(void) {\n#if 0\n}\n#endif", "the regions of this #if open and close different brackets", 1, 1),
    ("#if A\n}\n#endif", "`}` closes nothing that the text has opened", 2, 1),
    ("{\n#if A\n}\n#else\n#endif", "the regions of this #if open and close different brackets", 4, 1),
    ("#if A\nx;", "#if without #endif", 1, 1),
    ("x;\n#endif", "#endif without #if", 2, 1),
    ("#else", "#else without #if", 1, 1),
    ("#define END }\nEND", "in a macro, `}` closes nothing that the text has opened", 1, 1),
    ("x; \\\n", "the last line does not end", 1, 1),
    ('#include "mine.h"', 'a file of yours is included: "mine.h"', 1, 1),
    ("#define PTO_NAN 0", "`PTO_NAN` belongs to the headers", 1, 1),
    ("#undef PTO_NAN", "`PTO_NAN` belongs to the headers", 1, 1),
])
def test_flaws(text: str, what: str, line: int, column: int) -> None:
    flaw = find_flaw(text)
    assert flaw is not None
    assert (flaw.what, flaw.line, flaw.column) == (what, line, column)


def test_directives_know_their_words_and_whether_they_always_stand() -> None:
    text = "#include <math.h>\n#if A\n# define B 1\n#endif\n  #define C(x) x \\\n  + 1\n"
    assert [(d.word, d.line, d.conditional) for d in directives(text)] == [
        ("include", 1, False), ("if", 2, False), ("define", 3, True), ("endif", 4, True), ("define", 5, False)]
    assert directives(text)[4].rest.startswith("C(x) x")
