"""What an entry of the op table says: one frozen value of a few kinds. The entry is also the function that traces the op.

Tracing, the NumPy meaning, C, the NPU and costs all derive from these fields.

>>> str(Elementwise(name="exp", doc="e to the x.", params=("x",), ref=np.exp, c=Function("pto_exp_{t}")).signature)
'(x)'
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from inspect import Parameter, Signature
from typing import TypeAlias

import numpy as np

from pto_wsp.ops import rules
from pto_wsp.ops.calls import bind
from pto_wsp.ops.dtypes import MATMUL_RESULT, NUMBERS, Array
from pto_wsp.ops.tracing import Attrs, Operand, active
from pto_wsp.types.dtype import DType
from pto_wsp.types.tile import TileType
from pto_wsp.values import dataclass


class Unit(Enum):
    """The execution unit of a core that runs an op."""

    VECTOR = "vector"
    CUBE = "cube"


class Work(Enum):
    """What an op's cost grows with."""

    LARGEST_TILE = "rows * cols of its largest operand or result"
    MKN = "m * k * n"


class Identity(Enum):
    """What a reduction starts from: a value that changes nothing."""

    ZERO = "0"
    LOWEST = "-inf, or the smallest integer"
    HIGHEST = "+inf, or the largest integer"


class Finish(Enum):
    """What a reduction does at its end."""

    NONE = "nothing"
    DIVIDE_BY_COUNT = "divide by the number of elements reduced, in the dtype"


@dataclass(frozen=True, slots=True)
class Operator:
    """A C operator: prefix for one operand (empty: the operand itself), infix for two."""

    text: str


@dataclass(frozen=True, slots=True)
class Function:
    """A C function of `pto_math.h`: {t} stands for the dtype of its operands, {from} for a cast's source."""

    template: str

    def name(self, dtype: DType, source: DType | None = None) -> str:
        """Return the function's name for operands of `dtype`."""
        return self.template.replace("{t}", str(dtype)).replace("{from}", str(source or dtype))


Spelling: TypeAlias = Operator | Function


@dataclass(frozen=True, slots=True, kw_only=True)
class OpEntry(ABC):
    """What every kind of entry has. `dtypes`: what its operands may be; `hint`: what to write for a dtype it does not take."""

    name: str
    doc: str
    npu: str | None = None
    unit: Unit = Unit.VECTOR
    work: Work = Work.LARGEST_TILE
    dtypes: tuple[DType, ...] = NUMBERS
    aliases: tuple[str, ...] = ()
    hint: str = ""

    @property
    @abstractmethod
    def signature(self) -> Signature:
        """The parameters of the call."""

    def __call__(self, *args: object, **kwargs: object) -> Operand:
        """Emit the op into the kernel being traced and return its result.

        Raises: K105 outside a kernel; T101, T202, T203, T204, T205 for what does not fit.
        """
        emitter = active(self.name)
        operands, attrs = self.split(bind(f"pto.{self.name}", self.signature, args, kwargs))
        return emitter.emit(self.name, operands, attrs)

    def split(self, bound: Mapping[str, object]) -> tuple[tuple[object, ...], Attrs]:
        """Return the tile operands and the attributes of a call."""
        return tuple(bound.values()), ()

    @abstractmethod
    def infer(self, types: Sequence[TileType], attrs: Attrs) -> TileType:
        """Return the type of the result.

        Raises: T202, T203, T204 at the user's line.
        """

    @abstractmethod
    def evaluate(self, operands: Sequence[Array], result: TileType, attrs: Attrs) -> Array:
        """Return the result for NumPy operands; call the function `evaluate` instead, which fixes dtype and warnings."""

    def weak_dtype(self, position: int, types: Sequence[TileType | None], attrs: Attrs) -> DType | None:
        """Return the dtype that a number takes at `position`, None where it cannot stand; `types` has None for numbers."""
        return next((t.dtype for t in types if t is not None), None)


def _positional(names: Sequence[str]) -> Signature:
    return Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names])


