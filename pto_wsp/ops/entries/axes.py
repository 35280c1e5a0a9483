"""Reductions by NumPy's and torch's names: `x.sum(axis=1, keepdims=True)`, `np.max(x, axis=0, keepdims=True)`.

A tile has two dimensions, so a reduction keeps both, and says so with `keepdims=True` (torch's `keepdim=True`): the line then means the
same on whole arrays. Without an axis the result is [1, 1]. Sums keep the dtype; of a mask they count, in i32. Places are i32.
"""

from __future__ import annotations

from collections.abc import Callable

from pto_wsp.errors import ArityError, TileAxisError
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.indexing import whole_number
from pto_wsp.ir.symbolic import Symbolic
from pto_wsp.ops import typing
from pto_wsp.ops.entries.compare import ne
from pto_wsp.ops.entries.elementwise import div, maximum, minimum, mul, sub
from pto_wsp.ops.entries.formula import Formula, computed, in_dtype, same, tile_of
from pto_wsp.ops.entries.functions import sqrt
from pto_wsp.ops.entries.index import rowargmax, rowargmin
from pto_wsp.ops.entries.movement import reshape, transpose
from pto_wsp.ops.entries.reduce import colmax, colmean, colmin, colsum, rowmax, rowmean, rowmin, rowprod, rowsum
from pto_wsp.ops.entry import Operand, is_tile, user_call
from pto_wsp.ops.rounding import ALL, COMPUTED, FLOATS, NUMBERS
from pto_wsp.ops.traits import Fill
from pto_wsp.source import here

Reduce = Callable[[Operand], Operand]


@user_call("pto.sum")
def sum(x: Operand, axis: object = None, dtype: object = None, *, keepdims: object = False, dim: object = None,
         keepdim: object = False) -> Operand:
    """Return the sum along an axis, in the tile's dtype or in `dtype`; of a mask, how many hold."""
    at = _axis("sum", axis, dim, keepdims, keepdim)
    return _reduced(_given("sum", x, dtype, COMPUTED), at, rowsum, colsum)


@user_call("pto.prod")
def prod(x: Operand, axis: object = None, dtype: object = None, *, keepdims: object = False, dim: object = None,
         keepdim: object = False) -> Operand:
    """Return the product along an axis, in the tile's dtype or in `dtype`."""
    at = _axis("prod", axis, dim, keepdims, keepdim)
    return _reduced(_given("prod", x, dtype, NUMBERS), at, rowprod, _turned(rowprod))


@user_call("pto.mean")
def mean(x: Operand, axis: object = None, dtype: object = None, *, keepdims: object = False, dim: object = None,
         keepdim: object = False) -> Operand:
    """Return the mean along an axis; floats only."""
    at = _axis("mean", axis, dim, keepdims, keepdim)
    return _reduced(_given("mean", x, dtype, FLOATS), at, rowmean, colmean)


@user_call("pto.max")
def largest(x: Operand, axis: object = None, *, keepdims: object = False, dim: object = None, keepdim: object = False) -> Operand:
    """Return the largest element along an axis; of two tiles, the larger of each pair of elements."""
    return _extreme("max", x, axis, keepdims, dim, keepdim)


@user_call("pto.min")
def smallest(x: Operand, axis: object = None, *, keepdims: object = False, dim: object = None, keepdim: object = False) -> Operand:
    """Return the smallest element along an axis; of two tiles, the smaller of each pair of elements."""
    return _extreme("min", x, axis, keepdims, dim, keepdim)


@user_call("pto.max")
def max(x: Operand, y: object = None, *, axis: object = None, keepdims: object = False, dim: object = None,
         keepdim: object = False) -> Operand:
    """Return maximum(x, y); of one tile its largest element along an axis: pto.max(x, axis=1, keepdims=True)."""
    return _of_two_or_one("max", x, y, axis, keepdims, dim, keepdim)


@user_call("pto.min")
def min(x: Operand, y: object = None, *, axis: object = None, keepdims: object = False, dim: object = None,
         keepdim: object = False) -> Operand:
    """Return minimum(x, y); of one tile its smallest element along an axis: pto.min(x, axis=1, keepdims=True)."""
    return _of_two_or_one("min", x, y, axis, keepdims, dim, keepdim)


@user_call("pto.amax")
def amax(x: Operand, axis: object = None, *, keepdims: object = False, dim: object = None, keepdim: object = False) -> Operand:
    """Return the largest element along an axis."""
    return _ends("amax", x, _axis("amax", axis, dim, keepdims, keepdim), rowmax, colmax)


