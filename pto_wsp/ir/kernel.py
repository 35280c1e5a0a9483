"""Define the kernel IR: what one task computes on its tiles, in SSA form.

A kernel is a list of statements. Tile values are defined once; mutable state is in buffers, with statements that read and write them.
Scalars (offsets, valid extents, loop bounds) are scalar expressions over the kernel's parameters.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import Any, TypeAlias

from pto_wsp import doors
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Const, ItemRef, Scalar, Var
from pto_wsp.ir.tile import TileType
from pto_wsp.source import UNKNOWN, Span
from pto_wsp.values import dataclass


class Role(Enum):
    """What a kernel may do with a parameter."""

    IN = "In"
    OUT = "Out"
    INOUT = "InOut"

    @property
    def reads(self) -> bool:
        """True for In and InOut."""
        return self is not Role.OUT

    @property
    def writes(self) -> bool:
        """True for Out and InOut."""
        return self is not Role.IN

    def __repr__(self) -> str:
        return f"Role.{self.name}"


MAX_ARGS = 32      # tiles and Tensors of one task, each tile of a stack counted: PTO_MAX_ARGS of csrc/include/pto_abi.h
COMBINES = ("sum", "max", "min", "prod")     # how accumulating parameters combine; the first is the default


@dataclass(frozen=True, slots=True)
class TileParam:
    """A parameter bound to a view of the tile's shape, or to a smaller valid part.

    `combine`: how an accumulating parameter combines what the tensor holds with what the task adds: sum, max, min or prod; "" for others.
    Tasks that combine in one way need no order of the user's: edges run them in program order.
    """

    name: str
    role: Role
    type: TileType
    span: Span = field(default=UNKNOWN, compare=False, repr=False)
    combine: str = ""

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.type.dtype

    @property
    def accumulates(self) -> bool:
        """True for a parameter that reads a tensor and combines a value with the tensor's elements."""
        return bool(self.combine) and self.role is Role.INOUT


@dataclass(frozen=True, slots=True)
class TensorParam:
    """A parameter bound to a rank-2 view that the kernel accesses in pieces."""

    name: str
    role: Role
    dtype: DType
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ScalarParamDecl:
    """A run-time scalar parameter."""

    name: str
    dtype: DType
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


Param: TypeAlias = TileParam | TensorParam | ScalarParamDecl
MemoryParam: TypeAlias = TileParam | TensorParam


@dataclass(frozen=True, slots=True)
class Value:
    """A tile value, defined by one statement. `name`: the user's variable, "" if there is none."""

    id: int
    type: TileType
    name: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ScalarOperand:
    """A scalar in place of a tile operand: a [1, 1] tile of `dtype`."""

    value: Scalar
    dtype: DType


Operand: TypeAlias = Value | ScalarOperand
Attr: TypeAlias = int | float | bool | str | DType | tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Compute:
    """`result = op(operands, **attrs)`; `op` names an entry of the op table. `guard`: as in `Load`, for an op that takes indices."""

    result: Value
    op: str
    operands: tuple[Operand, ...]
    attrs: tuple[tuple[str, Attr], ...] = ()
    span: Span = field(default=UNKNOWN, compare=False, repr=False)
    guard: int | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """`result = param[row : row + rows, col : col + cols]`, with `fill` outside the valid part.

    The valid part is the minimum of (valid_rows, valid_cols), if given, and, for a Tile parameter, the bound extents. For a Tensor
    parameter it must lie inside the region: a run-time guard, whose number passes write into `guard` so that it survives code motion.
    `transpose`: the result is the transposed piece. `copy`: set by a pass if the loaded memory changes before the last use.
    """

    result: Value
    param: str
    row: Scalar
    col: Scalar
    valid_rows: Scalar | None = None
    valid_cols: Scalar | None = None
    fill: float | int | bool = 0
    transpose: bool = False
    guard: int | None = None
    copy: bool = False
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Store:
    """`param[row : row + rows, col : col + cols] = value`, for the valid part (as in `Load`). `streams`: bypass the caches."""

    param: str
    value: Value
    row: Scalar
    col: Scalar
    valid_rows: Scalar | None = None
    valid_cols: Scalar | None = None
    guard: int | None = None
    streams: bool = False
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Gather:
    """`result[n, :] = param[index[n, 0], col : col + cols]` of a Tensor parameter for n < `valid`; later rows are `fill`.

    `index` is [rows, 1]; `valid` None means all rows. Guarded as in `Load`: the index and the columns must lie inside the region.
    """

    result: Value
    param: str
    index: Value
    col: Scalar
    valid: Scalar | None = None
    fill: float | int | bool = 0
    guard: int | None = None
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Scatter:
    """`param[index[n, 0], col : col + cols] = value[n, :]` for n < `valid`, in that order; `add` adds instead of writing."""

    param: str
    index: Value
    value: Value
    col: Scalar
    valid: Scalar | None = None
    add: bool = False
    guard: int | None = None
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Buffer:
    """Mutable state of a kernel, identified by `id`."""

    id: int
    name: str
    type: TileType


