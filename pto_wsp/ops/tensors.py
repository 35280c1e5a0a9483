"""Define what the ops of the table mean on arrays of any rank: shapes, dtypes and NumPy values, by the kind of the entry.

Ops work on the last dimension or on the last two; the dimensions in front run along, and broadcast as NumPy's. Only a written 1
broadcasts, a symbol never. Any other function of `pto` with one result is an op here, too: its arguments that are no tiles are attributes.
Ops that kernels do not have stand at the end: `take`, `rows_of`, `arange`, `random`, `full`, and `move`, a collective over the ranks of a
mesh: the same elements, elsewhere.

>>> infer("matmul", [ArrayType((b, t, Const(64)), F32), ArrayType((Const(64), Const(32)), F32)], ())
(ArrayType(shape=(b, t, Const(32)), dtype=DType.F32),)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product as combinations
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pto_wsp.errors import OperandKindError, PtoError, RunBoundsError, UnsupportedDTypeError
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.extents import product, same, simplified
from pto_wsp.ir.scalar import Const, Number, Scalar, add, print_scalar
from pto_wsp.ir.tensor_function import Extents
from pto_wsp.ir.tile import TileType
from pto_wsp.ops.entries.cast import cast
from pto_wsp.ops.entries.elementwise import add as add_
from pto_wsp.ops.entries.elementwise import mul as mul_
from pto_wsp.ops.entries.formula import Formula
from pto_wsp.ops.entries.random import random_at
from pto_wsp.ops.entry import Attrs, Identity
from pto_wsp.ops.formula_trace import as_array, trace_formula
from pto_wsp.ops.rounding import Array
from pto_wsp.ops.spec import ColReduce, Convert, Elementwise, Expand, Iota, Matmul, Op, RowReduce
from pto_wsp.ops.spec import evaluate as evaluate_tiles
from pto_wsp.ops.table import FORMULAS, FUNCTIONS, TABLE
from pto_wsp.ops.traits import Fill
from pto_wsp.ops.typing import misfit
from pto_wsp.ops.whole import Movement, TileFunction
from pto_wsp.source import here

TAKE, ROWS_OF, ARANGE, RANDOM, FULL, MOVE = "take", "rows_of", "arange", "random", "full", "move"
ARRAY_OPS = (TAKE, ROWS_OF, ARANGE, RANDOM, FULL, MOVE)
PLACES = DType.I32       # the dtype of places that ops find
Sizes: TypeAlias = tuple[int, ...]
_WORD = 1 << 32


class ArrayType(NamedTuple):
    """The extents and the dtype of an array."""

    shape: Extents
    dtype: DType

    def __str__(self) -> str:
        return f"[{', '.join(map(print_scalar, self.shape))}] {self.dtype}"


class SizedType(NamedTuple):
    """Numbers in place of an `ArrayType`'s extents: the type of an array of a run."""

    shape: Sizes
    dtype: DType


def entry_of(op: str) -> Op | None:
    """Return the entry of the op table, None for the other ops of arrays."""
    return None if op in ARRAY_OPS else TABLE.get(op)


def formula_of(op: str) -> Callable[..., object] | None:
    """Return the function of `pto` that is no entry of the table; None where there is none of that name."""
    return None if op in ARRAY_OPS or op in TABLE else _FORMULA_CALLS.get(op)


def formula_entry(op: str) -> Formula | None:
    """Return what is stated of a formula, None for a function of which nothing is."""
    return next((formula for formula in FORMULAS if formula.name == op), None)


def weak_dtype(op: str, position: int, dtypes: Sequence[DType | None], attrs: Attrs = ()) -> DType | None:
    """Return the dtype that a number takes as operand number `position`; `dtypes`: None for numbers. None: no number stands there."""
    entry = entry_of(op)
    if entry is None:
        return next((dtype for dtype in dtypes if dtype is not None), None)
    return entry.weak_dtype(position, [None if dtype is None else TileType(1, 1, dtype) for dtype in dtypes], attrs)


_OF_IDENTITY = MappingProxyType({Identity.ZERO: Fill.ZERO, Identity.ONE: Fill.ONE, Identity.LOWEST: Fill.LOWEST,
                                 Identity.HIGHEST: Fill.HIGHEST})


