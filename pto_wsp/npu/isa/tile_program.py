"""The tile program: one kernel as instructions of one core on tiles in on-chip memory.

A tile program is the IR between kernel IR and device code (C++ of tile instructions, or `.pto` text). A `ChipBuffer` is on-chip memory; a
tile is a typed view of it, and several tiles may view the same buffer. Selection creates a program without addresses and flags; passes add
copies, addresses, flags and barriers.

>>> TileView(0, "x", 0, DType.F32, 16, 128, Form.ROWS, Const(16), Const(128)).size_bytes
8192
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from enum import Enum
from typing import TypeAlias, TypeVar

from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel import Param, ScalarParamDecl
from pto_wsp.ir.scalar import Const, Scalar, Var
from pto_wsp.ops.entry import Unit
from pto_wsp.source import UNKNOWN, Span
from pto_wsp.values import dataclass

ALIGN_BYTES = 32


class Space(Enum):
    """An on-chip memory of a core, by its name in the arch model."""

    UB = "UB"        # vector core
    L1 = "L1"        # cube core
    L0A = "L0A"
    L0B = "L0B"
    L0C = "L0C"


class Pipe(Enum):
    """An instruction queue of a core: in order within itself, unordered with other pipes except by flags."""

    S = "PIPE_S"         # scalar unit
    V = "PIPE_V"         # vector unit
    M = "PIPE_M"         # matrix unit
    MTE1 = "PIPE_MTE1"   # L1 to L0A, L0B
    MTE2 = "PIPE_MTE2"   # global memory to UB, L1
    MTE3 = "PIPE_MTE3"   # UB to global memory
    FIX = "PIPE_FIX"     # L0C to global memory


class Form(Enum):
    """The layout of a tile's elements in its buffer."""

    ROWS = "rows"        # UB, row-major
    COLUMN = "column"    # UB, [R, 1] column-major: the form of row reductions' results and row broadcasts' operands
    NZ = "nz"            # L1, filled from row-major global memory
    ZN = "zn"            # L1, filled from global memory read transposed (layout DN)
    LEFT = "left"        # L0A
    RIGHT = "right"      # L0B
    ACC = "acc"          # L0C


@dataclass(frozen=True, slots=True)
class ChipBuffer:
    """An on-chip buffer. `copies`: number of consecutive copies, which loops use in alternation."""

    id: int
    name: str
    space: Space
    size_bytes: int              # of one copy, a multiple of 32
    copies: int = 1
    address: int | None = None   # of the first copy; plan_memory assigns it


@dataclass(frozen=True, slots=True)
class TileView:
    """A typed view of an on-chip buffer: storage of rows x cols with a valid part. `offset`: bytes from the start of a copy."""

    id: int
    name: str
    buffer: int
    dtype: DType
    rows: int
    cols: int
    form: Form
    valid_rows: Scalar
    valid_cols: Scalar
    offset: int = 0

    @property
    def size_bytes(self) -> int:
        """Return the size of the storage."""
        return self.rows * self.cols * self.dtype.nbytes


class Access(Enum):
    """An instruction's access to a tile."""

    READ = "read"
    WRITE = "write"
    BOTH = "both"        # scratch, and accumulators

    @property
    def reads(self) -> bool:
        """Return whether the access reads."""
        return self is not Access.WRITE

    @property
    def writes(self) -> bool:
        """Return whether the access writes."""
        return self is not Access.READ


@dataclass(frozen=True, slots=True)
class TileArg:
    """A tile as an operand, by id."""

    tile: int
    access: Access


@dataclass(frozen=True, slots=True)
class NumberArg:
    """A number as an operand, converted to `dtype`."""

    value: Scalar
    dtype: DType


@dataclass(frozen=True, slots=True)
class Word:
    """An enumerator as an operand: `CmpMode::LT`."""

    text: str


Arg: TypeAlias = TileArg | NumberArg | Word


@dataclass(frozen=True, slots=True)
class BindTile:
    """Make a tile usable to the end of the block, at copy `iteration` modulo the buffer's copies, shifted by `shift` bytes."""

    tile: int
    iteration: Scalar = Const(0)
    shift: Scalar = Const(0)
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class GmLoad:
    """tile = param[row : row + valid_rows, col : col + valid_cols]; `turned`: element (r, c) of the tile is (row + c, col + r)."""

    tile: int
    param: str
    row: Scalar
    col: Scalar
    turned: bool = False
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class GmStore:
    """param[row : row + valid_rows, col : col + valid_cols] = tile; `turned` as in `GmLoad`."""

    param: str
    tile: int
    row: Scalar
    col: Scalar
    turned: bool = False
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Instr:
    """A tile instruction by its name in the instruction table, destination first.

    `template`: its template arguments, with {n} for the type of operand n.
    """

    name: str
    args: tuple[Arg, ...]
    template: tuple[str, ...] = ()
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Let:
    """Bind a scalar to a variable, to the end of the block."""

    var: Var
    value: Scalar
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Peek:
    """Read element `index` of a tile in UB with the scalar unit, counted in row-major storage order."""

    var: Var
    tile: int
    index: Scalar
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class GmPeek:
    """Read param[row, col] from global memory with the scalar unit."""

    var: Var
    param: str
    row: Scalar
    col: Scalar
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SetFlag:
    """Signal from pipe `after` to pipe `before` that the work of `after` so far is complete."""

    after: Pipe
    before: Pipe
    event: Scalar
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class WaitFlag:
    """Block pipe `before` until the matching `SetFlag`."""

    after: Pipe
    before: Pipe
    event: Scalar
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Barrier:
    """Block the pipe until its earlier instructions complete."""

    pipe: Pipe
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class For:
    """Run `body` for var in range(start, stop, step); step > 0."""

    var: Var
    start: Scalar
    stop: Scalar
    step: Scalar
    body: tuple[Step, ...]
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class If:
    """Run `then` if `condition` holds, else `other`."""

    condition: Scalar
    then: tuple[Step, ...]
    other: tuple[Step, ...] = ()
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Leave:
    """Return from the kernel if `condition` holds: no output has a valid part, and no flag is pending."""

    condition: Scalar
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


