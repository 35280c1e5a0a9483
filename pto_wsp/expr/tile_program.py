"""Tile programs: one kernel as instructions of one core, on tiles that lie in its on-chip memories.

A tile program stands between kernel IR and what a device runs: C++ of tile instructions, or `.pto` text. Rooms are pieces of on-chip
memory; tiles are typed views of rooms, and several may see one room. Selection makes a program without addresses and flags;
later passes give each room its copies and its address, and put in the flags and barriers.

>>> Tile(0, "x", 0, DType.F32, 16, 128, Form.ROWS, Const(16), Const(128)).size_bytes
8192
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from enum import Enum
from typing import TypeAlias, TypeVar

from pto_wsp.expr.kernel import Param, ScalarParamDecl
from pto_wsp.ops.entry import Unit
from pto_wsp.source import UNKNOWN, Span
from pto_wsp.types.dtype import DType
from pto_wsp.types.scalar import Const, Scalar, Var
from pto_wsp.values import dataclass

ALIGN_BYTES = 32


class Space(Enum):
    """An on-chip memory of a core, by the name that the arch model gives it."""

    UB = "UB"        # vector core
    L1 = "L1"        # cube core
    L0A = "L0A"
    L0B = "L0B"
    L0C = "L0C"


class Pipe(Enum):
    """A queue of a core: in order within itself, unordered with the others but for flags."""

    S = "PIPE_S"         # scalar unit
    V = "PIPE_V"         # vector unit
    M = "PIPE_M"         # matrix unit
    MTE1 = "PIPE_MTE1"   # L1 to L0A, L0B
    MTE2 = "PIPE_MTE2"   # global memory to UB, L1
    MTE3 = "PIPE_MTE3"   # UB to global memory
    FIX = "PIPE_FIX"     # L0C to global memory


class Form(Enum):
    """How a tile's elements lie in its room."""

    ROWS = "rows"        # UB, row-major
    COLUMN = "column"    # UB, [R, 1] column-major: one number a row, as row reductions give it and row broadcasts take it
    NZ = "nz"            # L1, filled from row-major global memory
    ZN = "zn"            # L1, filled from global memory read transposed (layout DN)
    LEFT = "left"        # L0A
    RIGHT = "right"      # L0B
    ACC = "acc"          # L0C


@dataclass(frozen=True, slots=True)
class Room:
    """A piece of on-chip memory. `copies`: how many lie one after the other, for loops that use them in turn."""

    id: int
    name: str
    space: Space
    size_bytes: int              # of one copy, a multiple of 32
    copies: int = 1
    address: int | None = None   # of the first copy; a pass gives it


@dataclass(frozen=True, slots=True)
class Tile:
    """A typed view of a room: storage of rows x cols, of which a part is valid. `offset`: in bytes from the start of a copy."""

    id: int
    name: str
    room: int
    dtype: DType
    rows: int
    cols: int
    form: Form
    valid_rows: Scalar
    valid_cols: Scalar
    offset: int = 0

    @property
    def size_bytes(self) -> int:
        """Bytes of its storage."""
        return self.rows * self.cols * self.dtype.nbytes


class Access(Enum):
    """What an instruction does with a tile."""

    READ = "read"
    WRITE = "write"
    BOTH = "both"        # scratch, and accumulators

    @property
    def reads(self) -> bool:
        """True for READ and BOTH."""
        return self is not Access.WRITE

    @property
    def writes(self) -> bool:
        """True for WRITE and BOTH."""
        return self is not Access.READ


@dataclass(frozen=True, slots=True)
class TileArg:
    """A tile as an operand, by its id."""

    tile: int
    access: Access


@dataclass(frozen=True, slots=True)
class ScalarArg:
    """A number as an operand, converted to `dtype`."""

    value: Scalar
    dtype: DType


@dataclass(frozen=True, slots=True)
class Word:
    """An enumerator as an operand: `CmpMode::LT`."""

    text: str


Arg: TypeAlias = TileArg | ScalarArg | Word


