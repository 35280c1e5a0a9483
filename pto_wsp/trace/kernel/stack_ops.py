"""Trace functions of tiles on stacks: tile by tile, but for those that a leading axis gives another meaning.

An axis is NumPy's: of a stack of rank n, axes n-2 and n-1 are rows and columns, those before them leading ones. Along a leading axis tiles
are added (or multiplied, compared) one after the other, in the order of the index, so that the bits depend on nothing else.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from inspect import BoundArguments, Signature
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np

from pto_wsp.errors import LeadingAxesError, TileAxisError, ValueUseError
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.indexing import whole_number
from pto_wsp.ir.tile import TileType, indices
from pto_wsp.ops import typing
from pto_wsp.ops.entries import axes, create, elementwise, movement
from pto_wsp.ops.entries.compare import ne
from pto_wsp.ops.entries.formula import computed, in_dtype
from pto_wsp.ops.entry import Operand, is_stack, is_tile
from pto_wsp.ops.rounding import COMPUTED, FLOATS, NUMBERS
from pto_wsp.ops.spec import ColReduce, Elementwise, Matmul, Op, RowReduce
from pto_wsp.ops.table import TABLE
from pto_wsp.source import here
from pto_wsp.trace.kernel.stack import TileStack, axes_of, broadcast_leading, check_leading, each_tile, is_long, permuted, stacks_in, values
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Called:
    """A call with stacks, or the shape of a stack, among the arguments. `name`: the function as users write it: pto.sum, reshape."""

    name: str
    function: Callable[..., Any]
    expected: Signature
    arguments: Mapping[str, object] = field(repr=False)

    @property
    def rank(self) -> int:
        """The number of axes of the largest stack."""
        return max(stack.ndim for stack in stacks_in(self.arguments))

    @property
    def largest(self) -> TileStack:
        """The first stack of the highest rank."""
        return max(stacks_in(self.arguments), key=lambda stack: stack.ndim)

    def run(self, changed: Mapping[str, object] = MappingProxyType({})) -> Any:
        """Return what the function gives for the arguments, some of them changed."""
        bound = BoundArguments(self.expected, OrderedDict({**self.arguments, **changed}))
        return self.function(*bound.args, **bound.kwargs)

    def of_each(self) -> Any:
        """Return what the function gives for each tile."""
        return each_tile(self.name, self.arguments, self.run)


def spread(name: str, function: Callable[..., Any], expected: Signature, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Any:
    """Return the result of a function of tiles for stacks; without a stack among the arguments, the function is called once."""
    try:
        bound = expected.bind(*args, **kwargs)
    except TypeError:
        return function(*args, **kwargs)      # says what does not fit
    for parameter in expected.parameters.values():
        if parameter.name == "axis" and type(parameter.default) is int and parameter.default == 0:
            bound.arguments.setdefault("axis", 0)
    call = Called(name, function, expected, bound.arguments)
    long = "shape" in call.arguments and is_long(call.arguments["shape"])
    if not long and not any(True for _ in stacks_in(call.arguments)):
        return function(*args, **kwargs)
    rule = _RULES.get(name)
    if rule is not None:
        return rule(call)
    return _along_axes(call) if any(True for _ in stacks_in(call.arguments)) else call.of_each()


# -- axes --------------------------------------------------------------------------------------------------------------

_OPTIONS = ("axis", "dim")


def _along_axes(call: Called) -> Any:
    """Return what a function gives along axes of a stack: rows and columns tile by tile, leading ones by folding tiles.

    Raises: T214 for a leading axis that the function does not reduce.
    """
    option = next((each for each in _OPTIONS if call.arguments.get(each) is not None), None)
    given = None if option is None else call.arguments[option]
    has_axes = any(each in call.expected.parameters for each in _OPTIONS)
    if not has_axes or is_tile(given) or is_stack(given) or call.arguments.get("y") is not None:      # pto.max(x, y), x.max(y)
        _check_types(call)
        return call.of_each()
    stack, n_leading = call.largest, call.rank - 2
    reduces = "keepdims" in call.expected.parameters
    if option is None and not (reduces or call.name == "pto.cumsum"):
        return call.of_each()                 # the default is an axis of each tile
    chosen = tuple(range(call.rank)) if option is None else axes_of(call.name, given, stack)
    keeps = call.arguments.get("keepdims", False) is True or call.arguments.get("keepdim", False) is True
    leading, inner = [axis for axis in chosen if axis < n_leading], tuple(axis - n_leading for axis in chosen if axis >= n_leading)
    fold = _FOLDS.get(call.name)
    if leading and fold is None:
        _refuse_leading(call, stack, given)
    if reduces and inner and not keeps:
        raise TileAxisError(f"`{call.name.removeprefix('pto.')}`: rows and columns of a tile in a kernel stay, with an extent of 1", here(),
                            expected="keepdims=True", found=f"axis={given!r} of {stack.type!r}, without it",
                            help="a reduction along leading axes alone may drop them")
    if leading and fold is not None:
        if option == "dim" and call.name in ("pto.max", "pto.min"):
            return call.run({"x": stack.parts[0], "dim": 0})      # torch's pair of values and places is refused
        return _folded(call, fold, stack, leading, inner, keeps)
    with_axis: Mapping[str, object] = {**call.arguments, str(option): inner[0] if len(inner) == 1 else inner}
    return Called(call.name, call.function, call.expected, with_axis).of_each()


def _refuse_leading(call: Called, stack: TileStack, given: object) -> None:
    name = call.name.removeprefix("pto.")
    raise TileAxisError(f"`{name}` works along rows and columns, not along a leading axis", here(),
                        expected=f"axis {stack.ndim - 1} (or -1) or {stack.ndim - 2} (or -2)", found=f"axis={given!r} of {stack.type!r}",
                        help="sum, prod, mean, max, min, any and all reduce leading axes: a softmax is e / e.sum(axis=0, keepdims=True)")


@dataclass(frozen=True, slots=True)
class Fold:
    """A reduction along leading axes: the op that joins two tiles, the reduction of a tile, and the dtypes."""

    join: Op
    within: Callable[..., Operand]
    dtypes: tuple[DType, ...]
    adds: bool = False      # sums and products, of which halves are computed in f32
    holds: bool = False     # of masks
    mean: bool = False


_FOLDS: Mapping[str, Fold] = MappingProxyType({
    "pto.sum": Fold(elementwise.add, axes.sum, COMPUTED, adds=True),
    "pto.prod": Fold(elementwise.mul, axes.prod, NUMBERS, adds=True),
    "pto.mean": Fold(elementwise.add, axes.sum, FLOATS, adds=True, mean=True),
    **{f"pto.{name}": Fold(elementwise.maximum, axes.amax, NUMBERS) for name in ("max", "amax")},
    **{f"pto.{name}": Fold(elementwise.minimum, axes.amin, NUMBERS) for name in ("min", "amin")},
    "pto.any": Fold(elementwise.or_, axes.any, COMPUTED, holds=True),
    "pto.all": Fold(elementwise.and_, axes.all, COMPUTED, holds=True)})


def _folded(call: Called, fold: Fold, stack: TileStack, leading: Sequence[int], inner: tuple[int, ...], keeps: bool) -> Any:
    name = call.name.removeprefix("pto.")
    x: Any = stack._read()
    if call.arguments.get("dtype") is not None:
        x = in_dtype(x, typing.as_dtype(name, call.arguments["dtype"], fold.dtypes))
    typing.check_dtype(name, x.type, fold.dtypes)
    if x.dtype.is_bool and fold.adds:
        x = in_dtype(x, DType.I32)
    given = x.dtype
    if fold.holds and not given.is_bool:
        x, given = ne(x, 0), DType.BOOL
    if fold.adds:
        x = computed(x)
    count = math.prod(stack.leading[axis] for axis in leading)
    if inner:
        count *= math.prod(stack.shape[axis + len(stack.leading)] for axis in inner)
        x = fold.within(x, inner_axes(inner, stack), keepdims=True)
    kept = [axis for axis in range(len(stack.leading)) if axis not in leading]
    numbers = np.arange(len(x.parts)).reshape(stack.leading).transpose(*kept, *leading).reshape(*(stack.leading[axis] for axis in kept), -1)
    results: list[Any] = []
    for index in product(*(range(stack.leading[axis]) for axis in kept)):
        total: Any = None
        for number in numbers[index]:
            total = x.parts[number] if total is None else fold.join(total, x.parts[number])
        results.append(in_dtype(elementwise.div(total, float(count)) if fold.mean else total, given))
    shape = tuple(1 if axis in leading else extent for axis, extent in enumerate(stack.leading) if keeps or axis not in leading)
    return TileStack(shape, results) if shape else results[0]


def inner_axes(inner: tuple[int, ...], stack: TileStack) -> tuple[int, ...]:
    """Return axes of a tile as axes of the stack."""
    return tuple(axis + len(stack.leading) for axis in inner)


def _check_types(call: Called) -> None:
    """Raise what an op refuses of the whole types, of an op whose operands are all its arguments."""
    entry = TABLE.get(call.name.removeprefix("pto."))
    if not isinstance(entry, Elementwise | Matmul | RowReduce | ColReduce) or not call.name.startswith("pto."):
        return
    operands = [value for name, value in call.arguments.items() if name != getattr(entry, "option", "") and value is not None]
    types = [value.type if is_tile(value) and hasattr(value, "type") else None for value in operands]
    masks = isinstance(entry, RowReduce | ColReduce) and entry.counts_masks and types[0] is not None and types[0].dtype.is_bool
    if masks or (isinstance(entry, Elementwise) and entry.mask_first and not any(types[1:])):
        return
    known: list[TileType] = []
    for position, each in enumerate(types):
        dtype = entry.weak_dtype(position, types, ()) if each is None else None
        known += [each] if each is not None else [] if dtype is None else [TileType(1, 1, dtype)]
    if len(known) == len(operands):
        entry.infer(known, ())
        broadcast_leading(f"`{call.name}`", known)


# -- functions with a meaning of their own -----------------------------------------------------------------------------

def _reshape(call: Called) -> Any:
    """Return the elements in row-major order as a tile of another shape, of any rank from 2 on."""
    x, shape = call.arguments["x"], call.arguments["shape"]
    if not is_tile(x) or not (is_long(shape) or len(typing.as_shape(movement.reshape.name, shape)) == 2):
        return call.run()
    extents = tuple(int(n) for n in shape) if isinstance(shape, tuple | list) else ()
    found = x.type if isinstance(x, TileStack) else TileType(*x.shape, x.dtype)
    if math.prod(extents) != math.prod(x.shape):
        raise LeadingAxesError(f"`pto.reshape`: {list(extents)} has another number of elements", here(),
                                expected=f"{math.prod(x.shape)} elements", found=f"{math.prod(extents)}, from {found!r}")
    *leading, rows, cols = extents
    check_leading("`pto.reshape`", tuple(leading))
    parts: list[Any] = list(values(x))  # type: ignore[arg-type]
    count = math.prod(leading)
    if len(parts) != count:
        joined = parts[0] if len(parts) == 1 else movement.concat(*parts, axis=0)
        if count == 1:
            parts = [joined]
        else:
            whole = joined if joined.shape[1] == cols else movement.reshape(joined, (count * rows, cols))
            parts = [movement.slice_(whole, slice(n * rows, (n + 1) * rows)) for n in range(count)]
    parts = [part if part.shape == (rows, cols) else movement.reshape(part, (rows, cols)) for part in parts]
    return TileStack(tuple(leading), parts) if leading else parts[0]


def _transpose(call: Called) -> Any:
    return permuted(call.largest, call.arguments.get("axes"))


def _iota(call: Called) -> Any:
    """Return the positions along an axis of a stack."""
    shape, axis = call.arguments["shape"], whole_number(call.arguments.get("axis", 1))
    extents = tuple(int(n) for n in shape) if isinstance(shape, tuple | list) else ()
    n_leading = len(extents) - 2
    if "axis" not in call.arguments or axis is None or not 0 <= axis < len(extents) or axis >= n_leading:
        changed = {} if axis is None or "axis" not in call.arguments else {"axis": axis - n_leading if axis >= n_leading else axis}
        return Called(call.name, call.function, call.expected, {**call.arguments, **changed}).of_each()
    check_leading("`pto.iota`", extents[:-2])
    dtype = typing.as_dtype(create.iota.name, call.arguments.get("dtype", DType.I32), NUMBERS)
    tiles: list[Any] = [create.full((extents[-2], extents[-1]), n, dtype) for n in range(extents[axis])]
    return TileStack(extents[:-2], [tiles[index[axis]] for index in indices(extents[:-2])])


def _random(call: Called) -> Any:
    """Return random numbers as of a tile of all rows, those of one leading index after those of another."""
    shape = call.arguments["shape"]
    extents = tuple(int(n) for n in shape) if isinstance(shape, tuple | list) else ()
    check_leading("`pto.random`", extents[:-2])
    return movement.reshape(call.run({"shape": (math.prod(extents[:-1]), extents[-1])}), extents)


def _join(call: Called) -> Any:
    """Return tiles joined along an axis: along a leading one, the tiles of one behind those of another."""
    given = call.arguments.get("tiles")
    nested = isinstance(given, tuple | list) and len(given) == 1 and isinstance(given[0], tuple | list)
    tiles: Sequence[object] = given[0] if nested else given  # type: ignore[index, assignment]
    stack = call.largest
    option = "dim" if call.arguments.get("dim") is not None else "axis"
    if option not in call.arguments:
        return call.of_each()                 # pto.concat: columns
    axis = axes_of(call.name, call.arguments[option], stack)[0]
    if axis >= call.rank - 2:
        return Called(call.name, call.function, call.expected, {**call.arguments, option: axis - (call.rank - 2)}).of_each()
    if any(not isinstance(each, TileStack) or each.type.each != stack.type.each or each.ndim != stack.ndim
           or any(n != m for at, (n, m) in enumerate(zip(each.leading, stack.leading, strict=True)) if at != axis) for each in tiles):
        raise LeadingAxesError(f"`{call.name}`: tiles that differ in another axis than {axis}", here(),
                                expected="one type, but for that axis", found=" and ".join(map(_type, tiles)))
    whole = [each for each in tiles if isinstance(each, TileStack)]
    joined: list[Any] = [value for each in whole for value in values(each)]
    begins = np.cumsum([0, *(len(each.parts) for each in whole)])
    numbers = np.concatenate([int(begin) + np.arange(len(each.parts)).reshape(each.leading)
                              for begin, each in zip(begins, whole, strict=False)], axis=axis)
    check_leading(f"`{call.name}`", numbers.shape)
    return TileStack(numbers.shape, [joined[n] for n in numbers.ravel()])


def _split(call: Called) -> Any:
    stack = call.largest
    axis = axes_of("split", call.arguments["axis"], stack)[0]
    if axis < stack.ndim - 2:
        _refuse_split(stack, axis)
    return Called(call.name, call.function, call.expected, {**call.arguments, "axis": axis - (stack.ndim - 2)}).of_each()


def _refuse_split(stack: TileStack, axis: int) -> None:
    raise TileAxisError("`split` works along rows and columns, not along a leading axis", here(), found=f"axis={axis} of {stack.type!r}",
                        expected=f"axis {stack.ndim - 1} or {stack.ndim - 2}", help="take slices: x[0:2], x[2:4]")


def _dot(call: Called) -> Any:
    raise ValueUseError("np.dot of tiles of rank 3 joins every tile with every other", here(), expected="a product of each tile",
                        found=" and ".join(repr(stack.type) for stack in stacks_in(call.arguments)), help="write a @ b")


def stack_tiles(tiles: object, axis: object) -> TileStack:
    """Return tiles of one type, along a new leading axis.

    Raises: T202 for tiles of different types, T213 for none, T214 for an axis behind the leading ones.
    """
    given = list(tiles) if isinstance(tiles, tuple | list) else []
    for each in given or [tiles]:
        typing.require_tile("stack", each)
    if any(_type(each) != _type(given[0]) for each in given):
        raise LeadingAxesError("`pto.stack`: tiles of different types", here(), expected="one type", found=" and ".join(map(_type, given)))
    inner = given[0].leading if isinstance(given[0], TileStack) else ()
    number = whole_number(axis)
    if number is None or not 0 <= number <= len(inner):
        raise TileAxisError("`pto.stack`: the new axis stands before rows and columns", here(), expected=f"0 .. {len(inner)}",
                            found=repr(axis))
    parts: list[Any] = [value for each in given for value in values(each)]
    numbers = np.moveaxis(np.arange(len(parts)).reshape(len(given), *inner), 0, number)
    check_leading("`pto.stack`", numbers.shape)
    return TileStack(numbers.shape, [parts[n] for n in numbers.ravel()])


def _type(tile: object) -> str:
    return repr(tile.type if isinstance(tile, TileStack) else TileType(*tile.shape, tile.dtype) if is_tile(tile) else tile)


_RULES: Mapping[str, Callable[[Called], Any]] = MappingProxyType({
    "pto.reshape": _reshape, "reshape": Called.run, "transpose": _transpose, "pto.stack": Called.run, "pto.concat": _join,
    "pto.concatenate": _join, "pto.iota": _iota, "pto.random": _random, "pto.split": _split, "dot": _dot})
