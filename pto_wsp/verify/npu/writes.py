"""Writes in a plan as its orchestration submits it: does each wait for the reads and for the writes that it falls on?

The device runtime orders what is IN or INOUT behind writes, wherever views overlap. An OUT waits for nobody but the task that allocates
the tensor: the package gives it as INOUT where something was written. Writes behind reads are for the package to name. The tasks of a
plan are made here as the orchestration makes them, for small sizes where sizes depend on a run, with the runtime's edges and the reads
that are remembered; program order and after= only add to those. What decides which reads are remembered, and what is given as INOUT, is
not asked. Where ways of a fork are taken or not by data, several ways through the plan are tried.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

from pto_wsp.errors import InternalError
from pto_wsp.plan.model import Receive, SetSlot
from pto_wsp.plan.npu.edges.overwrites import Overwrites, overwrites
from pto_wsp.plan.npu.edges.places import IntermediateOf, Resource, TensorOf, resource_of, site_of
from pto_wsp.plan.npu.edges.readers import RememberedReads, remembered_reads
from pto_wsp.plan.npu.model import Descriptor, Drain, Fork, Launch, NpuItem, NpuPlan, Passed, Repeat, Scope, Window
from pto_wsp.plan.npu.walk import inner_items, items_of, launches_of
from pto_wsp.types import scalar as s
from pto_wsp.values import dataclass
from pto_wsp.verify.verdict import Finding, Verdict

MOST_TURNS = 4       # of one loop
MOST_TASKS = 120
MOST_TURNS_IN_ALL = 4096     # loops that make no tasks have turns, too
MOST_WAYS = 8        # through a plan whose forks depend on data
_SMALL = 3           # a symbol, and an element of a tensor, without a value of its own


@dataclass(frozen=True, slots=True)
class _Access:
    """What a task does with a tensor, or with one that the runtime made for the `turn`-th run of a scope.

    `looks`: the runtime looks for those who have written there. `makes`: the task allocates the tensor.
    """

    resource: Resource
    turn: int
    looks: bool
    writes: bool
    makes: bool
    box: tuple[range, ...]

    def meets(self, other: _Access) -> bool:
        """Tell whether both share an element."""
        return (self.resource == other.resource and self.turn == other.turn
                and all(max(mine.start, its.start) < min(mine.stop, its.stop) for mine, its in zip(self.box, other.box, strict=True)))


@dataclass(frozen=True, slots=True)
class _Task:
    launch: Launch
    accesses: tuple[_Access, ...]


def check_writes(plan: NpuPlan, remembered: RememberedReads | None = None, looked_up: Overwrites | None = None) -> tuple[Finding, ...]:
    """Return findings for each tensor that tasks read and write, or that several write.

    `remembered`: the reads that the orchestration remembers. `looked_up`: the OUT arguments that it gives as INOUT.

    Raises: InternalError for a write that would not wait for a read, or for a write, which it falls on.
    """
    reads = remembered_reads(plan) if remembered is None else remembered
    looked_up = overwrites(plan) if looked_up is None else looked_up
    for seed in range(MOST_WAYS if any(isinstance(item, Fork) for item in items_of(plan.body)) else 1):
        _check_tasks(tuple(_first_tasks(plan, seed, looked_up)), reads)
    both = [slot for slot, tensor in enumerate(plan.tensors) if tensor.reads and tensor.writes]
    again = sorted({argument.slot for launch in launches_of(plan.body) for position, argument in enumerate(launch.arguments)
                    if isinstance(argument, Descriptor) and (site_of(launch), position) in looked_up})
    return (*(Finding(f"writes behind reads of {plan.tensors[slot].ref.shown}", Verdict.PROVED,
                      "the reads are remembered, and named to the runtime" if TensorOf(slot) in reads.tensors else
                      "none that the data of the tasks does not order") for slot in both),
            *(Finding(f"writes behind writes of {plan.tensors[slot].ref.shown}", Verdict.PROVED,
                      "given as INOUT, for which the runtime looks for them") for slot in again))


def _check_tasks(tasks: tuple[_Task, ...], remembered: RememberedReads) -> None:
    behind: list[int] = []          # for each task those that it waits for, through others too, as bits
    for number, task in enumerate(tasks):
        found, missing = 0, []
        for earlier in range(number - 1, -1, -1):
            before = tasks[earlier]
            pairs = [(old, new) for old in before.accesses for new in task.accesses if old.meets(new)]
            named = any(old.resource in remembered.remembered(before.launch) and old.resource in remembered.waits(task.launch)
                        and new.writes for old, new in pairs)
            if named or any(old.makes or (old.writes and new.looks) for old, new in pairs):
                found |= behind[earlier] | 1 << earlier
            elif any(new.writes for _, new in pairs):
                missing.append((earlier, "write" if any(old.writes and new.writes for old, new in pairs) else "read"))
        for earlier, what in missing:
            if not found >> earlier & 1:
                raise InternalError(f"a write does not wait for a {what} that it falls on", f"{tasks[earlier]}\n{task}")
        behind.append(found)


def _first_tasks(plan: NpuPlan, seed: int, looked_up: Overwrites) -> Iterator[_Task]:
    """Yield the first tasks of a plan, of each loop the first few turns and the last one, of each fork a way that the seed decides."""
    n_tasks = n_runs = n_turns = 0
    chosen = random.Random(seed)
    slots: dict[s.Scalar, int] = {}       # and what tokens have carried
    passed: set[tuple[Resource, int]] = set()      # intermediates that a task has made

    def walk(item: NpuItem, known: Mapping[s.Scalar, int], made: Mapping[Resource, int]) -> Iterator[_Task]:
        nonlocal n_tasks, n_runs, n_turns
        known = {**known, **slots}
        match item:
            case Launch():
                n_tasks += 1
                if n_tasks <= MOST_TASKS:
                    accesses = []
                    for position, argument in enumerate(item.arguments):
                        turn = made.get(resource_of(argument), 0)
                        first = isinstance(argument, Passed) and (resource_of(argument), turn) not in passed
                        passed.add((resource_of(argument), turn))
                        accesses.append(_Access(resource_of(argument), turn, argument.role.reads or (site_of(item), position) in looked_up,
                                                argument.role.writes, first or (isinstance(argument, Descriptor) and argument.allocates),
                                                _box(plan, argument, known)))
                    yield _Task(item, tuple(accesses))
            case Repeat(var, start, stop, step, lead=lead):
                turns = range(*(_value(node, known) for node in (start, stop, step)))
                for turn in dict.fromkeys((*turns[:MOST_TURNS - 1], *turns[-1:])):
                    if n_tasks >= MOST_TASKS or n_turns >= MOST_TURNS_IN_ALL:
                        return
                    n_turns += 1
                    inside = {**known, var: turn}
                    if lead is not None:
                        inside[lead.var] = _value(lead.value, inside)
                    yield from walk(item.body, inside, made)
            case Fork():
                yield from walk(item.bodies[_taken(item, known, chosen)], known, made)
            case Receive(vars=variables):
                slots.update(dict.fromkeys(variables, 0))
            case Drain(_, variables, body):
                for turn in range(_SMALL):
                    yield from walk(body, {**known, **dict.fromkeys(variables, turn)}, made)
            case SetSlot(slot, value):
                slots[s.SlotValue(slot)] = _value(value, known)
            case Scope(intermediates, body, tensors):
                n_runs += 1
                owned: tuple[Resource, ...] = (*(IntermediateOf(own.id) for own in intermediates), *map(TensorOf, tensors))
                yield from walk(body, known, {**made, **dict.fromkeys(owned, n_runs)})
            case _:
                for part in inner_items(item):
                    yield from walk(part, known, made)
    return walk(plan.body, {}, {})


def _taken(fork: Fork, known: Mapping[s.Scalar, int], chosen: random.Random) -> int:
    """Return which body of a fork runs: by the variables of loops where they decide, else any."""
    for position, way in enumerate(fork.ways):
        plain = all(isinstance(leaf, s.Var) for leaf in s.leaves(way.condition))
        if _value(way.condition, known) if plain else chosen.random() < 0.5:
            return position
    return len(fork.ways)


def _box(plan: NpuPlan, argument: Descriptor | Passed, known: Mapping[s.Scalar, int]) -> tuple[range, ...]:
    """Return the elements of a tensor that a task is given, nothing where it is given all of an intermediate."""
    match argument:
        case Passed():
            return ()
        case Descriptor(slot, _, steps):
            first = steps[0] if steps else None
            if not isinstance(first, Window):      # all of it, or a part of another shape of it
                return tuple(range(extent) for extent in plan.tensors[slot].ref.shape)
            starts = [_value(node, known) for node in first.offset]
            extents = [_value(node, known) for node in first.shape]
            return tuple(range(start, start + extent) for start, extent in zip(starts, extents, strict=True))


def _value(node: s.Scalar, known: Mapping[s.Scalar, int]) -> int:
    def leaf(inner: s.Scalar) -> s.Number:
        match inner:
            case s.DimOf(tensor, dim):
                return tensor.shape[dim]
            case s.StrideOf(tensor, dim):
                return tensor.layout.strides[dim]
            case s.SymbolRef(default=default):
                return _SMALL if default is None else default
            case s.Element():
                return _SMALL
            case s.SlotValue() | s.Var():      # a variable that no loop has: what a token carries
                return known.get(inner, 0)
            case _:
                return known[inner]
    return int(s.evaluate(node, leaf))
