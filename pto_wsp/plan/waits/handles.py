"""Which tasks an `after=` waits for: the instances made since the two tasks' innermost common body began its current run.

A handle used in the body that makes it means the one instance of this iteration; used behind a loop, all that the loop made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TypeAlias

from pto_wsp.errors import InternalError
from pto_wsp.plan.model import Item, Send, Sequence, Sides, Submit, TaskPlan
from pto_wsp.plan.walk import inner_items
from pto_wsp.values import dataclass

Path: TypeAlias = tuple[tuple[int, int], ...]     # (identity of the body, position in it), outermost first


@dataclass(frozen=True, slots=True)
class TrackedHandle:
    """Instances of task `handle` made by item `position` of a body; `variable` names the collection in generated code."""

    handle: int
    body: int
    position: int

    @property
    def variable(self) -> str:
        """A C identifier of its own."""
        return f"handle_{self.handle}_{self.body}"


@dataclass(frozen=True, slots=True)
class HandleTask:
    """A task site as handles see it: its handle, those that it waits for, and the bodies around it."""

    site: int
    handle: int | None       # None: a send, which only waits
    after: tuple[int, ...]
    path: Path


@dataclass(slots=True)
class HandleUses:
    """Who collects, who closes, who waits. Bodies go by identity: two loops may hold equal ones."""

    _bodies: Mapping[int, int]                                       # id() of a body -> its number in program order
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
        """Return the collections that open before and close after item `position` of `body`."""
        return self._closed.get((self._bodies[id(body)], position), ())


def handle_uses(plan: TaskPlan) -> HandleUses:
    """Return how the handles of a plan are used."""
    bodies: dict[int, int] = {}
    tasks: list[HandleTask] = []

    def walk(item: Item, path: Path) -> None:
        match item:
            case Submit():
                tasks.append(HandleTask(item.site, item.handle, item.after, path))
            case Send():
                tasks.append(HandleTask(_send_site(item.site), None, item.after, path))
            case Sequence(parts) | Sides(parts):
                number = bodies.setdefault(id(item), len(bodies))
                for position, part in enumerate(parts):
                    walk(part, (*path, (number, position)))
            case _:
                for part in inner_items(item):
                    walk(part, path)

    walk(plan.body, ())
    return tracked_uses(tasks, bodies)


def tracked_uses(tasks: Iterable[HandleTask], bodies: Mapping[int, int]) -> HandleUses:
    """Return who waits for which instances of whom."""
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
    """Sends count for themselves: a number that no task has."""
    return -1 - site


def _add(table: dict, key: object, tracked: TrackedHandle) -> None:  # type: ignore[type-arg]
    if tracked not in table.get(key, ()):
        table[key] = (*table.get(key, ()), tracked)


def _divergence(maker: Path, waiter: Path) -> tuple[int, int]:
    """Return the innermost body that holds both tasks, and the position in it under which the maker lies."""
    for mine, other in zip(maker, waiter, strict=False):
        if mine != other:
            return mine
    raise InternalError("a task waits for itself")
