"""Check that every write of a plan waits for the earlier reads and writes of the same elements.

The device runtime orders IN and INOUT behind writes of overlapping views. An OUT waits only for the task that allocates the tensor, so the
package passes an OUT that may follow a write as INOUT, and states the edges from reads to later writes. This check creates the first tasks
of a plan as the orchestration does, for small sizes, with the runtime's edges and the remembered reads; program order and `after=` only add
edges. The check does not use the analysis that decides what is remembered or passed as INOUT. Forks that depend on data are tried several
ways.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

from pto_wsp.check.verdict import Finding, Verdict
from pto_wsp.errors import InternalError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.flow import Choice, Consume, Do, Loop, Receive, assignments, children, leaves, walk
from pto_wsp.npu.plan.model import Descriptor, Launch, NpuChoice, NpuItem, NpuPlan, Passed, Scope, Window
from pto_wsp.npu.plan.places import IntermediateOf, Resource, TensorOf, resource_of, site_of
from pto_wsp.npu.plan.waits import Overwrites, RememberedReads, overwrites, remembered_reads
from pto_wsp.values import dataclass

MAX_ITERATIONS = 4       # iterations of one loop
MAX_TASKS = 120
MAX_ITERATIONS_IN_ALL = 4096     # of all loops, because loops without tasks iterate too
MOST_WAYS = 8        # ways through a plan whose forks depend on data
_SMALL = 3           # value of a symbol, or of an element of a tensor, without a default


@dataclass(frozen=True, slots=True)
class _TaskUse:
    """A task's access to a tensor, or to the tensor that the runtime made for run `iteration` of a scope.

    `looks`: the runtime looks up earlier writers. `makes`: the task allocates the tensor.
    """

    resource: Resource
    iteration: int
    looks: bool
    writes: bool
    makes: bool
    box: tuple[range, ...]

    def meets(self, other: _TaskUse) -> bool:
        """Return whether both accesses share an element."""
        return (self.resource == other.resource and self.iteration == other.iteration
                and all(max(mine.start, its.start) < min(mine.stop, its.stop) for mine, its in zip(self.box, other.box, strict=True)))


@dataclass(frozen=True, slots=True)
class _CheckedTask:
    launch: Launch
    accesses: tuple[_TaskUse, ...]


def check_writes(plan: NpuPlan, remembered: RememberedReads | None = None, looked_up: Overwrites | None = None) -> tuple[Finding, ...]:
    """Return findings for each tensor that tasks read and write, or that several tasks write.

    `remembered`: the reads that the orchestration remembers. `looked_up`: the OUT arguments that it passes as INOUT.

    Raises: InternalError for a write that does not wait for an earlier read or write of the same elements.
    """
    reads = remembered_reads(plan) if remembered is None else remembered
    looked_up = overwrites(plan) if looked_up is None else looked_up
    for seed in range(MOST_WAYS if any(isinstance(item, Choice) for item in walk(plan.body)) else 1):
        _check_tasks(tuple(_first_tasks(plan, seed, looked_up)), reads)
    both = [slot for slot, tensor in enumerate(plan.tensors) if tensor.reads and tensor.writes]
    again = sorted({argument.slot for launch in leaves(plan.body) for position, argument in enumerate(launch.arguments)
                    if isinstance(argument, Descriptor) and (site_of(launch), position) in looked_up})
    return (*(Finding(f"writes behind reads of {plan.tensors[slot].ref.shown}", Verdict.PROVED,
                      "the reads are remembered, and named to the runtime" if TensorOf(slot) in reads.tensors else
                      "none that the data of the tasks does not order") for slot in both),
            *(Finding(f"writes behind writes of {plan.tensors[slot].ref.shown}", Verdict.PROVED,
                      "given as INOUT, for which the runtime looks for them") for slot in again))


def _check_tasks(tasks: tuple[_CheckedTask, ...], remembered: RememberedReads) -> None:
    behind: list[int] = []          # for each task, the tasks it waits for, transitively, as a bit set
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


def _first_tasks(plan: NpuPlan, seed: int, looked_up: Overwrites) -> Iterator[_CheckedTask]:
    """Yield the first tasks of a plan: of each loop the first few iterations and the last, of each fork a branch by the seed."""
    n_tasks = n_runs = n_turns = 0
    chosen = random.Random(seed)
    slots: dict[s.Scalar, int] = {}       # and payloads of tokens
    passed: set[tuple[Resource, int]] = set()      # intermediates that a task has allocated

    def visit(item: NpuItem, known: Mapping[s.Scalar, int], made: Mapping[Resource, int]) -> Iterator[_CheckedTask]:
        nonlocal n_tasks, n_runs, n_turns
        known = {**known, **slots}
        match item:
            case Do(launch):
                n_tasks += 1
                if n_tasks <= MAX_TASKS:
                    accesses = []
                    for position, argument in enumerate(launch.arguments):
                        iteration = made.get(resource_of(argument), 0)
                        first = isinstance(argument, Passed) and (resource_of(argument), iteration) not in passed
                        passed.add((resource_of(argument), iteration))
                        reads = argument.role.reads or (site_of(launch), position) in looked_up
                        accesses.append(_TaskUse(resource_of(argument), iteration, reads,
                                                argument.role.writes, first or (isinstance(argument, Descriptor) and argument.allocates),
                                                _box(plan, argument, known)))
                    yield _CheckedTask(launch, tuple(accesses))
            case Loop(var, start, stop, step, through=through):
                iterations = range(*(_value(node, known) for node in (start, stop, step)))
                for iteration in dict.fromkeys((*iterations[:MAX_ITERATIONS - 1], *iterations[-1:])):
                    if n_tasks >= MAX_TASKS or n_turns >= MAX_ITERATIONS_IN_ALL:
                        return
                    n_turns += 1
                    inside = {**known, var: iteration}
                    if through is not None:
                        inside[through.var] = _value(through.value, inside)
                    yield from visit(item.body, inside, made)
            case Choice():
                yield from visit(item.bodies[_pick_branch(item, known, chosen)], known, made)
            case Receive(vars=variables):
                slots.update(dict.fromkeys(variables, 0))
            case Consume(_, variables, body):
                for iteration in range(_SMALL):
                    yield from visit(body, {**known, **dict.fromkeys(variables, iteration)}, made)
            case Scope(items, intermediates, tensors):
                n_runs += 1
                owned: tuple[Resource, ...] = (*(IntermediateOf(own.id) for own in intermediates), *map(TensorOf, tensors))
                for part in items:
                    yield from visit(part, known, {**made, **dict.fromkeys(owned, n_runs)})
            case _:
                slots.update((place, _value(value, known)) for place, value in assignments(item))
                for part in children(item):
                    yield from visit(part, known, made)
    return visit(plan.body, {}, {})


def _pick_branch(fork: NpuChoice, known: Mapping[s.Scalar, int], chosen: random.Random) -> int:
    """Return which body of a fork runs: by the variables of loops where they decide, else any."""
    for position, way in enumerate(fork.branches):
        plain = all(isinstance(leaf, s.Var) for leaf in s.leaves(way.condition))
        if _value(way.condition, known) if plain else chosen.random() < 0.5:
            return position
    return len(fork.branches)


def _box(plan: NpuPlan, argument: Descriptor | Passed, known: Mapping[s.Scalar, int]) -> tuple[range, ...]:
    """Return the elements of a tensor that a task accesses; empty for a whole intermediate."""
    match argument:
        case Passed():
            return ()
        case Descriptor(slot, _, steps):
            first = steps[0] if steps else None
            if not isinstance(first, Window):      # all of the tensor, or a part of another shape of it
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
            case s.SlotValue() | s.Var():      # a variable without a loop is a token's payload
                return known.get(inner, 0)
            case _:
                return known[inner]
    return int(s.evaluate(node, leaf))
