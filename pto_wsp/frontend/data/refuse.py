"""What data is refused with, and the form of scalars and names in it."""

from __future__ import annotations

from collections.abc import Callable
from keyword import iskeyword
from typing import NoReturn

from pto_wsp.errors import PtoError, WorkloadStructureError
from pto_wsp.source import here
from pto_wsp.types import scalar as s
from pto_wsp.types.scalar_text import print_scalar

_UNARY = frozenset({s.Op.NEG, s.Op.NOT})
_I64 = range(-(1 << 63), 1 << 63)


def refuse(found: str, *, expected: str | None = None) -> NoReturn:
    """Raise W102 for data that no trace gives."""
    raise WorkloadStructureError("this JSON is not a workload", here(), expected=expected, found=found)


def refuse_as_traced(where: str, problem: PtoError) -> NoReturn:
    """Raise W102 for data that a trace refuses, with what it says."""
    notes = [f"{label}: {text}" for label, text in (("expected", problem.expected), ("found", problem.found)) if text is not None]
    raise WorkloadStructureError("this JSON is not a workload", here(), found=f"{where}: {problem.code}: {problem.message}",
                                 notes=notes) from None


def check_name(what: str, name: str) -> None:
    """Raise W102 unless a name is one that Python's own syntax gives."""
    if not name.isidentifier() or iskeyword(name):
        refuse(f"{what} called {name!r:.60}", expected="a Python identifier")


def check_text(what: str, text: str) -> None:
    """Raise W102 for text of more than one line, or that shows as something else."""
    if not text.isprintable():
        refuse(f"{what} {text!r:.60}", expected="printable text of one line")


def check_scalar(node: s.Scalar, leaf: Callable[[s.Scalar], None]) -> None:
    """Raise W102 for an expression that no arithmetic gives; `leaf` judges what is no constant and no operation."""
    match node:
        case s.Const(value):
            if isinstance(value, int) and value not in _I64:
                refuse(f"the number {value}", expected="a whole number of 64 bits")
        case s.Unary(op) if op not in _UNARY:
            refuse(f"`{op.value}` of one scalar")
        case s.Binary(op) if op in _UNARY:
            refuse(f"`{op.value}` of two scalars")
        case s.Sum():
            refuse(f"a sum: {print_scalar(node)}", expected="what a body computes")
        case s.Unary() | s.Binary() | s.Select():
            pass
        case _:
            leaf(node)
    for child in s.children(node):
        check_scalar(child, leaf)
