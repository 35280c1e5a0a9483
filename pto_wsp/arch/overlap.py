"""Compute a kernel's cycles as formulas when the pipes of a core overlap.

A statement is one or more stages, each on one pipe: a load is an MTE2 stage; a matrix product an MTE1 stage (operands into the cube's
memories) and a cube stage; an op on tiles a vector stage; a store an MTE3 stage. Results of the cube leave by the fixpipe. The scalar pipe
issues every stage.

`times_of` list-schedules the stages. Each pipe runs its stages in program order, a stage starts when its operands are ready, and loads
overlap other iterations as far as two buffers allow: a load waits until its data of two iterations before has been read. Statements before,
inside and after a loop do not overlap. The schedule takes sizes that a binding decides as whole; the limiting pipe then scales with them.

>>> print_scalar(repeated(for_j_in_range_n, Const(74)))
'max(n, 0) * 74'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import assert_never

from pto_wsp.arch.model import UNITS, Arch, ExecUnit
from pto_wsp.errors import unreachable
from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.item_bounds import most
from pto_wsp.ir.kernel_walk import piece_of, result_of, scalars_of, uses_of, valid_of, valid_rows_of
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.tile import TileType
from pto_wsp.ops.entry import Work
from pto_wsp.ops.table import find
from pto_wsp.values import dataclass

# Workload expressions replace scalar parameters, and their loop variables are numbered from 0 like a kernel's.
FIRST_SUM = 1 << 20


def trips_of(stmt: k.For) -> s.Scalar:
    """Return the trip count of a loop, 0 for an empty range."""
    return s.maximum(s.ceil_div(s.sub(stmt.stop, stmt.start), stmt.step), s.Const(0))


def repeated(stmt: k.For, amount: s.Scalar) -> s.Scalar:
    """Return the total of a loop from the amount of one iteration, which may depend on the loop variable."""
    if stmt.var not in s.leaves(amount):
        return s.mul(trips_of(stmt), amount)
    var = s.Var(stmt.var.name, stmt.var.id + FIRST_SUM)
    return s.Sum(var, stmt.start, stmt.stop, stmt.step, s.substitute(amount, lambda node: var if node == stmt.var else None))


def either(condition: s.Scalar, then: s.Scalar, other: s.Scalar) -> s.Scalar:
    """Return the amount of the side of a branch that runs."""
    return then if then == other else s.select(condition, then, other)


def total_of(terms: Iterable[s.Scalar]) -> s.Scalar:
    """Return the sum of terms, constants last, as a reader expects them."""
    fixed = 0
    moving: s.Scalar = s.Const(0)
    for term in terms:
        if isinstance(term, s.Const):
            fixed += int(term.value)
        else:
            moving = s.add(moving, term)
    return s.add(moving, s.Const(fixed))


# -- stages ----------------------------------------------------------------------------------------


PIPES = UNITS


@dataclass(frozen=True, slots=True)
class PipeStage:
    """Work on one pipe: cycles as a formula in what a binding decides, and cycles if every piece is whole."""

    pipe: str
    cycles: s.Scalar
    whole: int


class Stages:
    """Gives the stages of statements on one arch. `in_cube`: values that the cube produced and that have not left its memory."""

    def __init__(self, kernel: k.Kernel, arch: Arch) -> None:
        self.arch = arch
        self.tiles: Mapping[str, TileType] = {p.name: p.type for p in kernel.params if isinstance(p, k.TileParam)}
        self.in_cube: set[int | str] = set()

    def of(self, stmt: k.Stmt) -> tuple[PipeStage, ...]:
        """Return the stages of a statement without a body, in execution order."""
        match stmt:
            case k.Load():
                rows, cols = piece_of(stmt)
                return (self._move("MTE2", elements_moved(stmt, self.tiles), rows * cols, stmt.result.type.dtype),)
            case k.Store():
                pipe = "fixpipe" if not self.arch.neutral and stmt.value.id in self.in_cube else "MTE3"
                return (self._move(pipe, elements_moved(stmt, self.tiles), stmt.value.type.n_elements, stmt.value.type.dtype),)
            case k.Gather(result):
                return (self._move("MTE2", rows_moved(stmt, result.type), result.type.n_elements, result.type.dtype),)
            case k.Scatter(_, _, value):
                pipe = "fixpipe" if not self.arch.neutral and value.id in self.in_cube else "MTE3"
                return (self._move(pipe, rows_moved(stmt, value.type), value.type.n_elements, value.type.dtype),)
            case k.Compute(result, op, operands):
                if find(op).work is Work.MKN:
                    return self._product(result.type, operands, result.id)
                tiles = [result.type, *(o.type for o in operands if isinstance(o, k.Value))]
                work = max(tile.n_elements for tile in tiles)
                if find(op).work is Work.SORT:
                    work = tiles[1].n_elements * max(1, (tiles[1].cols - 1).bit_length())
                widest = max((tile.dtype for tile in tiles), key=lambda dtype: dtype.nbytes)
                return (*self._leaving(operands), self._work("vector", work, widest))
            case k.Accumulate(buffer, lhs, rhs):
                return self._product(buffer.type, (lhs, rhs), f"#{buffer.id}")
            case k.Read(result, buffer):
                if f"#{buffer.id}" in self.in_cube:
                    self.in_cube.add(result.id)
                return ()
            case k.Write(buffer, value):
                if value.id in self.in_cube:
                    self.in_cube.add(f"#{buffer.id}")
                return ()
            case k.WritePart(_, value):
                return (*self._leaving((value,)), self._work("vector", value.type.n_elements, value.type.dtype))
            case k.Alloc() | k.Item() | k.Print() | k.FiniteCheck():
                return ()
            case k.For() | k.If() | k.Rows() | k.Columns():
                raise AssertionError("a statement with a body")
            case _:
                assert_never(stmt)

    def of_whole_kernel(self, kernel: k.Kernel) -> tuple[PipeStage, ...]:
        """Return the stages of a kernel of unknown work: each bound tensor moves once."""
        stages: list[PipeStage] = []
        for param in kernel.memory_params:
            dtype = param.dtype
            whole = param.type.n_elements if isinstance(param, k.TileParam) else 0
            moved = s.mul(s.ParamExtent(param.name, 0), s.ParamExtent(param.name, 1))
            stages += [self._move(pipe, moved, whole, dtype) for pipe, moves in (("MTE2", param.role.reads), ("MTE3", param.role.writes))
                       if moves]
        return tuple(stages)

    def _product(self, result: TileType, operands: Sequence[k.Operand], made: int | str) -> tuple[PipeStage, ...]:
        tiles = [o.type for o in operands if isinstance(o, k.Value)]
        lhs, rhs = tiles[0], tiles[1]
        depth = lhs.n_elements // result.rows
        cube = self._work("cube", result.n_elements * depth, lhs.dtype)
        if self.arch.neutral:
            return (cube,)
        self.in_cube.add(made)
        return self._work("MTE1", lhs.n_elements + rhs.n_elements, lhs.dtype), cube

    def _leaving(self, operands: Sequence[k.Operand]) -> tuple[PipeStage, ...]:
        """Return the stages that move cube results to the vector unit."""
        stages: list[PipeStage] = []
        for operand in operands:
            if not self.arch.neutral and isinstance(operand, k.Value) and operand.id in self.in_cube:
                self.in_cube.discard(operand.id)
                stages.append(self._work("fixpipe", operand.type.n_elements, operand.type.dtype))
        return tuple(stages)

    def _work(self, pipe: str, count: int, dtype: DType) -> PipeStage:
        return self._move(pipe, s.Const(count), count, dtype)

    def _move(self, pipe: str, count: s.Scalar, whole: int, dtype: DType) -> PipeStage:
        unit = self.arch.unit(pipe)
        formula = cycles_of(self.arch, unit, count, dtype)
        full = cycles_of(self.arch, unit, s.Const(whole), dtype)
        assert isinstance(full, s.Const)
        return PipeStage(pipe, formula, int(full.value))


def cycles_of(arch: Arch, unit: ExecUnit, count: s.Scalar, dtype: DType) -> s.Scalar:
    """Return the cycles of a unit for `count` elements: start-up plus throughput.

    Raises: C115 naming the number that the arch does not give.
    """
    rate = Fraction(arch.rate(unit, str(dtype), dtype.nbytes)).limit_denominator(1 << 16)
    spread = s.mul(count, s.Const(rate.denominator))
    cycles = spread if rate.numerator == 1 else s.ceil_div(spread, s.Const(rate.numerator))
    return s.add(cycles, s.Const(arch.startup(unit)))


def rows_moved(stmt: k.Gather | k.Scatter, rows: TileType) -> s.Scalar:
    """Return the number of elements in the rows that an index picks."""
    return s.mul(valid_rows_of(stmt), s.Const(rows.cols))


def elements_moved(stmt: k.Load | k.Store, tiles: Mapping[str, TileType]) -> s.Scalar:
    """Return the number of elements that move: the valid part, clipped to the bound extent for a Tile parameter."""
    extents: list[s.Scalar] = []
    for dim, (valid, start) in enumerate(zip(valid_of(stmt), (stmt.row, stmt.col), strict=True)):
        bound = s.sub(s.ParamExtent(stmt.param, dim), start)
        if stmt.param not in tiles:
            extents.append(valid)
        elif start == s.Const(0) and valid == s.Const(tiles[stmt.param].shape[dim]):
            extents.append(bound)
        else:
            extents.append(s.maximum(s.minimum(bound, valid), s.Const(0)))
    return s.mul(*extents)


# -- schedule --------------------------------------------------------------------------------------


_ITERATIONS = 4     # scheduled one by one; then two iterations repeat the last two, as two buffers may make iterations alternate

_Busy = Mapping[str, s.Scalar]


@dataclass(frozen=True, slots=True)
class Times:
    """Cycles of one task: the work of each pipe, and the total."""

    busy: Mapping[str, s.Scalar]
    total: s.Scalar


def times_of(kernel: k.Kernel, arch: Arch) -> Times:
    """Return the cycles of a kernel's pipes and of the whole kernel on an arch, at most, where items decide.

    Raises: C115 naming a number that the arch does not give.
    """
    stages = Stages(kernel, arch)
    if not kernel.has_meaning:
        busy = _busy([(None, stages.of_whole_kernel(kernel))], arch)
        return Times(busy, total_of(busy.values()))
    times = _body(kernel.body, stages, arch)
    return Times({pipe: at_most(cycles) for pipe, cycles in times.busy.items()}, at_most(times.total))


def at_most(amount: s.Scalar) -> s.Scalar:
    """Return a bound of an amount, for every value of its items: cycles are counted before the task reads them."""
    bound = most(amount)
    return unreachable(f"an amount without a bound: {print_scalar(amount)}") if bound is None else bound


def _body(body: Sequence[k.Stmt], stages: Stages, arch: Arch) -> Times:
    parts: list[Times] = []
    run: list[tuple[k.Stmt | None, tuple[PipeStage, ...]]] = []
    for stmt in body:
        if isinstance(stmt, k.For | k.If | k.Rows | k.Columns):
            parts += [_segment(run, arch), _compound(stmt, stages, arch)]
            run = []
        else:
            run.append((stmt, stages.of(stmt)))
    return _after_each_other([*parts, _segment(run, arch)])


def _after_each_other(parts: Sequence[Times]) -> Times:
    busy = {pipe: total_of(part.busy[pipe] for part in parts) for pipe in PIPES}
    return Times(busy, total_of(part.total for part in parts))


def _segment(run: Sequence[tuple[k.Stmt | None, tuple[PipeStage, ...]]], arch: Arch) -> Times:
    busy = _busy(run, arch)
    if arch.neutral:
        return Times(busy, total_of(busy.values()))
    exposed = scheduled_cycles(run, arch, 1) - max(_whole(run, arch).values())
    return Times(busy, s.add(_longest(busy), s.Const(exposed)))


def _compound(stmt: k.For | k.If | k.Rows | k.Columns, stages: Stages, arch: Arch) -> Times:
    match stmt:
        case k.If(condition, then, other):
            sides = _body(then, stages, arch), _body(other, stages, arch)
            return Times({pipe: either(condition, sides[0].busy[pipe], sides[1].busy[pipe]) for pipe in PIPES},
                         either(condition, sides[0].total, sides[1].total))
        case k.For():
            return _loop(stmt, stages, arch)
        case k.Rows() | k.Columns():
            return _body(stmt.body, stages, arch)


def _loop(stmt: k.For, stages: Stages, arch: Arch) -> Times:
    trips = trips_of(stmt)
    if arch.neutral or any(isinstance(inner, k.For | k.If | k.Rows | k.Columns) for inner in stmt.body):
        once = _body(stmt.body, stages, arch)
        return Times({pipe: repeated(stmt, cycles) for pipe, cycles in once.busy.items()}, repeated(stmt, once.total))
    run = [(inner, stages.of(inner)) for inner in stmt.body]
    busy, limit = _busy(run, arch), max(_whole(run, arch).values())
    n = _ITERATIONS if not isinstance(trips, s.Const) else min(int(trips.value), _ITERATIONS)
    two = 2 * (scheduled_cycles(run, arch, n) - scheduled_cycles(run, arch, n - 1)) if 0 < n < _ITERATIONS else \
        scheduled_cycles(run, arch, n) - scheduled_cycles(run, arch, n - 2) if n else 0
    exposed = two - 2 * limit
    fill = s.Const(scheduled_cycles(run, arch, n) - n * two // 2)
    each = s.add(_longest(busy), s.Const(exposed // 2))
    total = s.add(repeated(stmt, each), s.mul(s.minimum(trips, s.Const(1)), fill))
    if exposed % 2:      # half a cycle per iteration
        total = s.add(total, s.binary(s.Op.FLOORDIV, trips, s.Const(2)))
    return Times({pipe: repeated(stmt, cycles) for pipe, cycles in busy.items()}, total)


def _busy(run: Sequence[tuple[k.Stmt | None, tuple[PipeStage, ...]]], arch: Arch) -> _Busy:
    """Return the work of each pipe."""
    busy: dict[str, s.Scalar] = {}
    for pipe in PIPES:
        cycles = [stage.cycles for _, stages in run for stage in stages if stage.pipe == pipe]
        busy[pipe] = total_of(cycles)
    busy["scalar"] = s.Const(_issue(arch) * sum(len(stages) for _, stages in run))
    return busy


def _whole(run: Sequence[tuple[k.Stmt | None, tuple[PipeStage, ...]]], arch: Arch) -> dict[str, int]:
    whole = {pipe: sum(stage.whole for _, stages in run for stage in stages if stage.pipe == pipe) for pipe in PIPES}
    whole["scalar"] = _issue(arch) * sum(len(stages) for _, stages in run)
    return whole


def _longest(busy: _Busy) -> s.Scalar:
    longest: s.Scalar = s.Const(0)
    for cycles in busy.values():
        longest = cycles if longest == s.Const(0) else longest if cycles == s.Const(0) else s.maximum(longest, cycles)
    return longest


def _issue(arch: Arch) -> int:
    return 0 if arch.neutral else arch.startup(arch.unit("scalar"))


def scheduled_cycles(run: Sequence[tuple[k.Stmt | None, tuple[PipeStage, ...]]], arch: Arch, iterations: int) -> int:
    """Return the completion time of `iterations` rounds of the statements, with every piece whole.

    List scheduling: each stage starts at the earliest time its operands, its pipe and the scalar pipe allow.
    """
    free = dict.fromkeys(PIPES, 0)
    ready: dict[int | str, int] = {}
    used: list[dict[int, int]] = []         # per round: the last read of each value
    end, issue = 0, _issue(arch)
    for at in range(iterations):
        used.append({})
        for stmt, stages in run:
            start = max((ready.get(name, 0) for name in _reads(stmt)), default=0)
            if isinstance(stmt, k.Load | k.Gather) and at >= 2:
                start = max(start, used[at - 2].get(stmt.result.id, 0))
            for stage in stages:
                free["scalar"] += issue
                start = max(start, free[stage.pipe], free["scalar"])
                start = free[stage.pipe] = start + stage.whole
            for name in _writes(stmt):
                ready[name] = start
            for value in () if stmt is None else uses_of(stmt):
                used[at][value.id] = max(used[at].get(value.id, 0), start)
            end = max(end, start)
    return end


def _reads(stmt: k.Stmt | None) -> list[int | str]:
    if stmt is None:
        return []
    names: list[int | str] = [value.id for value in uses_of(stmt)]
    names += [f"@{leaf.id}" for node in scalars_of(stmt) for leaf in s.leaves(node) if isinstance(leaf, s.ItemRef)]
    if isinstance(stmt, k.Read | k.Accumulate | k.WritePart):
        names.append(f"#{stmt.buffer.id}")
    return names


def _writes(stmt: k.Stmt | None) -> list[int | str]:
    if isinstance(stmt, k.Write | k.WritePart | k.Accumulate | k.Alloc):
        return [f"#{stmt.buffer.id}"]
    if isinstance(stmt, k.Item):
        return [f"@{stmt.item.id}"]
    result = None if stmt is None else result_of(stmt)
    return [] if result is None else [result.id]