@dataclass(frozen=True, slots=True)
class Alloc:
    """Allocate a buffer; `init` None leaves it undefined."""

    buffer: Buffer
    init: float | int | bool | None
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Read:
    """`result = buffer`, its current contents."""

    result: Value
    buffer: Buffer
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Write:
    """`buffer[:] = value`."""

    buffer: Buffer
    value: Value
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class WritePart:
    """`buffer[row : row + rows, col : col + cols] = value`.

    Guarded as in `Load` if row or column is known only at run time: the part must lie inside the buffer.
    """

    buffer: Buffer
    value: Value
    row: Scalar
    col: Scalar
    guard: int | None = None
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Accumulate:
    """`buffer += lhs @ rhs`, in place; introduced by a pass."""

    buffer: Buffer
    lhs: Value
    rhs: Value
    attrs: tuple[tuple[str, Attr], ...] = ()
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Item:
    """`item = value[row, col]`: from here to the end of the body, scalars may name the item.

    Guarded as in `Load` if row or column is known only at run time: they must lie inside the tile.
    """

    item: ItemRef
    value: Value
    row: Scalar = Const(0)
    col: Scalar = Const(0)
    guard: int | None = None
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Print:
    """Show the current `value` to the user under `label`; "" shows the line instead.

    `id`: number of the print in the traced kernel, from 0; passes keep it and the order of prints. Of a tile, only the first `valid_rows`
    and `valid_cols` are shown, if given.
    """

    id: int
    label: str
    value: Operand
    valid_rows: Scalar | None = None
    valid_cols: Scalar | None = None
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


class Reach(Enum):
    """Which elements of an operand determine element (r, c) of a result."""

    ELEMENT = "(r, c)"
    ROW = "row r"
    COLUMN = "column c"
    TURNED_ROW = "column r"       # row r of an operand that is read transposed
    TURNED_COLUMN = "row c"
    ALL = "all of it"

    def __repr__(self) -> str:
        return f"Reach.{self.name}"


@dataclass(frozen=True, slots=True)
class Source:
    """An operand that a result was computed from, and which of its elements."""

    operand: Operand
    reach: Reach


@dataclass(frozen=True, slots=True)
class FiniteCheck:
    """End the task if `value`, the result of `what`, has a NaN or infinity that its sources do not explain; introduced by a pass.

    `valid_rows`, `valid_cols`: the part that anybody keeps, as in `Load`; None for all.
    """

    number: int
    value: Value
    what: str
    sources: tuple[Source, ...]
    valid_rows: Scalar | None = None
    valid_cols: Scalar | None = None
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class For:
    """Run `body` for var in range(start, stop, step); step > 0."""

    var: Var
    start: Scalar
    stop: Scalar
    step: Scalar
    body: tuple[Stmt, ...]
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class If:
    """Run `then` if `condition` is true when control reaches it, otherwise `other`."""

    condition: Scalar
    then: tuple[Stmt, ...]
    other: tuple[Stmt, ...] = ()
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Rows:
    """Run `body` for each of `rows` rows: each member handles its row. Introduced by passes.

    A result used by a statement outside is a whole tile there. Running the members in order on whole tiles has the same meaning.
    `vector`: several rows run at once, because no operation in the body is along a row. `of`: a parameter whose bound rows end the loop:
    nothing reads the results of further rows.
    """

    rows: int
    body: tuple[Stmt, ...]
    vector: bool = False
    of: str | None = None