@dataclass(frozen=True, slots=True, kw_only=True)
class Elementwise(OpEntry):
    """One element of the result from one of each operand, which broadcast. `mask_first`: operand 0 is BOOL, the others agree.

    `ref`: NumPy arrays that broadcast -> array. C: `c` of the operands' elements, {t} the dtype of the last operand.
    """

    params: tuple[str, ...]
    ref: Callable[..., Array]
    c: Spelling
    to_mask: bool = False
    mask_first: bool = False

    @property
    def signature(self) -> Signature:
        """One parameter an operand."""
        return _positional(self.params)

    def weak_dtype(self, position: int, types: Sequence[TileType | None], attrs: Attrs) -> DType | None:
        """Return BOOL for a leading mask, else the dtype of the first tile that shares it."""
        if self.mask_first:
            return DType.BOOL if position == 0 else next((t.dtype for t in types[1:] if t is not None), None)
        return next((t.dtype for t in types if t is not None), None)

    def infer(self, types: Sequence[TileType], attrs: Attrs) -> TileType:
        """Return the type of the result: the operands' shape broadcast."""
        if self.mask_first:
            rules.check_dtype(self.name, types[0], (DType.BOOL,), "give a comparison, e.g. x > 0")
        shared = types[1:] if self.mask_first else types
        rules.check_same_dtype(self.name, shared)
        rules.check_dtype(self.name, shared[0], self.dtypes, self.hint)
        rows, cols = rules.broadcast(self.name, types)
        return TileType(rows, cols, DType.BOOL if self.to_mask else shared[0].dtype)

    def evaluate(self, operands: Sequence[Array], result: TileType, attrs: Attrs) -> Array:
        """Return what NumPy makes of the operands."""
        return self.ref(*operands)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowReduce(OpEntry):
    """[R, C] -> [R, 1] in the tile's dtype: `combine` folds a row's elements from `identity`, then `finish`. Integers wrap."""

    ref: Callable[[Array, int], Array]
    identity: Identity
    combine: Spelling
    finish: Finish = Finish.NONE

    @property
    def signature(self) -> Signature:
        """The tile."""
        return _positional(("x",))

    def infer(self, types: Sequence[TileType], attrs: Attrs) -> TileType:
        """Return [R, 1]."""
        rules.check_dtype(self.name, types[0], self.dtypes, self.hint)
        return TileType(types[0].rows, 1, types[0].dtype)

    def evaluate(self, operands: Sequence[Array], result: TileType, attrs: Attrs) -> Array:
        """Return what NumPy makes of the rows."""
        return self.ref(operands[0], 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColReduce(OpEntry):
    """[R, C] -> [1, C] in the tile's dtype: `combine` folds a column's elements from `identity`, then `finish`."""

    ref: Callable[[Array, int], Array]
    identity: Identity
    combine: Spelling
    finish: Finish = Finish.NONE

    @property
    def signature(self) -> Signature:
        """The tile."""
        return _positional(("x",))

    def infer(self, types: Sequence[TileType], attrs: Attrs) -> TileType:
        """Return [1, C]."""
        rules.check_dtype(self.name, types[0], self.dtypes, self.hint)
        return TileType(1, types[0].cols, types[0].dtype)

    def evaluate(self, operands: Sequence[Array], result: TileType, attrs: Attrs) -> Array:
        """Return what NumPy makes of the columns."""
        return self.ref(operands[0], 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Matmul(OpEntry):
    """[M, K] @ [K, N] -> [M, N], plus an optional third operand [M, N]; i8 accumulates in i32, others in their own dtype."""

    ref: Callable[..., Array]

    @property
    def signature(self) -> Signature:
        """a, b, acc=None."""
        kind = Parameter.POSITIONAL_OR_KEYWORD
        return Signature([Parameter("a", kind), Parameter("b", kind), Parameter("acc", kind, default=None)])

    def split(self, bound: Mapping[str, object]) -> tuple[tuple[object, ...], Attrs]:
        """Return two operands, or three with acc."""
        return tuple(value for name, value in bound.items() if name != "acc" or value is not None), ()

    def weak_dtype(self, position: int, types: Sequence[TileType | None], attrs: Attrs) -> DType | None:
        """Return None: a number is no matrix."""
        return None

    def infer(self, types: Sequence[TileType], attrs: Attrs) -> TileType:
        """Return [M, N] in the dtype of the accumulator."""
        lhs, rhs = types[0], types[1]
        rules.check_same_dtype(self.name, (lhs, rhs))
        rules.check_dtype(self.name, lhs, self.dtypes, self.hint)
        rules.check_inner(self.name, lhs, rhs)
        result = TileType(lhs.rows, rhs.cols, MATMUL_RESULT[lhs.dtype])
        if len(types) == 3:
            rules.check_accumulator(self.name, types[2], result)
        return result

    def evaluate(self, operands: Sequence[Array], result: TileType, attrs: Attrs) -> Array:
        """Return acc + a @ b as NumPy computes it."""
        return self.ref(*operands)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transpose(OpEntry):
    """[R, C] -> [C, R]."""

    @property
    def signature(self) -> Signature:
        """The tile."""
        return _positional(("x",))

    def infer(self, types: Sequence[TileType], attrs: Attrs) -> TileType:
        """Return [C, R]."""
        rules.check_dtype(self.name, types[0], self.dtypes, self.hint)
        return TileType(types[0].cols, types[0].rows, types[0].dtype)

    def evaluate(self, operands: Sequence[Array], result: TileType, attrs: Attrs) -> Array:
        """Return the transposed array."""
        return operands[0].T


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast(OpEntry):
    """Every element in the dtype of the attribute `dtype`. C: `c` with {from} and {t}."""

    ref: Callable[[Array, DType], Array]
    c: Function

    @property
    def signature(self) -> Signature:
        """x, dtype."""
        return _positional(("x", "dtype"))

    def split(self, bound: Mapping[str, object]) -> tuple[tuple[object, ...], Attrs]:
        """Return the tile, and the dtype as an attribute."""
        return (bound["x"],), (("dtype", rules.as_dtype(self.name, bound["dtype"], self.dtypes)),)

    def weak_dtype(self, position: int, types: Sequence[TileType | None], attrs: Attrs) -> DType | None:
        """Return None: a number has no dtype to convert from."""
        return None

    def infer(self, types: Sequence[TileType], attrs: Attrs) -> TileType:
        """Return the shape in the new dtype."""
        rules.check_dtype(self.name, types[0], self.dtypes, self.hint)
        return types[0].with_dtype(dtype_attr(attrs))

    def evaluate(self, operands: Sequence[Array], result: TileType, attrs: Attrs) -> Array:
        """Return the converted array."""
        return self.ref(operands[0], result.dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expand(OpEntry):
    """One operand of shape [R, C], [R, 1], [1, C] or [1, 1] (or a number) to the shape of the attribute `shape`."""

    @property
    def signature(self) -> Signature:
        """x, shape."""
        return _positional(("x", "shape"))

    def split(self, bound: Mapping[str, object]) -> tuple[tuple[object, ...], Attrs]:
        """Return the tile, and the shape as an attribute."""
        return (bound["x"],), (("shape", rules.as_shape(self.name, bound["shape"])),)

    def weak_dtype(self, position: int, types: Sequence[TileType | None], attrs: Attrs) -> DType | None:
        """Return the attribute `dtype`, which `full` gives."""
        return next((value for name, value in attrs if name == "dtype" and isinstance(value, DType)), None)

    def infer(self, types: Sequence[TileType], attrs: Attrs) -> TileType:
        """Return the shape asked for."""
        rules.check_dtype(self.name, types[0], self.dtypes, self.hint)
        rows, cols = shape_attr(attrs)
        rules.check_expands(self.name, types[0], (rows, cols))
        return TileType(rows, cols, types[0].dtype)

    def evaluate(self, operands: Sequence[Array], result: TileType, attrs: Attrs) -> Array:
        """Return the operand broadcast."""
        return np.broadcast_to(operands[0], result.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Iota(OpEntry):
    """No operand: each element is its row (attribute `axis` 0) or its column (1)."""

    @property
    def signature(self) -> Signature:
        """shape, dtype=I32, axis=1."""
        kind = Parameter.POSITIONAL_OR_KEYWORD
        return Signature([Parameter("shape", kind), Parameter("dtype", kind, default=DType.I32),
                          Parameter("axis", kind, default=1)])

    def split(self, bound: Mapping[str, object]) -> tuple[tuple[object, ...], Attrs]:
        """Return no operand; shape, dtype and axis are attributes."""
        return (), (("shape", rules.as_shape(self.name, bound["shape"])),
                    ("dtype", rules.as_dtype(self.name, bound["dtype"], self.dtypes)),
                    ("axis", rules.as_axis(self.name, bound["axis"])))

    def infer(self, types: Sequence[TileType], attrs: Attrs) -> TileType:
        """Return the shape and dtype asked for."""
        rows, cols = shape_attr(attrs)
        return TileType(rows, cols, dtype_attr(attrs))

    def evaluate(self, operands: Sequence[Array], result: TileType, attrs: Attrs) -> Array:
        """Return the row or column numbers; integers wrap."""
        axis = next(value for name, value in attrs if name == "axis")
        numbers: Array = np.indices(result.shape)[1 if axis == 1 else 0]
        return numbers.astype(result.dtype.np)


Op: TypeAlias = Elementwise | RowReduce | ColReduce | Matmul | Transpose | Cast | Expand | Iota


def dtype_attr(attrs: Attrs) -> DType:
    """Return the attribute `dtype`."""
    return next(value for name, value in attrs if name == "dtype" and isinstance(value, DType))


def shape_attr(attrs: Attrs) -> tuple[int, int]:
    """Return the attribute `shape`."""
    rows, cols = next(value for name, value in attrs if name == "shape" and isinstance(value, tuple))
    return rows, cols


def evaluate(op: Op, operands: Sequence[Array], result: TileType, attrs: Attrs = ()) -> Array:
    """Return what `op` means for NumPy operands, in the type of the result; no NumPy warning leaves it."""
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(op.evaluate(operands, result, attrs), dtype=result.dtype.np)
