"""Split IR text into tokens with their places, and read them one after the other.

A token that begins a line outside brackets carries the line's indentation; comments (`# …`) are left out, except the type behind a
result (`# Tile[4, 8, f32]`), which is a note token. A line that begins with `|` is a single raw token: a line of a body in C or C++.
"""

from __future__ import annotations

import ast
import hashlib
import linecache
import re
from collections.abc import Iterable
from typing import NoReturn

from pto_wsp.errors import IrTextError
from pto_wsp.source import Span
from pto_wsp.values import dataclass
from pto_wsp.wording import nearest

_TOKEN = re.compile(r"""
    (?P<space>   [ \t]+ )
  | (?P<comment> \# [^\n]* )
  | (?P<value>   %\d+ )
  | (?P<number>  \d+\.\d*(?:[eE][+-]?\d+)? | \.\d+(?:[eE][+-]?\d+)? | \d+(?:[eE][+-]?\d+)? )
  | (?P<name>    [^\W\d]\w*(?:\.\d+)? )
  | (?P<string>  '(?:\\.|[^'\\\n])*' | "(?:\\.|[^"\\\n])*" )
  | (?P<mark>    == | != | <= | >= | // | \+= | [-+*/%<>&|~()\[\]{},:=.@] )
""", re.VERBOSE)
_NOTE = re.compile(r"#\s*(Tile\[\s*\d+\s*,\s*\d+\s*,\s*\w+\s*\])\s*(?:#.*)?$")
_OPENS, _CLOSES = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}
_MOST_DIGITS = 20       # of 2**64
INNER = -1              # the indentation of a token that begins no line


@dataclass(frozen=True, slots=True)
class IrToken:
    """A token: its kind (name, number, value, string, mark, note, raw, end), text and place; `indent` INNER unless a line begins here."""

    kind: str
    text: str
    line: int
    column: int
    indent: int = INNER


def unquoted(text: str) -> str | None:
    """Return the text that stands in quotes, as `repr` writes it; None for what is no such text."""
    try:
        inner = ast.literal_eval(text)
        inner.encode()
    except (ValueError, SyntaxError, AttributeError, RecursionError, MemoryError):
        return None
    return inner if isinstance(inner, str) else None


