"""Collect the accesses of tensors by tasks and by the workload itself, and the places where a plan leaves accesses unordered.

A `Region` describes the elements that a view reaches: each tensor dimension is a line, start + Σ factor · position, over free positions.
Dimensions stay separate, so symbolic sizes stay linear. A reshape counts the same elements by old and new positions: an equality between
them, with the strides of both shapes.

An `Access` has the levels around its task: loops, branches, consumers. A `Contest` is a construct whose parts are unordered (iterations of
an unordered loop, sides, processes, replicas), with the accesses of one tensor that meet there. A tensor allocated in a body is a new
tensor in each iteration, so its accesses meet only inside that body.

>>> region_of(View(x, (Pick(0, b), Cut(0, Const(8), Const(16)))))
Region(dims=(Line(start=b, terms=()), Line(start=8, terms=((0, 1),))), extents=(8,), equal=())
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias, assert_never

from pto_wsp.ir.flow import Choice, Consume, Do, Fresh, Loop, Pipeline, Process, Receive, Sequence, Sides, Through, evaluations
from pto_wsp.ir.kernel import Role, TileParam
from pto_wsp.ir.layout import Layout
from pto_wsp.ir.plan import (
    Check,
    Item,
    PlanBranch,
    PlanChoice,
    PlanConsume,
    PlanEvaluating,
    PlanLoop,
    PlanPipeline,
    PlanProcess,
    PlanReceive,
    PlanSides,
    Submit,
    TaskPlan,
)
from pto_wsp.ir.scalar import Const, DimOf, Scalar, Var, add, ceil_div, minimum, mul, print_scalar, sub
from pto_wsp.ir.view import Clip, Cut, Permute, Pick, Reshape, View, declared
from pto_wsp.ir.waits import Reads
from pto_wsp.source import Span, argument_span
from pto_wsp.values import dataclass

Term: TypeAlias = tuple[int, int]       # (number of a position, factor)


# -- regions -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Line:
    """The linear form start + Σ factor · position."""

    start: Scalar
    terms: tuple[Term, ...]

    def put(self, position: int, start: Scalar, terms: tuple[Term, ...]) -> Line:
        """Return the line with `position` replaced by start + Σ factor · position of `terms`."""
        factor = next((f for number, f in self.terms if number == position), 0)
        if not factor:
            return self
        rest = tuple(term for term in self.terms if term[0] != position)
        return Line(add(self.start, mul(start, Const(factor))), (*rest, *((number, f * factor) for number, f in terms)))


@dataclass(frozen=True, slots=True)
class Region:
    """The elements at `dims`, for all positions with 0 <= position < extent at which the lines in `equal` are 0.

    `extents`: of each position, by number; positions in no line are not free.
    """

    dims: tuple[Line, ...]
    extents: tuple[Scalar, ...]
    equal: tuple[Line, ...] = ()

    @property
    def is_box(self) -> bool:
        """True if the dimensions are independent."""
        return not self.equal

    def positions(self) -> tuple[int, ...]:
        """Return the numbers of the free positions."""
        return tuple(dict.fromkeys(number for line in (*self.dims, *self.equal) for number, _ in line.terms))


def region_of(view: View) -> Region:
    """Return the region of a view."""
    rank = view.tensor.rank
    dims = [Line(Const(0), ((k, 1),)) for k in range(rank)]
    extents: list[Scalar] = [DimOf(view.tensor, k) for k in range(rank)]
    equal: list[Line] = []
    free = list(range(rank))                    # the position of each dimension of the view so far

    def put(position: int, start: Scalar, terms: tuple[Term, ...] = ()) -> None:
        dims[:] = [line.put(position, start, terms) for line in dims]
        equal[:] = [line.put(position, start, terms) for line in equal]

    for step in view.steps:
        match step:
            case Pick(dim, index):
                put(free.pop(dim), index)
            case Cut(dim, start, stop, by):
                put(free[dim], start, ((len(extents), by),))
                free[dim] = len(extents)
                span = sub(stop, start)
                extents.append(span if by == 1 else ceil_div(span, Const(by)))
            case Clip(limits):
                for position, limit in zip(free, limits, strict=True):
                    if limit is not None:
                        extents[position] = minimum(extents[position], Const(limit))
            case Permute(order):
                free = [free[k] for k in order]
            case Reshape(shape):
                first, last = step.span(len(free))
                before = free[first:last]
                old = tuple(_declared_extent(extents[position]) for position in before)
                new = tuple(range(len(extents), len(extents) + len(shape)))
                equal.append(Line(Const(0), (*_terms_of(before, old, 1), *_terms_of(new, shape, -1))))
                for position, extent in zip(before, old, strict=True):
                    extents[position] = Const(extent)
                extents.extend(Const(extent) for extent in shape)
                free[first:last] = new
            case _:
                assert_never(step)
    return Region(tuple(dims), tuple(extents), tuple(equal))


def _terms_of(positions: list[int] | tuple[int, ...], shape: tuple[int, ...], sign: int) -> tuple[Term, ...]:
    return tuple((position, sign * stride) for position, stride in zip(positions, Layout.contiguous(shape).strides, strict=True))


def _declared_extent(extent: Scalar) -> int:
    """Return the declared extent of a reshaped view: a run-time check keeps the actual extent equal to the declared one."""
    known = declared(extent)
    assert isinstance(known, Const)
    return int(known.value)


# -- accesses ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """A branch of a choice: 0 .. n-1, or n for `otherwise`. The conditions of earlier branches are false.

    `asked`: the branch's own condition is being evaluated, so the branch is not yet chosen.
    """

    choice: PlanChoice
    number: int
    asked: bool = False

    @property
    def refused(self) -> tuple[PlanBranch, ...]:
        """The branches whose conditions do not hold."""
        return self.choice.branches[:self.number]

    @property
    def held(self) -> Scalar | None:
        """The condition that is true; None in `otherwise`, or while the condition is evaluated."""
        return None if self.asked or self.number == len(self.choice.branches) else self.choice.branches[self.number].condition


def token_number(consumer: PlanConsume) -> Var:
    """Return the variable that counts the tokens of a consumer's channel: the number of the token of an iteration, over all replicas."""
    return Var("token", _TOKEN_NUMBERS - consumer.site)


