"""Rank the tile extents of a group: what fits the memories of a core, and what costs least on the whole machine.

The group is given as plain numbers: its axes, its values by their dimensions, its operations in order. All candidates are costed at once,
as arrays with an element a candidate.

Capacity is that of `check.capacity`: vector values live in UB, operands of products in L1, and in L0A and L0B during the product, products
in L0C, from definition to last use, what stands before a loop over steps and is used in it for the whole of the loop. The reduction of a
row has working memory as large as its operand in UB. On a CPU, and on a machine without bounds, all of them share the second cache of a
core; operands that products alone read stay in memory, and products that are stored, where all extents are known.

Cost is that of `arch.overlap`, coarsely: pipes overlap inside a loop of steps, and follow each other outside of it.
    cycles = waves * cycles of one task + tasks * submit_cycles,   waves = tasks / executors, rounded up

>>> t = TileAxis("t", 1024)
>>> x, y = CutValue("x", DType.F32, ("t", 4096), loaded=True), CutValue("y", DType.F32, ("t", 4096), stored=True)
>>> rank_tiles((t,), (x, y), (TileOp("exp", ("y",), ("x",)),), builtin_arch("ascend_910b")).chosen.tiles
{'t': 4}
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache, reduce
from itertools import product
from math import ceil, inf, log2, prod
from operator import mul
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pto_wsp.arch.instances import builtin_arch
from pto_wsp.arch.model import Arch
from pto_wsp.errors import PlanFitError, SourcePosition
from pto_wsp.ir.dtype import DType
from pto_wsp.ops.entry import Unit, Work
from pto_wsp.ops.spec import Elementwise, RowReduce
from pto_wsp.ops.table import TABLE
from pto_wsp.source import here
from pto_wsp.values import dataclass

Numbers: TypeAlias = npt.NDArray[np.float64]

MOST_CANDIDATES = 1024      # a group's: they are costed together, so that their number costs little
_ALIGN = 32                 # bytes: the smallest unit that on-chip memories move
_CUBE_MULTIPLE = 16         # rows and columns of the cube's blocks
_HOST_BYTES = 1 << 20       # of a CPU that does not tell its caches
_HOST_SERIES = 16           # estimate: instructions of a CPU for a division or a series, e.g. of exp
_HOST_SUBMIT = 600          # cycles: estimate of a task's submission on a CPU
_HOST_ROWS = 512            # that a CPU's product multiplies by each part of the right operand that it packs: PTO_MATMUL_CHUNK


# -- the group ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class TileAxis:
    """An axis that tiles cut. `extent`: its size; the planned size for an extent that is a symbol (`symbolic`).

    `summed`: its tiles are steps of a loop inside the task; tiles of other axes are tasks. `given`: the tile's size in the plan, None to
    choose it. `divides`: the tile divides this size or is a multiple of it, because another group shares the loop; 0 for no such group.
    `step`: positions of the tile that an inner loop takes at a time, 0 for all; `level`: number of inner loops around that loop. `varies`:
    `extent` is the mean of extents that data give.
    """

    name: str
    extent: int
    symbolic: bool = False
    summed: bool = False
    given: int | None = None
    divides: int = 0
    step: int = 0
    level: int = 0
    varies: bool = False


@dataclass(frozen=True, slots=True)
class CutValue:
    """A value of which each task has a tile. `dims`: for each dimension the name of its axis, or its extent if no axis cuts it.

    `loaded`, `stored`: read from, written to memory; `held`: the tile is live from the task's first operation to its last (a loop's state).
    """

    name: str
    dtype: DType
    dims: tuple[str | int, ...]
    loaded: bool = False
    stored: bool = False
    held: bool = False


@dataclass(frozen=True, slots=True)
class TileOp:
    """An operation of the group. `times`: how often a task does it, steps of summed axes apart: loops of the function inside kernels."""

    op: str
    results: tuple[str, ...]
    operands: tuple[str, ...]
    times: int = 1


# -- the answer --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class TileChoice:
    """A candidate: the extent by axis, tasks, cycles of one task and of all, and the bytes that move."""

    tiles: Mapping[str, int]
    n_tasks: int
    task_cycles: int
    cycles: int
    moved_bytes: int

    @property
    def shown(self) -> str:
        """The extents as a plan shows them: `t=64 1=512`."""
        return " ".join(f"{name}={extent}" for name, extent in self.tiles.items())


@dataclass(frozen=True, slots=True)
class Misfit:
    """A candidate that does not fit. `tenants`: (name, bytes, shape) of what lives in the memory at its fullest, largest first.

    `largest`: the largest extent of each axis that fits, the others as small as the plan lets them be; 0 where none does.
    """

    tiles: Mapping[str, int]
    memory: str
    needed_bytes: int
    limit_bytes: int
    tenants: tuple[tuple[str, int, str], ...]
    largest: Mapping[str, int]

    def __str__(self) -> str:
        shown = " ".join(f"{name}={extent}" for name, extent in self.tiles.items())
        return f"{shown} needs {self.needed_bytes:,} of {self.limit_bytes:,} bytes of {self.memory}"


@dataclass(frozen=True, slots=True)
class Ranking:
    """The candidates that fit, the best first, and the `least_cycles` of all that fit, submissions apart.

    `refused`: why the next larger candidate, or if none fits the smallest, is too large.
    """

    choices: tuple[TileChoice, ...]
    n_candidates: int
    n_fitting: int
    refused: Misfit | None
    executors: int
    unit: str
    least_cycles: float = inf

    @property
    def chosen(self) -> TileChoice | None:
        """The candidate that costs least; None if none fits."""
        return self.choices[0] if self.choices else None

    @property
    def reason(self) -> str:
        """What decided, in a line of a plan: `16 needs 270,000 of 188,416 bytes of UB`."""
        if not self.choices:
            return f"none of {self.n_candidates} fits: {self.refused}"
        best = self.choices[0]
        said = []
        if self.refused is not None:
            grown = [str(extent) if len(best.tiles) == 1 else f"{name}={extent}" for name, extent in self.refused.tiles.items()
                     if extent != best.tiles[name]]
            said.append(f"{' '.join(grown)} needs {self.refused.needed_bytes:,} of {self.refused.limit_bytes:,} bytes of "
                        f"{self.refused.memory}")
        if len(self.choices) > 1 and (len(best.tiles) > 1 or self.refused is None):
            more = 100 * ((following := self.choices[1]).cycles - best.cycles) / max(1, best.cycles)
            change = f"{more:+.0f}%" if round(more) else "as much"
            idle = max(0, self.executors - following.n_tasks) if more < 0 else 0
            said.append(f"best of {self.n_fitting}; next {following.shown}: {change}"
                        f"{f' with {idle} of {self.executors} cores idle' if idle else ''}")
        return "; ".join(said) or "the only candidate"


def executors_of(arch: Arch, unit: Unit) -> int:
    """Return how many executors an arch has for kernels of a unit; of a machine that does not say, as many as CPUs of this one."""
    cores = builtin_arch("host_cpu").cores if arch.neutral and not arch.cores.total else arch.cores
    count = cores.cube if unit is Unit.CUBE else cores.vector
    return count or arch.aicpu.count or 1


def unit_of(ops: Iterable[TileOp]) -> Unit:
    """Return the unit that a kernel of these operations runs on: the cube unit if an operation is a product."""
    return Unit.CUBE if any(_work_of(op) is Work.MKN for op in ops) else Unit.VECTOR


def rank_tiles(axes: Sequence[TileAxis], values: Sequence[CutValue], ops: Sequence[TileOp], arch: Arch,
               executors: int | None = None, most: int = 64, repeats: int = 1, batch: int = 1, below: float = inf) -> Ranking:
    """Return the candidates of a group that fit, the best first: at most `most` of them.

    `repeats`: how often the group's tasks are there side by side, in loops around them. `executors`: by default all cores of the arch for
    the unit of the group. `batch`: the neighbouring tiles that a task computes. `below`: the most cycles without submissions. Ties go to
    larger tiles. Without `below`, no executor is left idle, unless its task costs less than the submission.
    """
    group = _GroupNumbers(axes, values, ops, arch)
    grid = candidates_of(axes, values, ops)
    names = [axis.name for axis in axes]
    tiles = {name: np.array(column, np.float64) for name, column in zip(names, zip(*grid, strict=True), strict=True)}
    n_executors, n = executors or executors_of(arch, group.unit), len(grid)
    fits = group.fits(needs := group.needs(tiles, n), n)
    if group.on_host and not fits.any():
        fits = np.ones(n, np.bool_)           # caches are preferred sizes: what is larger still runs
    kept = np.flatnonzero(fits)
    if not len(kept):
        smallest = min(range(n), key=lambda at: (_overuse(group, needs, at), at))
        return Ranking((), n, 0, group.misfit(dict(zip(names, grid[smallest], strict=True)), grid, fits), n_executors, group.unit.value)
    tasks, task_cycles, moved = group.costs(tiles, n, batch)
    tasks, moved = tasks * repeats, moved * repeats
    total = np.ceil(tasks / n_executors) * task_cycles
    if group.bandwidth:
        total = np.maximum(total, moved / group.bandwidth)
    least = float(total[kept].min())
    kept = kept[total[kept] <= below]
    total += tasks * group.submit
    volume = np.prod([tiles[name] for name in names], axis=0) if names else np.ones(n)
    filled = fits & (tasks >= n_executors) & (task_cycles >= group.submit)
    costs, volumes = total.tolist(), volume.tolist()
    order = sorted(kept.tolist(), key=lambda at: (costs[at], -volumes[at], grid[at]))
    if below == inf and filled.any() and tasks[order[0]] < n_executors:
        order = [at for at in order if filled[at]] + [at for at in order if not filled[at]]
    choices = tuple(TileChoice(dict(zip(names, grid[at], strict=True)), int(tasks[at]), int(task_cycles[at]), int(total[at]),
                               int(moved[at])) for at in order[:most])
    refused = _next_larger(group, axes, grid, fits, grid[order[0]]) if order else None
    return Ranking(choices, n, len(kept), refused, n_executors, group.unit.value, least)


def check_tiles(axes: Sequence[TileAxis], values: Sequence[CutValue], ops: Sequence[TileOp], arch: Arch,
                tiles: Mapping[str, int]) -> Misfit | None:
    """Return what does not fit for these extents, None if all does. `tiles`: an extent for every axis."""
    group = _GroupNumbers(axes, values, ops, arch)
    columns = {name: np.array([float(extent)]) for name, extent in tiles.items()}
    if group.on_host or group.fits(group.needs(columns, 1), 1).all():
        return None
    grid = candidates_of(axes, values, ops)
    grid_tiles = {axis.name: np.array(column, np.float64) for axis, column in zip(axes, zip(*grid, strict=True), strict=True)}
    return group.misfit(tiles, grid, group.fits(group.needs(grid_tiles, len(grid)), len(grid)))


def fit_error(group: str, axes: Sequence[TileAxis], values: Sequence[CutValue], ops: Sequence[TileOp], arch: Arch,
              refused: Misfit | None, span: SourcePosition) -> PlanFitError:
    """Return the error for a group of which no tiles fit: the tiles that live in the memory, and the largest extents given by the plan.

    `span`: the line that the group computes; where the plan gives extents, the report is at the line that uses the plan.
    """
    given = [axis for axis in axes if axis.given is not None and axis.given != 1]
    notes = [] if refused is None else [f"tiles that live in {refused.memory} then:", *(
        f"{size:>12,}  {name.rpartition('.')[0] or name} {shape}" for name, size, shape in refused.tenants)]
    largest = []
    for axis in given:
        free = [replace(one, given=None) if one is axis else one for one in axes]
        found = rank_tiles(free, values, ops, arch, most=MOST_CANDIDATES).choices
        most = max((choice.tiles[axis.name] for choice in found), default=0)
        largest.append(f"{axis.name}={most}" if most else f"no {axis.name} at all")
    return PlanFitError(f"group `{group}`: {'these tiles do not fit' if given else 'no tiles of it fit'}", here() if given else span,
                        expected=f"the largest that fits, with the others as they are: {', '.join(largest)}" if largest else
                        f"tiles that fit {arch.name}", found=None if refused is None else str(refused), notes=notes,
                        help="take a smaller extent, or let the compiler choose" if given else
                        "take apart the axes that are whole in a task, or name a group of fewer values",
                        also=(("the group computes this", span),) if given else ())


# -- candidates --------------------------------------------------------------------------------------------------------
def candidates_of(axes: Sequence[TileAxis], values: Sequence[CutValue], ops: Sequence[TileOp]) -> list[tuple[int, ...]]:
    """Return the extents to try, one of each axis: powers of two, divisors, the whole; in a fixed order, at most `MOST_CANDIDATES`."""
    wanted = multiples_of(axes, values, ops)
    lists = [_extents_of(axis, wanted[axis.name]) for axis in axes]
    while prod(map(len, lists)) > MOST_CANDIDATES:
        longest = max(range(len(lists)), key=lambda at: len(lists[at]))
        lists[longest] = _thinned(lists[longest])
    return list(product(*lists))


def smallest_tiles(axes: Sequence[TileAxis], values: Sequence[CutValue], ops: Sequence[TileOp]) -> dict[str, int]:
    """Return the smallest extent to try of each axis."""
    wanted = multiples_of(axes, values, ops)
    return {axis.name: _extents_of(axis, wanted[axis.name])[0] for axis in axes}


def multiples_of(axes: Sequence[TileAxis], values: Sequence[CutValue], ops: Sequence[TileOp]) -> dict[str, int]:
    """Return what the tiles of each axis are multiples of: 32 bytes of a row, blocks of the cube."""
    found = dict.fromkeys((axis.name for axis in axes), 1)

    def want(dim: str | int, multiple: int) -> None:
        if isinstance(dim, str):
            found[dim] = max(found[dim], multiple)

    for value in values:
        if value.dims:
            want(value.dims[-1], max(1, _ALIGN // value.dtype.nbytes))
    by_name = {value.name: value for value in values}
    for op in ops:
        if _work_of(op) is Work.MKN:
            for name in (*op.operands[:2], *op.results):
                for dim in by_name[name].dims[-2:]:
                    want(dim, _CUBE_MULTIPLE)
    return found


def _extents_of(axis: TileAxis, multiple: int) -> list[int]:
    if axis.given is not None:
        return [axis.given]
    powers = {1 << power for power in range(ceil(log2(max(1, axis.extent))) + 1)}
    if axis.symbolic:      # the number is a guess: no divisors of it, and no more than it
        found = {extent for extent in powers if extent % multiple == 0 and extent < axis.extent * 2} or {multiple}
    else:
        found = {extent for extent in powers | _divisors_of(axis.extent) if extent % multiple == 0 and extent < axis.extent} | {axis.extent}
    if axis.step:      # of which a task takes steps
        found = {extent for extent in found if extent > axis.step} or found
    if axis.divides:
        found = {extent for extent in found if axis.divides % extent == 0 or extent % axis.divides == 0} or {axis.divides}
    return sorted(found)


@lru_cache(maxsize=256)
def _divisors_of(extent: int) -> frozenset[int]:
    """Return the divisors of an extent; none of one above 16,384."""
    return frozenset(one for one in range(1, extent + 1) if extent % one == 0) if extent <= 1 << 14 else frozenset()


def _thinned(extents: list[int]) -> list[int]:
    """Return the extents without the extent nearest to its predecessor; the first and the last extent stay."""
    if len(extents) <= 2:
        return extents[-1:]
    at = min(range(1, len(extents) - 1), key=lambda k: (extents[k + 1] / extents[k - 1], extents[k] & (extents[k] - 1) == 0, k))
    return extents[:at] + extents[at + 1:]


# -- capacity and cost -------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Life:
    """A value in a memory, from operation `first` to `last`."""

    value: CutValue
    memory: str
    first: int
    last: int


class _GroupNumbers:
    """A group on an arch: bytes and cycles of all candidates at once. `tiles`: by axis an array with an element a candidate."""

    def __init__(self, axes: Sequence[TileAxis], values: Sequence[CutValue], ops: Sequence[TileOp], arch: Arch) -> None:
        self.axes = {axis.name: axis for axis in axes}
        self.values = {value.name: value for value in values}
        self.ops = tuple(ops)
        self.makers = {name: [at for at, op in enumerate(ops) if name in op.results] for name in self.values}
        self.users = {name: [at for at, op in enumerate(ops) if name in op.operands] for name in self.values}
        self.arch = arch
        self.unit = unit_of(ops)
        self.on_host = arch.neutral or arch.cores.shared
        # rows of a call may be few where they are a symbol: columns that fit the cache are then what gives each core a task
        self.in_place = self.on_host and not any(axis.symbolic for axis in axes)
        self.limits = _limits(arch)
        self.summed = frozenset(axis.name for axis in axes if axis.summed)
        looped = [at for at, op in enumerate(self.ops) if self._steps_of(op)]
        self.loop = (looped[0], looped[-1]) if looped else None
        products = [op for op in self.ops if _work_of(op) is Work.MKN]
        self.in_cube = frozenset() if self.on_host else frozenset(name for op in products for name in op.results)
        self.in_vector = frozenset(name for op in self.ops if op not in products for name in op.operands)
        self.lives = tuple(self._lives())
        self._volumes: dict[tuple[int, tuple[str | int, ...]], tuple[Mapping[str, Numbers], Numbers]] = {}
        submit = arch.aicpu.submit_cycles
        self.submit = _HOST_SUBMIT if submit is None and arch.cores.shared else submit or 0
        self.bandwidth = next((memory.bandwidth_bytes_per_cycle for memory in arch.memories if memory.name == "GM"), None)

    # -- lives ---------------------------------------------------------------------------------------------------------
    def _steps_of(self, op: TileOp) -> frozenset[str]:
        """Return the summed axes in whose loop an operation stands."""
        return frozenset(dim for name in (*op.operands, *op.results) for dim in self.values[name].dims
                         if isinstance(dim, str) and dim in self.summed)

    def _lives(self) -> Iterator[_Life]:
        end, in_steps = max(0, len(self.ops) - 1), {name for name, axis in self.axes.items() if axis.step}
        for value in self.values.values():
            made, uses = self.makers[value.name], self.users[value.name]
            if not made and not uses:
                continue
            first, last = min((*made, *uses)), max((*made, *uses))
            if value.loaded and not self.summed & set(value.dims):
                first = 0                                   # tile parameters are loaded before the first operation
            if self.loop is not None and not self.summed & set(value.dims):
                begin, stop = self.loop
                if first < begin and any(begin <= at <= stop for at in uses):
                    last = max(last, stop)
                if begin <= first <= stop:                  # what a sum adds to, and what stays over the steps
                    first, last = begin, max(last, stop)
            if value.held or (value.loaded and in_steps and not in_steps & set(value.dims)):      # what stays over the steps, too
                first, last = 0, end
            yield from self._places(value, first, last, made, uses)
        if not self.on_host:
            for at, op in enumerate(self.ops):
                if isinstance(TABLE.get(op.op), RowReduce):      # the instruction has working memory as large as its operand
                    operand = self.values[op.operands[0]]
                    spelled, dot, number = operand.name.rpartition(".")
                    name = f"{spelled}_tmp{dot}{number}" if dot else f"{number}_tmp"
                    yield _Life(replace(operand, name=name), "UB", at, at)

    def _places(self, value: CutValue, first: int, last: int, made: Sequence[int], uses: Sequence[int]) -> Iterator[_Life]:
        multiplied = [at for at in uses if _work_of(self.ops[at]) is Work.MKN]
        produced = any(_work_of(self.ops[at]) is Work.MKN for at in made)
        if self.on_host:      # a CPU's products read and write memory in place, block by block
            if not (self.in_place and value.stored and produced and not uses) and not (value.loaded and len(multiplied) == len(uses)):
                yield _Life(value, "cache", first, last)
            return
        vector = [at for at in uses if at not in multiplied]
        if produced:
            yield _Life(value, "L0C", first, last)
            if vector:
                yield _Life(value, "UB", vector[0], last)
        elif vector or made:
            yield _Life(value, "UB", first, last)
        if multiplied:
            yield _Life(value, "L1", first, last)
        for at in multiplied:
            for memory, name in zip(("L0A", "L0B"), self.ops[at].operands, strict=False):
                if name == value.name:
                    yield _Life(value, memory, at, at)

    # -- bytes ---------------------------------------------------------------------------------------------------------
    def extent(self, dim: str | int, tiles: Mapping[str, Numbers]) -> Numbers | int:
        """Return how much of a dimension stands in a task at a time."""
        if isinstance(dim, int):
            return dim
        step = self.axes[dim].step
        return np.minimum(tiles[dim], step) if step else tiles[dim]

    def volume(self, value: CutValue, tiles: Mapping[str, Numbers], n: int) -> Numbers:
        """Return the elements of a value's tile, of the steps where a task takes steps of the tile."""
        key = id(tiles), value.dims
        if key not in self._volumes:      # the tiles are kept beside, so that the id stays theirs
            self._volumes[key] = tiles, np.ones(n) * reduce(mul, [self.extent(dim, tiles) for dim in value.dims], 1)
        return self._volumes[key][1]

    def size(self, value: CutValue, tiles: Mapping[str, Numbers], n: int) -> Numbers:
        """Return the bytes of a value's tile."""
        return np.ceil(self.volume(value, tiles, n) * value.dtype.nbytes / _ALIGN) * _ALIGN

    def needs(self, tiles: Mapping[str, Numbers], n: int) -> dict[str, Numbers]:
        """Return the peak number of bytes that each memory needs."""
        sizes = {life.value.name: self.size(life.value, tiles, n) for life in self.lives}
        found: dict[str, Numbers] = {}
        for memory in dict.fromkeys(life.memory for life in self.lives):
            here = [life for life in self.lives if life.memory == memory]
            peaks = []
            for moment in sorted({life.first for life in here}):
                alive = [sizes[life.value.name] for life in here if life.first <= moment <= life.last]
                peaks.append(reduce(np.add, alive))
            found[memory] = reduce(np.maximum, peaks)
        return found

    def fits(self, needs: Mapping[str, Numbers], n: int) -> npt.NDArray[np.bool_]:
        """Return which candidates no memory is too small for."""
        kept = np.ones(n, np.bool_)
        for memory, limit in self.limits.items():
            if limit is not None and memory in needs:
                kept &= needs[memory] <= limit
        return kept

    def misfit(self, tiles: Mapping[str, int], grid: Sequence[tuple[int, ...]], fits: npt.NDArray[np.bool_]) -> Misfit:
        """Return which memory a candidate overfills, with what lives there."""
        needs = self.needs(columns := {name: np.array([float(extent)]) for name, extent in tiles.items()}, 1)
        memory = max((memory for memory in needs if self.limits.get(memory) is not None),
                     key=lambda name: needs[name][0] / max(1, self.limits[name] or 1))
        here = [life for life in self.lives if life.memory == memory]
        sizes = {life.value.name: int(self.size(life.value, columns, 1)[0]) for life in here}
        moment = max(sorted({life.first for life in here}),
                     key=lambda at: sum(sizes[life.value.name] for life in here if life.first <= at <= life.last))
        alive = sorted((life.value for life in here if life.first <= moment <= life.last), key=lambda value: -sizes[value.name])
        shapes = ["[" + ", ".join(str(tiles[dim] if isinstance(dim, str) else dim) for dim in value.dims) + f"] {value.dtype}"
                  for value in alive]
        tenants = tuple((value.name, sizes[value.name], shape) for value, shape in zip(alive, shapes, strict=True))
        largest = {name: max((row[k] for row, fit in zip(grid, fits, strict=True) if fit), default=0) for k, name in enumerate(self.axes)}
        return Misfit(dict(tiles), memory, int(needs[memory][0]), self.limits[memory] or 0, tenants, largest)

    # -- cycles --------------------------------------------------------------------------------------------------------
    def costs(self, tiles: Mapping[str, Numbers], n: int, batch: int = 1) -> tuple[Numbers, Numbers, Numbers]:
        """Return the tasks, the cycles of one task and the bytes that all move. `batch`: the neighbouring tiles that a task computes."""
        parts = {name: np.maximum(1, axis.extent / tiles[name] + 0.5) if axis.varies else np.ceil(axis.extent / tiles[name])
                 for name, axis in self.axes.items()}      # of extents that vary, half of the last tile is padding on average
        neighbours = np.ones(n)
        for name in reversed([name for name in self.axes if name not in self.summed]):
            here = (parts[name] > 1) & (neighbours == 1)
            neighbours = np.where(here, np.minimum(batch, parts[name]), neighbours)
            if batch > 1 or not self.on_host:      # threads of a CPU take the next task: half of a task on average stays half
                parts[name] = np.where(here, np.ceil(parts[name] / batch), parts[name])
        tasks = reduce(mul, (parts[name] for name in self.axes if name not in self.summed), np.ones(n))
        before: dict[str, Numbers] = {}        # cycles by pipe, outside of the loop over steps
        inside: dict[str, Numbers] = {}        # cycles of one iteration of the loop
        spent: dict[str, Numbers] = {}         # those of the whole task
        rate_of = cache(self._rate)
        trips = reduce(mul, (parts[name] for name in self.axes if name in self.summed), np.ones(n))
        moved = np.zeros(n)
        in_steps = {name: axis for name, axis in self.axes.items() if axis.step}

        def runs_of(names: Sequence[str]) -> Numbers:
            """How often a task does what has these values: once for each step of the loops that the values change in."""
            if not in_steps:
                return neighbours
            level = max((axis.level for dim, axis in in_steps.items() if any(dim in self.values[name].dims for name in names)), default=-1)
            return reduce(mul, (np.ceil(tiles[name] / axis.step) for name, axis in in_steps.items() if axis.level <= level), neighbours)

        def add(where: dict[str, Numbers], pipe: str, count: Numbers, dtype: DType, times: int, n_runs: Numbers) -> None:
            rate, startup = rate_of(pipe, dtype)
            cycles = (np.ceil(count / rate) + startup) * times if startup or times != 1 else np.ceil(count / rate)
            where[pipe] = where[pipe] + cycles if pipe in where else cycles
            whole = cycles * n_runs * trips if where is inside else cycles * n_runs
            spent[pipe] = spent[pipe] + whole if pipe in spent else whole

        for value in self.values.values():
            volume = self.volume(value, tiles, n)
            stepped = bool(self.summed & set(value.dims))
            used = (*self.makers[value.name], *self.users[value.name])
            times = 1 if value.held or not used else max([self.ops[at].times for at in used])
            leaving = value.name in self.in_cube
            n_runs = runs_of((value.name,))      # a sum walks its operands again in each step of the tile
            n_runs = np.where(trips > 1, runs_of(tuple(self.values)), n_runs) if stepped and in_steps else n_runs
            if leaving and value.name in self.in_vector:
                add(inside if stepped else before, "fixpipe", volume, value.dtype, times, n_runs)
            for pipe, happens in (("MTE2", value.loaded), ("fixpipe" if leaving else "MTE3", value.stored)):
                if happens:
                    add(inside if stepped else before, pipe, volume, value.dtype, times, n_runs)
                    moved = moved + volume * value.dtype.nbytes * times * n_runs * (trips if stepped else 1)
        for op in self.ops:
            where = inside if self._steps_of(op) else before
            operands, results = ([self.values[name] for name in names] for names in (op.operands, op.results))
            kind, n_runs = _work_of(op), runs_of((*op.operands, *op.results))
            if kind is Work.MKN and len(operands) >= 2:
                lhs, rhs = operands[0], operands[1]
                amount = self.volume(results[0], tiles, n) * self.extent(lhs.dims[-1], tiles)
                rows = self.axes.get(str(lhs.dims[-2])) if len(lhs.dims) > 1 else None
                if self.on_host and rows is not None and rows.varies:      # a CPU's product leaves out rows that are padding
                    amount = amount / (1 + 0.5 * tiles[rows.name] / rows.extent)
                add(where, "cube", amount, lhs.dtype, op.times, n_runs)
                # a core brings both operands to the cube; a CPU packs both, the right one again for each chunk of rows
                passes = np.ceil(self.extent(lhs.dims[-2], tiles) / _HOST_ROWS) if self.in_place and len(lhs.dims) > 1 else 1
                left = self.volume(lhs, tiles, n) if self.in_place or not self.on_host else 0
                add(where, "MTE1", self.volume(rhs, tiles, n) * passes + left, lhs.dtype, op.times, n_runs)
            else:
                amount = reduce(np.maximum, (self.volume(value, tiles, n) for value in (*results, *operands)), np.ones(n))
                if kind is Work.SORT and operands and operands[0].dims:
                    last = operands[0].dims[-1]
                    columns = tiles[last] if isinstance(last, str) else np.full(n, float(last))
                    amount = self.volume(operands[0], tiles, n) * np.maximum(1, np.ceil(np.log2(np.maximum(columns, 2))))
                widest = max((value.dtype for value in (*results, *operands)), key=lambda dtype: dtype.nbytes)
                entry = TABLE.get(op.op)
                if self.on_host and isinstance(entry, Elementwise) and not entry.c.simple:
                    amount = amount * _HOST_SERIES
                add(where, "vector", amount, widest, op.times, n_runs)
        chain = reduce(np.add, before.values(), np.zeros(n))
        iteration_sum = reduce(np.add, inside.values(), np.zeros(n))
        if self.on_host:
            return tasks, reduce(np.add, spent.values(), np.zeros(n)), moved * tasks
        iteration = reduce(np.maximum, inside.values(), np.zeros(n))
        once = chain + trips * iteration + (iteration_sum - iteration)
        every = runs_of(tuple(self.values))
        alone = chain + iteration_sum
        longest = reduce(np.maximum, spent.values(), np.zeros(n))
        share = reduce(np.maximum, (np.where(total == longest, before.get(pipe, 0) + inside.get(pipe, 0), 0)
                                    for pipe, total in spent.items()), np.zeros(n))
        nested = (trips > 1) | any(op.times > 1 for op in self.ops)        # loops inside of loops do not overlap each other
        return tasks, np.where(every == 1, once, np.where(nested, once * every, longest + alone - share)), moved * tasks

    def _rate(self, pipe: str, dtype: DType) -> tuple[float, int]:
        """Return how many elements a pipe takes a cycle, and its cycles to start."""
        unit = next((unit for unit in self.arch.units if unit.name == pipe), None)
        if unit is None:
            return 1.0, 0
        given = next((rate.per_cycle for rate in unit.rates if rate.dtype == str(dtype)), None)
        if given is None and unit.bytes_per_cycle is not None:
            given = unit.bytes_per_cycle / dtype.nbytes
        return given or unit.elements_per_cycle or min((rate.per_cycle for rate in unit.rates), default=1.0), unit.startup_cycles or 0