class Reader:
    """The tokens of a text, and how far they are read. Every failure is an IrTextError at a token."""

    def __init__(self, text: str) -> None:
        """Split the text.

        Raises: W116 for characters, strings and brackets that no IR text has.
        """
        self.file = f"<ir {hashlib.sha256(text.encode(errors='replace')).hexdigest()[:8]}>"
        lines = text.splitlines(keepends=True)
        linecache.cache[self.file] = (len(text), None, lines, self.file)      # where errors and later stages find the lines
        self._tokens = self._split(text)
        self._at = 0

    # -- reading -------------------------------------------------------------------------------------------------------
    @property
    def next(self) -> IrToken:
        """The token to be read next."""
        return self._tokens[self._at]

    @property
    def behind(self) -> IrToken:
        """The token behind the next."""
        return self._tokens[min(self._at + 1, len(self._tokens) - 1)]

    def take(self) -> IrToken:
        """Return the next token, and go on behind it."""
        token = self.next
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def sees(self, *texts: str) -> bool:
        """Tell whether the next token is one of these marks or names, on the line that is being read."""
        token = self.next
        return token.indent == INNER and token.kind in ("mark", "name") and token.text in texts

    def index_ahead(self, behind: str = "") -> str:
        """Return the bracket ahead if numbers alone stand in it, as in the name of a tile of a stack: `[0, 1]`; "" for any other.

        `behind`: the mark that must stand behind it.
        """
        if not self.sees("["):
            return ""
        at, numbers = self._at + 1, list[str]()
        while self._tokens[at].kind == "number" and self._tokens[at + 1].text in (",", "]"):
            numbers.append(self._tokens[at].text)
            at += 2
            if self._tokens[at - 1].text == "]":
                return f"[{', '.join(numbers)}]" if not behind or self._tokens[at].text == behind else ""
        return ""

    def index(self) -> str:
        """Return the bracket ahead, in which numbers alone stand, and go behind it."""
        self.expect("[")
        numbers = [self.whole("a number")]
        while self.has(","):
            numbers.append(self.whole("a number"))
        self.expect("]")
        return f"[{', '.join(map(str, numbers))}]"

    def has(self, *texts: str) -> bool:
        """Go behind the next token if it is one of these marks or names, and tell so."""
        found = self.sees(*texts)
        if found:
            self.take()
        return found

    def expect(self, text: str, what: str = "") -> IrToken:
        """Return the next token, which is this mark or name.

        Raises: W116 for any other.
        """
        if not self.sees(text):
            self.fail(f"`{text}` is missing" + (f" {what}" if what else ""), expected=f"`{text}`")
        return self.take()

    def name(self, what: str) -> IrToken:
        """Return the next token, which is a name; `what` it names.

        Raises: W116 for any other.
        """
        if self.next.kind != "name" or self.next.indent != INNER:
            self.fail(f"{what} is missing", expected=f"the name of {what}")
        return self.take()

    def whole(self, what: str) -> int:
        """Return the next token as a whole number.

        Raises: W116 for any other.
        """
        minus = self.has("-")
        token = self.next
        if token.kind != "number" or not token.text.isdecimal() or token.indent != INNER:
            self.fail(f"{what} is missing", expected="a whole number")
        return (-1 if minus else 1) * int(self.number(self.take()))

    def number(self, token: IrToken) -> int | float:
        """Return the number of a token."""
        if not token.text.isdecimal():
            return float(token.text)
        if len(token.text.lstrip("0")) > _MOST_DIGITS:
            self.fail("a number is too large", token, expected="a number of 64 bits", found=f"{len(token.text)} digits")
        return int(token.text)

    def string(self, what: str) -> str:
        """Return the next token as text.

        Raises: W116 for any other.
        """
        token = self.next
        if token.kind != "string" or token.indent != INNER:
            self.fail(f"{what} is missing", expected="text in quotes")
        text = unquoted(self.take().text)
        if text is None:
            self.fail("this text is no text of Python's", token, expected="text in quotes, as repr() writes it")
        return text

    def end_of_line(self, what: str) -> None:
        """Skip a type at the end of the line, and check that nothing else is left on the line.

        Raises: W116 otherwise.
        """
        if self.next.kind == "note":
            while self.next.indent == INNER:
                self.take()
        if self.next.indent == INNER:
            self.fail(f"{what} has ended, and the line goes on", expected="the end of the line")

    # -- failures ------------------------------------------------------------------------------------------------------
    def span(self, token: IrToken) -> Span:
        """Return the place of a token."""
        return Span(self.file, token.line, token.column, token.line, token.column + len(token.text))

    def fail(self, message: str, token: IrToken | None = None, *, expected: str | None = None, found: str | None = None,
             known: Iterable[str] = (), help: str | None = None) -> NoReturn:
        """Raise W116 at a token, the next if none is given. `known`: names that were perhaps meant."""
        token = self.next if token is None else token
        near = nearest(token.text.partition(".")[0], known) if token.kind == "name" else None
        shown = {"end": "the end of the text"}.get(token.kind, f"`{token.text[:60]}`")
        raise IrTextError(message, self.span(token), expected=expected, found=shown if found is None else found,
                          help=f"did you mean `{near}`?" if near else help)

    # -- splitting -----------------------------------------------------------------------------------------------------
    def _split(self, text: str) -> list[IrToken]:
        tokens: list[IrToken] = []
        brackets: list[IrToken] = []
        line = 0
        for line, row in enumerate(text.splitlines(), 1):
            bare = row.lstrip(" ")
            indent = len(row) - len(bare) if not brackets else INNER
            if not brackets and bare.startswith("|"):
                tokens.append(IrToken("raw", bare[1:], line, indent + 1, indent))
                continue
            at = len(row) - len(bare)
            while at < len(row):
                match = _TOKEN.match(row, at)
                kind = match.lastgroup or "" if match else ""
                found = match.group() if match else row[at]
                token = IrToken(kind, found, line, at + 1, indent)
                if not match or (kind == "space" and "\t" in found and indent != INNER):
                    self.fail("no IR text has this character", IrToken("name", found[:1], line, at + 1), found=ascii(found[:1]),
                              expected="names, numbers, text in quotes, and spaces for indentation")
                if kind == "comment":
                    note = _NOTE.match(found)
                    if note and tokens and tokens[-1].line == line and not brackets:
                        tokens.append(IrToken("note", "#", line, at + 1))
                        tokens += [IrToken(inner.lastgroup or "", inner.group(), line, at + 1 + inner.start())
                                   for inner in _TOKEN.finditer(found, *note.span(1)) if inner.lastgroup != "space"]
                elif kind != "space":
                    if kind == "mark":
                        self._bracket(token, brackets)
                    tokens.append(token)
                    indent = INNER
                at += len(found)
        if brackets:
            self.fail(f"`{brackets[-1].text}` is not closed", brackets[-1], expected=f"`{_OPENS[brackets[-1].text]}`")
        tokens.append(IrToken("end", "", line + 1, 1, 0))
        return tokens

    def _bracket(self, token: IrToken, brackets: list[IrToken]) -> None:
        if token.text in _OPENS:
            brackets.append(token)
        elif token.text in _CLOSES:
            if not brackets or _OPENS[brackets[-1].text] != token.text:
                self.fail(f"`{token.text}` closes nothing", token, expected=f"`{_OPENS[brackets[-1].text]}`" if brackets else None)
            brackets.pop()
