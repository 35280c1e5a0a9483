"""Writes behind reads: in a plan as its orchestration submits it, does every write wait for the reads that it falls on?

The device runtime orders reads and writes behind writes, wherever views overlap; writes behind reads are for the package to name. The
tasks of a plan are made here as the orchestration makes them, for small sizes where sizes depend on a run, with the runtime's edges and
the reads that are remembered; program order and after= only add to those. What decides which reads are remembered is not asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pto_wsp.errors import InternalError
from pto_wsp.plan.npu.edges.readers import IntermediateOf, RememberedReads, Resource, TensorOf, remembered_reads, resource_of
from pto_wsp.plan.npu.model import Block, Descriptor, Launch, NpuItem, NpuPlan, Passed, Repeat, Scope, Unordered, Window
from pto_wsp.types import scalar as s
from pto_wsp.values import dataclass
from pto_wsp.verify.verdict import Finding, Verdict

MOST_TURNS = 4       # of one loop
MOST_TASKS = 120
_SMALL = 3           # a symbol, and an element of a tensor, without a value of its own


@dataclass(frozen=True, slots=True)
class _Access:
    """What a task does with a tensor, or with one that the runtime made for the `turn`-th run of a scope."""

    resource: Resource
    turn: int
    reads: bool
    writes: bool
    box: tuple[range, ...]

    def meets(self, other: _Access) -> bool:
        """Tell whether both share an element."""
        return (self.resource == other.resource and self.turn == other.turn
                and all(max(mine.start, its.start) < min(mine.stop, its.stop) for mine, its in zip(self.box, other.box, strict=True)))


@dataclass(frozen=True, slots=True)
class _Task:
    launch: Launch
    accesses: tuple[_Access, ...]


def check_writes(plan: NpuPlan, remembered: RememberedReads | None = None) -> tuple[Finding, ...]:
    """Return a finding for each tensor that tasks read and write. `remembered`: the reads that the orchestration remembers.

    Raises: InternalError for a write that would not wait for a read which it falls on.
    """
    reads = remembered_reads(plan) if remembered is None else remembered
    tasks = tuple(_first_tasks(plan))
    _check_tasks(tasks, reads)
    both = [slot for slot, tensor in enumerate(plan.tensors) if tensor.reads and tensor.writes]
    return tuple(Finding(f"writes behind reads of {plan.tensors[slot].ref.shown}", Verdict.PROVED,
                         "the reads are remembered, and named to the runtime" if TensorOf(slot) in reads.bounds else
                         "none that the data of the tasks does not order") for slot in both)


def _check_tasks(tasks: tuple[_Task, ...], remembered: RememberedReads) -> None:
    behind: list[int] = []          # for each task those that it waits for, through others too, as bits
    for number, task in enumerate(tasks):
        found, missing = 0, []
        for earlier in range(number - 1, -1, -1):
            before = tasks[earlier]
            pairs = [(old, new) for old in before.accesses for new in task.accesses if old.meets(new)]
            named = any(old.resource in remembered.remembered(before.launch) and old.resource in remembered.waits(task.launch)
                        and new.writes for old, new in pairs)
            if named or any(old.writes for old, _ in pairs):
                found |= behind[earlier] | 1 << earlier
            elif any(new.writes for _, new in pairs):
                missing.append(earlier)
        for earlier in missing:
            if not found >> earlier & 1:
                raise InternalError("a write does not wait for a read that it falls on", f"{tasks[earlier]}\n{task}")
        behind.append(found)


def _first_tasks(plan: NpuPlan) -> Iterator[_Task]:
    """Yield the first tasks of a plan, of each loop the first few turns and the last one."""
    n_tasks = n_runs = 0

    def walk(item: NpuItem, known: Mapping[s.Scalar, int], made: Mapping[int, int]) -> Iterator[_Task]:
        nonlocal n_tasks, n_runs
        match item:
            case Launch():
                n_tasks += 1
                if n_tasks <= MOST_TASKS:
                    yield _Task(item, tuple(_access(plan, argument, known, made) for argument in item.arguments))
            case Repeat(var, start, stop, step):
                turns = range(*(_value(node, known) for node in (start, stop, step)))
                for turn in dict.fromkeys((*turns[:MOST_TURNS - 1], *turns[-1:])):
                    yield from walk(item.body, {**known, var: turn}, made)
            case Scope(intermediates, body):
                n_runs += 1
                yield from walk(body, known, {**made, **{own.id: n_runs for own in intermediates}})
            case Unordered(parts) | Block(parts):
                for part in parts:
                    yield from walk(part, known, made)
    return walk(plan.body, {}, {})


def _access(plan: NpuPlan, argument: Descriptor | Passed, known: Mapping[s.Scalar, int], made: Mapping[int, int]) -> _Access:
    resource, role = resource_of(argument), argument.role
    match argument:
        case Passed(intermediate):
            return _Access(IntermediateOf(intermediate), made[intermediate], role.reads, role.writes, ())
        case Descriptor(slot, _, steps):
            first = steps[0] if steps else None
            if not isinstance(first, Window):      # all of it, or a part of another shape of it
                return _Access(resource, 0, role.reads, role.writes, tuple(range(extent) for extent in plan.tensors[slot].ref.shape))
            starts = [_value(node, known) for node in first.offset]
            extents = [_value(node, known) for node in first.shape]
            box = tuple(range(start, start + extent) for start, extent in zip(starts, extents, strict=True))
            return _Access(resource, 0, role.reads, role.writes, box)


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
            case _:
                return known[inner]
    return int(s.evaluate(node, leaf))
