"""Say how a view of any rank is bound as a tile [rows, columns], and how values of any rank lie in tiles.

A value of a kernel has the dimensions of its array. Neighbours are merged: `Folding(a, b)` says that dimensions a .. b - 1 are the rows
and those from b on the columns; dimensions before a stay (a stack of tiles). The elements are row by row in every folding, so another
folding is a reshape. Dimensions of extent 1 vanish.

    q[h, i * 32 :+ 32, 0:64]    rank 3: h is picked, the tile is [32, 64]
    x[i * 8 :+ 8] of (t, 16, 64): bound as x.reshape(t, 1024)[i * 8:].clip(8, 1024), a tile [8, 1024] that folds to [128, 64]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod

from pto_wsp.ir.extents import same, simplified
from pto_wsp.ir.scalar import Const, Scalar, SymbolRef, Var, add, ceil_div, maximum, minimum, mul, sub
from pto_wsp.ir.tensor_function import ArrayView, Flip, Insert, Refold, TileCut, limit_of, most_of, span_of
from pto_wsp.ir.view import Cut, Permute, Pick
from pto_wsp.passes.tensor.effects import vars_in
from pto_wsp.values import dataclass


class NoTile(Exception):
    """A view that no task can bind as a tile. Arguments: the reason, and the advice to the user."""


@dataclass(frozen=True, slots=True)
class ValueDim:
    """A dimension of a value in a kernel: its number of lanes, and how many of the lanes are valid."""

    limit: int
    extent: Scalar

    @property
    def short(self) -> bool:
        """Whether fewer may be there than the tile has lanes."""
        return self.extent != Const(self.limit)


Dims = tuple[ValueDim, ...]


@dataclass(frozen=True, slots=True)
class Folding:
    """Which dimensions of a value are the rows of its tile (first .. second - 1), and which its columns (from second on)."""

    first: int
    second: int

    def tile_shape(self, dims: Dims) -> tuple[int, ...]:
        """Return the extents of the tile: leading ones that are not 1, then rows and columns."""
        leading = [dim.limit for dim in dims[:self.first]]
        while leading and leading[0] == 1:
            del leading[0]
        return (*leading, prod(dim.limit for dim in dims[self.first:self.second]), prod(dim.limit for dim in dims[self.second:]))


def usual(rank: int) -> Folding:
    """Return the folding that has the last dimension as columns and all others as rows."""
    return Folding(0, max(rank - 1, 0))


def matrices(rank: int) -> Folding:
    """Return the folding that keeps all dimensions but the last two."""
    return Folding(max(rank - 2, 0), max(rank - 1, 0))


class ExtentLimits:
    """Upper bounds of extents, from the extents' own expressions and from the bounds assumed of symbols."""

    def __init__(self, bounds: Mapping[str, int]) -> None:
        self._bounds = bounds

    def of(self, extent: Scalar) -> int | None:
        """Return the most that an extent can be; None where nothing says so."""
        return most_of(extent, lambda one: self._bounds.get(one.name) if isinstance(one, SymbolRef) else None)

    def dims(self, extents: tuple[Scalar, ...]) -> Dims:
        """Return extents as dimensions of a value.

        Raises: NoTile for an extent without a bound.
        """
        return tuple(ValueDim(self._limit(extent), extent) for extent in extents)

    def _limit(self, extent: Scalar) -> int:
        limit = self.of(extent)
        if limit is None:
            raise NoTile("an axis is whole in a task, and nothing says how long it can be",
                         "promise a bound, tt.assume(n <= 4096), or let tasks cut the axis")
        return max(limit, 1)


# -- what a view takes of its array ------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class DimPart:
    """A part of a dimension of memory: the positions from `start` to `stop`, a step apart; there are `extent` of them."""

    start: Scalar
    stop: Scalar
    step: int
    extent: Scalar