def tail_of(op: str, position: int, attrs: Attrs = ()) -> Fill:
    """Return what operand number `position` must hold in lanes that are not there, along the axis that the op does not leave free.

    A place that is read must be one: the index of a gather holds 0 in every lane that is not there.
    """
    match entry_of(op):
        case Elementwise() | Convert() | Expand() | Iota():
            return Fill.NONE
        case RowReduce(identity=identity) | ColReduce(identity=identity):
            return _OF_IDENTITY[identity]
        case Matmul():
            return Fill.ZERO if position < 2 else Fill.NONE
        case TileFunction(fault=None) as entry:
            return entry.tail(attrs)
        case TileFunction() as entry if len(entry.signature.parameters) == 3:      # x, index, axis: what is read
            return Fill.ZERO if position else Fill.NONE
        case Movement(transposes=True):
            return Fill.NONE
        case None if op == TAKE:
            return Fill.VALID if position else Fill.NONE
        case None if op in ARRAY_OPS:
            return Fill.REFUSED if op == ROWS_OF else Fill.NONE
        case None:
            formula = formula_entry(op)
            return Fill.REFUSED if formula is None else formula.tail
        case _:
            return Fill.REFUSED


# -- types -------------------------------------------------------------------------------------------------------------
def infer(op: str, operands: Sequence[ArrayType | None], attrs: Attrs = (), wanted: ArrayType | None = None) -> tuple[ArrayType, ...]:
    """Return the types of the results: of one, but of two for `rows_of`. None as operand: a scalar, which takes its dtype from the arrays.

    `wanted`: the result's type, for an op that takes its shape from there: `full`, `arange`, `random`, `iota`, `expand`, `reshape`.
    Raises: T202, T203, T204, T213 at the user's line.
    """
    entry, formula = entry_of(op), formula_of(op)
    if entry is None and formula is None:
        return _infer_array_op(op, operands, attrs, wanted)
    dtypes = [None if operand is None else operand.dtype for operand in operands]
    types = [operand if operand is not None else ArrayType((), weak_dtype(op, k, dtypes, attrs) or _refuse_number(op))
             for k, operand in enumerate(operands)]
    match entry:
        case Elementwise() | Convert():
            return ArrayType(_joint(op, [t.shape for t in types], types), _dtype(entry, types, attrs)),
        case RowReduce():
            (x,) = types
            return ArrayType((*_last(op, x, 1)[0], Const(1)), _dtype(entry, types, attrs)),
        case ColReduce():
            (x,) = types
            lead, (_, cols) = _last(op, x, 2)
            return ArrayType((*lead, Const(1), cols), _dtype(entry, types, attrs)),
        case Matmul():
            return _infer_product(entry, types, attrs),
        case Expand() | Iota():
            result = _wanted(op, wanted)
            dtype = _dtype(entry, types, (("shape", (1, 1)),)) if types else result.dtype
            for t in types:
                _joint(op, [t.shape, result.shape], [t, result])
            return ArrayType(result.shape, dtype),
        case Movement(keeps_order=True):
            (x,), result = types, _wanted(op, wanted)
            if not same(product(x.shape), product(result.shape)):
                raise misfit(f"`{op}`: another number of elements", f"as many as {x}", str(result))
            return ArrayType(result.shape, x.dtype),
        case _:
            return _infer_tiles(op, entry or formula, types, operands, attrs),


def _refuse_number(op: str) -> DType:
    raise OperandKindError(f"`{op}` takes an array here", here(), expected="an array", found="a number")


def _wanted(op: str, wanted: ArrayType | None) -> ArrayType:
    if wanted is None:
        raise misfit(f"`{op}`: no shape is given", "the shape of the result")
    return wanted


def _last(op: str, x: ArrayType, n: int) -> tuple[Extents, Extents]:
    """Return the extents in front, and the last n."""
    if len(x.shape) < n:
        raise misfit(f"`{op}`: too few dimensions", f"at least {n}", str(x))
    return x.shape[:len(x.shape) - n], x.shape[len(x.shape) - n:]


def _dtype(entry: Op, types: Sequence[ArrayType], attrs: Attrs) -> DType:
    """Return the dtype of the result; the entry's own rules check those of the operands."""
    try:
        return entry.infer([TileType(1, 1, t.dtype) for t in types], attrs).dtype
    except PtoError as problem:
        raise type(problem)(problem.message.replace("pto.", ""), problem.span, expected=problem.expected,
                            found=" and ".join(map(str, types)), help=problem.help) from None


