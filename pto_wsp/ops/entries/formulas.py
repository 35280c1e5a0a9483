"""Formulas of other ops under the names of NumPy, torch and JAX: softmax, clamp, cumsum, the logic of masks, conversions, joins.

Halves are computed in f32 and rounded at the end, once. `axis` is NumPy's, `dim` torch's word for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise

from pto_wsp.errors import ArityError, OperandKindError, OptionValueError, TileAxisError
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.indexing import whole_number
from pto_wsp.ops import typing
from pto_wsp.ops.entries.axes import amax, sum
from pto_wsp.ops.entries.cast import cast
from pto_wsp.ops.entries.compare import eq, lt, ne, where
from pto_wsp.ops.entries.create import expand, full, tril, triu
from pto_wsp.ops.entries.elementwise import abs, add, and_, div, maximum, minimum, mul, not_, or_, round, sub, xor
from pto_wsp.ops.entries.formula import computed, in_dtype, same, tile_of
from pto_wsp.ops.entries.functions import exp, log
from pto_wsp.ops.entries.index import argsort, gather, sort
from pto_wsp.ops.entries.matmul import matmul
from pto_wsp.ops.entries.movement import concat, pad, reshape, slice_, transpose
from pto_wsp.ops.entry import Operand, active, is_tile, user_call
from pto_wsp.ops.rounding import ALL, COMPUTED, FLOATS, NUMBERS
from pto_wsp.ops.traits import Fill
from pto_wsp.source import here

# ---- softmax ----


@user_call("pto.softmax")
def softmax(x: Operand, axis: object = None, *, dim: object = None) -> Operand:
    """Return exp(x) divided by its sum along an axis, the last unless given; the largest element is subtracted before."""
    tile, at = tile_of("softmax", x, FLOATS), _one_axis("softmax", axis, dim)
    wide = computed(tile)
    grown = exp(sub(wide, amax(wide, at, keepdims=True)))
    return in_dtype(div(grown, sum(grown, at, keepdims=True)), tile.dtype)


@user_call("pto.log_softmax")
def log_softmax(x: Operand, axis: object = None, *, dim: object = None) -> Operand:
    """Return the logarithm of softmax, without computing the quotient: x - max - log(sum(exp(x - max)))."""
    tile, at = tile_of("log_softmax", x, FLOATS), _one_axis("log_softmax", axis, dim)
    wide = computed(tile)
    away = sub(wide, amax(wide, at, keepdims=True))
    return in_dtype(sub(away, log(sum(exp(away), at, keepdims=True))), tile.dtype)


@user_call("pto.logsumexp")
def logsumexp(x: Operand, axis: object = None, *, keepdims: object = False, dim: object = None, keepdim: object = False) -> Operand:
    """Return log(sum(exp(x))) along an axis, with the largest element subtracted before; -inf of a line of -inf."""
    tile = tile_of("logsumexp", x, FLOATS)
    wide = computed(tile)
    top = amax(wide, axis, keepdims=keepdims, dim=dim, keepdim=keepdim)
    finite = where(eq(abs(top), math.inf), 0.0, top)
    total = sum(exp(sub(wide, finite)), axis, keepdims=keepdims, dim=dim, keepdim=keepdim)
    return in_dtype(add(log(total), finite), tile.dtype)


@user_call("pto.cumsum")
def cumsum(x: Operand, axis: object = None, dtype: object = None, *, dim: object = None) -> Operand:
    """Return running sums along an axis, in the tile's dtype or in `dtype`; of a mask, in i32.

    The terms of a sum are added in doubling steps, s[n] + s[n - step] for steps of 1, 2, 4, …; of a row in blocks of 64, to which the sums
    of the blocks before are added. Halves are added in f32 and round once. So every target gives the same bits.
    """
    at = typing.as_axes("cumsum", axis, dim)
    if at is None:
        raise TileAxisError("`cumsum`: without an axis the result is one-dimensional", here(), expected="axis=0 or axis=1",
                            found="no axis")
    tile = tile_of("cumsum", x, COMPUTED)
    tile = in_dtype(tile, typing.as_dtype("cumsum", dtype, NUMBERS) if dtype is not None else
                    DType.I32 if tile.dtype.is_bool else tile.dtype)
    wide = computed(tile)
    return in_dtype(_sums_of_rows(wide) if at == 1 else _running_sums(wide), tile.dtype)


_BLOCK = 64             # elements of a row; the bits of a sum do not depend on how many elements come behind


def _running_sums(x: Operand) -> Operand:
    """Return running sums down the columns: rows move as a whole."""
    step = 1
    while step < x.shape[0]:
        moved = add(slice_(x, slice(step, None)), slice_(x, slice(0, -step)))
        x = concat(slice_(x, slice(0, step)), moved, axis=0)
        step *= 2
    return x


def _sums_of_rows(x: Operand) -> Operand:
    """Return running sums along the rows of x [R, n], by those of its blocks, [R n / 64, 64]: their columns fill the rows of a device."""
    rows, n = x.shape
    if n <= _BLOCK:
        return transpose(_running_sums(transpose(x)))
    n_blocks = -(-n // _BLOCK)
    padded = x if n == n_blocks * _BLOCK else pad(x, (rows, n_blocks * _BLOCK))
    within = _sums_of_rows(reshape(padded, (rows * n_blocks, _BLOCK)))
    ends = reshape(slice_(within, slice(None), slice(_BLOCK - 1, None)), (rows, n_blocks))
    sums = slice_(_running_sums(transpose(ends)), slice(0, -1))
    before = transpose(concat(full((1, rows), 0, x.dtype), sums, axis=0))
    total = reshape(add(within, reshape(before, (rows * n_blocks, 1))), padded.shape)
    return total if padded is x else slice_(total, slice(None), slice(0, n))


def _one_axis(name: str, axis: object, dim: object) -> int:
    at = typing.as_axes(name, axis, dim)
    if at is None and (axis is not None or dim is not None):
        raise TileAxisError(f"`{name}`: more than one axis", here(), expected="axis=0 or axis=1", found=repr(axis if dim is None else dim))
    return 1 if at is None else at


# ---- elements ----

@user_call("pto.clamp")
def clamp(x: Operand, min: object = None, max: object = None) -> Operand:
    """Return x, at least `min` and at most `max`: numbers, tiles, or None for no bound; NaN stays."""
    tile = tile_of("clamp", x, NUMBERS)
    if min is None and max is None:
        raise ArityError("`pto.clamp` is given no bound", here(), expected="pto.clamp(x, min, max), one of them None", found="neither")
    above = tile if min is None else maximum(tile, min)
    return above if max is None else minimum(above, max)


@user_call("pto.square")
def square(x: Operand) -> Operand:
    """Return x * x; integers wrap."""
    tile = tile_of("square", x, NUMBERS)
    return mul(tile, tile)


@user_call("pto.isnan")
def isnan(x: Operand) -> Operand:
    """Return the mask of NaN; floats only."""
    tile = tile_of("isnan", x, FLOATS)
    return ne(tile, tile)


@user_call("pto.isinf")
def isinf(x: Operand) -> Operand:
    """Return the mask of infinities of either sign; floats only."""
    return eq(abs(tile_of("isinf", x, FLOATS)), math.inf)


@user_call("pto.isfinite")
def isfinite(x: Operand) -> Operand:
    """Return the mask of what is no NaN and no infinity; floats only."""
    return lt(abs(tile_of("isfinite", x, FLOATS)), math.inf)


@user_call("pto.logical_and")
def logical_and(x: Operand, y: Operand) -> Operand:
    """Return the mask of elements where both hold, or are not 0."""
    return and_(_mask("logical_and", x), _mask("logical_and", y))


@user_call("pto.logical_or")
def logical_or(x: Operand, y: Operand) -> Operand:
    """Return the mask of elements where either holds, or is not 0."""
    return or_(_mask("logical_or", x), _mask("logical_or", y))


@user_call("pto.logical_xor")
def logical_xor(x: Operand, y: Operand) -> Operand:
    """Return the mask of elements where one of both holds, or is not 0."""
    return xor(_mask("logical_xor", x), _mask("logical_xor", y))


@user_call("pto.logical_not")
def logical_not(x: Operand) -> Operand:
    """Return the mask of elements that do not hold, or are 0."""
    return not_(_mask("logical_not", x))


def _mask(name: str, x: object) -> Operand:
    tile = tile_of(name, x, COMPUTED)
    return tile if tile.dtype.is_bool else ne(tile, 0)


# ---- whole tiles ----

@user_call("pto.concatenate")
def concatenate(tiles: object, axis: object = 0, *, dim: object = None) -> Operand:
    """Return a list of tiles joined down the rows (axis=0, unless given) or along the columns (axis=1); concat takes tiles, not a list."""
    at = typing.as_axes("concatenate", axis if dim is None else None, dim)
    if at is None or not isinstance(tiles, tuple | list):
        raise OperandKindError("`concatenate` takes a list of tiles and an axis", here(), expected="np.concatenate([a, b], axis=1)",
                               found=f"axis={axis!r}" if at is None else repr(tiles))
    return concat(*tiles, axis=at)


@user_call("pto.stack")
def stack(tiles: object, axis: object = 0) -> object:
    """Return a list of tiles of one type as a tile of one rank more, along a new leading axis: np.stack([a, b])."""
    return active("stack").stack(tiles, axis)


@user_call("pto.split")
def split(x: Operand, sections: object, axis: object = 0, *, dim: object = None) -> list[Operand]:
    """Return equal parts of a tile, `sections` of them, or those between the places that a list names, as np.split does."""
    if dim is not None:
        raise TileAxisError("`split`: torch's split along `dim` takes the size of a part, NumPy's their number", here(),
                            expected=f"axis={dim!r}, and the number of parts", found=f"dim={dim!r}")
    tile, at = tile_of("split", x, ALL), _one_axis("split", axis, None)
    extent = tile.shape[at]
    count = whole_number(sections)
    if count is not None and count >= 1 and extent % count == 0:
        edges = [extent // count * place for place in range(count + 1)]
    elif isinstance(sections, tuple | list) and (places := [n for n in map(whole_number, sections) if n is not None]) \
            and len(places) == len(sections) and [0, *places, extent] == sorted({0, *places, extent}):
        edges = [0, *places, extent]
    else:
        raise OptionValueError(f"`split`: {extent} {'columns' if at else 'rows'} are not split so", here(),
                                expected=f"a divisor of {extent}, or rising places between 0 and {extent}", found=repr(sections))
    parts = [slice(first, last) for first, last in pairwise(edges)]
    return [slice_(tile, slice(None), part) if at else slice_(tile, part) for part in parts]


@user_call("pto.zeros_like")
def zeros_like(x: Operand, dtype: object = None) -> Operand:
    """Return a tile of zeros in the shape of x, and in its dtype unless given."""
    return full_like(x, 0, dtype)


@user_call("pto.ones_like")
def ones_like(x: Operand, dtype: object = None) -> Operand:
    """Return a tile of ones in the shape of x, and in its dtype unless given."""
    return full_like(x, 1, dtype)


@user_call("pto.full_like")
def full_like(x: Operand, value: object, dtype: object = None) -> Operand:
    """Return a tile of one value in the shape of x, and in its dtype unless given."""
    tile = typing.require_tile("full_like", x)
    kind = tile.dtype if dtype is None else typing.as_dtype("full_like", dtype, ALL)
    return full(tile.shape, bool(value) if kind.is_bool and isinstance(value, int) else value, kind)


# ---- methods and NumPy's functions whose arguments differ from those of pto ----

@user_call("where")
def _where(condition: object, x: object, y: object) -> Operand:
    return where(condition, x, y)


@user_call("transpose")
def _transpose(x: Operand, axes: object = None) -> Operand:
    if axes is not None and tuple(axes if isinstance(axes, tuple | list) else ()) != (1, 0):
        raise TileAxisError("`transpose`: a tile has two axes, and NumPy and torch name them differently", here(),
                               expected="no axes", found=repr(axes), help="x.T exchanges rows and columns")
    return transpose(x)


@user_call("reshape")
def _reshape(x: Operand, *shape: object) -> Operand:
    """Return the tile in another shape, one of its extents -1: x.reshape(8, -1)."""
    extents = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
    numbers = [whole_number(extent) for extent in extents] if isinstance(extents, tuple | list) else []
    tile = typing.require_tile("reshape", x)
    if len(numbers) >= 2 and numbers.count(-1) == 1:
        known = math.prod(n for n in numbers if n is not None and n != -1)
        whole = math.prod(tile.shape)
        if known > 0 and whole % known == 0:
            numbers = [whole // known if n == -1 else n for n in numbers]
    return reshape(tile, tuple(numbers) if None not in numbers else extents)


@user_call("astype")
def _astype(x: Operand, dtype: object) -> Operand:
    return cast(x, dtype)


@user_call("round")
def _round(x: Operand, decimals: object = 0) -> Operand:
    if decimals != 0 or isinstance(decimals, bool):
        raise ArityError("`round`: kernels round to whole numbers", here(), expected="no decimals", found=repr(decimals))
    return round(x)


@user_call("sort")
def _sort(x: Operand, axis: object = -1) -> Operand:
    return sort(x) if _one_axis("sort", axis, None) == 1 else transpose(sort(transpose(x)))


@user_call("argsort")
def _argsort(x: Operand, axis: object = -1) -> Operand:
    return argsort(x) if _one_axis("argsort", axis, None) == 1 else transpose(argsort(transpose(x)))


@user_call("take_along_axis")
def _take_along(x: Operand, indices: Operand, axis: object = -1) -> Operand:
    return gather(x, indices, _one_axis("take_along_axis", axis, None))


@user_call("tril")
def _tril(x: Operand, k: int = 0) -> Operand:
    return tril(x, k)


@user_call("triu")
def _triu(x: Operand, k: int = 0) -> Operand:
    return triu(x, k)


@user_call("broadcast_to")
def _broadcast_to(x: Operand, shape: object) -> Operand:
    return expand(x, shape)


@user_call("dot")
def _dot(x: Operand, y: Operand) -> Operand:
    return matmul(x, y) if is_tile(x) and is_tile(y) else mul(x, y)


FORMULAS = (same(softmax, tail=Fill.LOWEST), same(log_softmax, tail=Fill.LOWEST), same(logsumexp, tail=Fill.LOWEST),
            same(cumsum, synonyms=("cumulative_sum", "scan"), tail=Fill.NONE, carries=True), same(clamp, "clip"),
            same(square), same(isnan), same(isinf), same(isfinite), same(logical_and), same(logical_or), same(logical_xor),
            same(logical_not), same(concatenate, "cat"), same(stack), same(split), same(zeros_like), same(ones_like), same(full_like))
# Methods of a tile and functions of NumPy that trace ops of the table, with their own arguments.
METHODS: Mapping[str, Callable[..., object]] = {
    "reshape": _reshape, "astype": _astype, "to": _astype, "type": _astype, "transpose": _transpose, "round": _round, "argsort": _argsort,
    "dot": _dot, "matmul": matmul, "mm": matmul, "tril": _tril, "triu": _triu}
FUNCTIONS_OF_NUMPY: Mapping[str, Callable[..., object]] = {
    **METHODS, "where": _where, "sort": _sort, "take_along_axis": _take_along, "broadcast_to": _broadcast_to, "around": _round}
