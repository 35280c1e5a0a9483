"""What the emission of one kernel shares: names, scratch memory, and where values and buffers lie."""

from __future__ import annotations

from dataclasses import field

from pto_wsp.codegen.c import syntax as c
from pto_wsp.codegen.c.dtypes import literal, memory_type
from pto_wsp.codegen.c.scalars import as_it_is, lower_scalar
from pto_wsp.errors import unreachable
from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import walk
from pto_wsp.plan.kernel.memory.plan_arena import ALIGN
from pto_wsp.types import scalar as s
from pto_wsp.types.dtype import DType
from pto_wsp.types.scalar_text import print_scalar
from pto_wsp.types.tile import TileType
from pto_wsp.values import dataclass

ROW, COL, CHUNK, LANE = "row", "col", "chunk", "lane"
_RESERVED = ("args", "scalars", "scratch", "context", ROW, COL, LANE, CHUNK, "lo", "hi", "pto_arg", "pto_context", "int8_t",
             "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t")


@dataclass(frozen=True, slots=True)
class Place:
    """A tile in memory: a pointer's name, elements from row to row (columns are neighbours), and its type."""

    pointer: str
    step: c.Expr
    type: TileType
    rows: c.Expr | None = None     # how many rows are there, where the others are 0 for whoever reads them


@dataclass(slots=True)
class Env:
    """One kernel while it is emitted."""

    kernel: k.Kernel
    unit_inner: dict[str, bool]
    scratch_bytes: int = 0
    pointers: list[c.Stmt] = field(default_factory=list)     # declared at the top of the function
    values: dict[int, Place] = field(default_factory=dict)
    buffers: dict[int, Place] = field(default_factory=dict)
    variables: dict[s.Var, str] = field(default_factory=dict)
    matmuls: set[DType] = field(default_factory=set)
    headers: set[str] = field(default_factory=set)           # of csrc/include that only some kernels need
    few_rows: bool = False                                   # whether a product has that form
    short_rows: bool = False                                 # whether a product reads short operands
    _names: set[str] = field(default_factory=lambda: set(_RESERVED))
    _counts: dict[str, int] = field(default_factory=dict)    # the highest number behind each name
    number: dict[int, int] = field(init=False)               # of each statement in pre-order, by its id()
    _slots: dict[tuple[k.SlotKind, int], k.Slot] = field(init=False)
    _places: dict[k.Slot, Place] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.number = {id(stmt): at for at, stmt in enumerate(walk(self.kernel.body))}
        self._slots = {(slot.kind, slot.key): slot for slot in self.kernel.arena}
        self.reserve(self.kernel.arena_bytes)

    def name(self, wanted: str) -> str:
        """Return an identifier like `wanted` that nothing else in the function has."""
        stem = c.c_ident(wanted.rstrip("_") or wanted)
        found, count = stem, self._counts.get(stem, 1)
        while found in self._names:
            count += 1
            found = f"{stem}_{count}"
        self._counts[stem] = count       # all lower ones are taken for good
        self._names.add(found)
        return found

    def scratch(self, wanted: str, tile: TileType) -> Place:
        """Return a new tile in scratch behind the arena, row-major without gaps."""
        return self._pointer(wanted, memory_type(tile.dtype), tile, self.reserve(tile.size_bytes))

    def _pointer(self, wanted: str, element: str, tile: TileType, offset: int) -> Place:
        name = self.name(wanted)
        where = c.Name("scratch") if offset == 0 else c.Infix("+", c.Name("scratch"), c.Int(offset))
        self.pointers.append(c.Declare(f"{element} *const", name, where if element == "char" else c.Cast(f"{element} *", where)))
        return Place(name, c.Int(tile.cols), tile)

    def slot(self, kind: k.SlotKind, key: int) -> Place | None:
        """Return the place that the kernel's arena has for a thing, row-major without gaps; None where it has none."""
        found = self._slots.get((kind, key))
        if found is None:
            return None
        if found not in self._places:
            element = "char" if kind is k.SlotKind.WORK else memory_type(found.type.dtype)
            self._places[found] = self._pointer(found.name, element, found.type, found.offset)
        return self._places[found]

    def work(self, stmt: k.Stmt) -> c.Expr:
        """Return the pointer to the memory that a statement's C function works in."""
        place = self.slot(k.SlotKind.WORK, self.number[id(stmt)])
        return unreachable("statement without memory to work in") if place is None else c.Name(place.pointer)

    def reserve(self, n_bytes: int) -> int:
        """Return the offset of `n_bytes` new bytes of scratch."""
        offset = self.scratch_bytes
        self.scratch_bytes += -(-n_bytes // ALIGN) * ALIGN
        return offset

    def argument(self, param: str) -> c.Expr:
        """Return args[i] of a memory parameter."""
        for position, declared in enumerate(self.kernel.memory_params):
            if declared.name == param:
                return c.Index(c.Name("args"), c.Int(position))
        unreachable(f"parameter {param}")

    def extent(self, param: str, dim: int) -> c.Expr:
        """Return how many rows (0) or columns (1) are bound."""
        return c.Index(c.Member(self.argument(param), "extent"), c.Int(dim))

    def stride(self, param: str, dim: int) -> c.Expr:
        """Return elements from row to row (0) or column to column (1) of what is bound."""
        if dim == 1 and self.unit_inner.get(param, False):
            return c.Int(1)
        return c.Index(c.Member(self.argument(param), "stride"), c.Int(dim))

    def scalar(self, node: s.Scalar) -> c.Expr:
        """Return C for a scalar expression of the kernel."""
        return lower_scalar(node, self._leaf)

    def scalar_as(self, node: s.Scalar, dtype: DType) -> c.Expr:
        """Return C for a scalar in the dtype of an operand."""
        if isinstance(node, s.Const):
            return literal(node.value, dtype)
        lowered = self.scalar(node)
        if dtype.is_bool:
            return c.Infix("!=", lowered, c.Int(0))
        if dtype.is_half or dtype.is_storage:
            found = DType.U64 if s.is_unsigned(node) else s.scalar_dtype(node)
            return c.Call(f"pto_cast_{found}_{dtype}", (as_it_is(node, lowered),))
        return c.Cast(memory_type(dtype), as_it_is(node, lowered) if dtype.is_float else lowered)

    def _leaf(self, node: s.Scalar) -> c.Expr:
        match node:
            case s.ParamScalar(name):
                for position, declared in enumerate(self.kernel.scalar_params):
                    if declared.name == name:
                        slot = c.Index(c.Name("scalars"), c.Int(position))
                        return c.Call("pto_from_bits_f64", (slot,)) if declared.dtype.is_float else slot
                unreachable(f"scalar parameter {name}")
            case s.ParamExtent(name, dim):
                return self.extent(name, dim)
            case s.Var() if node in self.variables:
                return c.Name(self.variables[node])
            case _:
                unreachable(f"scalar in a kernel: {print_scalar(node)}")
