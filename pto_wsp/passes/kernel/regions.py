"""Plan the fusion of a kernel body: which statements share a loop over rows.

A body becomes a list of steps. A step is a row region (a loop over rows in which every member handles its row) or one statement on whole
tiles (a product, a transpose, a loop, a branch). A statement goes to the earliest step that its operands and the order of memory accesses
allow, so members of a region need not be adjacent in the kernel. Loads and allocations run before the step they are attached to, in program
order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TypeAlias, assert_never

from pto_wsp.errors import unreachable
from pto_wsp.ir import kernel as k
from pto_wsp.ir.kernel_walk import bodies_of, result_of, stores, uses_of, writes_buffer
from pto_wsp.ops.spec import ColReduce, Convert, Elementwise, Expand, Iota, Matmul, RowReduce
from pto_wsp.ops.table import find
from pto_wsp.ops.whole import Movement, TileFunction
from pto_wsp.values import dataclass

Member: TypeAlias = k.Compute | k.Store | k.Write | k.Read
Whole: TypeAlias = k.Compute | k.Gather | k.Scatter | k.WritePart | k.Accumulate | k.Item | k.Print | k.FiniteCheck | k.For | k.If
Prepare: TypeAlias = k.Load | k.Alloc | k.Read
Memory: TypeAlias = tuple[str, int | str]   # ("param", name) or ("buffer", id)


@dataclass(slots=True)
class RegionStep:
    """One row region (`rows` >= 1, members in program order) or one whole-tile statement, preceded by its `prepares`."""

    prepares: list[Prepare] = field(default_factory=list)
    rows: int = 0
    members: list[Member] = field(default_factory=list)
    whole: Whole | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of a body.

    `copied`: ids of the results of Loads and Reads that must be copied, because their memory changes before the last use.
    """

    steps: tuple[RegionStep, ...]
    copied: frozenset[int]


def plan_body(body: tuple[k.Stmt, ...], shared: frozenset[str]) -> Plan:
    """Return the steps of a body. `shared`: names of parameters that are both loaded and stored."""
    body = _movements_first(body)
    placement = _Placement(body, _copied(body, shared))
    for stmt in body:
        placement.place(stmt)
    placement.sink()
    return Plan(tuple(placement.finished()), placement.copied)


def is_row_local(stmt: k.Compute) -> bool:
    """Tell whether an operation handles rows one by one."""
    match find(stmt.op):
        case Elementwise() | Convert() | Expand() | Iota() | RowReduce() | ColReduce():
            return True
        case Matmul() | Movement() | TileFunction():
            return False
        case unexpected:
            assert_never(unexpected)


def _movements_first(body: tuple[k.Stmt, ...]) -> tuple[k.Stmt, ...]:
    """Return a body in which each movement of a row or a column directly follows the statements that make its operands.

    A movement between two loops over rows would keep the loops apart:

        %2 = matmul %0, %1               %4 = reshape %3
        rows 64: %5 = exp %2             %2 = matmul %0, %1
        %4 = reshape %3              →   rows 64: %5 = exp %2; %6 = mul %5, %4
        rows 64: %6 = mul %5, %4

    Larger tiles stay where they are: they would be kept in memory for longer.
    """
    made: dict[int, int] = {}          # value id -> the place of what makes the value
    places: list[int] = []
    for at, stmt in enumerate(body):
        moves = isinstance(stmt, k.Compute) and stmt.guard is None and isinstance(find(stmt.op), Movement) and 1 in stmt.result.type.shape
        places.append(max((made.get(value.id, -1) for value in uses_of(stmt)), default=at) if moves else at)
        result = result_of(stmt)
        if result is not None:
            made[result.id] = places[-1]
    return tuple(body[at] for at in sorted(range(len(body)), key=lambda at: (places[at], at)))


def _copied(body: tuple[k.Stmt, ...], shared: frozenset[str]) -> frozenset[int]:
    copied: set[int] = set()
    for at, stmt in enumerate(body):
        rest = body[at + 1:]
        match stmt:
            case k.Read(result, buffer):
                changed = next((n for n, later in enumerate(rest) if writes_buffer(later, buffer)), len(rest))
                if _used_after_change(result, rest, changed):
                    copied.add(result.id)
            case k.Load(result, param) if param in shared:
                changed = next((n for n, later in enumerate(rest) if param in stores(later)), len(rest))
                aligned = all(_same_place(stmt, later) for later in rest if isinstance(later, k.Store) and later.param == param)
                if not aligned or _used_after_change(result, rest, changed):
                    copied.add(result.id)
            case _:
                pass
    return frozenset(copied)


def _used_after_change(value: k.Value, rest: Sequence[k.Stmt], changed: int) -> bool:
    """Tell whether `value` is read after statement `changed`, or by that statement other than row by row."""
    for at, stmt in enumerate(rest):
        aligned = at < changed or (at == changed and isinstance(stmt, k.Store | k.Write))
        if not aligned and any(used.id == value.id for used in uses_of(stmt)):
            return True
    return False