@dataclass(frozen=True, slots=True)
class DimSlice:
    """The positions of a dimension of memory that a view reads: `size` positions from `start` on, a step apart, `extent` of them valid.

    `whole`: the extent of the dimension that is taken from. `within`: the part of the dimension that `start` counts in.
    `is_open`: a table says which positions: all are bound, however many, and the tile has none of them.
    """

    whole: Scalar
    start: Scalar
    size: int
    extent: Scalar
    step: int = 1
    within: DimPart | None = None
    is_open: bool = False

    @property
    def is_short(self) -> bool:
        """Whether fewer than `size` may be there."""
        return self.extent != Const(self.size)

    @property
    def is_all(self) -> bool:
        """Whether all positions of the dimension are taken."""
        return self.start == Const(0) and self.step == 1 and self.extent == self.whole and self.within is None

    @property
    def ends_with_axis(self) -> bool:
        """Whether all that is missing lies behind the end of the dimension, or of the part that it counts in."""
        rest = sub(self.counted, self.start)
        return self.extent in (minimum(Const(self.size), rest), rest)

    @property
    def position(self) -> Scalar:
        """The first position, counted in all of the dimension."""
        return self.start if self.within is None else add(self.within.start, mul(self.start, Const(self.within.step)))

    @property
    def counted(self) -> Scalar:
        """The extent of the dimension, or of the part, that `start` counts in."""
        return self.whole if self.within is None else self.within.extent


@dataclass(frozen=True, slots=True)
class Flat:
    """A view as a task binds it.

    `shape`: the shape that memory is given first; None for its own. `dims`: what is taken of each dimension of that shape; `bound` are
    those that the tile has, two or less unless it is a stack. `memory_dims`: the dimensions of extents above 1 in the order of memory,
    which `folding` folds to the tile. `view_dims`: those of the view; `order`: for each that is above 1, its place in `memory_dims`.
    `flipped`: dimensions of the view that are reversed.
    """

    shape: tuple[Scalar, ...] | None
    dims: tuple[DimSlice, ...]
    bound: tuple[int, ...]
    view_dims: Dims
    memory_dims: Dims
    folding: Folding
    order: tuple[int, ...]
    flipped: tuple[int, ...]


class _StepsTaken:
    """The dimensions of memory while the steps of a view are taken, and where the view's dimensions come from."""

    def __init__(self, shape: tuple[Scalar, ...], limits: ExtentLimits, varying: Callable[[Scalar], bool]) -> None:
        self.limits = limits
        self.varying = varying
        self.reset(shape)

    def reset(self, shape: tuple[Scalar, ...]) -> None:
        self.whole = list(shape)
        self.start: list[Scalar] = [Const(0)] * len(shape)
        self.extent = list(shape)
        self.step = [1] * len(shape)
        self.size: list[int | None] = [None] * len(shape)
        self.within: list[DimPart | None] = [None] * len(shape)
        self.logical: list[int] = list(range(len(shape)))      # -1: inserted
        self.flips: set[int] = set()

    def take(self, dim: int, start: Scalar, extent: Scalar, step: int, size: int | None) -> None:
        at = self.logical[dim]
        if at < 0:
            return
        if at in self.flips:        # the part lies as far from the other end
            start = sub(self.extent[at], add(start, _reach(extent, step)))
        if self.step[at] != 1:
            self.count_within(at)
        elif self.within[at] is None and not isinstance(self.extent[at], Const) and self.extent[at] != self.whole[at]:
            self.count_within(at)      # a part whose size is not known
        elif self.within[at] is None and not isinstance(self.start[at], Const) and self.varying(start) and not self.varying(self.start[at]):
            self.count_within(at)      # a task's block, of which a loop takes steps
        self.start[at] = add(self.start[at], start)
        self.step[at] = step
        self.extent[at] = extent
        self.size[at] = size
        if step != 1 and (not isinstance(extent, Const) or self.within[at] is not None):
            self.count_within(at)

    def count_within(self, at: int) -> None:
        """Let what follows count in the part that is taken of a dimension so far."""
        start, step, extent, outer = self.start[at], self.step[at], self.extent[at], self.within[at]
        stop = simplified(add(start, _reach(extent, step)))
        if outer is not None:
            start, step = add(outer.start, mul(start, Const(outer.step))), step * outer.step
            stop = simplified(add(start, _reach(extent, step)))
        self.within[at] = DimPart(start, stop, step, extent)
        self.start[at], self.step[at] = Const(0), 1


def _reach(extent: Scalar, step: int) -> Scalar:
    """Return how many positions lie between the first and the last of a slice, both counted."""
    return extent if step == 1 else maximum(Const(0), add(mul(sub(extent, Const(1)), Const(step)), Const(1)))


def exact(start: Scalar, size: int, extent: Scalar) -> bool:
    """Tell whether a tile that begins inside an axis is certainly all there."""
    if not isinstance(extent, Const):
        return False
    number = int(extent.value)
    if isinstance(start, Const):
        return int(start.value) + size <= number
    return number % size == 0 and _is_multiple(start, size)


