"""Kernel IR: what one task computes on its tiles, in SSA form.

A kernel is a list of statements. Tile values are defined once; state that changes lives in buffers, which are read and written by
statements of their own. Scalars (offsets, valid extents, loop bounds) are scalar expressions over the kernel's parameters.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import TypeAlias

from pto_wsp.source import UNKNOWN, Span
from pto_wsp.types.dtype import DType
from pto_wsp.types.scalar import Scalar, Var
from pto_wsp.types.tile import TileType
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


@dataclass(frozen=True, slots=True)
class TileParam:
    """A parameter bound to a view of the tile's shape, or to its valid part."""

    name: str
    role: Role
    type: TileType
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TensorParam:
    """A parameter bound to a rank-2 view that the kernel reads and writes in pieces."""

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
    """A tile value: defined by one statement. `name`: the variable that the user gave it to, "" where there is none."""

    id: int
    type: TileType
    name: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ScalarOperand:
    """A scalar where an operation takes a tile: as a [1, 1] tile of `dtype`."""

    value: Scalar
    dtype: DType


Operand: TypeAlias = Value | ScalarOperand
Attr: TypeAlias = int | float | bool | str | DType | tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Compute:
    """`result = op(operands, **attrs)`; `op` names an entry of the op table. `guard` as in `Load`, for an op that takes indices."""

    result: Value
    op: str
    operands: tuple[Operand, ...]
    attrs: tuple[tuple[str, Attr], ...] = ()
    span: Span = field(default=UNKNOWN, compare=False, repr=False)
    guard: int | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """`result = param[row : row + rows, col : col + cols]`, `fill` outside the valid part.

    The valid part is the smaller of (valid_rows, valid_cols), where given, and, for a Tile parameter, what is bound. For a Tensor
    parameter it must lie inside the region: a run-time guard, which passes number so that it keeps its number when statements
    move. `transpose`: the result is the transposed piece. `copy`: a pass has found that what is loaded changes before its last use.
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
    """`param[row : row + rows, col : col + cols] = value`, the valid part of it (as in `Load`). `streams`: past the caches."""

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
    """`result[n, :] = param[index[n, 0], col : col + cols]` of a Tensor parameter for n < `valid`, `fill` in the rows behind.

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
    """`param[index[n, 0], col : col + cols] = value[n, :]` for n < `valid`, in that order; `add` adds in place of writing."""

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
    """State of a kernel: named for people, told apart by id."""

    id: int
    name: str
    type: TileType


@dataclass(frozen=True, slots=True)
class Alloc:
    """Make a buffer; `init` None leaves it unwritten."""

    buffer: Buffer
    init: float | int | bool | None
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Read:
    """`result = buffer`, as it is at this point."""

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
class Accumulate:
    """`buffer += lhs @ rhs`, in place; a pass makes it."""

    buffer: Buffer
    lhs: Value
    rhs: Value
    attrs: tuple[tuple[str, Attr], ...] = ()
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Print:
    """Show `value`, as it is at this point, to the user under `label`; "" names the line instead.

    `id`: which print of the kernel it is, counted from 0 as they were traced; passes keep it, and their order.
    """

    id: int
    label: str
    value: Operand
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


class Reach(Enum):
    """Which elements of an operand make element (r, c) of a result; those of one row or column are shared by all of them."""

    ELEMENT = "(r, c)"
    ROW = "row r"
    COLUMN = "column c"
    TURNED_ROW = "column r"       # row r of what is read transposed
    TURNED_COLUMN = "row c"
    ALL = "all of it"

    def __repr__(self) -> str:
        return f"Reach.{self.name}"


@dataclass(frozen=True, slots=True)
class Source:
    """What a result was made from."""

    operand: Operand
    reach: Reach


@dataclass(frozen=True, slots=True)
class Check:
    """End the task when `value`, which `what` made, holds a NaN or infinity that its sources do not; a pass makes it."""

    number: int
    value: Value
    what: str
    sources: tuple[Source, ...]
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
    """Run `then` where `condition` holds when it is reached, else `other`."""

    condition: Scalar
    then: tuple[Stmt, ...]
    other: tuple[Stmt, ...] = ()
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Rows:
    """Run `body` for each of `rows` rows: its members handle their row. Passes make it.

    A result that a statement outside uses is a whole tile there. Run on whole tiles, members in order, it means the same.
    `vector`: rows are handled several at a time, because nothing in the body goes along a row. `of`: a parameter with which the rows
    end, where fewer are bound of it: nothing reads what the others would give.
    """

    rows: int
    body: tuple[Stmt, ...]
    vector: bool = False
    of: str | None = None


