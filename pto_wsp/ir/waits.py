"""Determine what the orchestrator waits for: elements that tasks of the plan write, and tasks of `after=`.

    for e in P(8):  for i in P(counts[e])     →    wait for the tasks that write counts[e], read it once, then make the inner tasks

*Elements.* A scalar is evaluated at its statement in program order: writes of earlier tasks must be complete, later tasks not yet made. An
element is waited for before its value is used, and after the check of its own index.

*Handles.* `after=` waits for the instances made since the innermost common body of both tasks began its current iteration: used in the body
that makes it, a handle is this iteration's instance; used behind a loop, all instances of the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import TypeAlias

from pto_wsp.errors import InternalError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.flow import Do, Send, Sequence, Sides, children, with_notes
from pto_wsp.ir.kernel import MAX_ARGS
from pto_wsp.ir.plan import Check, ElementRead, Item, Precondition, TaskPlan, TensorSlot
from pto_wsp.ir.plan_walk import dense_stride, map_items, sizes_made
from pto_wsp.ir.rewrite import nodes
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.values import dataclass

MAX_READS = MAX_ARGS    # most elements of one wait

Step: TypeAlias = "Check | tuple[ElementRead, ...]"


# -- elements ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Reads:
    """Finds the elements in scalars that tasks of a plan write. `slots`: tensor id -> slot; `made`: extents of the tensors allocated in
    bodies, by id.
    """

    slots: Mapping[int, int]
    made: Mapping[int, tuple[s.Scalar, ...]] = field(default_factory=dict)

    @staticmethod
    def of(plan: TaskPlan) -> Reads:
        """Return the finder for a plan."""
        return Reads({slot.ref.id: number for number, slot in enumerate(plan.tensors) if waited_for(slot)},
                     sizes_made(plan))

    def within(self, *roots: object) -> tuple[ElementRead, ...]:
        """Return the places of the elements read in scalars; an element's index elements precede it."""
        return tuple(dict.fromkeys(ElementRead(self.slots[element.tensor.id], self.offset(element)) for element in self.elements(*roots)))

    def elements(self, *roots: object) -> tuple[s.Element, ...]:
        """Return the elements read in scalars; an element's index elements precede it."""
        if not self.slots:
            return ()
        elements: dict[s.Element, None] = {}
        for root in roots:
            for node in reversed(tuple(nodes(root))):
                if isinstance(node, s.Element) and node.tensor.id in self.slots:
                    elements.setdefault(node)
        return tuple(elements)

    def offset(self, element: s.Element) -> s.Scalar:
        """Return an element's offset in elements from the first element of its tensor."""
        ref = element.tensor
        offset: s.Scalar = s.Const(0)
        for dim, position in enumerate(element.index):
            stride = dense_stride(self.made[ref.id], dim) if ref.id in self.made else s.StrideOf(ref, dim)
            offset = s.add(offset, s.mul(position, stride))
        return offset

    def preparation(self, note: Precondition) -> tuple[Step, ...]:
        """Return the checks of a node in their order, and before each the elements that it compares; then what is left to wait for."""
        done: set[ElementRead] = set()

        def rounds(reads: tuple[ElementRead, ...]) -> Iterator[tuple[ElementRead, ...]]:
            """Yield groups of reads that can be waited for together: no read's offset depends on another of the group."""
            left = tuple(read for read in reads if read not in done)
            while left:
                ready = tuple(read for read in left if done.issuperset(self.within(read.offset)))[:MAX_READS]
                if not ready:
                    raise InternalError("an element is waited for and not what indexes it", print_scalar(left[0].offset))
                yield ready
                done.update(ready)
                left = tuple(read for read in left if read not in done)

        steps: list[Step] = []
        for check in note.checks:
            steps.extend(rounds(self.within(check.value, check.lower, check.upper)))
            steps.append(check)
        steps.extend(rounds(note.waits))
        return tuple(steps)


def waited_for(slot: TensorSlot) -> bool:
    """Tell whether the orchestrator reads elements of a tensor that tasks write."""
    return slot.scalars and slot.writes


def has_waits(plan: TaskPlan) -> bool:
    """Tell whether the task stream of a plan depends on what tasks compute."""
    return any(waited_for(slot) for slot in plan.tensors)


def with_waits(plan: TaskPlan) -> TaskPlan:
    """Return the plan with `waits` set at every node that evaluates an element written by tasks."""
    reads = Reads.of(plan)
    return map_items(plan, lambda item: _waiting(item, reads.within)) if reads.slots else plan


