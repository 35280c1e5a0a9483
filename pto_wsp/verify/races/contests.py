"""Contests: where a plan leaves tasks without an order, and the accesses of each tensor that meet there.

Items of a sequence are ordered, and so are iterations of an ordered loop and tokens of a consumer. What is left: iterations of an
unordered loop, sides of a combination, processes of a pipeline and their replicas. A tensor made in a body is another one each time, so
its accesses meet only inside.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias, assert_never

from pto_wsp.expr.kernel import Role
from pto_wsp.plan.model import (
    AwaitEvent,
    Choice,
    Consume,
    Fresh,
    Item,
    Loop,
    Pipeline,
    Process,
    Receive,
    RecordEvent,
    Send,
    Sequence,
    SetSlot,
    Sides,
    Submit,
    TaskPlan,
)
from pto_wsp.plan.waits.elements import Reads
from pto_wsp.types.scalar_text import print_scalar
from pto_wsp.types.view import Pick, View
from pto_wsp.values import dataclass
from pto_wsp.verify.races.accesses import Access, Level, Statement, Taken

BySlot: TypeAlias = dict[int, list[Access]]


@dataclass(frozen=True, slots=True, eq=False)
class Contest:
    """Accesses of one tensor, one of them writing, that meet without an order at `node`; they share the levels before `depth`.

    `groups`: the accesses of a loop's iterations, or of each side. Of one group, accesses meet in a loop and between replicas alone.
    `pipeline`: that of the processes, where `node` is one, or is a process; `around`: the one that the node is, or is inside.
    """

    node: Loop | Sides | Pipeline | Process
    slot: int
    depth: int
    groups: tuple[tuple[Access, ...], ...]
    pipeline: Pipeline | None = None
    around: Pipeline | None = None


def contests_of(plan: TaskPlan, *, ordered: bool = False) -> tuple[Contest, ...]:
    """Return the contests of a plan, inner ones first, in program order; `ordered`: those there would be if ordered loops were none."""
    walk = _Walk(plan, ordered)
    walk.visit(plan.body, ())
    return tuple(walk.found)


@dataclass(frozen=True, slots=True, eq=False)
class Touched:
    """What tasks touch of one tensor. It is the same one wherever the levels before `depth` are in the same turn."""

    slot: int
    depth: int
    accesses: tuple[Access, ...]


def touched_of(plan: TaskPlan) -> dict[int, Touched]:
    """Return what tasks touch of each tensor, by its slot."""
    walk = _Walk(plan, False)
    walk.keep(walk.visit(plan.body, ()), 0)
    return walk.touched


def accesses_of(plan: TaskPlan) -> dict[int, tuple[Access, ...]]:
    """Return what each task site touches, by its number."""
    walk = _Walk(plan, False)
    walk.visit(plan.body, ())
    return walk.by_site


class _Walk:
    def __init__(self, plan: TaskPlan, ordered: bool) -> None:
        self.plan = plan
        self.ordered = ordered
        self.by_site: dict[int, tuple[Access, ...]] = {}
        self.reads = Reads.of(plan)
        self.found: list[Contest] = []
        self.touched: dict[int, Touched] = {}
        self.around: Pipeline | None = None

    def keep(self, accesses: BySlot, depth: int) -> None:
        """Take the accesses of tensors that are others in another turn of the levels before `depth`."""
        for slot, found in accesses.items():
            self.touched[slot] = Touched(slot, depth, tuple(access for access in found if not access.by_workload))

    def visit(self, item: Item, levels: tuple[Level, ...]) -> BySlot:
        """Return the accesses inside an item, by slot."""
        match item:
            case Submit():
                return _merged((self._read(item, levels, item.index, item.scalars, *((p.offset, p.extent, p.stride) for p in item.places)),
                                self._task(item, levels)))
            case Sequence(items):
                return self._sequence(items, levels)
            case Loop():
                turn = () if item.through is None else (item.through.value,)
                inside = _merged((self._read(item, (*levels, item), *turn), self.visit(item.body, (*levels, item))))
                if item.ordered == self.ordered:
                    self._meet(item, len(levels), (inside,))
                return _merged((self._read(item, levels, item.start, item.stop, item.step), inside))
            case Consume():
                return self.visit(item.body, (*levels, item))
            case Choice(branches, otherwise):
                bodies = (*(branch.body for branch in branches), otherwise)
                asked = (self._read(branch, (*levels, Taken(item, k, asked=True)), branch.condition) for k, branch in enumerate(branches))
                return _merged((*asked, *(self.visit(body, (*levels, Taken(item, k))) for k, body in enumerate(bodies))))
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
            case SetSlot(value=value):
                return self._read(item, levels, value)
            case Send(payload=payload):
                return self._read(item, levels, payload)
            case Fresh() | Receive() | RecordEvent() | AwaitEvent():
                return {}
            case _:
                assert_never(item)

    def _read(self, statement: Statement, levels: tuple[Level, ...], *roots: object) -> BySlot:
        """The elements that the workload reads for a statement, of tensors that tasks write."""
        checks = tuple(check for check in statement.checks if not self.reads.elements(check.value, check.lower, check.upper))
        found: BySlot = {}
        for element in self.reads.elements(*roots):
            slot = self.reads.slots[element.tensor.id]
            view = View(element.tensor, tuple(Pick(0, index) for index in element.index))
            who = f"the workload's read of {print_scalar(element)}"
            found.setdefault(slot, []).append(Access(statement, who, "", slot, Role.IN, view, levels, checks))
        return found

    def _task(self, task: Submit, levels: tuple[Level, ...]) -> BySlot:
        found: BySlot = {}
        kernel = self.plan.kernels[task.kernel].kernel
        for param, place in zip(kernel.memory_params, task.places, strict=True):
            who = f"{kernel.name}({param.name})"
            found.setdefault(place.slot, []).append(
                Access(task, who, param.name, place.slot, place.role, place.view, levels, task.checks))
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

    def _process(self, process: Process, levels: tuple[Level, ...], pipeline: Pipeline) -> BySlot:
        inside = self.visit(process.body, (*levels, process))
        if process.replicas > 1:
            self._meet(process, len(levels), (inside,), pipeline)
        return inside

    def _meet(self, node: Loop | Sides | Pipeline | Process, depth: int, parts: tuple[BySlot, ...],
              pipeline: Pipeline | None = None) -> None:
        if self.ordered and not isinstance(node, Loop):
            return
        alone = 1 if isinstance(node, Loop | Process) else 2       # how many groups it takes
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
