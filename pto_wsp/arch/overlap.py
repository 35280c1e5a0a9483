"""How long a kernel takes when its pipes overlap: a list schedule of its stages.

Each pipe runs its stages in program order, a stage starts when what it reads is there, and a load of one iteration overlaps the
work on another one as two buffers allow: it waits until what it brought two iterations before has been used. Statements before,
inside and after a loop do not overlap. Sizes that a binding decides are taken as whole for the schedule; the pipe that
limits then scales with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pto_wsp.arch.formula import either, repeated, total_of, trips_of
from pto_wsp.arch.model import Arch
from pto_wsp.arch.pipes import PIPES, Stage, Stages
from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import result_of, uses_of
from pto_wsp.types import scalar as s
from pto_wsp.values import dataclass

_ITERATIONS = 4     # scheduled one by one; from then on two take as long as the last two: with two buffers, turns may differ by turns

_Busy = Mapping[str, s.Scalar]


@dataclass(frozen=True, slots=True)
class Times:
    """Cycles of one task: how long each pipe works, and how long it takes."""

    busy: Mapping[str, s.Scalar]
    total: s.Scalar


def times_of(kernel: k.Kernel, arch: Arch) -> Times:
    """Return the cycles of a kernel's pipes and of the whole on an arch.

    Raises: C104 naming a number that the arch does not give.
    """
    stages = Stages(kernel, arch)
    if not kernel.has_meaning:
        busy = _busy([(None, stages.of_whole_kernel(kernel))], arch)
        return Times(busy, total_of(busy.values()))
    return _body(kernel.body, stages, arch)


def _body(body: Sequence[k.Stmt], stages: Stages, arch: Arch) -> Times:
    parts: list[Times] = []
    run: list[tuple[k.Stmt | None, tuple[Stage, ...]]] = []
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


def _segment(run: Sequence[tuple[k.Stmt | None, tuple[Stage, ...]]], arch: Arch) -> Times:
    busy = _busy(run, arch)
    if arch.neutral:
        return Times(busy, total_of(busy.values()))
    exposed = _scheduled(run, arch, 1) - max(_whole(run, arch).values())
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
    two = 2 * (_scheduled(run, arch, n) - _scheduled(run, arch, n - 1)) if 0 < n < _ITERATIONS else \
        _scheduled(run, arch, n) - _scheduled(run, arch, n - 2) if n else 0
    exposed = two - 2 * limit
    fill = s.Const(_scheduled(run, arch, n) - n * two // 2)
    each = s.add(_longest(busy), s.Const(exposed // 2))
    total = s.add(repeated(stmt, each), s.mul(s.minimum(trips, s.Const(1)), fill))
    if exposed % 2:      # half a cycle a turn
        total = s.add(total, s.binary(s.Op.FLOORDIV, trips, s.Const(2)))
    return Times({pipe: repeated(stmt, cycles) for pipe, cycles in busy.items()}, total)


def _busy(run: Sequence[tuple[k.Stmt | None, tuple[Stage, ...]]], arch: Arch) -> _Busy:
    """Return the work of each pipe."""
    busy: dict[str, s.Scalar] = {}
    for pipe in PIPES:
        cycles = [stage.cycles for _, stages in run for stage in stages if stage.pipe == pipe]
        busy[pipe] = total_of(cycles)
    busy["scalar"] = s.Const(_issue(arch) * sum(len(stages) for _, stages in run))
    return busy


def _whole(run: Sequence[tuple[k.Stmt | None, tuple[Stage, ...]]], arch: Arch) -> dict[str, int]:
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


def _scheduled(run: Sequence[tuple[k.Stmt | None, tuple[Stage, ...]]], arch: Arch, iterations: int) -> int:
    """Return when the last of `iterations` rounds of the statements is complete; every piece is whole."""
    free = dict.fromkeys(PIPES, 0)
    ready: dict[int | str, int] = {}
    used: list[dict[int, int]] = []         # per round: when each value was last read
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
    if isinstance(stmt, k.Read | k.Accumulate):
        names.append(f"#{stmt.buffer.id}")
    return names


def _writes(stmt: k.Stmt | None) -> list[int | str]:
    if isinstance(stmt, k.Write | k.Accumulate | k.Alloc):
        return [f"#{stmt.buffer.id}"]
    result = None if stmt is None else result_of(stmt)
    return [] if result is None else [result.id]