def _is_multiple(node: Scalar, of: int) -> bool:
    base, factor = sub(node, Const(0)), 1
    while not isinstance(base, Const):
        lhs, rhs = getattr(base, "lhs", None), getattr(base, "rhs", None)
        if lhs is None or rhs is None or base != mul(lhs, rhs) or not isinstance(rhs, Const):
            return factor % of == 0
        base, factor = lhs, factor * int(rhs.value)
    return (int(base.value) * factor) % of == 0


def flattened(view: ArrayView, limits: ExtentLimits, varying: Callable[[Scalar], bool] = lambda _: False, n_open: int = 0) -> Flat:
    """Return how a view of memory is bound as a tile. `varying`: whether a scalar changes while the task runs.

    `n_open`: how many of the first dimensions are bound whole, since positions in them come from data: they are the rows of the region.
    Raises: NoTile for what no task can bind.
    """
    memory = _StepsTaken(view.array.shape, limits, varying)
    reshaped: tuple[Scalar, ...] | None = None
    for step in view.steps:
        match step:
            case Pick(dim, index):
                memory.take(dim, index, Const(1), 1, 1)
                del memory.logical[dim]
            case Cut(dim, start, stop, by):
                at = memory.logical[dim]
                extent = span_of(start, stop) if by == 1 else ceil_div(span_of(start, stop), Const(by))
                if at >= 0:
                    memory.take(dim, start, extent, by, limit_of(extent))
            case TileCut(dim, start, size):
                at = memory.logical[dim]
                if at >= 0:
                    rest = memory.extent[at]
                    if size == 1 or exact(start, size, rest):
                        memory.take(dim, start, Const(size), 1, size)
                    elif not (start == Const(0) and rest == Const(size)):
                        memory.take(dim, start, minimum(Const(size), sub(rest, start)), 1, size)
            case Permute(order):
                memory.logical = [memory.logical[k] for k in order]
            case Insert(dim):
                memory.logical.insert(dim, -1)
            case Flip(dim):
                if memory.logical[dim] >= 0:
                    memory.flips ^= {memory.logical[dim]}
            case Refold(shape):
                kept = [at for at in memory.logical if at >= 0]
                all_taken = all(memory.start[k] == Const(0) and memory.step[k] == 1 and memory.extent[k] == memory.whole[k]
                                and memory.within[k] is None for k in range(len(memory.whole)))
                if kept != sorted(kept) or memory.flips or not all_taken:
                    raise NoTile("a reshape of a part, or of axes in another order", "store the part in a tensor of its own first")
                reshaped = shape
                memory.reset(shape)
    return _folded(memory, view.array.shape, reshaped, limits, varying, n_open)


def row_places(view: ArrayView, limits: ExtentLimits) -> tuple[DimSlice, Scalar, int, DimSlice] | None:
    """Return the rows of a matrix that a view of the matrix in another shape takes, where they are not neighbours.

    The result: what is taken of the one axis of the shape above 1 position, the first row, the rows from one position to the next, and
    what is taken of the columns. None for another view.
    """
    if not view.steps or not isinstance(view.steps[0], Refold) or view.array.rank != 2 or any(
            isinstance(step, Refold | Permute | Flip) for step in view.steps[1:]):
        return None
    shape = view.steps[0].shape
    if not same(shape[-1], view.array.shape[1]) or not all(isinstance(extent, Const) for extent in shape[1:]):
        return None
    taken = flattened(ArrayView(replace(view.array, shape=shape), view.steps[1:]), limits, lambda _: False).dims
    if len(taken) != len(shape):
        return None
    first: Scalar = Const(0)
    found: tuple[DimSlice, int] | None = None
    apart = 1
    for one in reversed(taken[:-1]):
        first = add(first, mul(one.position, Const(apart)))
        if one.size > 1:
            if found is not None or one.step != 1 or one.within is not None:
                return None
            found = one, apart
        apart *= int(one.whole.value) if isinstance(one.whole, Const) else 1
    if found is None or taken[-1].is_short or taken[-1].step != 1 or taken[-1].within is not None:
        return None
    return found[0], first, found[1], taken[-1]