@user_call("pto.amin")
def amin(x: Operand, axis: object = None, *, keepdims: object = False, dim: object = None, keepdim: object = False) -> Operand:
    """Return the smallest element along an axis."""
    return _ends("amin", x, _axis("amin", axis, dim, keepdims, keepdim), rowmin, colmin)


@user_call("pto.any")
def any(x: Operand, axis: object = None, *, keepdims: object = False, dim: object = None, keepdim: object = False) -> Operand:
    """Return a mask: whether any element along an axis holds, or is not 0."""
    return _holds("any", x, _axis("any", axis, dim, keepdims, keepdim), rowmax, colmax)


@user_call("pto.all")
def all(x: Operand, axis: object = None, *, keepdims: object = False, dim: object = None, keepdim: object = False) -> Operand:
    """Return a mask: whether all elements along an axis hold, or are not 0."""
    return _holds("all", x, _axis("all", axis, dim, keepdims, keepdim), rowmin, colmin)


@user_call("pto.argmax")
def argmax(x: Operand, axis: object = None, *, keepdims: object = False, dim: object = None, keepdim: object = False) -> Operand:
    """Return the place of the first largest element along an axis, i32; without an axis, in the tile row by row."""
    return _place(rowargmax, tile_of("argmax", x, COMPUTED), _axis("argmax", axis, dim, keepdims, keepdim))


@user_call("pto.argmin")
def argmin(x: Operand, axis: object = None, *, keepdims: object = False, dim: object = None, keepdim: object = False) -> Operand:
    """Return the place of the first smallest element along an axis, i32; without an axis, in the tile row by row."""
    return _place(rowargmin, tile_of("argmin", x, COMPUTED), _axis("argmin", axis, dim, keepdims, keepdim))


@user_call("pto.var")
def var(x: Operand, axis: object = None, *, ddof: object = 0, keepdims: object = False, dim: object = None, keepdim: object = False,
        correction: object = None, unbiased: object = None) -> Operand:
    """Return the variance along an axis: squared distances from the mean, divided by their number less `ddof`, as NumPy does."""
    return _variance("var", x, axis, ddof, keepdims, (dim, keepdim or None, correction, unbiased))


@user_call("pto.std")
def std(x: Operand, axis: object = None, *, ddof: object = 0, keepdims: object = False, dim: object = None, keepdim: object = False,
        correction: object = None, unbiased: object = None) -> Operand:
    """Return the standard deviation along an axis: the square root of `var`, with `ddof` 0 unless given, as NumPy does."""
    return _variance("std", x, axis, ddof, keepdims, (dim, keepdim or None, correction, unbiased))


# ---- arguments ----

def _axis(name: str, axis: object, dim: object, keepdims: object, keepdim: object) -> int | None:
    """Return the axis of a reduction, None for both, if it keeps the dimensions.

    Raises: T214 otherwise.
    """
    at = typing.as_axes(name, axis, dim)
    if keepdims is True or keepdim is True:
        return at
    shape = {0: "[1, C]", 1: "[R, 1]", None: "[1, 1]"}[at]
    option, kept = ("dim", "keepdim") if dim is not None else ("axis", "keepdims")
    along = "" if at is None else f"{option}={at}, "
    raise TileAxisError(f"`{name}`: a tile in a kernel has two dimensions, and a reduction keeps both", here(), expected=f"{kept}=True",
                           found=f"{kept}=False" if False in (keepdims, keepdim) else f"{kept}={keepdims!r}",
                           help=f"x.{name}({along}{kept}=True) gives {shape}, on whole arrays too"
                                + ("; axis=1 gives [R, 1], axis=0 [1, C]" if at is None else ""))


def _given(name: str, x: object, dtype: object, dtypes: tuple[DType, ...]) -> Operand:
    """Return the tile, converted where the call says in which dtype to compute."""
    if dtype is None:
        return tile_of(name, x, dtypes)
    return in_dtype(tile_of(name, x, ALL), typing.as_dtype(name, dtype, dtypes))


# ---- reductions ----

def _turned(row: Reduce) -> Reduce:
    """Return the reduction of columns that a reduction of rows gives on the transposed tile."""
    return lambda x: transpose(row(transpose(x)))


def _reduced(x: Operand, axis: int | None, row: Reduce, column: Reduce) -> Operand:
    """Return the reduction along an axis; along both, halves round once."""
    if axis is None:
        return in_dtype(column(row(computed(x))), x.dtype if not x.dtype.is_bool else DType.I32)
    return row(x) if axis == 1 else column(x)