def _work_of(op: TileOp) -> Work:
    entry = TABLE.get(op.op)
    return Work.LARGEST_TILE if entry is None else entry.work


def _limits(arch: Arch) -> dict[str, int | None]:
    """Return the bytes of each memory that tiles live in; for a CPU, or a machine without bounds, of one cache of a core."""
    if not arch.neutral and not arch.cores.shared:
        return {memory.name: memory.usable_bytes for memory in arch.memories}
    host = arch if arch.cores.shared else builtin_arch("host_cpu")
    caches = {memory.name: memory.usable_bytes for memory in host.memories if memory.name.startswith("cache")}
    found = caches.get("cache 2") or max((size for size in caches.values() if size), default=0)
    return {"cache": found or _HOST_BYTES}


def _overuse(group: _GroupNumbers, needs: Mapping[str, Numbers], at: int) -> float:
    return max((float(needs[memory][at]) / limit for memory, limit in group.limits.items() if limit and memory in needs), default=0.0)


def _next_larger(group: _GroupNumbers, axes: Sequence[TileAxis], grid: Sequence[tuple[int, ...]], fits: npt.NDArray[np.bool_],
                 best: tuple[int, ...]) -> Misfit | None:
    """Return the misfit of the next larger candidate along the first axis where that candidate does not fit."""
    for k in range(len(axes)):
        larger = sorted({row[k] for row in grid if row[k] > best[k]})
        if larger:
            row = (*best[:k], larger[0], *best[k + 1:])
            if row in grid and not fits[grid.index(row)]:
                return group.misfit({one.name: extent for one, extent in zip(axes, row, strict=True)}, grid, fits)
    return None