def _waiting(item: Item, within: Callable[..., tuple[ElementRead, ...]]) -> Item:
    def note(of: Precondition, evaluated: tuple[object, ...]) -> Precondition:
        return replace(of, waits=within(*((check.value, check.lower, check.upper) for check in of.checks), *evaluated))

    if isinstance(item, Do):
        task = item.leaf
        parts = tuple((place.offset, place.extent, place.stride) for place in task.places)
        return Do(replace(task, note=note(task.note, (task.index, *parts, task.scalars))))
    return with_notes(item, note)


Path: TypeAlias = tuple[tuple[int, int], ...]     # (identity of the body, position in it), outermost first


@dataclass(frozen=True, slots=True)
class TrackedHandle:
    """The instances of task `handle` made by item `position` of a body."""

    handle: int
    body: int
    position: int

    @property
    def variable(self) -> str:
        """The C identifier of the collection in generated code."""
        return f"handle_{self.handle}_{self.body}"


@dataclass(frozen=True, slots=True)
class HandleTask:
    """A task site for handle analysis: its handle, the handles it waits for, and the path of bodies around."""

    site: int
    handle: int | None       # None for a send, which only waits
    after: tuple[int, ...]
    path: Path


@dataclass(slots=True)
class HandleUses:
    """Which sites collect instances, where collections close, and which sites wait.

    Bodies are keyed by identity, since equal loops may repeat.
    """

    _bodies: Mapping[int, int]                                       # id() of a body -> number in program order
    _collects: dict[int, tuple[TrackedHandle, ...]] = field(default_factory=dict)     # by site
    _waits: dict[int, tuple[TrackedHandle, ...]] = field(default_factory=dict)        # by site
    _closed: dict[tuple[int, int], tuple[TrackedHandle, ...]] = field(default_factory=dict)

    def collects(self, site: int) -> tuple[TrackedHandle, ...]:
        """Return the collections that each instance of a task joins."""
        return self._collects.get(site, ())

    def waits(self, site: int) -> tuple[TrackedHandle, ...]:
        """Return the collections that a task waits for."""
        return self._waits.get(site, ())

    def send_waits(self, site: int) -> tuple[TrackedHandle, ...]:
        """Return the collections that the token of a send waits for."""
        return self.waits(_send_site(site))

    def closed_after(self, body: object, position: int) -> tuple[TrackedHandle, ...]:
        """Return the collections that open before item `position` of `body` and close after it."""
        return self._closed.get((self._bodies[id(body)], position), ())


def handle_uses(plan: TaskPlan) -> HandleUses:
    """Return the uses of the handles of a plan."""
    bodies: dict[int, int] = {}
    tasks: list[HandleTask] = []

    def walk(item: Item, path: Path) -> None:
        match item:
            case Do(task):
                tasks.append(HandleTask(task.site, task.handle, task.after, path))
            case Send():
                tasks.append(HandleTask(_send_site(item.site), None, item.after, path))
            case Sequence(parts) | Sides(parts):
                number = bodies.setdefault(id(item), len(bodies))
                for position, part in enumerate(parts):
                    walk(part, (*path, (number, position)))
            case _:
                for part in children(item):
                    walk(part, path)

    walk(plan.body, ())
    return tracked_uses(tasks, bodies)


def tracked_uses(tasks: Iterable[HandleTask], bodies: Mapping[int, int]) -> HandleUses:
    """Return which task waits for which instances."""
    made: dict[int, HandleTask] = {}
    waiting: list[HandleTask] = []
    for task in tasks:
        if task.handle is not None:
            made[task.handle] = task
        if task.after:
            waiting.append(task)
    uses = HandleUses(bodies)
    for task in waiting:
        for handle in task.after:
            maker = made[handle]
            body, position = _divergence(maker.path, task.path)
            tracked = TrackedHandle(handle, body, position)
            _add(uses._waits, task.site, tracked)
            _add(uses._collects, maker.site, tracked)
            _add(uses._closed, (body, position), tracked)
    return uses


def _send_site(site: int) -> int:
    """Return the number of a send, disjoint from task sites."""
    return -1 - site


def _add(table: dict, key: object, tracked: TrackedHandle) -> None:  # type: ignore[type-arg]
    if tracked not in table.get(key, ()):
        table[key] = (*table.get(key, ()), tracked)


def _divergence(maker: Path, waiter: Path) -> tuple[int, int]:
    """Return the innermost body that contains both tasks, and the position in it that contains the maker."""
    for mine, other in zip(maker, waiter, strict=False):
        if mine != other:
            return mine
    raise InternalError("a task waits for itself")
