"""Kinds of ops that need their operands as whole tiles in memory, not row by row: movements and calls of one C function.

A movement is a list of strided blocks, so one emitter serves them all, and what a block copy costs is measured once.

>>> transpose.copies((Tile[2, 3, DType.F32],), Tile[3, 2, DType.F32], ())
(Copy(operand=0, rows=3, cols=2, source=(0, 0), down=(0, 1), across=(1, 0), target=0, steps=(2, 1)),)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from inspect import Signature
from typing import TypeAlias

from pto_wsp.ops import rules
from pto_wsp.ops.dtypes import ALL, INTEGERS, Array
from pto_wsp.ops.entry import Arguments, OpEntry
from pto_wsp.ops.tracing import Attrs
from pto_wsp.types.dtype import DType
from pto_wsp.types.tile import TileType
from pto_wsp.values import dataclass

Split: TypeAlias = Callable[[Mapping[str, object]], tuple[tuple[object, ...], Attrs]]
Join: TypeAlias = Callable[[Sequence[TileType], tuple[object, ...], Attrs], Arguments]


@dataclass(frozen=True, slots=True)
class Copy:
    """A block of `rows` x `cols` elements, its (r, c) from a row and column of an operand to an element of the result.

    From row and column `source` + r * `down` + c * `across` of operand `operand`, to element `target` + r * steps[0] +
    c * steps[1] of the result, which is row-major. A number as operand has row 0 and column 0 only: it fills the block.
    """

    operand: int
    rows: int
    cols: int
    source: tuple[int, int]
    down: tuple[int, int]
    across: tuple[int, int]
    target: int
    steps: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement(OpEntry):
    """Elements of the operands in other places; no arithmetic, so any dtype by its width.

    `parameters`: of the call; `parts`: its tiles and attributes; `join`: arguments that have such parts, where the attributes are not
    called as the parameters are; `shape`: of the result, after the dtypes have been checked;
    `ref`: the NumPy meaning; `copies`: blocks that write every element of the result, which is what C is generated from.
    `transposes`: the result is the operand with rows and columns exchanged. `keeps_order`: elements keep their places, counted row by row.
    """

    parameters: Signature
    parts: Split
    shape: Callable[[Sequence[TileType], Attrs], tuple[int, int]]
    ref: Callable[[Sequence[Array], Attrs], Array]
    copies: Callable[[Sequence[TileType], TileType, Attrs], tuple[Copy, ...]]
    dtypes: tuple[DType, ...] = ALL
    fills: bool = False     # whether operands after the first may be numbers
    join: Join | None = None
    transposes: bool = False
    keeps_order: bool = False
    keeps_range: tuple[DType, ...] = INTEGERS

    @property
    def signature(self) -> Signature:
        """The parameters of the call."""
        return self.parameters

    def split(self, bound: Mapping[str, object]) -> tuple[tuple[object, ...], Attrs]:
        """Return the tiles and the attributes of a call."""
        return self.parts(bound)

    def call_of(self, types: Sequence[TileType], operands: tuple[object, ...], attrs: Attrs) -> Arguments:
        """Return arguments of a call that has these parts."""
        return (operands, dict(attrs)) if self.join is None else self.join(types, operands, attrs)

    def weak_dtype(self, position: int, types: Sequence[TileType | None], attrs: Attrs) -> DType | None:
        """Return the dtype of the first tile for what fills, None for what is moved."""
        return types[0].dtype if position and types[0] is not None and self.fills else None

    def infer(self, types: Sequence[TileType], attrs: Attrs) -> TileType:
        """Return the type of the result."""
        rules.check_same_dtype(self.name, types)
        rules.check_dtype(self.name, types[0], self.dtypes, self.hint)
        rows, cols = self.shape(types, attrs)
        return TileType(rows, cols, types[0].dtype)

    def evaluate(self, operands: Sequence[Array], result: TileType, attrs: Attrs) -> Array:
        """Return what NumPy makes of the operands."""
        return self.ref(operands, attrs)


class Slot(Enum):
    """An argument of a C function that is no operand: the result's pointer, memory to work in, where a fault is told."""

    RESULT = "result"
    WORK = "work"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Pointer:
    """The first element of an operand."""

    operand: int


@dataclass(frozen=True, slots=True)
class RowStep:
    """How many elements lie between two rows of an operand."""

    operand: int


CArgument: TypeAlias = int | Slot | Pointer | RowStep


@dataclass(frozen=True, slots=True)
class CCall:
    """The call that makes a result, which is row-major without gaps. `work_bytes`: of `Slot.WORK`; `copied`: an operand that the
    result starts as. A function that is told where to put a fault returns 1 when it fails."""

    header: str
    function: str
    arguments: tuple[CArgument, ...]
    work_bytes: int = 0
    copied: int | None = None


@dataclass(frozen=True, slots=True)
class IndexFault:
    """An index that lies outside: where it stands in its tile, what it is, and how many it had to be less than."""

    row: int
    col: int
    value: int
    extent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TileFunction(OpEntry):
    """A result that one call of a C function makes from whole tiles.

    `parameters`, `parts` and `join` as in `Movement`; `result`: its type, checked; `ref`: the NumPy meaning; `call`: the C; `fault`: the
    first index that lies outside, for an op that takes any. `gives_columns`: each element is a column of the first operand; `sorts`: those
    of each row come in the order of the elements there.
    """

    parameters: Signature
    parts: Split
    result: Callable[[Sequence[TileType], Attrs], TileType]
    ref: Callable[[Sequence[Array], Attrs], Array]
    call: Callable[[Sequence[TileType], TileType, Attrs], CCall]
    fault: Callable[[Sequence[Array], Attrs], IndexFault | None] | None = None
    join: Join | None = None
    gives_columns: bool = False
    sorts: bool = False

    @property
    def signature(self) -> Signature:
        """The parameters of the call."""
        return self.parameters

    def split(self, bound: Mapping[str, object]) -> tuple[tuple[object, ...], Attrs]:
        """Return the tiles and the attributes of a call."""
        return self.parts(bound)

    def call_of(self, types: Sequence[TileType], operands: tuple[object, ...], attrs: Attrs) -> Arguments:
        """Return arguments of a call that has these parts."""
        return (operands, dict(attrs)) if self.join is None else self.join(types, operands, attrs)

    def weak_dtype(self, position: int, types: Sequence[TileType | None], attrs: Attrs) -> DType | None:
        """Return None: no operand is a number."""
        return None

    def infer(self, types: Sequence[TileType], attrs: Attrs) -> TileType:
        """Return the type of the result."""
        rules.check_dtype(self.name, types[0], self.dtypes, self.hint)
        return self.result(types, attrs)

    def evaluate(self, operands: Sequence[Array], result: TileType, attrs: Attrs) -> Array:
        """Return what NumPy makes of the operands."""
        return self.ref(operands, attrs)

    def may_fail(self, attrs: Attrs) -> bool:
        """Tell whether a task may end here: indices that come from the op language itself are known to lie `inside`."""
        return self.fault is not None and ("inside", True) not in attrs
