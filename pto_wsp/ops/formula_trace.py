"""Trace a function of `pto` outside a kernel: the ops that it consists of, their types, and on NumPy arrays what it gives.

>>> [step.op for step in trace_formula(softmax, (TileType(4, 8, DType.F32),), ()).steps]
['rowmax', 'sub', 'exp', 'rowsum', 'div']
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from inspect import Signature
from typing import Any, NoReturn

import numpy as np

from pto_wsp.errors import OperandKindError
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Number
from pto_wsp.ir.symbolic import Symbolic
from pto_wsp.ir.tile import TileType
from pto_wsp.ops.entry import Attrs, Operand, activate, is_tile
from pto_wsp.ops.rounding import Array, convert
from pto_wsp.ops.spec import evaluate
from pto_wsp.ops.table import find
from pto_wsp.source import here
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class TracedTile:
    """A tile of the trace. `number` counts the tiles of a trace; `array`: the elements, None where only types are traced."""

    number: int
    type: TileType
    array: Array | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, cols)."""
        return self.type.shape

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return self.type.dtype

    def __pto_tile__(self) -> None:
        """Mark the class as a tile."""


@dataclass(frozen=True, slots=True)
class TracedStep:
    """An op of the trace: its operands, of which numbers have dtype and extents of 1 alone, and its result."""

    op: str
    operands: tuple[TracedTile | None, ...]
    types: tuple[TileType, ...]
    attrs: Attrs
    result: TracedTile


@dataclass(slots=True)
class FormulaTrace:
    """The steps of one call, and its result; an `Emitter` while the call runs."""

    name: str
    inputs: tuple[TracedTile | None, ...] = ()
    steps: list[TracedStep] = field(default_factory=list)
    result: TracedTile | None = None

    def emit(self, op: str, operands: tuple[object, ...], attrs: Attrs) -> Operand:
        """Append an op on tiles and numbers, and return its result."""
        entry = find(op)
        tiles = tuple(value if isinstance(value, TracedTile) else None for value in operands)
        known = [None if tile is None else tile.type for tile in tiles]
        types: list[TileType] = []
        for position, tile in enumerate(tiles):
            weak = None if tile is not None else entry.weak_dtype(position, known, attrs)
            if tile is None and weak is None:
                self._refuse(f"`{op}` of a number")
            types.append(tile.type if tile is not None else TileType(1, 1, weak or DType.F32))
        result = entry.infer(types, attrs)
        array = None
        if self._has_arrays:
            arrays = [tile.array if tile is not None and tile.array is not None else as_array(n, t.dtype, (1, 1))     # type: ignore[arg-type]
                      for tile, n, t in zip(tiles, operands, types, strict=True)]
            array = evaluate(entry, arrays, result, attrs)
        made = TracedTile(self._count(), result, array)
        self.steps.append(TracedStep(op, tiles, tuple(types), attrs, made))
        return made

    def read(self, tile: Operand) -> Operand:
        """Return the tile: there are no buffers."""
        return tile

    def spread(self, name: str, function: Callable[..., Any], expected: Signature, args: tuple[object, ...],
               kwargs: Mapping[str, object]) -> Any:
        """Refuse stacks of tiles."""
        self._refuse("tiles of rank 3")

    def stack(self, tiles: object, axis: object) -> Any:
        """Refuse stacks of tiles."""
        self._refuse("tiles of rank 3")

    def read_part(self, tile: Operand, item: object) -> Operand:
        """Refuse parts that only the run knows."""
        self._refuse("a part of a tile")

    def element(self, tile: Operand, row: object, col: object) -> Symbolic:
        """Refuse elements, which only the run knows."""
        self._refuse("an element of a tile")

    @property
    def _has_arrays(self) -> bool:
        return all(tile is None or tile.array is not None for tile in self.inputs)

    def _count(self) -> int:
        return len(self.inputs) + len(self.steps)

    def _refuse(self, what: str) -> NoReturn:
        raise OperandKindError(f"`{self.name}` takes no such operands on whole arrays", here(), found=what)


def trace_formula(call: Callable[..., object], operands: Sequence[TileType | Array | Number], attrs: Attrs) -> FormulaTrace:
    """Return the trace of a function on tiles of these types or arrays of rank 2, and numbers; attributes are its other arguments.

    Raises: T213 for a function that gives no tile; what the function itself raises.
    """
    name = getattr(call, "__name__", "function")
    trace = FormulaTrace(name)
    inputs: list[TracedTile | None] = []
    for number, operand in enumerate(operands):
        match operand:
            case TileType():
                inputs.append(TracedTile(number, operand))
            case np.ndarray():
                inputs.append(TracedTile(number, TileType(operand.shape[0], operand.shape[1], DType.from_numpy(operand.dtype)), operand))
            case _:
                inputs.append(None)
    trace.inputs = tuple(inputs)
    given = [tile if tile is not None else operand for tile, operand in zip(inputs, operands, strict=True)]
    with activate(trace):
        result = call(*given, **dict(attrs))
    if not is_tile(result) or not isinstance(result, TracedTile):
        raise OperandKindError(f"`{name}` is no function of tiles with one result", here(), found=type(result).__name__)
    trace.result = result
    return trace


def as_array(number: Number, dtype: DType, shape: tuple[int, ...] = ()) -> Array:
    """Return an array of one number, converted to a dtype as kernels convert numbers: rounded or wrapped."""
    value = np.asarray(number)
    with np.errstate(all="ignore"):
        return np.full(shape, convert(value, dtype) if dtype.is_half or dtype.is_storage else value.astype(dtype.np))