Step: TypeAlias = (BindTile | GmLoad | GmStore | Instr | Let | Peek | GmPeek | SetFlag | WaitFlag | Barrier | For | If | Leave)


@dataclass(frozen=True, slots=True)
class ParamAccess:
    """The access of a memory parameter: where its rows and columns are in its descriptor.

    `row_dim`, `col_dim`: dimensions of the descriptor; None: a single row, or column. `row_step`, `col_step`: distance between rows, or
    columns, in elements of that dimension. `rows`, `cols`: extents that every task shares; None: ceil(shape / step), read from the
    descriptor. `unit_cols`, `unit_rows`: elements along a row, or down a column, are contiguous in memory. `row_group`, `col_group`:
    parameters with the same number have equal row, or column, counts in every task. `memory`: parameters with the same number may alias,
    and one of them is written.
    """

    row_dim: int | None
    col_dim: int | None
    row_step: int = 1
    col_step: int = 1
    rows: int | None = None
    cols: int | None = None
    unit_cols: bool = True
    unit_rows: bool = False
    row_group: int | None = None
    col_group: int | None = None
    memory: int | None = None


@dataclass(frozen=True, slots=True)
class MovedRegion:
    """A piece of a region that a program moves. `proved`: it is inside the region in every run; else the program tests it."""

    what: str
    proved: bool
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


_Numbered = TypeVar("_Numbered", ChipBuffer, TileView)


def _with_id(found: tuple[_Numbered, ...], number: int) -> _Numbered:
    """Return the entry of an id. Ids ascend, and removed entries leave gaps, so the entry is at or before position `number`."""
    for at in range(min(number, len(found) - 1), -1, -1):
        if found[at].id == number:
            return found[at]
    return next(one for one in found if one.id == number)


@dataclass(frozen=True, slots=True)
class TileProgram:
    """A kernel for one core. Scalars of its steps consist of loop variables, ParamScalar and ParamExtent."""

    name: str
    core: Unit
    params: tuple[Param, ...]
    access: tuple[ParamAccess, ...]      # of its memory parameters, in order
    buffers: tuple[ChipBuffer, ...]
    tiles: tuple[TileView, ...]
    body: tuple[Step, ...]
    reaches: tuple[MovedRegion, ...] = ()
    span: Span = field(default=UNKNOWN, compare=False, repr=False)

    def buffer(self, buffer_id: int) -> ChipBuffer:
        """Return the on-chip buffer of an id."""
        return _with_id(self.buffers, buffer_id)

    def tile(self, tile_id: int) -> TileView:
        """Return the tile of an id."""
        return _with_id(self.tiles, tile_id)

    def memory(self, param: str) -> int | None:
        """Return the alias class of a memory parameter, None if it aliases no written one."""
        params = (one for one in self.params if not isinstance(one, ScalarParamDecl))
        return next((access.memory for one, access in zip(params, self.access, strict=False) if one.name == param), None)

    def space(self, tile_id: int) -> Space:
        """Return the memory of a tile."""
        return self.buffer(self.tile(tile_id).buffer).space


def steps(body: tuple[Step, ...]) -> Iterator[Step]:
    """Yield all steps, each before the steps inside it."""
    for step in body:
        yield step
        match step:
            case For():
                yield from steps(step.body)
            case If():
                yield from steps(step.then)
                yield from steps(step.other)
            case _:
                pass


def uses_of(step: Step) -> tuple[TileArg, ...]:
    """Return the tiles that a step itself reads or writes, without the steps inside it."""
    match step:
        case GmLoad(tile):
            return (TileArg(tile, Access.WRITE),)
        case GmStore(tile=tile) | Peek(tile=tile):
            return (TileArg(tile, Access.READ),)
        case Instr(args=args):
            return tuple(arg for arg in args if isinstance(arg, TileArg))
        case _:
            return ()


def pipe_of(step: Step, program: TileProgram) -> Pipe | None:
    """Return the pipe that a step runs on, by the memories that it moves between; None for steps that do no work."""
    match step:
        case GmLoad():
            return Pipe.MTE2
        case GmStore(tile=tile):
            return Pipe.FIX if program.space(tile) is Space.L0C else Pipe.MTE3
        case Peek() | GmPeek():
            return Pipe.S
        case Instr():
            spaces = {program.space(arg.tile) for arg in uses_of(step)}
            if Space.L1 in spaces:
                return Pipe.MTE1
            return Pipe.V if spaces <= {Space.UB} else Pipe.M
        case _:
            return None