_TOKEN_NUMBERS = -(1 << 32)      # variable ids, disjoint from those of loops

Level: TypeAlias = PlanLoop | Taken | PlanConsume | PlanReceive | PlanProcess
Statement: TypeAlias = Submit | PlanEvaluating


@dataclass(frozen=True, slots=True, eq=False)
class SiteAccess:
    """One memory parameter of one task site: slot of the tensor, role, view, and the levels around the task, outermost first.

    `param` is empty if the workload reads an element itself. `who` names the access, e.g. copy(x). `checks`: run-time checks made before.
    `combine`: how an accumulating parameter combines, "" for others.
    """

    statement: Statement
    who: str
    param: str
    slot: int
    role: Role
    view: View
    levels: tuple[Level, ...]
    checks: tuple[Check, ...]
    combine: str = ""

    @property
    def span(self) -> Span:
        """The user's line of the access."""
        return argument_span(self.statement.span, self.param) if self.param else self.statement.span

    @property
    def by_workload(self) -> bool:
        """True if the workload itself reads the element."""
        return not self.param

    @property
    def verb(self) -> str:
        """The verb of the access in messages."""
        return f"accumulated ({self.combine})" if self.combine else "written" if self.role.writes else "read"

    @property
    def variables(self) -> tuple[Var, ...]:
        """The user's loop variables around the task, outermost first."""
        return tuple(level.known_var for level in self.levels if isinstance(level, Loop))


BySlot: TypeAlias = dict[int, list[SiteAccess]]


# -- contests ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, eq=False)
class Contest:
    """Accesses of one tensor, at least one a write, that meet without an order at `node`; they share the levels before `depth`.

    `groups`: the accesses of a loop's iterations, or of each side. Accesses of one group meet only in a loop and between replicas.
    `pipeline`: the pipeline of the processes if `node` is a pipeline or a process. `around`: the pipeline that contains or is `node`.
    """

    node: PlanLoop | PlanSides | PlanPipeline | PlanProcess
    slot: int
    depth: int
    groups: tuple[tuple[SiteAccess, ...], ...]
    pipeline: PlanPipeline | None = None
    around: PlanPipeline | None = None


def contests_of(plan: TaskPlan, *, ordered: bool = False) -> tuple[Contest, ...]:
    """Return the contests of a plan, inner constructs first, in program order. `ordered`: the contests if ordered loops were unordered."""
    walk = _AccessWalk(plan, ordered)
    walk.visit(plan.body, ())
    return tuple(walk.found)


@dataclass(frozen=True, slots=True, eq=False)
class Touched:
    """The accesses of one tensor by tasks. The tensor is the same object within one iteration of the levels before `depth`."""

    slot: int
    depth: int
    accesses: tuple[SiteAccess, ...]


def touched_of(plan: TaskPlan) -> dict[int, Touched]:
    """Return what tasks access of each tensor, by slot."""
    walk = _AccessWalk(plan, False)
    walk.keep(walk.visit(plan.body, ()), 0)
    return walk.touched


def accesses_of(plan: TaskPlan) -> dict[int, tuple[SiteAccess, ...]]:
    """Return the accesses of each task site, by site number."""
    walk = _AccessWalk(plan, False)
    walk.visit(plan.body, ())
    return walk.by_site


