"""The state shared by the emission of one kernel: names, scratch memory, and the memory of values and buffers."""

from __future__ import annotations

from dataclasses import field

from pto_wsp.c import syntax as c
from pto_wsp.c.scalars import as_it_is, literal, lower_scalar, memory_type
from pto_wsp.errors import unreachable
from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel_walk import walk
from pto_wsp.ir.names import Names
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.tile import TileType
from pto_wsp.passes.kernel.arena import ALIGN
from pto_wsp.values import dataclass

ROW, COL, CHUNK, LANE = "row", "col", "chunk", "lane"
_RESERVED = ("args", "scalars", "scratch", "context", ROW, COL, LANE, CHUNK, "lo", "hi", "pto_arg", "pto_context", "int8_t",
             "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t")


@dataclass(frozen=True, slots=True)
class CTile:
    """A tile in memory: pointer name, elements from row to row (columns are contiguous), and type."""

    pointer: str
    step: c.Expr
    type: TileType
    rows: c.Expr | None = None     # number of rows present; readers take the others as 0


@dataclass(slots=True)
class Env:
    """The emission state of one kernel."""

    kernel: k.Kernel
    unit_inner: dict[str, bool]
    scratch_bytes: int = 0
    pointers: list[c.Stmt] = field(default_factory=list)     # declared at the top of the function
    values: dict[int, CTile] = field(default_factory=dict)
    buffers: dict[int, CTile] = field(default_factory=dict)
    variables: dict[s.Var | s.ItemRef, str] = field(default_factory=dict)
    matmuls: set[DType] = field(default_factory=set)
    headers: set[str] = field(default_factory=set)           # headers of csrc/include that only some kernels need
    few_rows: bool = False                                   # whether a product has few rows
    short_rows: bool = False                                 # whether a product has operands with missing rows
    _names: Names = field(default_factory=lambda: Names(_RESERVED))
    number: dict[int, int] = field(init=False)               # pre-order number of each statement, by id()
    _slots: dict[tuple[k.SlotKind, int], k.Slot] = field(init=False)
    _places: dict[k.Slot, CTile] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.number = {id(stmt): at for at, stmt in enumerate(walk(self.kernel.body))}
        self._slots = {(slot.kind, slot.key): slot for slot in self.kernel.arena}
        self.reserve(self.kernel.arena_bytes)

    def name(self, wanted: str) -> str:
        """Return an unused identifier close to `wanted`."""
        return self._names.take(c.c_ident(wanted.rstrip("_") or wanted))

    def scratch(self, wanted: str, tile: TileType) -> CTile:
        """Return a new row-major tile in scratch, after the arena."""
        return self._pointer(wanted, memory_type(tile.dtype), tile, self.reserve(tile.size_bytes))

    def _pointer(self, wanted: str, element: str, tile: TileType, offset: int) -> CTile:
        name = self.name(wanted)
        where = c.Name("scratch") if offset == 0 else c.Infix("+", c.Name("scratch"), c.Int(offset))
        self.pointers.append(c.Declare(f"{element} *const", name, where if element == "char" else c.Cast(f"{element} *", where)))
        return CTile(name, c.Int(tile.cols), tile)

    def slot(self, kind: k.SlotKind, key: int) -> CTile | None:
        """Return the arena's memory for a thing, row-major; None if the arena has none."""
        slot = self._slots.get((kind, key))
        if slot is None:
            return None
        if slot not in self._places:
            element = "char" if kind is k.SlotKind.WORK else memory_type(slot.type.dtype)
            self._places[slot] = self._pointer(slot.name, element, slot.type, slot.offset)
        return self._places[slot]

    def work(self, stmt: k.Stmt) -> c.Expr:
        """Return the pointer to the work memory of a statement's C function."""
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
        """Return the bound number of rows (0) or columns (1)."""
        return c.Index(c.Member(self.argument(param), "extent"), c.Int(dim))

    def stride(self, param: str, dim: int) -> c.Expr:
        """Return the bound distance in elements from row to row (0) or column to column (1)."""
        if dim == 1 and self.unit_inner.get(param, False):
            return c.Int(1)
        return c.Index(c.Member(self.argument(param), "stride"), c.Int(dim))

    def scalar(self, node: s.Scalar) -> c.Expr:
        """Return C for a scalar expression of the kernel."""
        return lower_scalar(node, self._leaf)

    def scalar_as(self, node: s.Scalar, dtype: DType) -> c.Expr:
        """Return C for a scalar converted to the dtype of an operand."""
        if isinstance(node, s.Const):
            return literal(node.value, dtype)
        lowered = self.scalar(node)
        if dtype.is_bool:
            return c.Infix("!=", lowered, c.Int(0))
        if dtype.is_half or dtype.is_storage:
            source = DType.U64 if s.is_unsigned(node) else s.scalar_dtype(node)
            return c.Call(f"pto_cast_{source}_{dtype}", (as_it_is(node, lowered),))
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
            case s.Var() | s.ItemRef() if node in self.variables:
                return c.Name(self.variables[node])
            case _:
                unreachable(f"scalar in a kernel: {print_scalar(node)}")