@dataclass(frozen=True, slots=True)
class Columns:
    """Inside `Rows`: run `body` for each of `cols` columns of the row; reductions of the row are finished behind it.

    `lanes`: in how many partial results, folded in a fixed order, the row's float reductions run.
    """

    cols: int
    body: tuple[Stmt, ...]
    lanes: int = 1


Stmt: TypeAlias = Compute | Load | Store | Gather | Scatter | Alloc | Read | Write | Accumulate | Print | Check | For | If | Rows | Columns
Guarded: TypeAlias = Compute | Load | Store | Gather | Scatter


class SlotKind(Enum):
    """What a slot of the scratch arena is for; its key is the id of a value or a buffer, or the number of a statement."""

    BUFFER = "buffer"
    VALUE = "value"
    SUMS = "sums"        # a column reduction of halves, added up in f32; by its value
    STORE = "store"      # a tile on its way to a parameter; by the statement
    WORK = "work"        # what the C function of a product or an op on whole tiles works in; by the statement

    def __repr__(self) -> str:
        return f"SlotKind.{self.name}"


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in the scratch arena, and from which statement (in pre-order) to which it is needed."""

    name: str
    kind: SlotKind
    key: int
    type: TileType
    offset: int = 0
    first: int = 0
    last: int = 0


class BodyForm(Enum):
    """What a body of the user's own is, and for which targets."""

    C = "c_src"              # the body of a C function, for targets that run on the CPU
    CPP = "cpp_src"          # the body of a C++ function, for the NPU
    CPP_BODY = "cpp_body"    # the same, from a file
    CPP_TU = "cpp_tu"        # a whole translation unit, for the NPU

    def __repr__(self) -> str:
        return f"BodyForm.{self.name}"


@dataclass(frozen=True, slots=True)
class OwnBody:
    """A body that the user wrote in a target's own language.

    `constants`: the values of Constexpr parameters, by name. `scratch_bytes`: what it may use of the task's scratch memory.
    """

    form: BodyForm
    text: str
    scratch_bytes: int = 0
    constants: tuple[tuple[str, int | float | bool], ...] = ()
    span: Span = field(default=UNKNOWN, compare=False, repr=False)   # where the text starts


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel specialised: parameters in the order of the `def` (Constexpr ones are gone), its body, and bodies for one target."""

    name: str
    params: tuple[Param, ...]
    body: tuple[Stmt, ...]
    span: Span = field(default=UNKNOWN, compare=False, repr=False)
    bodies: tuple[OwnBody, ...] = ()
    arena: tuple[Slot, ...] = ()          # of its scratch memory; a pass plans it

    @property
    def has_meaning(self) -> bool:
        """False for a kernel whose Python body does nothing because it has bodies of its own: then NumPy cannot run it."""
        return bool(self.body) or not self.bodies

    @property
    def c_body(self) -> OwnBody | None:
        """The user's own C body, where there is one."""
        return next((own for own in self.bodies if own.form is BodyForm.C), None)

    @property
    def cpp_body(self) -> OwnBody | None:
        """The user's own C++ body, where there is one."""
        return next((own for own in self.bodies if own.form is not BodyForm.C), None)

    @property
    def arena_bytes(self) -> int:
        """How much scratch memory the arena takes."""
        return max((slot.offset + slot.type.size_bytes for slot in self.arena), default=0)

    @property
    def memory_params(self) -> tuple[MemoryParam, ...]:
        """The parameters that are bound to views, in order."""
        return tuple(p for p in self.params if not isinstance(p, ScalarParamDecl))

    @property
    def scalar_params(self) -> tuple[ScalarParamDecl, ...]:
        """The Scalar parameters, in order."""
        return tuple(p for p in self.params if isinstance(p, ScalarParamDecl))