class _AccessWalk:
    def __init__(self, plan: TaskPlan, ordered: bool) -> None:
        self.plan = plan
        self.ordered = ordered
        self.by_site: dict[int, tuple[SiteAccess, ...]] = {}
        self.reads = Reads.of(plan)
        self.found: list[Contest] = []
        self.touched: dict[int, Touched] = {}
        self.around: PlanPipeline | None = None

    def keep(self, accesses: BySlot, depth: int) -> None:
        """Record accesses of tensors that are allocated anew in each iteration of the levels before `depth`."""
        for slot, recorded in accesses.items():
            self.touched[slot] = Touched(slot, depth, tuple(access for access in recorded if not access.by_workload))

    def visit(self, item: Item, levels: tuple[Level, ...]) -> BySlot:
        """Return the accesses inside an item, by slot."""
        match item:
            case Do(task):
                return _merged((self._read(task, levels, task.index, task.scalars, *((p.offset, p.extent, p.stride) for p in task.places)),
                                self._task(task, levels)))
            case Sequence(items):
                return self._sequence(items, levels)
            case Loop():
                through_values = () if item.through is None else (item.through.value,)
                inside = _merged((self._read(item, (*levels, item), *through_values), self.visit(item.body, (*levels, item))))
                if item.ordered == self.ordered:
                    self._meet(item, len(levels), (inside,))
                return _merged((self._read(item, levels, item.start, item.stop, item.step), inside))
            case Consume():
                return self.visit(item.body, (*levels, item))
            case Choice(branches):
                asked = (self._read(branch, (*levels, Taken(item, k, asked=True)), branch.condition) for k, branch in enumerate(branches))
                return _merged((*asked, *(self.visit(body, (*levels, Taken(item, k))) for k, body in enumerate(item.bodies))))
            case Sides(sides):
                parts = tuple(self.visit(side, levels) for side in sides)
                self._meet(item, len(levels), parts)
                return _merged(parts)
            case Pipeline(processes):
                self.around = item
                parts = tuple(self._process(process, levels, item) for process in processes)
                self._meet(item, len(levels), parts, item)
                self.around = None
                return _merged(parts)
            case _:
                return self._own_reads(item, levels)

    def _own_reads(self, item: Item, levels: tuple[Level, ...]) -> BySlot:
        """The elements that the workload reads for a statement without parts."""
        return _merged(tuple(self._read(each.node, levels, *each.scalars) for each in evaluations(item)
                             if not isinstance(each.node, Through)))

    def _read(self, statement: Statement, levels: tuple[Level, ...], *roots: object) -> BySlot:
        """The elements that the workload reads for a statement, of tensors that tasks write."""
        checks = tuple(check for check in statement.note.checks if not self.reads.elements(check.value, check.lower, check.upper))
        found: BySlot = {}
        for element in self.reads.elements(*roots):
            slot = self.reads.slots[element.tensor.id]
            view = View(element.tensor, tuple(Pick(0, index) for index in element.index))
            who = f"the workload's read of {print_scalar(element)}"
            found.setdefault(slot, []).append(SiteAccess(statement, who, "", slot, Role.IN, view, levels, checks))
        return found

    def _task(self, task: Submit, levels: tuple[Level, ...]) -> BySlot:
        found: BySlot = {}
        kernel = self.plan.kernels[task.kernel].kernel
        for param, place in zip(kernel.memory_params, task.places, strict=True):
            who = f"{kernel.name}({param.name})"
            found.setdefault(place.slot, []).append(
                SiteAccess(task, who, param.name, place.slot, place.role, place.view, levels, task.note.checks,
                           param.combine if isinstance(param, TileParam) and param.accumulates else ""))
        self.by_site[task.site] = tuple(access for accesses in found.values() for access in accesses)
        return found

    def _sequence(self, items: tuple[Item, ...], levels: tuple[Level, ...]) -> BySlot:
        parts: list[BySlot] = []
        made: set[int] = set()
        depth = len(levels)
        for item in items:
            parts.append(self.visit(item, levels))
            match item:
                case Fresh(slot):
                    made.add(slot)
                case Receive():
                    levels = (*levels, item)
                case _:
                    pass
        merged = _merged(parts)
        self.keep({slot: merged.pop(slot) for slot in made if slot in merged}, depth)
        return merged

    def _process(self, process: PlanProcess, levels: tuple[Level, ...], pipeline: PlanPipeline) -> BySlot:
        inside = self.visit(process.body, (*levels, process))
        if process.replicas > 1:
            self._meet(process, len(levels), (inside,), pipeline)
        return inside

    def _meet(self, node: PlanLoop | PlanSides | PlanPipeline | PlanProcess, depth: int, parts: tuple[BySlot, ...],
              pipeline: PlanPipeline | None = None) -> None:
        if self.ordered and not isinstance(node, Loop):
            return
        alone = 1 if isinstance(node, Loop | Process) else 2       # number of groups that can race
        for slot in dict.fromkeys(slot for part in parts for slot in part):
            groups = tuple(tuple(part[slot]) for part in parts if slot in part)
            if len(groups) >= alone and any(access.role.writes for group in groups for access in group):
                self.found.append(Contest(node, slot, depth, groups, pipeline, self.around))


def _merged(parts: Iterator[BySlot] | tuple[BySlot, ...] | list[BySlot]) -> BySlot:
    merged: BySlot = {}
    for part in parts:
        for slot, accesses in part.items():
            merged.setdefault(slot, []).extend(accesses)
    return merged
