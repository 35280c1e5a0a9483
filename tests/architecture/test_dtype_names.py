"""What the package decides by a dtype is a trait of its record: no other file compares with a member of `DType`, matches one, or keeps a
table by them. Members that are given as what something is (a default, the type of a result) are no decisions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "pto_wsp"
RECORD = "ir/dtype.py"

# What vector and cube cores take and how their tools spell it: facts of the NPU.
NPU = ("npu/",)

ELSEWHERE: Mapping[str, tuple[int, str]] = {
    "run/bound.py": (1, "an i64 symbol is called 64 bits in its error"),
}


def decisions(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each member that is compared, matched, or a key or an element of a set or of what is looked in."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Compare(left, _, others):
                parts: list[ast.expr | None] = [left]
                for other in others:
                    parts += other.elts if isinstance(other, ast.Tuple | ast.List) else [other]
            case ast.MatchValue(value):
                parts = [value]
            case ast.Dict(keys):
                parts = keys
            case ast.Set(elements):
                parts = list(elements)
            case _:
                continue
        for part in parts:
            match part:
                case ast.Attribute(ast.Name("DType"), name) if name.isupper():
                    yield part.lineno, name


@cache
def found() -> dict[str, list[tuple[int, str]]]:
    """Return the decisions by file, those of the record and of the NPU apart."""
    files = ((str(path.relative_to(PACKAGE)), path) for path in sorted(PACKAGE.rglob("*.py")))
    texts = {name: path.read_text() for name, path in files if name != RECORD and not name.startswith(NPU)}
    read = {name: [*decisions(text)] for name, text in texts.items() if "DType." in text}
    return {name: given for name, given in read.items() if given}


def test_a_decision_asks_for_a_trait() -> None:
    faults = [f"pto_wsp/{file}:{line}: DType.{name}" for file, given in found().items() if len(given) > ELSEWHERE.get(file, (0, ""))[0]
              for line, name in given]
    assert not faults, "ask for a trait of the dtype instead:\n" + "\n".join(faults)


def test_no_place_is_listed_that_is_not_there() -> None:
    assert {file: count for file, (count, _) in ELSEWHERE.items()} == {file: len(given) for file, given in found().items()}


@pytest.mark.parametrize(("text", "names"), [
    ("x.dtype is DType.BF16", ["BF16"]), ("x in (DType.F16, y)", ["F16"]), ("T = {DType.I8: 1}", ["I8"]), ("{DType.U8}", ["U8"]),
    ("match d:\n    case DType.F64: pass", ["F64"]), ("def f(d=DType.F32): pass", []), ("cast(x, DType.F32)", []), ("d.is_half", []),
])
def test_what_a_decision_is(text: str, names: list[str]) -> None:
    assert [name for _, name in decisions(text)] == names