def _extreme(name: str, x: object, axis: object, keepdims: object, dim: object, keepdim: object) -> Operand:
    if is_tile(axis):
        return (maximum if name == "max" else minimum)(x, axis)
    if dim is not None:
        raise TileAxisError(f"`{name}`: torch's {name} along `dim` is a pair of values and places", here(),
                               expected=f"axis={dim!r}, for the values", found=f"dim={dim!r}",
                               help=f"x.a{name}(dim={dim!r}, keepdim=True) gives the values, x.arg{name} the places")
    at = _axis(name, axis, None, keepdims, keepdim)
    return _ends(name, x, at, rowmax, colmax) if name == "max" else _ends(name, x, at, rowmin, colmin)


def _ends(name: str, x: object, axis: int | None, row: Reduce, column: Reduce) -> Operand:
    how = "any" if row is rowmax else "all"
    return _reduced(tile_of(name, x, NUMBERS, f"of a mask: x.{how}(axis=1, keepdims=True)"), axis, row, column)


def _of_two_or_one(name: str, x: object, y: object, axis: object, keepdims: object, dim: object, keepdim: object) -> Operand:
    if y is None:
        return _extreme(name, x, axis, keepdims, dim, keepdim)
    if axis is not None or dim is not None or keepdims is not False or keepdim is not False:
        raise ArityError(f"`pto.{name}` takes two tiles, or one and an axis", here(),
                         expected=f"pto.{name}(x, y), or pto.{name}(x, axis=1, keepdims=True)", found="both")
    return (maximum if name == "max" else minimum)(x, y)


def _holds(name: str, x: object, axis: int | None, row: Reduce, column: Reduce) -> Operand:
    tile = tile_of(name, x, COMPUTED)
    mask = tile if tile.dtype.is_bool else ne(tile, 0)
    return ne(_reduced(in_dtype(mask, DType.F32), axis, row, column), 0.0)


def _place(row: Reduce, x: Operand, axis: int | None) -> Operand:
    if axis is None:
        return row(reshape(x, (1, x.shape[0] * x.shape[1])))
    return row(x) if axis == 1 else transpose(row(transpose(x)))


_OF_TORCH = ("dim", "keepdim", "correction", "unbiased")


def _variance(name: str, x: object, axis: object, ddof: object, keepdims: object, of_torch: tuple[object, ...]) -> Operand:
    """Return the variance or its root. `of_torch`: the options that torch has in place of axis, keepdims and ddof, which are refused."""
    given = [f"{option}={value!r}" for option, value in zip(_OF_TORCH, of_torch, strict=True) if value is not None]
    if given:
        at = axis if of_torch[0] is None else of_torch[0]
        raise TileAxisError(f"`{name}`: torch's {name} divides by n - 1 unless told otherwise, NumPy's by n", here(),
                            expected="axis=, keepdims= and ddof=, as NumPy", found=", ".join(given),
                            help=f"x.{name}(axis={1 if at is None else at!r}, ddof=1, keepdims=True) divides by n - 1")
    at, less = _axis(name, axis, None, keepdims, False), whole_number(ddof)
    if less is None or less < 0:
        raise TileAxisError(f"`{name}`: ddof is what the number of elements is lessened by", here(), expected="a whole number >= 0",
                               found=repr(ddof))
    tile = tile_of(name, x, FLOATS)
    wide = computed(tile)
    away = sub(wide, _reduced(wide, at, rowmean, colmean))
    count = tile.shape[-2] * tile.shape[-1] if at is None else tile.shape[at - 2]
    total = _reduced(mul(away, away), at, rowsum, colsum)
    spread = div(total, _lessened(count, less))
    return in_dtype(sqrt(spread) if name == "std" else spread, tile.dtype)


def _lessened(count: int | Symbolic, less: int) -> float | Symbolic:
    """Return count - less, at least 0, as a number to divide floats by."""
    if isinstance(count, Symbolic):
        return (count - less).max(0) if less else count
    return float(count - less if count > less else 0)


FORMULAS = (same(sum, synonyms=("reduce_sum", "total"), tail=Fill.ZERO), same(prod, tail=Fill.ONE), same(mean),
            Formula(max, (), ("reduce_max",), largest, Fill.LOWEST), Formula(min, (), ("reduce_min",), smallest, Fill.HIGHEST),
            same(amax, tail=Fill.LOWEST), same(amin, tail=Fill.HIGHEST), same(any, tail=Fill.ZERO), same(all, tail=Fill.ONE),
            same(argmax, tail=Fill.LOWEST), same(argmin, tail=Fill.HIGHEST), same(var, synonyms=("variance",)), same(std))
