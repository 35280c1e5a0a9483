"""Do the tiles of a kernel fit the on-chip memories of an arch? Who lives where, from which line to which, and the peak.

A piece that is loaded, a result and a buffer of the vector unit live in UB; what a matrix product reads lives in L1 and, while it
runs, in L0A and L0B; what it makes lives in L0C, and in UB from where the vector unit reads it. Each tile is there from the
statement that makes it to the last that uses it; what is made before a loop and used in it lives as long as the loop. The sum of
what lives at once is the least that any placement needs.

>>> memory_map(kernel, builtin_arch("ascend_910b"))
kernel softmax on ascend_910b, bytes at the peak of each memory
UB: 16448 of 188416, at line 5
      8192  exp          [16, 128] f32  line 4 to 5
      8192  div          [16, 128] f32  line 5
        64  rowsum       [16, 1] f32  line 5
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from pto_wsp.arch.model import Arch
from pto_wsp.errors import CapacityError
from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import Body, bodies_of, uses_of, walk
from pto_wsp.ops.spec import Matmul
from pto_wsp.ops.table import find
from pto_wsp.plan.kernel.passes import TILE_PASSES, run_kernel_passes
from pto_wsp.types.tile import TileType
from pto_wsp.values import dataclass

ON_CHIP = ("UB", "L1", "L0A", "L0B", "L0C")
_ALIGN = 32       # bytes: the least that on-chip memories move


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tile in an on-chip memory: from statement `first` to `last` of the kernel, in pre-order, and the lines of these."""

    memory: str
    name: str
    type: TileType
    first: int
    last: int
    first_line: int
    last_line: int

    @property
    def size_bytes(self) -> int:
        """What it takes."""
        return -(-self.type.size_bytes // _ALIGN) * _ALIGN

    def __str__(self) -> str:
        rows, cols = self.type.shape
        lines = f"line {self.first_line}" + (f" to {self.last_line}" if self.last_line != self.first_line else "")
        return f"{self.size_bytes:>8}  {self.name:<12} [{rows}, {cols}] {self.type.dtype}  {lines}"


@dataclass(frozen=True, slots=True)
class Peak:
    """What lives in a memory where it is fullest, the largest first; `limit` None: not bounded."""

    memory: str
    limit: int | None
    size_bytes: int
    line: int
    tenants: tuple[Tenant, ...]

    @property
    def fits(self) -> bool:
        """Tell whether it is within the limit."""
        return self.limit is None or self.size_bytes <= self.limit


@dataclass(frozen=True, slots=True, repr=False)
class MemoryMap:
    """The peaks of a kernel's on-chip memories; those that it does not use are left out."""

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
    """Return who lives in the on-chip memories of an arch where each is fullest."""
    if not kernel.has_meaning:
        return MemoryMap(kernel.name, arch.name)
    lowered = run_kernel_passes(kernel, passes=TILE_PASSES)
    tenants = _Tenants(lowered).found()
    limits = {memory.name: memory.usable_bytes for memory in arch.memories}
    peaks = (_peak(name, limits.get(name), [t for t in tenants if t.memory == name]) for name in ON_CHIP)
    return MemoryMap(kernel.name, arch.name, tuple(peak for peak in peaks if peak.tenants))


def capacity_errors(kernels: Iterable[k.Kernel], arch: Arch) -> tuple[CapacityError, ...]:
    """Return an error for each on-chip memory that a kernel needs more of than the arch has."""
    if all(memory.usable_bytes is None for memory in arch.memories if memory.name in ON_CHIP):
        return ()
    return tuple(_error(kernel, arch, peak) for kernel in dict.fromkeys(kernels) for peak in memory_map(kernel, arch).peaks
                 if not peak.fits)


def _error(kernel: k.Kernel, arch: Arch, peak: Peak) -> CapacityError:
    limit = peak.limit or 0
    return CapacityError(
        f"kernel `{kernel.name}` needs {peak.size_bytes} bytes of {peak.memory}, more than {arch.name} has", kernel.span,
        expected=f"at most {limit} bytes at any time", found=f"{peak.size_bytes} bytes at line {peak.line}", help=_advice(peak, limit),
        notes=(f"who lives in {peak.memory} then:", *(str(tenant) for tenant in peak.tenants)))


def _advice(peak: Peak, limit: int) -> str:
    """Say by how much tiles must shrink for the peak to fit, with the largest as the example."""
    factor = 2
    while sum(-(-t.type.size_bytes // factor // _ALIGN) * _ALIGN + _ALIGN for t in peak.tenants) > limit and factor < 1 << 20:
        factor *= 2
    largest = peak.tenants[0]
    rows, cols = largest.type.shape
    smaller = [rows // factor, cols] if rows >= factor and rows % factor == 0 else [rows, max(1, cols // factor)]
    return f"tiles of 1/{factor} of the elements fit, e.g. `{largest.name}` as {smaller} instead of [{rows}, {cols}]"


def _peak(name: str, limit: int | None, tenants: Sequence[Tenant]) -> Peak:
    best: tuple[int, int] = (0, 0)      # bytes, minus the statement: the first where it is fullest
    for at in sorted({tenant.first for tenant in tenants}):
        size = sum(tenant.size_bytes for tenant in tenants if tenant.first <= at <= tenant.last)
        best = max(best, (size, -at))
    at = -best[1]
    alive = sorted((t for t in tenants if t.first <= at <= t.last), key=lambda t: (-t.size_bytes, t.first))
    line = next((t.first_line for t in alive if t.first == at), 0)
    return Peak(name, limit, best[0], line, tuple(alive))


@dataclass(slots=True)
class _Life:
    """A tile while its life is found: where it is, and the loops that it was made in."""

    memory: str
    name: str
    type: TileType
    first: int
    last: int
    home: tuple[int, ...]


class _Tenants:
    """Follows values and buffers through a kernel. A key is (memory, value id) or (memory, "#" and buffer id)."""

    def __init__(self, kernel: k.Kernel) -> None:
        self.kernel = kernel
        self.stmts = list(walk(kernel.body))
        self.number = {id(stmt): at for at, stmt in enumerate(self.stmts)}
        self.lives: dict[tuple[str, int | str], _Life] = {}
        self.extra: list[_Life] = []                        # in L0A and L0B, while a product runs
        self.alias: dict[int, str] = {}                     # value read in place -> its buffer
        self.names: dict[int, str] = {}
        multiplied = [stmt for stmt in self.stmts if _is_product(stmt)]
        self.in_cube = {value.id for stmt in multiplied for value in uses_of(stmt)[:2]}
        others = [stmt for stmt in self.stmts if not _is_product(stmt) and not bodies_of(stmt) and not isinstance(stmt, k.Store | k.Write)]
        self.in_vector = {value.id for stmt in others for value in uses_of(stmt)}
        self.products = {stmt.result.id for stmt in multiplied if isinstance(stmt, k.Compute)}
        self.accumulators = {f"#{stmt.buffer.id}" for stmt in multiplied if isinstance(stmt, k.Accumulate)}
        self.accumulators |= {f"#{stmt.buffer.id}" for stmt in self.stmts if isinstance(stmt, k.Write) and stmt.value.id in self.products}

    def found(self) -> tuple[Tenant, ...]:
        """Return every tile with its life."""
        self._visit(self.kernel.body, ())
        lives = (*self.lives.values(), *self.extra)
        return tuple(Tenant(life.memory, life.name, life.type, life.first, life.last, self._line(life.first), self._line(life.last))
                     for life in lives)

    def _line(self, at: int) -> int:
        stmt = self.stmts[at]
        return 0 if isinstance(stmt, k.Rows | k.Columns) else stmt.span.line

    def _visit(self, body: Body, loops: tuple[tuple[int, int], ...]) -> None:
        """`loops`: first and last statement of each loop around, outermost first."""
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
            case k.Write(buffer) | k.Accumulate(buffer):
                self._touch_buffer(buffer, at, loops)
            case k.Compute(result, op):
                self._define(result, op, ("L0C",) if result.id in self.products else ("UB",), at, loops)
            case _:
                pass
        if _is_product(stmt):
            for memory, value in zip(("L0A", "L0B"), uses_of(stmt), strict=False):
                self.extra.append(_Life(memory, self.names.get(value.id, "tile"), value.type, at, at, ()))

    def _homes_of(self, value: k.Value) -> Iterator[str]:
        for memory in ON_CHIP:
            if (memory, self.alias.get(value.id, value.id)) in self.lives:
                yield memory

    def _define(self, value: k.Value, name: str, memories: tuple[str, ...], at: int, loops: tuple[tuple[int, int], ...]) -> None:
        self.names[value.id] = name
        wanted = set(memories)
        if value.id in self.in_cube:
            wanted.add("L1")
        if value.id in self.products and value.id in self.in_vector:
            wanted.add("UB")
        for memory in ON_CHIP:
            if memory in wanted:
                self._make(memory, value.id, name, value.type, at, loops)

    def _make(self, memory: str, key: int | str, name: str, type: TileType, at: int, loops: tuple[tuple[int, int], ...]) -> None:
        if (memory, key) not in self.lives:
            self.lives[memory, key] = _Life(memory, name, type, at, at, tuple(start for start, _ in loops))
        self._touch((memory, key), at, loops)

    def _touch_buffer(self, buffer: k.Buffer, at: int, loops: tuple[tuple[int, int], ...]) -> None:
        for memory in ("UB", "L0C"):
            self._touch((memory, f"#{buffer.id}"), at, loops)

    def _touch(self, key: tuple[str, int | str], at: int, loops: tuple[tuple[int, int], ...]) -> None:
        """Extend a life to a statement, or to all of the outermost loop around it that the tile was made before."""
        life = self.lives.get(key)
        if life is None:
            return
        life.last = max(life.last, next((end for start, end in loops if start not in life.home), at))


def _is_product(stmt: k.Stmt) -> bool:
    return isinstance(stmt, k.Accumulate) or (isinstance(stmt, k.Compute) and isinstance(find(stmt.op), Matmul))