def _folded(memory: _StepsTaken, own: tuple[Scalar, ...], reshaped: tuple[Scalar, ...] | None, limits: ExtentLimits,
            varying: Callable[[Scalar], bool], n_open: int) -> Flat:
    taken: list[DimSlice] = []
    opened = memory.logical[:n_open]
    if -1 in opened or memory.flips & set(opened):
        raise NoTile("places along an axis that is not one of memory", "store the value in a tensor of its own first")
    for at in range(len(memory.whole)):
        if at in opened:
            if memory.step[at] != 1:
                memory.count_within(at)
            taken.append(DimSlice(memory.whole[at], memory.start[at], 1, memory.extent[at], memory.step[at], memory.within[at], True))
            continue
        size = memory.size[at] if memory.size[at] is not None else limits.of(memory.extent[at])
        if size is None:
            raise NoTile("an axis is whole in a task, and nothing says how long it can be",
                         "promise a bound, tt.assume(n <= 4096), or let tasks cut the axis")
        taken.append(DimSlice(memory.whole[at], memory.start[at], size, memory.extent[at], memory.step[at], memory.within[at]))
    sizes = {at: ValueDim(one.size, one.extent) for at, one in enumerate(taken)}
    view_dims = tuple(ValueDim(1, Const(1)) if at < 0 else sizes[at] for at in memory.logical[n_open:])
    order = tuple(at for at in memory.logical if at >= 0 and taken[at].size > 1)
    flipped = tuple(dim for dim, at in enumerate(memory.logical) if at in memory.flips and taken[at].size > 1)
    kept = [at for at, one in enumerate(taken) if one.size > 1 or one.is_open or varying(one.start)]
    if n_open and kept[:n_open] != opened:
        raise NoTile("places along an axis that is not the first in memory", "store the value in a tensor of its own first")
    places = {at: place for place, at in enumerate(k for k in kept if taken[k].size > 1)}
    shape, dims, bound, second = _grouped(taken, kept, own, reshaped)
    memory_dims = tuple(ValueDim(taken[at].size, taken[at].extent) for at in places)
    folding = Folding(len(memory_dims) - 2, len(memory_dims) - 1) if len(bound) > 2 else Folding(0, second)
    return Flat(shape, dims, bound, view_dims, memory_dims, folding, tuple(places[at] for at in order), flipped)


def _grouped(taken: list[DimSlice], kept: list[int], own: tuple[Scalar, ...], reshaped: tuple[Scalar, ...] | None,
             ) -> tuple[tuple[Scalar, ...] | None, tuple[DimSlice, ...], tuple[int, ...], int]:
    """Return the shape of memory, a slice of each dimension, the dimensions that a tile binds, how many above 1 of these are rows."""
    if any(one.is_open for one in taken) and len(kept) > 2:
        n_open = sum(one.is_open for one in taken)
        columns = _merged(taken, kept[n_open:])
        if n_open != 1 or columns is None:
            raise NoTile("rows that do not lie one behind the other in memory", "store the value in a tensor of its own first")
        left = [at for at in range(len(taken)) if at not in set(_between(kept[1:])) - {kept[1]}]
        dims = tuple(columns if at == kept[1] else taken[at] for at in left)
        return tuple(one.whole for one in dims), dims, (left.index(kept[0]), left.index(kept[1])), 0
    if reshaped is not None and not may_be_given(reshaped, own):
        return _grouped_in_memory(taken, kept, own)
    if len(kept) == 1 and taken[kept[0]].is_open and kept[0] < len(taken) - 1:
        return reshaped, tuple(taken), (kept[0], len(taken) - 1), 0          # one of the columns
    if len(kept) == 1 and kept[0] + 1 < len(taken) and taken[kept[0] + 1].whole == Const(1):
        return reshaped, tuple(taken), (kept[0], kept[0] + 1), int(taken[kept[0]].size > 1)      # a column
    if len(kept) <= 2:
        return reshaped, tuple(taken), tuple(kept), sum(1 for at in kept[:-1] if taken[at].size > 1)
    for split in range(len(kept) - 1, 0, -1):
        rows, columns = _merged(taken, kept[:split]), _merged(taken, kept[split:])
        if rows is None or columns is None:
            continue
        inner = {*_between(kept[:split]), *_between(kept[split:])} - {kept[0], kept[split]}
        left = [at for at in range(len(taken)) if at not in inner]
        dims = tuple(rows if at == kept[0] else columns if at == kept[split] else taken[at] for at in left)
        shape = tuple(one.whole for one in dims)
        if not may_be_given(shape, own):
            continue
        same_shape = len(shape) == len(own) and all(map(same, shape, own))
        return (None if same_shape else shape, dims, (left.index(kept[0]), left.index(kept[split])),
                sum(1 for at in kept[:split] if taken[at].size > 1))
    if all(taken[at].size > 1 for at in kept) and not any(taken[at].is_short for at in kept[:-2]):
        return reshaped, tuple(taken), tuple(kept), 0
    raise NoTile("three axes or more of a tile that do not lie one behind the other in memory",
                 "cut all but two of the axes into tiles of 1")


