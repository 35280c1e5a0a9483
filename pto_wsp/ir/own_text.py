"""Check the C text of a user's body: it must fit into a generated function and affect nothing outside it.

>>> find_flaw("for (;;) {").what
'`{` is not closed'
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pto_wsp.values import dataclass

_TOKEN = r"""
    (?P<directive> ^[ \t]*\# (?: \\\n | /\*.*?\*/ | [^\n] )* )
  | (?P<comment>   /\*.*?\*/ | // (?: \\\n | [^\n] )* )
  | (?P<literal>   "(?: \\. | [^"\\\n] )*" | '(?: \\. | [^'\\\n] )*' )
  | (?P<bracket>   <% | %> | <: | :> | [(){}\[\]] )
  | (?P<stray>     /\* | ["'] )
"""      # compiled on demand: few programs have a C body
_DIGRAPH = {"<%": "{", "%>": "}", "<:": "[", ":>": "]"}
_CLOSES = {")": "(", "}": "{", "]": "["}
_STRAY = {"/*": "a comment is not closed", '"': "a string is not closed", "'": "a character is not closed"}


@dataclass(frozen=True, slots=True)
class Flaw:
    """Why a text cannot be a function body: the reason, the 1-based line and column, and what to do."""

    what: str
    line: int
    column: int
    help: str = ""


@dataclass(frozen=True, slots=True)
class HashLine:
    """A preprocessor line: its word, the rest, and whether it is inside an #if."""

    word: str
    rest: str
    line: int
    column: int
    conditional: bool


@dataclass(frozen=True, slots=True)
class _Bracket:
    """An open bracket."""

    bracket: str
    line: int
    column: int


def find_flaw(text: str) -> Flaw | None:
    """Return the first reason why `text` cannot be a function body, or None.

    Flaws are texts that would end the function early or extend past it: unmatched brackets, also in macros and in each region of an #if,
    and comments, strings and lines that do not end. Included user files are flaws too, because the cache key covers the text only.
    """
    stack: tuple[_Bracket, ...] = ()
    # for each open #if: (stack before, stacks at the ends of its regions, directive)
    regions: list[tuple[tuple[_Bracket, ...], list[tuple[_Bracket, ...]], HashLine]] = []
    for kind, token, line, column in _tokens(text):
        match kind:
            case "stray":
                return Flaw(_STRAY[token], line, column)
            case "bracket":
                after = _shifted(stack, token, line, column)
                if isinstance(after, Flaw):
                    return after
                stack = after
            case "directive":
                directive = _directive(token, line, column, bool(regions))
                flaw = _directive_flaw(directive)
                if flaw is not None:
                    return flaw
                if directive.word in ("if", "ifdef", "ifndef"):
                    regions.append((stack, [], directive))
                elif directive.word in ("elif", "else", "endif"):
                    if not regions:
                        return Flaw(f"#{directive.word} without #if", line, column)
                    start, ends, opened = regions.pop()
                    ends.append(stack)
                    if directive.word != "endif":
                        regions.append((start, ends, HashLine(directive.word, "", line, column, True)))
                        stack = start
                    elif any(_shape(end) != _shape(ends[0]) for end in ends) or (
                            opened.word != "else" and _shape(ends[0]) != _shape(start)):
                        return Flaw("the regions of this #if open and close different brackets", opened.line, opened.column,
                                    "close in each region what it opens")
    if regions:
        return Flaw("#if without #endif", regions[-1][2].line, regions[-1][2].column)
    if stack:
        return Flaw(f"`{stack[-1].bracket}` is not closed", stack[-1].line, stack[-1].column)
    if text.rstrip("\n").endswith("\\"):
        return Flaw("the last line does not end", text.rstrip("\n").count("\n") + 1, 1, "drop the backslash at its end")
    return None


def directives(text: str) -> tuple[HashLine, ...]:
    """Return the preprocessor lines of a text without flaws."""
    out: list[HashLine] = []
    depth = 0
    for kind, token, line, column in _tokens(text):
        if kind == "directive":
            directive = _directive(token, line, column, depth > 0)
            out.append(directive)
            depth += 1 if directive.word in ("if", "ifdef", "ifndef") else -1 if directive.word == "endif" else 0
    return tuple(out)


def _tokens(text: str) -> Iterator[tuple[str, str, int, int]]:
    """Yield (kind, text, line, column) of everything that may contain or be a bracket."""
    line, start, at = 1, 0, 0
    for token in re.finditer(_TOKEN, text, re.VERBOSE | re.MULTILINE | re.DOTALL):
        between = text.count("\n", at, token.start())
        if between:
            line += between
            start = text.rindex("\n", 0, token.start()) + 1
        yield token.lastgroup or "", token.group(), line, token.start() - start + 1
        at = token.start()


def _shifted(stack: tuple[_Bracket, ...], token: str, line: int, column: int) -> tuple[_Bracket, ...] | Flaw:
    bracket = _DIGRAPH.get(token, token)
    if bracket not in _CLOSES:
        return (*stack, _Bracket(bracket, line, column))
    if not stack:
        return Flaw(f"`{bracket}` closes nothing that the text has opened", line, column)
    if stack[-1].bracket != _CLOSES[bracket]:
        return Flaw(f"`{bracket}` does not close the `{stack[-1].bracket}` of line {stack[-1].line}", line, column)
    return stack[:-1]


def _shape(stack: tuple[_Bracket, ...]) -> tuple[str, ...]:
    return tuple(each.bracket for each in stack)


def _directive(token: str, line: int, column: int, conditional: bool) -> HashLine:
    found = re.match(r"\s*#\s*(\w*)\s*(.*)", token, re.DOTALL)
    word, rest = found.groups() if found else ("", "")
    return HashLine(word, rest.strip(), line, column, conditional)


def _directive_flaw(directive: HashLine) -> Flaw | None:
    name = re.match(r"\w*", directive.rest)
    match directive.word:
        case "define" | "undef" if name and name.group().startswith("PTO_"):
            return Flaw(f"`{name.group()}` belongs to the headers", directive.line, directive.column, "give the macro another name")
        case "define":
            inner = find_flaw(directive.rest.replace("#", " "))   # # and ## are operators in a macro
            return None if inner is None else Flaw(f"in a macro, {inner.what}", directive.line, directive.column,
                                                   "a macro holds whole brackets")
        case "include" if directive.rest.startswith('"') and not directive.rest.startswith('"pto_'):
            return Flaw(f"a file of yours is included: {directive.rest}", directive.line, directive.column,
                        "put its text here: the text is what the cache knows a kernel by; system headers are included with <...>")
        case _:
            return None