@dataclass(frozen=True, slots=True)
class Declare:
    """Make a tile usable from here to the end of the block, at copy `turn` modulo the room's copies, `shift` bytes further."""

    tile: int
    turn: Scalar = Const(0)
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

    `template`: its template arguments, in which {n} stands for the type of operand n.
    """

    name: str
    args: tuple[Arg, ...]
    template: tuple[str, ...] = ()
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Let:
    """A scalar by name, from here to the end of the block."""

    var: Var
    value: Scalar
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Peek:
    """A scalar read by the scalar unit: element `index` (counted in the tile's storage, row by row) of a tile in UB."""

    var: Var
    tile: int
    index: Scalar
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class GmPeek:
    """A scalar read by the scalar unit from global memory: param[row, col]."""

    var: Var
    param: str
    row: Scalar
    col: Scalar
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SetFlag:
    """`after` tells `before` that what it was given so far is done."""

    after: Pipe
    before: Pipe
    event: Scalar
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class WaitFlag:
    """`before` waits for the matching `SetFlag`."""

    after: Pipe
    before: Pipe
    event: Scalar
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Barrier:
    """The pipe finishes what it was given before it takes more."""

    pipe: Pipe
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Loop:
    """Run `body` for var in range(start, stop, step); step > 0."""

    var: Var
    start: Scalar
    stop: Scalar
    step: Scalar
    body: tuple[Step, ...]
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Branch:
    """Run `then` where `condition` holds, else `other`."""

    condition: Scalar
    then: tuple[Step, ...]
    other: tuple[Step, ...] = ()
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Leave:
    """End the kernel where `condition` holds: nothing of it is valid, and no flag is pending."""

    condition: Scalar
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


Step: TypeAlias = (Declare | GmLoad | GmStore | Instr | Let | Peek | GmPeek | SetFlag | WaitFlag | Barrier | Loop | Branch | Leave)


@dataclass(frozen=True, slots=True)
class ParamAccess:
    """How a kernel finds rows and columns of a memory parameter in the descriptor that it is given.

    `row_dim`, `col_dim`: dimensions of the descriptor (None: there is only one row, or column). `row_step`, `col_step`: every how many
    elements of that dimension count. `rows`, `cols`: extents that are the same for every task (None: read from the descriptor, where
    the extent is ceil(shape / step)). `unit_cols`, `unit_rows`: neighbours along a row, or a column, are neighbours in memory.
    `row_group`, `col_group`: parameters with the same number have equally many rows, or columns, in every task. `memory`: those with the
    same number may lie on the same elements, and one of them is written.
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
class Reach:
    """A piece of a region that a program moves: proved to lie inside in every run, else tested when it runs."""

    what: str
    proved: bool
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


_Numbered = TypeVar("_Numbered", Room, Tile)


def _with_id(found: tuple[_Numbered, ...], number: int) -> _Numbered:
    """Return the entry of that id: where its number says, or little before it where some have gone since they were numbered."""
    for at in range(min(number, len(found) - 1), -1, -1):
        if found[at].id == number:
            return found[at]
    return next(one for one in found if one.id == number)


@dataclass(frozen=True, slots=True)
class TileProgram:
    """A kernel for one core. Scalars of its steps are over its loop variables, ParamScalar, and ParamExtent of its parameters."""

    name: str
    core: Unit
    params: tuple[Param, ...]
    access: tuple[ParamAccess, ...]      # of its memory parameters, in order
    rooms: tuple[Room, ...]
    tiles: tuple[Tile, ...]
    body: tuple[Step, ...]
    reaches: tuple[Reach, ...] = ()
    span: Span = field(default=UNKNOWN, compare=False, repr=False)

    def room(self, room_id: int) -> Room:
        """Return the room of that id."""
        return _with_id(self.rooms, room_id)

    def tile(self, tile_id: int) -> Tile:
        """Return the tile of that id."""
        return _with_id(self.tiles, tile_id)

    def memory(self, param: str) -> int | None:
        """Return the number that a memory parameter has in common with those that it may meet."""
        params = (one for one in self.params if not isinstance(one, ScalarParamDecl))
        return next((access.memory for one, access in zip(params, self.access, strict=False) if one.name == param), None)

    def space(self, tile_id: int) -> Space:
        """Return the memory that a tile lies in."""
        return self.room(self.tile(tile_id).room).space


def steps(body: tuple[Step, ...]) -> Iterator[Step]:
    """Yield all steps, each before those inside it."""
    for step in body:
        yield step
        match step:
            case Loop():
                yield from steps(step.body)
            case Branch():
                yield from steps(step.then)
                yield from steps(step.other)
            case _:
                pass


def uses_of(step: Step) -> tuple[TileArg, ...]:
    """Return the tiles that a step itself reads and writes, not those of steps inside it."""
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
    """Return the pipe that a step runs on, which follows from the memories that it moves between; None for steps that are no work."""
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
