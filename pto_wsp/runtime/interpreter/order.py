"""The order in which the interpreter runs the kernels of a pipeline, drawn by a seed.

The stream of tasks is one interleaving of the processes. Kernels may run in any order that structure, tokens, credits and events allow;
edges that data gives between tasks of one process hold too, edges that data gives between processes do not: they would follow that one
interleaving, and hide what races. What a program means is the same in all of these orders, or its pipeline races.

Within a process tasks on the same buffer keep their order. A schedule without edges of structure does not say which tasks a token comes
after, so each process then keeps its program order: the meaning is that of the workload, whatever the schedule.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from pto_wsp.runtime.record.marks import MarkFlag
from pto_wsp.runtime.stream.orchestrator import Made, MarkInstance, PlacedView, Released, TaskInstance
from pto_wsp.values import dataclass

_STAYS = (0.0, 0.5, 0.9)     # how likely the next task is of the same process: one may run far ahead


def starts_pipeline(node: object) -> bool:
    """Tell whether what follows in the stream is of a pipeline's processes."""
    return isinstance(node, MarkInstance) and node.stream == 0 and MarkFlag.RESTS in node.flags


def ends_pipeline(node: object) -> bool:
    """Tell, of a node inside a pipeline, whether the main program goes on there."""
    return isinstance(node, MarkInstance) and node.stream == 0


@dataclass(frozen=True, slots=True)
class OrderRules:
    """What a draw has to know of a plan and a run. `structure`: edges keep program order; `groups`: of each tensor slot, those with one
    number share memory; `writes`: of each kernel, which memory parameters are written."""

    structure: bool
    groups: Sequence[int]
    writes: Sequence[tuple[bool, ...]]


def drawn_order(nodes: Sequence[object], first: int, stop: int, rules: OrderRules, rng: random.Random) -> Iterator[int]:
    """Yield the nodes from `first` to before `stop` in an order of their edges. What waits without computing comes as soon as it may."""
    pending = [0] * (stop - first)
    behind: list[list[int]] = [[] for _ in pending]
    for node, before in _edges(nodes, first, stop, rules):
        for earlier in before:
            behind[earlier - first].append(node)
        pending[node - first] = len(before)
    ready: dict[int, list[int]] = {}
    at_once = [node for node in range(first, stop) if not pending[node - first]]
    stays, stream = rng.choice(_STAYS), -1
    while True:
        while at_once:
            node = at_once.pop()
            task = nodes[node]
            if isinstance(task, TaskInstance):
                ready.setdefault(task.stream, []).append(node)
                continue
            yield node
            at_once += _freed(node - first, first, behind, pending)
        if not ready:
            return
        if stream not in ready or rng.random() >= stays:
            stream = rng.choice(sorted(ready))
        tasks = ready[stream]
        node = tasks.pop(rng.randrange(len(tasks)))
        if not tasks:
            del ready[stream]
        yield node
        at_once += _freed(node - first, first, behind, pending)


def _freed(done: int, first: int, behind: list[list[int]], pending: list[int]) -> list[int]:
    free = []
    for node in behind[done]:
        pending[node - first] -= 1
        if not pending[node - first]:
            free.append(node)
    return free


def _edges(nodes: Sequence[object], first: int, stop: int, rules: OrderRules) -> Iterator[tuple[int, set[int]]]:
    """Yield each node with those that come before it, as far as they are not before `first`."""
    last: dict[int, int] = {}                                          # by stream
    written: dict[tuple[int, int], int] = {}                           # by stream and buffer: the last task that wrote
    read: dict[tuple[int, int], list[int]] = {}                        # and those that have read since
    users: dict[int, list[int]] = {}                                   # of tensors that bodies made
    for number in range(first, stop):
        node = nodes[number]
        before: set[int] = set()
        match node:
            case TaskInstance():
                before.update(node.order, node.after)
                for view, writes in zip(node.views, rules.writes[node.submit.kernel], strict=True):
                    if view.fresh is not None:
                        users.setdefault(view.fresh, []).append(number)
                    key = (node.stream, _buffer(view, rules))
                    if key in written:
                        before.add(written[key])
                    if writes:
                        before.update(read.pop(key, ()))
                        written[key] = number
                    else:
                        read.setdefault(key, []).append(number)
            case MarkInstance():
                before.update(node.before, node.order)
            case Released(fresh):
                before.update(users.get(fresh, ()))
            case Made():
                pass
            case tuple():
                before.update(node)
            case _:
                raise AssertionError(f"{node} in a stream")
        if isinstance(node, TaskInstance | MarkInstance) and not rules.structure:
            if node.stream in last:
                before.add(last[node.stream])
            last[node.stream] = number
        before.discard(number)
        yield number, {earlier for earlier in before if earlier >= first}


def _buffer(view: PlacedView, rules: OrderRules) -> int:
    return rules.groups[view.slot] if view.fresh is None else -1 - view.fresh
