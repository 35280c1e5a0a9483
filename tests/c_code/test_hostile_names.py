"""Names, labels and file names that a user chose end no comment, no string and no line of anything that is generated."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto_wsp import Program
from pto_wsp.c.printer import c_string, comment_text

MARK = "INJECTED"
HOSTILE = f"""a*/ {MARK}(); /* ' " \\" *\\/ {MARK} {{{{ {MARK} }}}} ??/"""
NAMES = {"quotes and comments": HOSTILE, "lines": f"a\n{MARK}();\r{MARK}();\u2028{MARK}()\n#error {MARK}", "a backslash behind": "a\\",
         "a trigraph behind": "a??/"}

SOURCE = '''
import numpy as np
from pto_wsp import Channel, DType, In, Out, P, Tensor, Tile, consume, kernel, pto, process, connect, send, workload
F32 = DType.F32
X, T, Y = (Tensor(np.ones((4, 8), np.float32), name=name) for name in given)

@kernel
def twice(x: In[Tile[1, 8, F32]], y: Out[Tile[1, 8, F32]]):
    if prints:
        pto.print(given[0], x)
    pto.store(y, x + x)

@workload
def plain():
    for i in P(4):
        twice[i](X[i:i + 1], T[i:i + 1])
    for i in P(4):
        twice[i](T[i:i + 1], Y[i:i + 1])

@workload
def piped():
    channel = Channel(shown, 2)
    def first():
        for i in P.seq(4):
            send(channel, twice[i](X[i:i + 1], T[i:i + 1]))
    def second():
        with consume(channel) as i:
            twice[i](T[i:i + 1], Y[i:i + 1])
    connect([process(shown).produces(channel).body(first), process(shown + "2").consumes(channel).body(second)], [channel])
'''


def programs(name: str, target: str) -> Iterator[Program]:
    """Yield programs whose tensors, channels, processes, print labels and file are called so: the file with what does not print, too."""
    shown = "".join(c for c in name if c.isprintable())
    space: dict[str, Any] = {"given": tuple(f"{shown}{k}" if k else shown for k in range(3)), "shown": shown, "prints": target == "cpu_sim"}
    exec(compile(SOURCE, f"/tmp/{name.replace('/', '')}.py", "exec"), space)
    for which in ("plain", "piped"):
        yield space[which]().compile(target=target)


def code_of(text: str) -> str:
    """Return C or C++ without its comments and strings."""
    spliced = text.replace("??/", "\\").replace("\\\n", "")
    return re.sub(r'/\*.*?\*/|//[^\n\r\u2028]*|"(?:\\.|[^"\\])*"', " ", spliced, flags=re.DOTALL)


def check_text(path: Path) -> None:
    """Raise AssertionError if a generated file says something that a name said; made-up identifiers may read like the name."""
    if path.suffix not in (".py", ".c", ".h", ".cpp", ".hpp") and path.name != "Makefile":
        return
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        assert not any(node.id == MARK for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)), path
    else:
        assert re.search(rf"\b{MARK}\b", text if path.name == "Makefile" else code_of(text)) is None, path


@pytest.mark.slow
@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("target", ["cpu_sim", "ascend_npu"])
def test_names_end_nothing_that_is_generated(kind: str, target: str, tmp_path: Path) -> None:
    for number, program in enumerate(programs(NAMES[kind], target)):
        root = program.save(tmp_path / str(number))
        for path in sorted(root.rglob("*")):
            if path.is_file() and "csrc" not in path.parts and "include" not in path.parts:
                check_text(path)
        if target == "cpu_sim":
            given = {slot.ref.shown: np.ones((4, 8), np.float32) for slot in program.plan.tensors}
            program.run(**given)
            assert sorted(float(array[0, 0]) for array in given.values()) == [1, 2, 4]


@pytest.mark.parametrize("text", [*NAMES.values(), "*/", "**//", "*\\\n/", "/*", "\\", "x\\ ", "\0", "", "plain text"])
@pytest.mark.parametrize("opening", ["/*", "//"])
def test_a_comment_ends_where_it_should(text: str, opening: str) -> None:
    inside = comment_text(text)
    whole = f"/* {inside} */\nkept" if opening == "/*" else f"// {inside}\nkept"
    assert code_of(whole).split() == ["kept"] and all(c.isprintable() for c in inside)


def test_a_string_has_no_trigraph() -> None:
    assert c_string('a???/"?') == '"a?\\?\\?/\\"?"'


def test_plain_text_stays_as_it_is() -> None:
    assert comment_text("model.py:3: for b in X[0:4] / 2 * n") == "model.py:3: for b in X[0:4] / 2 * n"