def _same_place(load: k.Load, store: k.Store) -> bool:
    return (not load.transpose and load.result.type == store.value.type and (load.row, load.col) == (store.row, store.col))


class _Placement:
    """Assigns statements to steps in program order."""

    def __init__(self, body: tuple[k.Stmt, ...], copied: frozenset[int]) -> None:
        self.copied = copied
        self.steps: list[RegionStep] = []
        self.waiting: dict[int, list[Prepare]] = {}          # step -> statements that run before it
        self.ready: dict[int, int] = {}                      # value id -> first step that may read the value, row by row
        self.made_in: dict[int, int] = {}                    # value id -> region that computes the value, if any
        self.alias: dict[int, Memory] = {}    # value id -> memory that the value is read from in place
        self.memory_ready: dict[Memory, int] = {}
        self.memory_used: dict[Memory, int] = {}
        self.users: dict[int, list[k.Stmt]] = {}
        self.at: dict[int, int] = {}                         # id() of a placed statement -> its step
        self.floor = 0
        self.stored = 0                                      # one past the last step that stores to a parameter
        for stmt in body:
            for value in uses_of(stmt):
                self.users.setdefault(value.id, []).append(stmt)

    def place(self, stmt: k.Stmt) -> None:
        """Assign one statement to a step."""
        memory: Memory
        match stmt:
            case k.Load(result, param):
                step = max(self.floor, self.stored)
                self._prepare(stmt, step)
                self.ready[result.id] = step
                if result.id not in self.copied:
                    self.alias[result.id] = ("param", param)
            case k.Alloc(buffer):
                step = max(self.floor, self.memory_used.get(("buffer", buffer.id), -1) + 1)
                self._prepare(stmt, step)
                self.memory_ready[("buffer", buffer.id)] = step
            case k.Read(result, buffer):
                memory = ("buffer", buffer.id)
                self.ready[result.id] = max(self.memory_ready.get(memory, 0), self.floor)
                if result.id in self.copied:
                    step = self._region(result.type.rows, self.ready[result.id])
                    self._join(stmt, step)
                    self._define(result, step, local=True)
                    self._touch(memory, step)
                else:
                    self.alias[result.id] = memory
                    self._prepare(stmt, self.ready[result.id])
            case k.Compute():
                self._compute(stmt)
            case k.Store(param, value):
                memory = ("param", param)
                low = max(self.floor, self._after(value), self.memory_used.get(memory, 0), self.memory_ready.get(memory, 0))
                step = self._region(value.type.rows, low)
                self._join(stmt, step)
                self.memory_ready[memory] = step + 1
                self.stored = max(self.stored, step + 1)
                self.floor = max(self.floor, step)
            case k.Write(buffer, value):
                memory = ("buffer", buffer.id)
                low = max(self.floor, self._after(value), self.memory_used.get(memory, 0), self.memory_ready.get(memory, 0))
                step = self._region(value.type.rows, low)
                self._join(stmt, step)
                self.memory_ready[memory] = step + 1
            case k.Accumulate(buffer):
                self._whole(stmt)
                self.memory_ready[("buffer", buffer.id)] = len(self.steps)
            case k.WritePart(buffer):
                self._whole(stmt)
                self.memory_ready[("buffer", buffer.id)] = len(self.steps)
                if stmt.guard is not None:
                    self.floor = len(self.steps)   # keeps the order of failures
            case k.Print() | k.FiniteCheck():
                self._whole(stmt)
                self.floor = len(self.steps)   # keeps the order of failures
            case k.Item():
                self._whole(stmt)
                self.floor = len(self.steps)   # later statements may name the item
            case k.Gather(result):
                self._whole(stmt)
                self._define(result, len(self.steps), local=False)
                self.floor = len(self.steps)
            case k.Scatter(param):
                self._whole(stmt)
                self.floor = self.stored = self.memory_ready[("param", param)] = len(self.steps)
            case k.For() | k.If():
                self._whole(stmt)
                self.floor = self.stored = len(self.steps)
            case k.Rows() | k.Columns():
                unreachable("rows fused twice")
            case _:
                assert_never(stmt)

    def _compute(self, stmt: k.Compute) -> None:
        low = max((self._after(o) for o in stmt.operands if isinstance(o, k.Value)), default=self.floor)
        if not is_row_local(stmt):
            self._whole(stmt)
            self._define(stmt.result, len(self.steps), local=False)
            if stmt.guard is not None:
                self.floor = len(self.steps)   # keeps the order of failures
            return
        reduces_columns = isinstance(find(stmt.op), ColReduce)
        rows = stmt.result.type.rows
        if reduces_columns:
            first = stmt.operands[0]
            rows = first.type.rows if isinstance(first, k.Value) else 1
        step = self._region(rows, max(low, self.floor))
        self._join(stmt, step)
        self._define(stmt.result, step + 1 if reduces_columns else step, local=not reduces_columns)

    def _after(self, value: k.Value) -> int:
        return max(self.ready.get(value.id, 0), self.floor)

    def _define(self, value: k.Value, step: int, local: bool) -> None:
        self.ready[value.id] = step
        if local:
            self.made_in[value.id] = step

    def _region(self, rows: int, low: int) -> int:
        """Return the first region of `rows` rows from step `low` on; opens a new region if there is none."""
        for number in range(low, len(self.steps)):
            if self.steps[number].rows == rows:
                return number
        while len(self.steps) < low:   # a load precedes a step that is not open yet
            self._open(RegionStep(rows=rows))
        self._open(RegionStep(rows=rows))
        return len(self.steps) - 1

    def _open(self, step: RegionStep) -> None:
        step.prepares = self.waiting.pop(len(self.steps), [])
        self.steps.append(step)

    def _prepare(self, stmt: Prepare, step: int) -> None:
        self.floor = max(self.floor, step if not isinstance(stmt, k.Read) else 0)
        if step < len(self.steps):
            self.steps[step].prepares.append(stmt)
        else:
            self.waiting.setdefault(step, []).append(stmt)

    def _join(self, stmt: Member, step: int) -> None:
        self.steps[step].members.append(stmt)
        self._note(stmt, step)

    def _whole(self, stmt: Whole) -> None:
        low = max((self._after(value) for value in uses_of(stmt)), default=0)
        while len(self.steps) < max(low, self.floor):
            self._open(RegionStep())
        self._open(RegionStep(whole=stmt))
        self._note(stmt, len(self.steps) - 1)

    def _note(self, stmt: k.Stmt, step: int) -> None:
        self.at[id(stmt)] = step
        for value in uses_of(stmt):
            if value.id in self.alias:
                self._touch(self.alias[value.id], step)

    def _touch(self, memory: Memory, step: int) -> None:
        self.memory_used[memory] = max(self.memory_used.get(memory, 0), step)

    def sink(self) -> None:
        """Move results whose only readers are in one later region of the same height into that region, if fewer elements stay in memory."""
        for at in range(len(self.steps) - 1, -1, -1):
            for stmt in reversed(list(self.steps[at].members)):
                if isinstance(stmt, k.Compute) and not isinstance(find(stmt.op), ColReduce | RowReduce):
                    self._sink(stmt, at)

    def _sink(self, stmt: k.Compute, at: int) -> None:
        targets = [self.at[id(user)] for user in self.users.get(stmt.result.id, [])]
        target = min(targets, default=at)
        if target <= at or max(targets) != target or self.steps[target].rows != self.steps[at].rows:
            return
        operands = [o for o in stmt.operands if isinstance(o, k.Value)]
        if not all(self._unchanged(o, at, target) for o in operands):
            return
        kept = self._leaving()
        newly_kept = sum(o.type.n_elements for o in {o.id: o for o in operands}.values()
                         if self.made_in.get(o.id) == at and o.id not in kept)
        if newly_kept >= stmt.result.type.n_elements:
            return
        self.steps[at].members = [m for m in self.steps[at].members if m is not stmt]
        self.steps[target].members.insert(0, stmt)
        self.at[id(stmt)] = self.made_in[stmt.result.id] = target

    def _unchanged(self, value: k.Value, at: int, target: int) -> bool:
        """Tell whether a value's aliased memory is unchanged from step `at` to the rows of step `target`."""
        memory = self.alias.get(value.id)
        if memory is None:
            return True
        between = self.steps[at:target]
        changing: list[k.Stmt] = [s for step in between for s in step.members]
        changing += [step.whole for step in between if step.whole is not None]
        changing += [s for step in self.steps[at + 1:target + 1] for s in step.prepares]
        return not any(_changes(stmt, memory) for stmt in changing)

    def _leaving(self) -> set[int]:
        """Return the ids of region results that another step reads."""
        return {value_id for value_id, step in self.made_in.items()
                if any(self.at.get(id(user), -1) != step for user in self.users.get(value_id, ()))}

    def finished(self) -> list[RegionStep]:
        """Return the steps; remaining loads and allocations form a last step."""
        for step in sorted(self.waiting):
            self.steps.append(RegionStep(prepares=self.waiting[step]))
        self.waiting = {}
        return self.steps


def _changes(stmt: k.Stmt, memory: Memory) -> bool:
    kind, key = memory
    match stmt:
        case k.Store() | k.Scatter():
            return kind == "param" and stmt.param == key
        case k.Write() | k.WritePart() | k.Alloc() | k.Accumulate():
            return kind == "buffer" and stmt.buffer.id == key
        case k.For() | k.If() | k.Rows() | k.Columns():
            return any(_changes(inner, memory) for body in bodies_of(stmt) for inner in body)
        case k.Compute() | k.Load() | k.Gather() | k.Read() | k.Item() | k.Print() | k.FiniteCheck():
            return False
        case _:
            assert_never(stmt)
