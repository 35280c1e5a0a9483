"""Tiles from numbers: one value in every element, row and column numbers, and triangles made of them."""

from __future__ import annotations

from pto_wsp.errors import OptionValueError
from pto_wsp.ir.dtype import DType
from pto_wsp.ops import typing
from pto_wsp.ops.entries.compare import le, where
from pto_wsp.ops.entries.elementwise import add
from pto_wsp.ops.entry import Operand, active, user_call
from pto_wsp.ops.rounding import ALL, FOLDED_FLOATS, FOLDED_INTEGERS, NUMBERS
from pto_wsp.ops.spec import Expand, Iota
from pto_wsp.source import here

expand = Expand(name="expand", synonyms=("tile", "repeat", "broadcast"),
                doc="Return x broadcast to `shape`: [R, 1], [1, C] and [1, 1] repeat.", npu="TEXPANDS",
                dtypes=ALL, folds=(*FOLDED_FLOATS, *FOLDED_INTEGERS), numpy="np.broadcast_to({0}, {shape}).astype({dtype})")
iota = Iota(name="iota", synonyms=("arange", "linspace", "indices"),
            doc="Return a tile whose elements are their column (axis=1) or row (axis=0) number.", npu="TCI",
            dtypes=NUMBERS, numpy="_iota({shape}, {axis}, {dtype})")


@user_call("pto.full")
def full(shape: tuple[int, int], value: object, dtype: DType) -> Operand:
    """Return a tile with `value`, a number or a scalar of the kernel, in every element."""
    return _filled("full", shape, value, dtype)


@user_call("pto.constant")
def constant(value: object, dtype: DType = DType.F32, shape: tuple[int, int] = (1, 1)) -> Operand:
    """Return `value` as a tile, [1, 1] unless a shape is given."""
    return _filled("constant", shape, value, dtype)


@user_call("pto.zeros")
def zeros(shape: tuple[int, int], dtype: DType) -> Operand:
    """Return a tile of zeros."""
    active("zeros")
    return _filled("zeros", shape, False if typing.as_dtype("zeros", dtype, ALL).is_bool else 0, dtype)


@user_call("pto.ones")
def ones(shape: tuple[int, int], dtype: DType) -> Operand:
    """Return a tile of ones (True in a mask)."""
    active("ones")
    return _filled("ones", shape, True if typing.as_dtype("ones", dtype, ALL).is_bool else 1, dtype)


@user_call("pto.tril")
def tril(x: Operand, diagonal: int = 0) -> Operand:
    """Return x with zeros above its k-th diagonal: elements with column <= row + diagonal stay."""
    return _triangle("tril", x, diagonal, lower=True)


@user_call("pto.triu")
def triu(x: Operand, diagonal: int = 0) -> Operand:
    """Return x with zeros below its k-th diagonal: elements with column >= row + diagonal stay."""
    return _triangle("triu", x, diagonal, lower=False)


def _filled(name: str, shape: object, value: object, dtype: object) -> Operand:
    emitter = active(name)
    attrs = (("shape", typing.as_shape(name, shape)), ("dtype", typing.as_dtype(name, dtype, ALL)))
    return emitter.emit(expand.name, (value,), attrs)


def _triangle(name: str, x: Operand, diagonal: object, lower: bool) -> Operand:
    active(name)
    typing.require_tile(name, x)
    if not isinstance(diagonal, int):
        raise OptionValueError(f"`pto.{name}`: not a diagonal", here(), expected="a whole number", found=repr(diagonal))
    limit = add(iota((x.shape[0], 1), DType.I32, 0), diagonal)
    columns = iota((1, x.shape[1]), DType.I32, 1)
    return where(le(columns, limit) if lower else le(limit, columns), x, False if x.dtype.is_bool else 0)


ENTRIES = (expand, iota)
FUNCTIONS = (full, constant, zeros, ones, tril, triu)
