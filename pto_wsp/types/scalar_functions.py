"""Functions of numbers and symbolic scalars alike: ceildiv, minimum, maximum; and symbols of a known dtype."""

from __future__ import annotations

from pto_wsp.types import scalar as s
from pto_wsp.types.dtype import DType
from pto_wsp.types.symbolic import Symbol, Symbolic, as_scalar, held_by


def _number_or_symbolic(node: s.Scalar, *operands: object) -> Symbolic | int | float:
    return node.value if isinstance(node, s.Const) else Symbolic(node, held_by(*operands))


def ceildiv(a: object, b: object) -> Symbolic | int | float:
    """Return a / b rounded up, for numbers and scalar expressions; division by zero gives 0."""
    return _number_or_symbolic(s.ceil_div(as_scalar(a), as_scalar(b)), a, b)


def minimum(a: object, b: object) -> Symbolic | int | float:
    """Return the smaller of two numbers or scalar expressions."""
    return _number_or_symbolic(s.minimum(as_scalar(a), as_scalar(b)), a, b)


def maximum(a: object, b: object) -> Symbolic | int | float:
    """Return the larger of two numbers or scalar expressions."""
    return _number_or_symbolic(s.maximum(as_scalar(a), as_scalar(b)), a, b)


def symbol_u64(name: str) -> Symbol:
    """Return a symbol that each run binds to a whole number >= 0."""
    return Symbol(name, DType.U64)


def symbol_f32(name: str) -> Symbol:
    """Return a symbol that each run binds to a float."""
    return Symbol(name, DType.F32)
