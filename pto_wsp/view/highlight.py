"""Tones of code: what each piece of a line is in its language, by Pygments."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Literal, TypeAlias

from pygments.lexer import Lexer
from pygments.lexers.c_cpp import CppLexer
from pygments.lexers.data import JsonLexer
from pygments.lexers.python import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String

from pto_wsp.view.card import CodeLine, CodeRun, Tone

Language: TypeAlias = Literal["python", "cpp", "json", "text"]
_TONES: tuple[tuple[object, Tone], ...] = (
    (Comment.Preproc, "key"), (Comment, "comment"), (String, "string"), (Number, "number"), (Keyword, "key"), (Operator.Word, "key"),
    (Name.Function, "name"), (Name.Class, "name"), (Name.Decorator, "name"),
)
_SUFFIXES: dict[str, Language] = {".py": "python", ".cpp": "cpp", ".c": "cpp", ".h": "cpp", ".json": "json", ".wsp": "python",
                                  ".pto": "cpp"}


def language_of(path: str) -> Language:
    """Return the language of a file by its name; IR text reads like Python."""
    return _SUFFIXES.get("." + path.rpartition(".")[2], "text")


def code_lines(text: str, language: Language, *, first: int | None = 1) -> tuple[CodeLine, ...]:
    """Return the lines of a text with tones; `first`: the number of the first line, None for lines without numbers."""
    lines = [tuple(CodeRun(text=part) for part in (line,) if part) for line in text.split("\n")] if language == "text" else \
        _toned(text, language)
    return tuple(CodeLine(number="" if first is None else str(first + at), runs=runs) for at, runs in enumerate(lines))


def _toned(text: str, language: Language) -> list[tuple[CodeRun, ...]]:
    lines: list[list[tuple[str, Tone]]] = [[]]
    for kind, value in _lexer(language).get_tokens(text):
        tone = _tone(kind)
        for at, piece in enumerate(value.split("\n")):
            if at:
                lines.append([])
            if piece:
                last, before = lines[-1][-1] if lines[-1] else ("", None)
                if before == tone:
                    lines[-1][-1] = last + piece, tone
                else:
                    lines[-1].append((piece, tone))
    return [tuple(CodeRun(text=piece, tone=tone) for piece, tone in line) for line in lines[:text.count("\n") + 1]]


@cache
def _tone(kind: object) -> Tone:
    return next((tone for known, tone in _TONES if kind in known), "")    # type: ignore[operator]


@cache
def _lexer(language: Language) -> Lexer:
    kinds: dict[str, Callable[..., Lexer]] = {"python": PythonLexer, "cpp": CppLexer, "json": JsonLexer}
    return kinds[language](stripnl=False, ensurenl=False)
