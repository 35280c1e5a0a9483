"""Walk and rewrite trees of frozen dataclasses: kernels, workloads, plans, scalars."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import TypeVar

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
    """A workload with ids renumbered by first use, and the original ids of its tensors, symbols and events."""

    workload: wl.Workload
    tensors: tuple[int, ...]
    symbols: tuple[int, ...]
    events: tuple[int, ...] = ()


def canonical(workload: wl.Workload) -> Canonical:
    """Return the workload with the ids of tensors, symbols, variables, handles, channels and events renumbered by first use.

    Two workloads have the same meaning if their canonical forms are equal.
    """
    maps: dict[type, dict[int, int]] = {kind: {} for kind in (TensorRef, SymbolRef, Var, wl.Task, wl.ChannelRef, wl.EventRef)}
    renumbered = _renumber(workload, lambda kind, key: maps[kind].setdefault(key, len(maps[kind])))
    return Canonical(renumbered, tuple(maps[TensorRef]), tuple(maps[SymbolRef]), tuple(maps[wl.EventRef]))


_var_ids = itertools.count()


def fresh_var_id() -> int:
    """Return an id unique among the loop variables of this process, so that a variable leaked into another workload is detected."""
    return next(_var_ids)


_handles = itertools.count()


def fresh_handle() -> int:
    """Return a handle unique among the tasks of this process, so that a handle leaked into another workload is detected."""
    return next(_handles)


def with_fresh_ids(body: wl.Block) -> wl.Block:
    """Return a body with new loop variables and handles.

    Variables that the body does not bind, and handles of tasks that it does not make, stay unchanged.
    """
    items = tuple(outer_nodes(body))
    fresh = {var.id: fresh_var_id() for node in items for var in wl.bound_vars(node)}
    handles = {node.handle: fresh_handle() for node in items if isinstance(node, wl.Task)}
    new: dict[type, dict[int, int]] = {Var: fresh, wl.Task: handles}
    return _renumber(wl.Workload("", body), lambda kind, key: new.get(kind, {}).get(key, key)).body


def free_handles(body: wl.Block) -> tuple[wl.Task | wl.Send, ...]:
    """Return the statements of a body that wait for a task made outside the body."""
    items = tuple(outer_nodes(body))
    made = {node.handle for node in items if isinstance(node, wl.Task)}
    return tuple(node for node in items if isinstance(node, wl.Task | wl.Send) and not made.issuperset(node.after))


def free_vars(body: wl.Block) -> tuple[Var, ...]:
    """Return the loop variables that the body uses and does not bind."""
    items = tuple(outer_nodes(body))
    bound = {var.id for item in items for var in wl.bound_vars(item)}
    used = dict.fromkeys(node for item in items for node in nodes(wl.own_scalars(item)) if isinstance(node, Var))
    return tuple(var for var in used if var.id not in bound)


def outer_nodes(item: wl.Item) -> Iterator[wl.Item]:
    """Yield the workload nodes of a body, parents first, without kernels."""
    yield item
    for inner in wl.inner_items(item):
        yield from outer_nodes(inner)


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

    def walk(item: wl.Item) -> wl.Item:
        match item:
            case wl.Task():
                return replace(item, index=rewrite(item.index, change), args=rewrite(item.args, change),
                               handle=number(wl.Task, item.handle), after=handles(item.after))
            case wl.Loop():
                start, stop, step = (rewrite(part, change) for part in (item.start, item.stop, item.step))
                return replace(item, axis=rewrite(item.axis, change), var=rewrite(item.var, change), start=start, stop=stop, step=step,
                               through=rewrite(item.through, change), body=block(item.body))
            case wl.Choice(branches, otherwise):
                return wl.Choice(tuple(replace(branch, condition=rewrite(branch.condition, change), body=block(branch.body))
                                       for branch in branches), block(otherwise))
            case wl.Send():
                return replace(item, channel=rewrite(item.channel, change), payload=rewrite(item.payload, change),
                               after=handles(item.after))
            case wl.Consume():
                return replace(item, channel=rewrite(item.channel, change), vars=rewrite(item.vars, change), body=block(item.body))
            case wl.Pipeline(processes):
                return replace(item, processes=tuple(
                    replace(process, consumes=rewrite(process.consumes, change), produces=rewrite(process.produces, change),
                            body=block(process.body)) for process in processes))
            case wl.SetSlot() | wl.Fresh() | wl.Fixed() | wl.Receive() | wl.Record() | wl.Synchronize():
                return rewrite(item, change)
            case wl.Combine() | wl.Block():
                return wl.with_inner(item, walk)

    def block(body: wl.Block) -> wl.Block:
        return wl.Block(tuple(walk(item) for item in body.items))

    return replace(workload, body=block(workload.body))
