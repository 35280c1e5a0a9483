"""Define the ops that need whole tiles in memory instead of single rows: movements, and calls of one C function.

A movement is a list of strided blocks. One emitter therefore implements all of them, and the cost of a block copy is measured once.

>>> transpose.copies((Tile[2, 3, DType.F32],), Tile[3, 2, DType.F32], ())
(Copy(operand=0, rows=3, cols=2, source=(0, 0), down=(0, 1), across=(1, 0), target=0, steps=(2, 1)),)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from inspect import Signature
from typing import TypeAlias

from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import TileType
from pto_wsp.ops import typing
from pto_wsp.ops.entry import Arguments, Attrs, OpEntry
from pto_wsp.ops.rounding import ALL, INTEGERS, Array
from pto_wsp.ops.traits import Fill
from pto_wsp.values import dataclass

Split: TypeAlias = Callable[[Mapping[str, object]], tuple[tuple[object, ...], Attrs]]
Join: TypeAlias = Callable[[Sequence[TileType], tuple[object, ...], Attrs], Arguments]


@dataclass(frozen=True, slots=True)
class Copy:
    """A block of `rows` x `cols` elements to copy from an operand to the result.

    Element (r, c) moves from row and column `source` + r * `down` + c * `across` of operand `operand` to element `target` + r * steps[0]
    + c * steps[1] of the row-major result. A number as operand has only row 0 and column 0, so it fills the block.
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
class WholeTiles(OpEntry):
    """An op on tiles in memory.

    `parameters` are those of the call, and `parts` splits it into tiles and attributes. `join` returns the arguments for such parts, where
    attribute names differ from parameter names. `ref` is the NumPy meaning.
    """

    parameters: Signature
    parts: Split
    ref: Callable[[Sequence[Array], Attrs], Array]
    join: Join | None = None

    @property
    def signature(self) -> Signature:
        """The parameters of the call."""
        return self.parameters

    def split(self, bound: Mapping[str, object]) -> tuple[tuple[object, ...], Attrs]:
        """Return the tiles and the attributes of a call."""
        return self.parts(bound)

    def call_of(self, types: Sequence[TileType], operands: tuple[object, ...], attrs: Attrs) -> Arguments:
        """Return the arguments of a call with these parts."""
        return (operands, dict(attrs)) if self.join is None else self.join(types, operands, attrs)

    def evaluate(self, operands: Sequence[Array], result: TileType, attrs: Attrs) -> Array:
        """Return the NumPy result."""
        return self.ref(operands, attrs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement(WholeTiles):
    """Move elements of the operands. There is no arithmetic, so every dtype is moved by its width.

    `shape` returns the result's shape after the dtype checks. `copies` returns blocks that write every element of the result; C is
    generated from them.
    `transposes`: the result is the operand with rows and columns exchanged. `keeps_order`: elements keep their row-major positions.
    """

    shape: Callable[[Sequence[TileType], Attrs], tuple[int, int]]
    copies: Callable[[Sequence[TileType], TileType, Attrs], tuple[Copy, ...]]
    dtypes: tuple[DType, ...] = ALL
    fills: bool = False     # whether operands after the first may be numbers
    transposes: bool = False
    keeps_order: bool = False
    keeps_range: tuple[DType, ...] = INTEGERS

    def weak_dtype(self, position: int, types: Sequence[TileType | None], attrs: Attrs) -> DType | None:
        """Return the dtype of the first tile for operands that fill; None for operands that are moved."""
        return types[0].dtype if position and types[0] is not None and self.fills else None

    def infer(self, types: Sequence[TileType], attrs: Attrs) -> TileType:
        """Return the type of the result."""
        typing.check_same_dtype(self.name, types)
        typing.check_dtype(self.name, types[0], self.dtypes, self.hint)
        rows, cols = self.shape(types, attrs)
        return TileType(rows, cols, types[0].dtype)


class CallSlot(Enum):
    """An argument of a C function that is not an operand: the pointer to the result, work memory, or the address for a fault."""

    RESULT = "result"
    WORK = "work"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Pointer:
    """A pointer to the first element of an operand."""

    operand: int


@dataclass(frozen=True, slots=True)
class RowStep:
    """The number of elements between the starts of two rows of an operand."""

    operand: int


CArgument: TypeAlias = int | CallSlot | Pointer | RowStep


@dataclass(frozen=True, slots=True)
class CCall:
    """The C call that computes a result, which is row-major without gaps.

    `work_bytes` is the size of `Slot.WORK`; `copied` is an operand that initialises the result. A function with a fault argument returns 1
    if it fails.
    """

    header: str
    function: str
    arguments: tuple[CArgument, ...]
    work_bytes: int = 0
    copied: int | None = None


@dataclass(frozen=True, slots=True)
class IndexFault:
    """An index out of bounds: its row and column in the tile of indices, its value, and the exclusive upper bound of valid indices."""

    row: int
    col: int
    value: int
    extent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TileFunction(WholeTiles):
    """A result that one call of a C function computes from whole tiles.

    `result` checks and returns the result's type, `call` returns the C call. `fault` returns the first index that is out of bounds, for an
    op with indices. `gives_columns`: each element is a column of the first operand. `sorts`: these columns are in the order of that row's
    elements. `tail`: what a short row holds behind its end.
    """

    result: Callable[[Sequence[TileType], Attrs], TileType]
    call: Callable[[Sequence[TileType], TileType, Attrs], CCall]
    fault: Callable[[Sequence[Array], Attrs], IndexFault | None] | None = None
    gives_columns: bool = False
    sorts: bool = False
    tail: Callable[[Attrs], Fill] = lambda attrs: Fill.REFUSED

    def weak_dtype(self, position: int, types: Sequence[TileType | None], attrs: Attrs) -> DType | None:
        """Return None: an operand cannot be a number."""
        return None

    def infer(self, types: Sequence[TileType], attrs: Attrs) -> TileType:
        """Return the type of the result."""
        typing.check_dtype(self.name, types[0], self.dtypes, self.hint)
        return self.result(types, attrs)

    def may_fail(self, attrs: Attrs) -> bool:
        """Tell whether a task may fail here; attribute `inside` marks indices from the op language, which are always in bounds."""
        return self.fault is not None and ("inside", True) not in attrs
