"""Bound the memory that a plan's intermediates and a kernel's tiles need, and report what exceeds an arch.

*Intermediates* (global memory): a tensor allocated outside loops lives for the whole run. A tensor allocated in a body is live from its
first to its last task; each live tensor has an incomplete task in the window, so at most as many are live as the window has places or as
are allocated. The sum is an upper bound.

*On-chip tiles*: loaded tiles, results and vector buffers live in UB; operands of a matrix product in L1, and in L0A and L0B during the
product; the product in L0C, and in UB from the first vector use. A live range spans definition to last use; a tile defined before a loop
and used in it is live for the whole loop. The peak sum is a lower bound for any placement.

>>> memory_map(kernel, builtin_arch("ascend_910b"))
kernel softmax on ascend_910b, bytes at the peak of each memory
UB: 16448 of 188416, at line 5
      8192  exp          [16, 128] f32  line 4 to 5
      8192  div          [16, 128] f32  line 5
        64  rowsum       [16, 1] f32  line 5
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Sequence as AbcSequence
from dataclasses import field
from math import prod

from pto_wsp.arch.model import Arch
from pto_wsp.check.verdict import Finding, Verdict
from pto_wsp.errors import CapacityError, IntermediatesError
from pto_wsp.ir import kernel as k
from pto_wsp.ir.flow import Choice, Fresh, Loop, Sequence, Sides, children
from pto_wsp.ir.kernel_walk import Body, bodies_of, uses_of, walk
from pto_wsp.ir.layout import TensorRef
from pto_wsp.ir.plan import Item, TaskPlan
from pto_wsp.ir.scalar import Const
from pto_wsp.ir.tile import TileType
from pto_wsp.passes.kernel.passes import TILE_PASSES, run_kernel_passes
from pto_wsp.passes.kernel.products import is_product
from pto_wsp.source import UNKNOWN, Span
from pto_wsp.values import dataclass

# -- intermediates -----------------------------------------------------------------------------------------------------
_CHECK = "memory of intermediates"


@dataclass(frozen=True, slots=True)
class LiveTensor:
    """An intermediate tensor and the largest number of live copies; None if unbounded."""

    ref: TensorRef
    span: Span
    count: int | None

    @property
    def size_bytes(self) -> int:
        """The size of one copy."""
        return prod(self.ref.shape) * self.ref.dtype.nbytes

    def __str__(self) -> str:
        times = "" if self.count == 1 else "any number of " if self.count is None else f"{self.count} × "
        return f"{times}{self.ref.shown} of {self.size_bytes}"


def intermediate_memory(plan: TaskPlan, intermediates: frozenset[int], arch: Arch) -> tuple[Finding, ...]:
    """Return a finding with the largest memory use of a plan's intermediates. `intermediates`: the ids of their tensors.

    The finding has an error if the sum exceeds the arch's global memory.
    """
    parts = tuple(_parts(plan, intermediates))
    if not parts:
        return ()
    shown = ", ".join(map(str, parts))
    window = f"window {plan.rules.task_window}" if plan.rules.task_window else "no window"
    if any(part.count is None for part in parts):
        return (Finding(_CHECK, Verdict.NOT_PROVED, f"bytes: {shown}; {window}, and how many there are is known at run time"),)
    total = sum(part.size_bytes * (part.count or 0) for part in parts)
    limit = next((memory.usable_bytes for memory in arch.memories if memory.name == "GM"), None)
    n_ranks = plan.rules.n_ranks
    if n_ranks:     # of a mesh every rank has its share of what ranks have, in a memory of its own
        shown = f"{shown}, shared by {n_ranks} ranks"
        total = -(-total // n_ranks)
    if limit is None or total <= limit:
        return (Finding(_CHECK, Verdict.PROVED, f"at most {total} bytes: {shown}; {window}"),)
    if sum(part.size_bytes for part in parts) <= limit * max(1, n_ranks):     # an upper bound: they need not all be live at once
        return (Finding(_CHECK, Verdict.NOT_PROVED, f"at most {total} bytes: {shown}; {window}; {arch.name} has {limit}"),)
    error = IntermediatesError(f"results between tasks take {total} bytes, more than {arch.name} has", parts[0].span,
                               expected=f"at most {limit} bytes of global memory", found=f"{shown} bytes",
                               help="make smaller tensors, or in a body what only its tasks use")
    return (Finding(_CHECK, Verdict.COUNTEREXAMPLE, f"{total} bytes: {shown}; {window}", error),)


def _parts(plan: TaskPlan, intermediates: frozenset[int]) -> Iterator[LiveTensor]:
    for slot in plan.tensors:
        if slot.ref.id in intermediates and not slot.fresh:
            yield LiveTensor(slot.ref, UNKNOWN, 1)

    def walk(item: Item, n_times: int | None) -> Iterator[LiveTensor]:
        match item:
            case Fresh(number):
                alive = min((bound for bound in (n_times, plan.rules.task_window or None) if bound is not None), default=None)
                yield LiveTensor(plan.tensors[number].ref, item.span, alive)
            case Loop(start=Const(start), stop=stop, step=Const(step), body=body):
                last = stop.value if isinstance(stop, Const) else None
                n_iterations = None if last is None else max(0, -(-(int(last) - int(start)) // int(step)))
                yield from walk(body, None if n_times is None or n_iterations is None else n_times * n_iterations)
            case _:
                inside = n_times if isinstance(item, Sequence | Sides | Choice) else None      # else tokens say how often
                for inner in children(item):
                    yield from walk(inner, inside)

    yield from walk(plan.body, 1)


# -- on-chip tiles -----------------------------------------------------------------------------------------------------
ON_CHIP = ("UB", "L1", "L0A", "L0B", "L0C")
_ALIGN = 32       # bytes: the smallest unit that on-chip memories move


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tile in an on-chip memory: live from statement `first` to `last` of the kernel, in pre-order, and their source lines."""

    memory: str
    name: str
    type: TileType
    first: int
    last: int
    first_line: int
    last_line: int

    @property
    def size_bytes(self) -> int:
        """The tile's size, rounded up to the memory's unit."""
        return -(-self.type.size_bytes // _ALIGN) * _ALIGN

    def __str__(self) -> str:
        rows, cols = self.type.shape
        lines = f"line {self.first_line}" + (f" to {self.last_line}" if self.last_line != self.first_line else "")
        return f"{self.size_bytes:>8}  {self.name:<12} [{rows}, {cols}] {self.type.dtype}  {lines}"


@dataclass(frozen=True, slots=True)
class Peak:
    """The tiles live where a memory is fullest, largest first. `limit`: usable bytes; None if unbounded."""

    memory: str
    limit: int | None
    size_bytes: int
    line: int
    tenants: tuple[Tenant, ...]

    @property
    def fits(self) -> bool:
        """Tell whether the peak is within the limit."""
        return self.limit is None or self.size_bytes <= self.limit


@dataclass(frozen=True, slots=True, repr=False)
class MemoryMap:
    """The peaks of a kernel's on-chip memories; unused memories are left out."""

    kernel: str
    arch: str
    peaks: tuple[Peak, ...] = field(default=())

    def __repr__(self) -> str:
        lines = [f"kernel {self.kernel} on {self.arch}, bytes at the peak of each memory"]
        for peak in self.peaks:
            lines.append(f"{peak.memory}: {peak.size_bytes} of {'any number' if peak.limit is None else peak.limit}, at line {peak.line}")
            lines += [f"  {tenant}" for tenant in peak.tenants]
        return "\n".join(lines)


def memory_map(kernel: k.Kernel, arch: Arch) -> MemoryMap:
    """Return the peak of each on-chip memory of an arch that a kernel uses; empty for a kernel without a Python body."""
    return memory_map_after(run_kernel_passes(kernel, passes=TILE_PASSES) if kernel.has_meaning else kernel, arch)


def memory_map_after(kernel: k.Kernel, arch: Arch) -> MemoryMap:
    """Return the peaks as `memory_map`, of a kernel that has been through its passes on whole tiles."""
    tenants = _Tenants(kernel).found() if kernel.has_meaning else ()
    limits = {memory.name: memory.usable_bytes for memory in arch.memories}
    peaks = (_peak(name, limits.get(name), [t for t in tenants if t.memory == name]) for name in ON_CHIP)
    return MemoryMap(kernel.name, arch.name, tuple(peak for peak in peaks if peak.tenants))


def capacity_errors(kernels: Iterable[k.Kernel], arch: Arch) -> tuple[CapacityError, ...]:
    """Return an error for each on-chip memory whose size a kernel exceeds."""
    if all(memory.usable_bytes is None for memory in arch.memories if memory.name in ON_CHIP):
        return ()
    return tuple(_error(kernel, arch, peak) for kernel in dict.fromkeys(kernels) for peak in memory_map(kernel, arch).peaks
                 if not peak.fits)


def _error(kernel: k.Kernel, arch: Arch, peak: Peak) -> CapacityError:
    limit = peak.limit or 0
    return CapacityError(
        f"kernel `{kernel.name}` needs {peak.size_bytes} bytes of {peak.memory}, more than {arch.name} has", kernel.span,
        expected=f"at most {limit} bytes at any time", found=f"{peak.size_bytes} bytes at line {peak.line}", help=_advice(peak, limit),
        notes=(f"tiles that live in {peak.memory} then:", *(str(tenant) for tenant in peak.tenants)))


def _advice(peak: Peak, limit: int) -> str:
    """Return the help text: the factor by which tiles must shrink for the peak to fit, with the largest tile as the example."""
    factor = 2
    while sum(-(-t.type.size_bytes // factor // _ALIGN) * _ALIGN + _ALIGN for t in peak.tenants) > limit and factor < 1 << 20:
        factor *= 2
    largest = peak.tenants[0]
    rows, cols = largest.type.shape
    smaller = [rows // factor, cols] if rows >= factor and rows % factor == 0 else [rows, max(1, cols // factor)]
    return f"tiles of 1/{factor} of the elements fit, e.g. `{largest.name}` as {smaller} instead of [{rows}, {cols}]"


def _peak(name: str, limit: int | None, tenants: AbcSequence[Tenant]) -> Peak:
    best: tuple[int, int] = (0, 0)      # (bytes, -statement): the first statement of the peak
    for statement in sorted({tenant.first for tenant in tenants}):
        size = sum(tenant.size_bytes for tenant in tenants if tenant.first <= statement <= tenant.last)
        best = max(best, (size, -statement))
    statement = -best[1]
    alive = sorted((t for t in tenants if t.first <= statement <= t.last), key=lambda t: (-t.size_bytes, t.first))
    line = next((t.first_line for t in alive if t.first == statement), 0)
    return Peak(name, limit, best[0], line, tuple(alive))


@dataclass(slots=True)
class _TileLifetime:
    """The live range of a tile while it is computed: its memory, statements, and the loops around its definition."""

    memory: str
    name: str
    type: TileType
    first: int
    last: int
    home: tuple[int, ...]


class _Tenants:
    """Computes the live ranges of values and buffers. A key is (memory, value id) or (memory, "#" and buffer id)."""

    def __init__(self, kernel: k.Kernel) -> None:
        self.kernel = kernel
        self.stmts = list(walk(kernel.body))
        self.number = {id(stmt): at for at, stmt in enumerate(self.stmts)}
        self.lives: dict[tuple[str, int | str], _TileLifetime] = {}
        self.extra: list[_TileLifetime] = []                        # operands in L0A and L0B during a product
        self.alias: dict[int, str] = {}                     # value read in place -> key of its buffer
        self.names: dict[int, str] = {}
        multiplied = [stmt for stmt in self.stmts if is_product(stmt)]
        self.in_cube = {value.id for stmt in multiplied for value in uses_of(stmt)[:2]}
        others = [stmt for stmt in self.stmts if not is_product(stmt) and not bodies_of(stmt) and not isinstance(stmt, k.Store | k.Write)]
        self.in_vector = {value.id for stmt in others for value in uses_of(stmt)}
        self.products = {stmt.result.id for stmt in multiplied if isinstance(stmt, k.Compute)}
        self.accumulators = {f"#{stmt.buffer.id}" for stmt in multiplied if isinstance(stmt, k.Accumulate)}
        self.accumulators |= {f"#{stmt.buffer.id}" for stmt in self.stmts if isinstance(stmt, k.Write) and stmt.value.id in self.products}

    def found(self) -> tuple[Tenant, ...]:
        """Return every tile with its live range."""
        self._visit(self.kernel.body, ())
        lives = (*self.lives.values(), *self.extra)
        return tuple(Tenant(life.memory, life.name, life.type, life.first, life.last, self._line(life.first), self._line(life.last))
                     for life in lives)

    def _line(self, at: int) -> int:
        stmt = self.stmts[at]
        return 0 if isinstance(stmt, k.Rows | k.Columns) else stmt.span.line

    def _visit(self, body: Body, loops: tuple[tuple[int, int], ...]) -> None:
        """Visit a body. `loops`: first and last statement of each loop around, outermost first."""
        for stmt in body:
            at = self.number[id(stmt)]
            for inner in bodies_of(stmt):
                end = at + sum(1 for part in bodies_of(stmt) for _ in walk(part))
                self._visit(inner, (*loops, (at, end)) if isinstance(stmt, k.For) else loops)
            if not bodies_of(stmt):
                self._statement(stmt, at, loops)

    def _statement(self, stmt: k.Stmt, at: int, loops: tuple[tuple[int, int], ...]) -> None:
        for value in uses_of(stmt):
            for memory in self._homes_of(value):
                self._touch((memory, self.alias.get(value.id, value.id)), at, loops)
            if value.id in self.in_vector and self.alias.get(value.id) in self.accumulators and not isinstance(stmt, k.Store | k.Write):
                self._make("UB", value.id, self.names[value.id], value.type, at, loops)
        match stmt:
            case k.Load(result, param) | k.Gather(result, param):
                only_multiplied = result.id in self.in_cube and result.id not in self.in_vector
                self._define(result, param, ("L1",) if only_multiplied else ("UB",), at, loops)
            case k.Alloc(buffer):
                key = f"#{buffer.id}"
                self._make("L0C" if key in self.accumulators else "UB", key, buffer.name, buffer.type, at, loops)
            case k.Read(result, buffer):
                self.alias[result.id], self.names[result.id] = f"#{buffer.id}", buffer.name
                self._touch_buffer(buffer, at, loops)
            case k.Write(buffer) | k.WritePart(buffer) | k.Accumulate(buffer):
                self._touch_buffer(buffer, at, loops)
            case k.Compute(result, op):
                self._define(result, op, ("L0C",) if result.id in self.products else ("UB",), at, loops)
            case _:
                pass
        if is_product(stmt):
            for memory, value in zip(("L0A", "L0B"), uses_of(stmt), strict=False):
                self.extra.append(_TileLifetime(memory, self.names.get(value.id, "tile"), value.type, at, at, ()))

    def _homes_of(self, value: k.Value) -> Iterator[str]:
        for memory in ON_CHIP:
            if (memory, self.alias.get(value.id, value.id)) in self.lives:
                yield memory

    def _define(self, value: k.Value, name: str, memories: tuple[str, ...], at: int, loops: tuple[tuple[int, int], ...]) -> None:
        self.names[value.id] = name
        places = set(memories)
        if value.id in self.in_cube:
            places.add("L1")
        if value.id in self.products and value.id in self.in_vector:
            places.add("UB")
        for memory in ON_CHIP:
            if memory in places:
                self._make(memory, value.id, name, value.type, at, loops)

    def _make(self, memory: str, key: int | str, name: str, type: TileType, at: int, loops: tuple[tuple[int, int], ...]) -> None:
        if (memory, key) not in self.lives:
            self.lives[memory, key] = _TileLifetime(memory, name, type, at, at, tuple(start for start, _ in loops))
        self._touch((memory, key), at, loops)

    def _touch_buffer(self, buffer: k.Buffer, at: int, loops: tuple[tuple[int, int], ...]) -> None:
        for memory in ("UB", "L0C"):
            self._touch((memory, f"#{buffer.id}"), at, loops)

    def _touch(self, key: tuple[str, int | str], at: int, loops: tuple[tuple[int, int], ...]) -> None:
        """Extend a live range to a statement, or to the end of the outermost surrounding loop that starts after the definition."""
        life = self.lives.get(key)
        if life is None:
            return
        life.last = max(life.last, next((end for start, end in loops if start not in life.home), at))