def joint_shape(shapes: Sequence[Extents]) -> Extents | None:
    """Return the shape that shapes broadcast to; None if two extents of a dimension differ and neither is the number 1."""
    rank = max(map(len, shapes), default=0)
    found: list[Scalar] = []
    for back in range(rank, 0, -1):
        extents = [shape[-back] for shape in shapes if len(shape) >= back]
        large = [extent for extent in extents if extent != Const(1)]
        if any(not same(large[0], other) for other in large[1:]):
            return None
        found.append(min(large, key=lambda extent: not isinstance(extent, Const), default=Const(1)))
    return tuple(found)


def _joint(op: str, shapes: Sequence[Extents], types: Sequence[ArrayType]) -> Extents:
    found = joint_shape(shapes)
    if found is None:
        ones = any(not isinstance(extent, Const) for shape in shapes for extent in shape)
        raise misfit(f"`{op}`: the operands' shapes do not fit", "equal extents, or 1", " and ".join(map(str, types)),
                     "an extent that is a symbol broadcasts never: write a 1 where an axis repeats" if ones else None)
    return found


def _infer_product(entry: Matmul, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
    dtype = _dtype(entry, types, attrs)
    fronts, tiles = zip(*(_last(entry.name, t, 2) for t in types), strict=True)
    (m, k), (inner, n) = (tile[::-1] if (side, True) in attrs else tile
                          for side, tile in zip(("transpose_a", "transpose_b"), tiles, strict=False))
    if not same(k, inner):
        raise misfit(f"`{entry.name}`: {print_scalar(k)} columns meet {print_scalar(inner)} rows", "[M, K] @ [K, N]",
                     f"{types[0]} @ {types[1]}")
    if len(types) == 3 and not (same(tiles[2][0], m) and same(tiles[2][1], n)):
        raise misfit(f"`{entry.name}`: acc has another shape than the product", f"[{print_scalar(m)}, {print_scalar(n)}]", str(types[2]))
    return ArrayType((*_joint(entry.name, fronts, types), m, n), dtype)


_FIRST_STANDIN, _STANDIN_STEP = 1_000_003, 17_011


def _infer_tiles(op: str, entry: object, types: Sequence[ArrayType], given: Sequence[ArrayType | None], attrs: Attrs) -> ArrayType:
    """Return the type that an op of tiles gives on the last two dimensions.

    Extents that are no numbers have numbers as stand-ins, which the op must hand through as they are.
    """
    rank = max((len(t.shape) for t in types), default=2)
    standins: dict[Scalar, int] = {}

    def number(extent: Scalar) -> int:
        extent = simplified(extent)
        return int(extent.value) if isinstance(extent, Const) else \
            standins.setdefault(extent, _FIRST_STANDIN + _STANDIN_STEP * len(standins))

    tiles = []
    for t in types:
        rows, cols = (Const(1), Const(1), *t.shape)[-2:]
        tiles.append(TileType(number(rows), number(cols), t.dtype))
    try:
        if isinstance(entry, Movement | TileFunction):
            result = entry.infer(tiles, attrs)
        else:
            trace = trace_formula(entry, [0 if one is None else tile for one, tile in zip(given, tiles, strict=True)],  # type: ignore[arg-type]
                                  attrs)
            result = trace.result.type if trace.result is not None else tiles[0]
    except PtoError as problem:
        raise type(problem)(problem.message.replace("pto.", ""), problem.span, expected=problem.expected,
                            found=" and ".join(map(str, types)), help=problem.help) from None
    back: Mapping[int, Scalar] = {stand: extent for extent, stand in standins.items()}
    if any(extent >= _FIRST_STANDIN and extent not in back for extent in result.shape):
        raise misfit(f"`{op}`: the last two dimensions are to be numbers", None, " and ".join(map(str, types)),
                     "write the parts one by one into an array of the new shape")
    n_rows, n_cols = (back.get(extent, Const(extent)) for extent in result.shape)
    front = _joint(op, [t.shape[:-2] for t in types], types)
    return ArrayType((n_cols,) if rank < 2 and n_rows == Const(1) else (*front, n_rows, n_cols), result.dtype)


# -- values ------------------------------------------------------------------------------------------------------------
def evaluate(op: str, operands: Sequence[Array | Number], attrs: Attrs, results: Sequence[SizedType]) -> tuple[Array, ...]:
    """Return the results on NumPy arrays and numbers: in each dtype with the bits that kernels' interpreter gives.

    `results`: their shapes and dtypes. A result that has another shape is returned with that.
    Raises: R104 for a maximum, minimum or place of nothing, and for an index that is outside.
    """
    with np.errstate(all="ignore"):
        entry, formula = entry_of(op), formula_of(op)
        if entry is None and formula is None:
            return _ARRAY_VALUES[op](operands, attrs, results)
        if 0 in results[0].shape:
            return np.zeros(results[0].shape, results[0].dtype.np),
        dtypes = [DType.from_numpy(x.dtype) if isinstance(x, np.ndarray) else None for x in operands]
        arrays = [np.ascontiguousarray(x).reshape(x.shape) if isinstance(x, np.ndarray)
                  else as_array(x, weak_dtype(op, k, dtypes, attrs) or results[0].dtype) for k, x in enumerate(operands)]
        value = _evaluate_formula(formula, arrays, operands, attrs, results[0]) if formula is not None \
            else _evaluate_entry(entry, arrays, attrs, results[0])      # type: ignore[arg-type]
        return np.asarray(value, results[0].dtype.np, order="C"),


def _evaluate_entry(entry: Op, arrays: Sequence[Array], attrs: Attrs, result: SizedType) -> Array:
    match entry:
        case Elementwise() | Convert():
            return entry.evaluate(arrays, TileType(1, 1, result.dtype), attrs)
        case RowReduce() | ColReduce():
            axis = -1 if isinstance(entry, RowReduce) else -2
            if arrays[0].shape[axis] == 0 and entry.identity in (Identity.LOWEST, Identity.HIGHEST):
                _refuse_nothing(entry.name)
            return entry.ref(entry_widened(arrays[0]), axis)
        case Expand():
            return np.broadcast_to(arrays[0], result.shape)
        case Iota():
            numbers = np.arange(result.shape[-1]) if ("axis", 1) in attrs else np.arange(result.shape[-2])[:, None]
            return np.broadcast_to(numbers.astype(result.dtype.np), result.shape)
        case Movement(keeps_order=True):
            return arrays[0].reshape(result.shape)
        case Movement(transposes=True):
            return np.swapaxes(arrays[0], -1, -2)
        case Matmul():
            return _by_tiles(lambda tiles: evaluate_tiles(entry, tiles, TileType(1, 1, result.dtype), attrs), arrays, result)
        case TileFunction():
            if entry.gives_columns and arrays[0].shape[-1] < max(result.shape[-1], 1):
                _refuse_nothing(entry.name, max(result.shape[-1], 1))
            _check_places(entry, arrays, attrs)
    row_wise = isinstance(entry, TileFunction) and (entry.gives_columns or ("axis", 1) in attrs)
    return (_by_rows if row_wise else _by_tiles)(lambda tiles: _tile_of(entry, tiles, attrs), arrays, result)


def _tile_of(entry: Op, tiles: Sequence[Array], attrs: Attrs) -> Array:
    return evaluate_tiles(entry, tiles, entry.infer([TileType(x.shape[0], x.shape[1], DType.from_numpy(x.dtype)) for x in tiles], attrs),
                          attrs)


def entry_widened(x: Array) -> Array:
    """Return halves as f32, in which reductions add them up."""
    return x.astype(np.float32) if DType.from_numpy(x.dtype).is_half else x


def _refuse_nothing(op: str, least: int = 1) -> None:
    raise RunBoundsError(f"`{op}` of too few elements", expected=f"at least {least} along the axis")


def _check_places(entry: TileFunction, arrays: Sequence[Array], attrs: Attrs) -> None:
    """Raise R104 for the first index that is outside."""
    if entry.fault is None:
        return
    at = next(value for name, value in attrs if name == "axis")
    extent, index = arrays[0].shape[-1 if at == 1 else -2], arrays[1]
    outside = np.argwhere((index < 0) | (index >= extent))
    if len(outside):
        place = tuple(int(n) for n in outside[0])
        raise RunBoundsError(f"`{entry.name}`: the index is outside", expected=f"0 … {extent - 1}",
                                found=f"{index[place]} at {list(place)}")


def _by_rows(run: Callable[[Sequence[Array]], Array], arrays: Sequence[Array], result: SizedType) -> Array:
    """Run an op of tiles, in which no row depends on another, on all rows at once."""
    front = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
    rows = [np.ascontiguousarray(np.broadcast_to(x, (*front, x.shape[-1]))).reshape(math.prod(front), x.shape[-1]) for x in arrays]
    if not math.prod(front):
        return np.zeros(result.shape, result.dtype.np)
    found = run(rows)
    return found.reshape(*front, found.shape[-1])


def _by_tiles(run: Callable[[Sequence[Array]], Array], arrays: Sequence[Array], result: SizedType) -> Array:
    """Run an op of tiles on each tile of the last two dimensions."""
    rank = max(x.ndim for x in arrays)
    tiles = [x.reshape((1,) * (2 - x.ndim) + x.shape) for x in arrays]
    front = np.broadcast_shapes(*(x.shape[:-2] for x in tiles))
    tiles = [np.broadcast_to(x, (*front, *x.shape[-2:])) for x in tiles]
    if not math.prod(front):
        return np.zeros(result.shape, result.dtype.np)
    parts = [run([np.ascontiguousarray(x[at]) for x in tiles]) for at in combinations(*map(range, front))]
    found = np.stack(parts).reshape(*front, *parts[0].shape)
    return found[0] if rank < 2 and found.shape[0] == 1 else found


def _evaluate_formula(call: Callable[..., object], arrays: Sequence[Array], operands: Sequence[Array | Number], attrs: Attrs,
                      result: SizedType) -> Array:
    numbers = {k: x for k, x in enumerate(operands) if not isinstance(x, np.ndarray)}
    places = [k for k in range(len(arrays)) if k not in numbers]

    def run(tiles: Sequence[Array]) -> Array:
        given: list[Array | Number] = [numbers.get(k, 0) for k in range(len(arrays))]
        for k, tile in zip(places, tiles, strict=True):
            given[k] = tile
        found = trace_formula(call, given, attrs).result
        return found.array if found is not None and found.array is not None else np.zeros(result.shape, result.dtype.np)

    return _by_tiles(run, [arrays[k] for k in places], result)


# -- ops that kernels do not have --------------------------------------------------------------------------------------
def _infer_array_op(op: str, operands: Sequence[ArrayType | None], attrs: Attrs, wanted: ArrayType | None) -> tuple[ArrayType, ...]:
    match op, tuple(operands):
        case "take", (ArrayType(shape, dtype), ArrayType() as table) if shape:
            _check_table(op, table)
            return ArrayType((*table.shape, *shape[1:]), dtype),
        case "rows_of", (ArrayType() as table,):
            _check_table(op, table)
            count = next((value for name, value in attrs if name == "n"), None)
            if not isinstance(count, int | Scalar) or isinstance(count, bool):
                raise misfit(f"`{op}`: n is the number of rows", "a whole number", repr(count))
            rows = Const(count) if isinstance(count, int) else count
            return ArrayType((product(table.shape),), PLACES), ArrayType((simplified(add(rows, Const(1))),), PLACES)
        case ("arange", (None, None)) | ("full", (None,)):
            return _wanted(op, wanted),
        case "random", (None, None, *strides) if not any(strides):
            return _wanted(op, wanted),
        case "move", (ArrayType() as moved,):
            return moved,
        case _ if op in ARRAY_OPS:
            raise OperandKindError(f"`{op}` takes other operands", here(), found=" and ".join(map(str, operands)))
        case _:
            raise OperandKindError(f"arrays have no op `{op}`", here())


def _check_table(op: str, table: ArrayType) -> None:
    if not table.dtype.is_integer:
        raise UnsupportedDTypeError(f"`{op}`: the table holds no places", here(), expected="whole numbers", found=str(table))


def check_table(op: str, table: Array, extent: int) -> Array:
    """Return the entries of a table as i64.

    Raises: R104 for the first that is outside 0 … extent - 1.
    """
    outside = np.argwhere((table < 0) | (table >= extent))
    if len(outside):
        place = tuple(int(n) for n in outside[0])
        raise RunBoundsError(f"`{op}`: an entry of the table is outside", expected=f"0 … {extent - 1}" if extent else "no entry",
                             found=f"{table[place]} at {list(place)}")
    return table.astype(np.int64)


def _array(operand: Array | Number) -> Array:
    return operand if isinstance(operand, np.ndarray) else np.asarray(operand)


def _taken(operands: Sequence[Array | Number], attrs: Attrs, results: Sequence[SizedType]) -> tuple[Array, ...]:
    source, table = map(_array, operands)
    return np.ascontiguousarray(source[check_table(TAKE, table, source.shape[0])]).reshape(*table.shape, *source.shape[1:]),


def _rows_of(operands: Sequence[Array | Number], attrs: Attrs, results: Sequence[SizedType]) -> tuple[Array, ...]:
    (count,) = results[1].shape
    table = check_table(ROWS_OF, _array(operands[0]).ravel(), count - 1)
    starts = np.concatenate(([0], np.cumsum(np.bincount(table, minlength=count - 1))))
    places = np.argsort(table, kind="stable").astype(PLACES.np)
    return (places, starts.astype(PLACES.np), np.argsort(places).astype(PLACES.np))[:len(results)]


def _counted(operands: Sequence[Array | Number], attrs: Attrs, results: Sequence[SizedType]) -> tuple[Array, ...]:
    (result,) = results
    start, step = (as_array(_array(n).item(), result.dtype) for n in operands)
    numbers = convert_numbers(np.arange(result.shape[-1]), result.dtype)
    scaled = evaluate(mul_.name, (numbers, step), (), (SizedType(numbers.shape, result.dtype),))[0]
    found = evaluate(add_.name, (scaled, start), (), (SizedType(numbers.shape, result.dtype),))[0]
    return np.ascontiguousarray(np.broadcast_to(found, result.shape)),


def convert_numbers(x: Array, dtype: DType) -> Array:
    """Return an array in another dtype, as the op that casts does."""
    return evaluate(cast.name, (x,), (("dtype", dtype),), (SizedType(x.shape, dtype),))[0]


def _drawn(operands: Sequence[Array | Number], attrs: Attrs, results: Sequence[SizedType]) -> tuple[Array, ...]:
    """Return numbers that depend on seed and place alone: that of index (i, j) is first + i * strides[0] + j * strides[1], modulo 2^32."""
    (result,) = results
    seed, first, *strides = (int(_array(one).item()) for one in operands)
    places = np.full(result.shape, first % _WORD, np.uint64)
    for dim, (extent, stride) in enumerate(zip(result.shape, strides, strict=True)):
        steps = np.arange(extent, dtype=np.uint64) * np.uint64(stride % _WORD)
        places += steps.reshape(-1, *(1,) * (len(strides) - dim - 1))
    drawn = trace_formula(random_at, (places.astype(np.uint32).reshape(1, -1),), (("seed", seed),)).result if places.size else None
    values = drawn.array if drawn is not None and drawn.array is not None else np.zeros(result.shape, np.float32)
    return convert_numbers(values.reshape(result.shape), result.dtype),


def _filled(operands: Sequence[Array | Number], attrs: Attrs, results: Sequence[SizedType]) -> tuple[Array, ...]:
    (result,) = results
    return as_array(_array(operands[0]).item(), result.dtype, result.shape),


def moved(array: Array, attrs: Attrs) -> Array:
    """Return what a collective gives on whole arrays: its argument, and a halo the argument between k rows of zeros."""
    beside = _rows_beside(attrs)
    return np.pad(array, [(beside.get(dim, 0),) * 2 for dim in range(array.ndim)]) if beside else array


def moved_shape(shape: Extents, attrs: Attrs) -> Extents:
    """Return the extents of what a collective gives."""
    beside = _rows_beside(attrs)
    return tuple(simplified(add(n, Const(2 * beside[dim]))) if dim in beside else n for dim, n in enumerate(shape))


def _rows_beside(attrs: Attrs) -> Mapping[int, int]:
    """Return how many rows a collective puts at both ends of a dimension."""
    said: dict[str, Any] = dict(attrs)
    return {said["dim"]: said["k"]} if said["move"] == "halo" else {}


_ARRAY_VALUES: Mapping[str, Callable[[Sequence[Array | Number], Attrs, Sequence[SizedType]], tuple[Array, ...]]] = MappingProxyType({
    TAKE: _taken, ROWS_OF: _rows_of, ARANGE: _counted, RANDOM: _drawn, FULL: _filled,
    MOVE: lambda operands, attrs, results: (moved(_array(operands[0]), attrs),)})
_FORMULA_CALLS: Mapping[str, Callable[..., object]] = MappingProxyType({function.__name__: function for function in FUNCTIONS})