def _grouped_in_memory(taken: list[DimSlice], kept: list[int], own: tuple[Scalar, ...],
                       ) -> tuple[tuple[Scalar, ...] | None, tuple[DimSlice, ...], tuple[int, ...], int]:
    """Return as `_grouped` what is taken of memory in its own shape, of which a reshape has split dimensions.

            each of (t * 2, 64), as (t, 2, 64)[i]        each[i * 2:i * 2 + 2]
    """
    groups = split_into(tuple(one.whole for one in taken), own)
    merged = None if groups is None else [_merged(taken, group, picks=True) for group in groups]
    if groups is None or merged is None or None in merged:
        raise NoTile("a reshape that joins an axis whose extent is a symbol with other axes",
                     "write the reshaped value from its parts, or give the extent as a number")
    dims = tuple(one for one in merged if one is not None)
    bound = tuple(dim for dim, group in enumerate(groups) if set(group) & set(kept))
    if len(bound) > 2:
        raise NoTile("three axes or more of a tile that do not lie one behind the other in memory",
                     "cut all but two of the axes into tiles of 1")
    rows = {at for dim in bound[:-1] for at in groups[dim]}
    return None, dims, bound, sum(1 for at in kept if at in rows and taken[at].size > 1)


def split_into(shape: tuple[Scalar, ...], own: tuple[Scalar, ...]) -> list[list[int]] | None:
    """Return, for each dimension of memory, the dimensions of a shape that split it; None for a shape that joins dimensions.

    A dimension of extent 1 may have none.
    """
    groups: list[list[int]] = []
    at = 0
    for extent in own:
        group: list[int] = []
        product: Scalar = Const(1)
        while at < len(shape) and (not group or not same(product, extent)) and (extent != Const(1) or shape[at] == Const(1)):
            product = mul(product, shape[at])
            group.append(at)
            at += 1
        if not same(product, extent):
            return None
        groups.append(group)
    if any(one != Const(1) for one in shape[at:]) or not groups:
        return None
    groups[-1] += range(at, len(shape))
    return groups


def may_be_given(shape: tuple[Scalar, ...], own: tuple[Scalar, ...]) -> bool:
    """Tell whether memory may be given a shape: extents that only a run tells are its own, with as many elements between them."""
    def parts(extents: tuple[Scalar, ...]) -> list[int | Scalar]:
        found: list[int | Scalar] = [1]
        for extent in extents:
            if isinstance(extent, Const):
                found[-1] = found[-1] * int(extent.value)      # type: ignore[operator]
            else:
                found += [extent, 1]
        return found
    given, there = parts(shape), parts(own)
    return len(given) == len(there) and all(
        one == other if isinstance(one, int) or isinstance(other, int) else same(one, other)
        for one, other in zip(given, there, strict=True))


def _between(group: list[int]) -> range:
    return range(group[0], group[-1] + 1)


def _merged(taken: list[DimSlice], group: list[int], picks: bool = False) -> DimSlice | None:
    """Return neighbouring dimensions as one; None if their elements are not contiguous. `picks`: the first may have one position."""
    if not group:
        return DimSlice(Const(1), Const(0), 1, Const(1))
    first = taken[group[0]]
    if len(group) == 1:
        return first
    if picks and first.size == 1 and first.extent == Const(1):
        rest = _merged(taken, group[1:], picks)
        if rest is None or rest.within is not None:
            return None
        start = add(mul(first.position, rest.whole), rest.start)
        return DimSlice(mul(first.whole, rest.whole), start, rest.size, rest.extent, rest.step)
    inner = 1
    for at in range(group[0] + 1, group[-1] + 1):
        one = taken[at]
        if not one.is_all or not isinstance(one.whole, Const):
            return None
        inner *= int(one.whole.value)
    if first.step != 1 or first.within is not None:
        return None
    by = Const(inner)
    extent = Const(int(first.extent.value) * inner) if isinstance(first.extent, Const) else mul(first.extent, by)
    whole, start, size = mul(first.whole, by), mul(first.start, by), first.size * inner
    if first.is_short and first.ends_with_axis:
        extent = minimum(Const(size), sub(whole, start))
    return DimSlice(whole, start, size, extent)


def varies_with(loops: frozenset[Var]) -> Callable[[Scalar], bool]:
    """Return whether scalars change with the loop variables of a kernel."""
    return lambda node: bool(vars_in((node,)) & loops)