@dataclass(frozen=True, slots=True)
class Columns:
    """Inside `Rows`: run `body` for each of `cols` columns of the row; reductions of the row are complete afterwards.

    `lanes`: the number of partial results of float reductions, folded in a fixed order.
    """

    cols: int
    body: tuple[Stmt, ...]
    lanes: int = 1


Stmt: TypeAlias = (
    Compute | Load | Store | Gather | Scatter | Alloc | Read | Write | WritePart | Accumulate | Item | Print | FiniteCheck | For | If
    | Rows | Columns)
Guarded: TypeAlias = Compute | Load | Store | Gather | Scatter | Item | WritePart


class SlotKind(Enum):
    """The purpose of a slot of the scratch arena; its key is the id of a value or buffer, or the number of a statement."""

    BUFFER = "buffer"
    VALUE = "value"
    SUMS = "sums"        # f32 sums of a column reduction of halves; key: its value
    STORE = "store"      # a tile staged for a store; key: the statement
    WORK = "work"        # work space of a product or a whole-tile op; key: the statement

    def __repr__(self) -> str:
        return f"SlotKind.{self.name}"


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in the scratch arena, and its live range in statements (in pre-order)."""

    name: str
    kind: SlotKind
    key: int
    type: TileType
    offset: int = 0
    first: int = 0
    last: int = 0


class BodyForm(Enum):
    """The language and form of a user's body in a target's language."""

    C = "c_src"              # the body of a C function, for targets that run on the CPU
    CPP = "cpp_src"          # the body of a C++ function, for the NPU
    CPP_BODY = "cpp_body"    # the same, from a file
    CPP_TU = "cpp_tu"        # a whole translation unit, for the NPU

    def __repr__(self) -> str:
        return f"BodyForm.{self.name}"


@dataclass(frozen=True, slots=True)
class OwnBody:
    """A body that the user wrote in a target's language.

    `constants`: the values of Constexpr parameters, by name. `scratch_bytes`: the scratch memory it may use.
    """

    form: BodyForm
    text: str
    scratch_bytes: int = 0
    constants: tuple[tuple[str, int | float | bool], ...] = ()
    span: Span = field(default=UNKNOWN, compare=False, repr=False)   # where the text starts


@dataclass(frozen=True, slots=True)
class Kernel:
    """A specialised kernel: parameters in the order of the `def` (without Constexpr ones), its body, and bodies for single targets."""

    name: str
    params: tuple[Param, ...]
    body: tuple[Stmt, ...]
    span: Span = field(default=UNKNOWN, compare=False, repr=False)
    bodies: tuple[OwnBody, ...] = ()
    arena: tuple[Slot, ...] = ()          # plan of its scratch memory, made by a pass

    def __str__(self) -> str:
        return str(doors.late_module("pto_wsp.ir.print_ir").print_ir(self))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    @property
    def has_meaning(self) -> bool:
        """False for a kernel with an empty Python body and bodies for targets: NumPy cannot run such a kernel."""
        return bool(self.body) or not self.bodies

    @property
    def c_body(self) -> OwnBody | None:
        """The user's C body, if any."""
        return next((own for own in self.bodies if own.form is BodyForm.C), None)

    @property
    def cpp_body(self) -> OwnBody | None:
        """The user's C++ body, if any."""
        return next((own for own in self.bodies if own.form is not BodyForm.C), None)

    @property
    def arena_bytes(self) -> int:
        """The size of the arena."""
        return max((slot.offset + slot.type.size_bytes for slot in self.arena), default=0)

    @property
    def memory_params(self) -> tuple[MemoryParam, ...]:
        """The parameters bound to views, in order."""
        return tuple(p for p in self.params if not isinstance(p, ScalarParamDecl))

    @property
    def scalar_params(self) -> tuple[ScalarParamDecl, ...]:
        """The Scalar parameters, in order."""
        return tuple(p for p in self.params if isinstance(p, ScalarParamDecl))
