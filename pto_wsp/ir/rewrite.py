"""Walk and rewrite trees of frozen dataclasses: kernels, workloads, plans, scalars."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import TypeVar

from pto_wsp.ir import flow
from pto_wsp.ir import workload as wl
from pto_wsp.ir.layout import TensorRef
from pto_wsp.ir.scalar import SymbolRef, Var
from pto_wsp.source import Span
from pto_wsp.values import dataclass

T = TypeVar("T")


@cache
def field_names(kind: type) -> tuple[str, ...]:
    """Return the names of a dataclass's fields."""
    return tuple(f.name for f in fields(kind))


def nodes(root: object) -> Iterator[object]:
    """Yield every dataclass node of the tree, parents first, without spans."""
    if isinstance(root, tuple):
        for item in root:
            yield from nodes(item)
    elif is_dataclass(root) and not isinstance(root, Span | type):
        yield root
        for name in field_names(type(root)):
            yield from nodes(getattr(root, name))


def rewrite(root: T, change: Callable[[object], object | None]) -> T:
    """Return the tree with `change` applied bottom up; None keeps a node. Unchanged parts stay the same objects."""
    if isinstance(root, tuple):
        items = tuple(rewrite(item, change) for item in root)
        return items if any(new is not old for new, old in zip(items, root, strict=True)) else root  # type: ignore[return-value]
    if not is_dataclass(root) or isinstance(root, Span | type):
        return root
    changed: dict[str, object] = {}
    for name in field_names(type(root)):
        old = getattr(root, name)
        new = rewrite(old, change)
        if new is not old:
            changed[name] = new
    node: object = replace(root, **changed) if changed else root
    replaced = change(node)
    return node if replaced is None else replaced  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class Canonical:
    """A workload with ids renumbered by first use, and the original ids of its tensors, symbols, events and channels."""

    workload: wl.Workload
    tensors: tuple[int, ...]
    symbols: tuple[int, ...]
    events: tuple[int, ...] = ()
    channels: tuple[int, ...] = ()


def canonical(workload: wl.Workload) -> Canonical:
    """Return the workload with the ids of tensors, symbols, variables, handles, channels and events renumbered by first use.

    Two workloads have the same meaning if their canonical forms are equal.
    """
    maps: dict[type, dict[int, int]] = {kind: {} for kind in (TensorRef, SymbolRef, Var, wl.Task, wl.ChannelRef, wl.EventRef)}
    renumbered = _renumber(workload, lambda kind, key: maps[kind].setdefault(key, len(maps[kind])))
    return Canonical(renumbered, tuple(maps[TensorRef]), tuple(maps[SymbolRef]), tuple(maps[wl.EventRef]),
                     tuple(maps[wl.ChannelRef]))


_var_ids = itertools.count()


def fresh_var_id() -> int:
    """Return an id unique among the loop variables of this process, so that a variable leaked into another workload is detected."""
    return next(_var_ids)


_handles = itertools.count()


def fresh_handle() -> int:
    """Return a handle unique among the tasks of this process, so that a handle leaked into another workload is detected."""
    return next(_handles)


def with_fresh_ids(body: wl.Body) -> wl.Body:
    """Return a body with new loop variables and handles.

    Variables that the body does not bind, and handles of tasks that it does not make, stay unchanged.
    """
    fresh = {var.id: fresh_var_id() for item in flow.walk(body) for var in flow.bound_vars(item)}
    handles = {task.handle: fresh_handle() for task in wl.tasks(body)}
    new: dict[type, dict[int, int]] = {Var: fresh, wl.Task: handles}
    return _renumber(wl.Workload("", body), lambda kind, key: new.get(kind, {}).get(key, key)).body


def free_handles(body: wl.Body) -> tuple[wl.Task | wl.WorkloadSend, ...]:
    """Return the statements of a body that wait for a task made outside the body."""
    made = {task.handle for task in wl.tasks(body)}
    return tuple(each for each in wl.waiting(body) if not made.issuperset(each.after))


def free_vars(body: wl.Body) -> tuple[Var, ...]:
    """Return the loop variables that the body uses and does not bind."""
    items = tuple(flow.walk(body))
    bound = {var.id for item in items for var in flow.bound_vars(item)}
    used = dict.fromkeys(node for item in items for node in nodes(wl.evaluated(item)) if isinstance(node, Var))
    return tuple(var for var in used if var.id not in bound)


def _renumber(workload: wl.Workload, number: Callable[[type, int], int]) -> wl.Workload:
    """Apply `number` to the ids outside kernels; kernels number their own variables from 0."""
    def change(node: object) -> object | None:
        match node:
            case TensorRef() | SymbolRef() | Var() | wl.ChannelRef() | wl.EventRef():
                new = number(type(node), node.id)
                return None if new == node.id else replace(node, id=new)
            case _:
                return None

    def handles(of: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(number(wl.Task, handle) for handle in of)

    def item(old: wl.Item) -> wl.Item:
        """Renumber an item: first its scalars, then its references and the variables that the item binds, then its inner items."""
        match old:
            case flow.Do(wl.Task() as task):
                return flow.Do(replace(task, index=rewrite(task.index, change), args=rewrite(task.args, change),
                                       handle=number(wl.Task, task.handle), after=handles(task.after), on=rewrite(task.on, change)))
            case flow.Loop():
                start, stop, step = (rewrite(part, change) for part in (old.start, old.stop, old.step))
                return replace(old, note=rewrite(old.note, change), var=rewrite(old.var, change), start=start, stop=stop, step=step,
                               through=rewrite(old.through, change), body=block(old.body))
            case flow.Choice(branches, otherwise):
                return flow.Choice(tuple(replace(branch, condition=rewrite(branch.condition, change), body=block(branch.body))
                                         for branch in branches), block(otherwise))
            case flow.Send():
                return replace(old, channel=rewrite(old.channel, change), payload=rewrite(old.payload, change),
                               after=handles(old.after))
            case flow.Consume():
                return replace(old, channel=rewrite(old.channel, change), vars=rewrite(old.vars, change), body=block(old.body))
            case flow.Pipeline(processes):
                return replace(old, processes=tuple(
                    replace(process, consumes=rewrite(process.consumes, change), produces=rewrite(process.produces, change),
                            body=block(process.body)) for process in processes))
            case flow.Sides() | flow.Sequence():
                return flow.with_bodies(old, block)
            case _:
                return rewrite(old, change)

    def block(body: wl.Body) -> wl.Body:
        return flow.Sequence(tuple(map(item, body.items)))

    return replace(workload, body=block(workload.body))
