"""Define the tiles of rank 3 and more that a kernel's body handles: a stack, a tile [rows, cols] at each index of the leading axes.

A stack is known while the body is traced alone: an op on stacks is that op on each tile, leading axes broadcasting as NumPy's, and a
parameter of rank 3 is a parameter for each tile. Kernel IR, and all that follows the trace, has tiles of two dimensions.

>>> Tile[4, 16, 64, DType.F32]          # x.leading is (4,); x[0] is a Tile[16, 64, f32], and so is x[3]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import EllipsisType
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from pto_wsp.errors import BufferMisuseError, LeadingAxesError, MixedDTypeError, PtoError, TileAxisError, UnknownNameError, ViewBoundsError
from pto_wsp.ir.indexing import whole_number
from pto_wsp.ir.symbolic import Symbolic
from pto_wsp.ir.tile import MAX_LEADING, StackType, TileType, indices
from pto_wsp.ops.entries import movement
from pto_wsp.ops.entry import active
from pto_wsp.ops.slices import WHOLE, pick, print_item
from pto_wsp.source import here
from pto_wsp.trace.kernel.tile_value import BufferRef, TileOperators, TileParamRef, TileValue, is_tile

Part: TypeAlias = TileValue | BufferRef | TileParamRef
Leading: TypeAlias = tuple[int, ...]


class TileStack(TileOperators):
    """A tile of rank 3 and more. `parts` are its tiles in row-major order of the leading index; `what` is its name in errors."""

    __slots__ = ("leading", "parts", "type", "what")
    type: StackType

    def __init__(self, leading: Leading, parts: Sequence[Part], what: str = "") -> None:
        each = parts[0].type
        self.leading, self.parts, self.what = leading, tuple(parts), what
        self.type = StackType(each.rows, each.cols, each.dtype, leading)

    def __pto_stack__(self) -> None:
        """Mark stacks, for duck typing."""

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The leading extents, rows, cols."""
        return self.type.extents

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def T(self) -> NoReturn:
        """Refuse NumPy's order of all axes reversed."""
        raise TileAxisError(f"`x.T` reverses all {self.ndim} axes in NumPy, and rows stay within their tile", here(),
                            expected="rows and columns exchanged", found=repr(self), help="x.mT exchanges the last two axes")

    @property
    def is_state(self) -> bool:
        """Whether the parts are buffers, or parameters that may be written."""
        return all(isinstance(part, BufferRef) or (isinstance(part, TileParamRef) and part.param.role.writes) for part in self.parts)

    def transpose(self, *axes: object) -> TileStack:
        """Return the stack with its axes in another order, all of them given; leading axes stay before rows and columns."""
        given = axes[0] if len(axes) == 1 and isinstance(axes[0], tuple | list) else axes
        return permuted(self, given)

    def swapaxes(self, first: object, second: object) -> TileStack:
        """Return the stack with two axes exchanged: two leading ones, or rows and columns."""
        order = list(range(self.ndim))
        a, b = (axes_of("swapaxes", axis, self)[0] for axis in (first, second))
        order[a], order[b] = order[b], order[a]
        return permuted(self, order)

    def __getitem__(self, item: object) -> Any:
        picked, rest = self._picked(item)
        if all(_is_whole(entry) for entry in rest):
            return picked if picked is not self else self._read()
        return movement.slice_(picked, *rest)

    def __setitem__(self, item: object, value: object) -> None:
        target, rest = self._picked(item)
        if value is target or value is self:      # `x[0] += y` has written x[0] before Python assigns it
            return
        if not all(_is_whole(entry) for entry in rest):
            raise LeadingAxesError(f"{self.what or 'the tile'} is written as whole tiles", here(),
                                 expected="[b] = value, or [b, :, :] = value", found=f"[{print_item(item)}] = ...",
                                 help="pto.store(x[b], value, (row, col)) writes a piece of an Out or InOut parameter")
        assign(target, value)

    def _picked(self, item: object) -> tuple[TileStack | Part, tuple[object, object]]:
        """Return what indices of the leading axes pick, and the selections of rows and columns.

        Raises: T301, T302 for what is no constant index of the stack.
        """
        items = list(item) if isinstance(item, tuple) else [item]
        n_dots = sum(isinstance(entry, EllipsisType) for entry in items)
        if n_dots == 1:
            at = next(place for place, entry in enumerate(items) if isinstance(entry, EllipsisType))
            items[at:at + 1] = [WHOLE] * (self.ndim + 1 - len(items))
        if len(items) > self.ndim or n_dots > 1:
            raise LeadingAxesError(f"{self.what or 'the tile'} has {self.ndim} axes", here(),
                                 expected=f"at most {self.ndim} indices and one ...", found=f"[{print_item(item)}]")
        items += [WHOLE] * (self.ndim - len(items))
        n_leading = len(self.leading)
        if all(_is_whole(entry) for entry in items[:n_leading]):
            return self, (items[-2], items[-1])
        numbers = _numbered(self.leading)[tuple(self._selected(axis, entry) for axis, entry in enumerate(items[:n_leading]))]
        if isinstance(numbers, np.ndarray) and numbers.ndim:
            return TileStack(numbers.shape, [self.parts[n] for n in numbers.ravel()], self.what), (items[-2], items[-1])
        return self.parts[int(numbers)], (items[-2], items[-1])

    def _selected(self, axis: int, entry: object) -> int | slice:
        if isinstance(entry, Symbolic):
            raise LeadingAxesError(f"axis {axis} of the tile is indexed by a scalar, known only at run time", here(),
                                 expected="a whole number", found=repr(entry),
                                 help="unroll the loop with Python's range, `for b in range(4)`; or index the view in the workload, and "
                                      "give the kernel one tile")
        if not isinstance(entry, slice):
            number, extent = whole_number(entry), self.leading[axis]
            if number is not None and not -extent <= number < extent:
                raise ViewBoundsError(f"axis {axis} of the tile has no position {number}", here(), expected=f"{-extent} .. {extent - 1}",
                                      found=str(number))
        first, count, step = pick(entry, self.leading[axis], "position")
        if not isinstance(entry, slice):
            return first
        behind = first + count * step
        return slice(first, None if behind < 0 else behind, step)

    def _read(self) -> TileStack:  # type: ignore[override]
        return TileStack(self.leading, [_value(part) for part in self.parts])

    def _updated(self, value: object) -> Any:
        """Write to parts that may be written; of a value or an In parameter return the new value, so that its name is rebound."""
        if not self.is_state:
            return value
        assign(self, value)
        return self

    def __iadd__(self, other: object) -> Any:
        return self._updated(self + other)

    def __isub__(self, other: object) -> Any:
        return self._updated(self - other)

    def __imul__(self, other: object) -> Any:
        return self._updated(self * other)

    def __itruediv__(self, other: object) -> Any:
        return self._updated(self / other)

    def __iand__(self, other: object) -> Any:
        return self._updated(self & other)

    def __ior__(self, other: object) -> Any:
        return self._updated(self | other)

    def __ixor__(self, other: object) -> Any:
        return self._updated(self ^ other)

    def __ilshift__(self, other: object) -> Any:
        return self._updated(self << other)

    def __irshift__(self, other: object) -> Any:
        return self._updated(self >> other)

    def __ifloordiv__(self, other: object) -> Any:
        return self._updated(self // other)

    def __imod__(self, other: object) -> Any:
        return self._updated(self % other)

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        return (self[n] for n in range(self.leading[0]))

    def __len__(self) -> int:  # type: ignore[override]
        return self.leading[0]

    @property
    def valid(self) -> NoReturn:
        """Refuse: each tile has bound extents of its own."""
        raise UnknownNameError(f"a tile of {self.ndim} axes has no `valid`", here(), expected="the extents of one of its tiles",
                               help="x[0].valid is (rows, cols) of the first")

    def __repr__(self) -> str:
        return f"<{self.what}: {self.type!r}>" if self.what else f"<{self.type!r}>"


# -- shapes ------------------------------------------------------------------------------------------------------------

def stacked(leading: Leading, results: Sequence[Any]) -> Any:
    """Return the results of a function of tiles as stacks: one, or a tuple or list of as many as the function gives."""
    first = results[0]
    if isinstance(first, tuple | list):
        return type(first)(stacked(leading, [result[place] for result in results]) for place in range(len(first)))
    return TileStack(leading, results) if is_tile(first) else first


def is_long(shape: object) -> bool:
    """Tell whether a value is the shape of a stack: more than two whole numbers >= 1."""
    numbers = [whole_number(n) for n in shape] if isinstance(shape, tuple | list) else []
    return len(numbers) > 2 and all(n is not None and n >= 1 for n in numbers)


def broadcast_leading(where: str, types: Sequence[TileType]) -> Leading:
    """Return the leading extents that tiles broadcast to.

    Raises: T202 if they do not, or for too many.
    """
    leading = [t.leading for t in types if isinstance(t, StackType)]
    try:
        joint = np.broadcast_shapes(*leading)
    except ValueError:
        raise LeadingAxesError(f"{where}: the operands' leading axes do not fit", here(), found=" and ".join(map(repr, types)),
                                expected="equal extents, or 1; a tile [R, C] meets all") from None
    check_leading(where, joint)
    return joint


def check_leading(where: str, leading: Leading) -> None:
    """Raise T202 for a stack of more tiles than a kernel writes its ops out for."""
    if math.prod(leading) > MAX_LEADING:
        raise LeadingAxesError(f"{where}: too many leading positions", here(), expected=f"at most {MAX_LEADING}",
                                found=f"{list(leading)}: {math.prod(leading)}", help="loop over them in the workload")


def at_index(stack: TileStack, index: Leading, leading: Leading) -> Part:
    """Return the tile of a stack that meets an index of the leading extents it broadcasts to."""
    own = index[len(leading) - len(stack.leading):]
    return stack.parts[int(_numbered(stack.leading)[tuple(0 if extent == 1 else n for n, extent in zip(own, stack.leading, strict=True))])]


def axes_of(name: str, axis: object, stack: TileStack) -> tuple[int, ...]:
    """Return axes of a stack, counted from the front.

    Raises: T214 for what names none.
    """
    items = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
    numbers = [whole_number(item) for item in items]
    known = [number % stack.ndim for number in numbers if number is not None and -stack.ndim <= number < stack.ndim]
    if not items or len(known) < len(items) or len(set(known)) < len(items):
        raise TileAxisError(f"`{name.removeprefix('pto.')}`: not an axis of the tile", here(), found=f"{axis!r} of {stack.type!r}",
                            expected=f"{-stack.ndim} .. {stack.ndim - 1}")
    return tuple(known)


def permuted(stack: TileStack, order: object) -> TileStack:
    """Return a stack with its axes in another order.

    Raises: T214 for what is no order of the axes, and for one that moves a leading axis into a tile.
    """
    axes = axes_of("transpose", order, stack) if order else tuple(reversed(range(stack.ndim)))
    n_leading = len(stack.leading)
    if len(axes) < stack.ndim or set(axes[:n_leading]) != set(range(n_leading)):
        raise TileAxisError("`transpose`: leading axes stay before rows and columns", here(), found=f"{order or axes!r} of {stack.type!r}",
                            expected=f"an order of all {stack.ndim} axes, of which the last two are rows and columns",
                            help="x.mT exchanges the last two axes; pto.concat(x[0], x[1], axis=0) joins tiles")
    numbers = _numbered(stack.leading).transpose(axes[:n_leading])
    moved = TileStack(numbers.shape, [stack.parts[n] for n in numbers.ravel()])
    return each_tile("transpose", {"x": moved}, lambda tiles: movement.transpose(tiles["x"])) \
        if axes[-2] > axes[-1] else moved._read()


def _numbered(leading: Leading) -> npt.NDArray[np.int64]:
    return np.arange(math.prod(leading)).reshape(leading)


def _is_whole(entry: object) -> bool:
    return isinstance(entry, slice) and entry.start is entry.stop is entry.step is None


# -- reading and writing -----------------------------------------------------------------------------------------------

def values(tile: TileStack | Part) -> list[TileValue]:
    """Return the current values of a tile, or of the tiles of a stack."""
    return [_value(part) for part in (tile.parts if isinstance(tile, TileStack) else (tile,))]


def _value(part: Part) -> TileValue:
    value = active("load").read(part)
    assert isinstance(value, TileValue)
    return value


def assign(target: TileStack | Part, value: object) -> None:
    """Write `value`, broadcast, to a tile or to all tiles of a stack; all of it is read before the first is written.

    Raises: T202, T203, T213 if the value does not fit.
    """
    if isinstance(target, TileStack):
        for part, one in zip(target.parts, fitting(target, value), strict=True):
            assign(part, one)
    elif isinstance(target, TileValue):
        raise BufferMisuseError("a tile value never changes", here(),
                                help="keep state in a buffer: acc = pto.alloc(x.shape, x.dtype), then acc[:] = ...")
    else:
        target.trace.assign(target, value)


def fitting(target: TileStack, value: object) -> list[object]:
    """Return what is written to each tile of a stack, for a value that broadcasts to the stack.

    Raises: T202, T203 if it does not fit.
    """
    what = target.what or "the tile"
    if not isinstance(value, TileStack) and not is_tile(value):
        return [value] * len(target.parts)
    if value.dtype is not target.dtype:
        raise MixedDTypeError(f"{what}: the value has another dtype", here(), expected=repr(target.type), found=repr(value.type),
                              help=f"convert it: pto.cast(value, {target.dtype!r})")
    fits = value.type.rows in (1, target.type.rows) and value.type.cols in (1, target.type.cols)
    leading = value.leading if isinstance(value, TileStack) else ()
    try:
        fits = fits and np.broadcast_shapes(leading, target.leading) == target.leading
    except ValueError:
        fits = False
    if not fits:
        raise LeadingAxesError(f"{what}: the value has another shape", here(), expected=repr(target.type), found=repr(value.type))
    read = values(value)
    if not isinstance(value, TileStack):
        return [read[0]] * len(target.parts)
    held = TileStack(value.leading, read)
    return [at_index(held, index, target.leading) for index in indices(target.leading)]


# -- functions of tiles ------------------------------------------------------------------------------------------------

def each_tile(name: str, arguments: Mapping[str, object], call: Callable[[Mapping[str, object]], Any]) -> Any:
    """Return what a function of tiles gives on each tile of its stacks; leading axes broadcast. `call` takes arguments by name."""
    where = f"`{name}`"
    found = list(stacks_in(arguments))
    shape = arguments.get("shape")
    long = tuple(int(n) for n in shape) if isinstance(shape, tuple | list) and is_long(shape) else None
    leading = broadcast_leading(where, [stack.type for stack in found])
    if long is not None:
        check_leading(where, long[:-2])
        if not _broadcasts(leading, long[:-2]):
            raise LeadingAxesError(f"{where}: the tile does not broadcast to {list(long)}", here(),
                                    expected=f"{list(long)}, or 1 in place of any", found=" and ".join(repr(stack.type) for stack in found))
        arguments, leading = {**arguments, "shape": long[-2:]}, long[:-2]
    elif shape is not None and found:
        raise LeadingAxesError(f"{where}: the shape has other axes than the tile", here(), expected=f"{found[0].ndim} whole numbers >= 1",
                               found=f"{shape!r}, for {found[0].type!r}")
    made: dict[tuple[int, ...], Any] = {}
    results = []
    with of_whole_stacks(found):
        for index in indices(leading):
            met: list[Part] = []
            tiles = {each: _tile_at(value, index, leading, met) for each, value in arguments.items()}
            key = tuple(map(id, met))
            if key not in made:
                made[key] = call(tiles)
            results.append(made[key])
    return stacked(leading, results)


def stacks_in(arguments: Mapping[str, object]) -> Iterator[TileStack]:
    """Yield the stacks among arguments, and in lists of arguments."""
    for value in arguments.values():
        for one in value if isinstance(value, tuple | list) else (value,):
            if isinstance(one, TileStack):
                yield one


@contextmanager
def of_whole_stacks(found: Sequence[TileStack]) -> Iterator[None]:
    """Make errors about a tile of a stack show the type of the stack, inside a `with` block."""
    try:
        yield
    except PtoError as problem:
        for stack in found:
            each, whole = repr(stack.type.each), repr(stack.type)
            problem.message = problem.message.replace(each, whole)
            problem.expected, problem.found = (None if text is None else text.replace(each, whole)
                                               for text in (problem.expected, problem.found))
        raise


def _tile_at(value: object, index: Leading, leading: Leading, met: list[Part]) -> object:
    if isinstance(value, TileStack):
        part = at_index(value, index, leading)
        met.append(part)
        return part
    if isinstance(value, tuple | list):
        return type(value)(_tile_at(one, index, leading, met) for one in value)
    return value


def _broadcasts(leading: Leading, to: Leading) -> bool:
    try:
        return np.broadcast_shapes(leading, to) == to
    except ValueError:
        return False
