"""What every entry of the op table has, whatever its kind: a name, a meaning, a unit, a cost. The entry is also the function that
traces the op.

>>> find("exp").work
<Work.LARGEST_TILE: 'rows * cols of its largest operand or result'>
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import Enum
from inspect import Parameter, Signature
from typing import TypeAlias

from pto_wsp.ops.calls import bind
from pto_wsp.ops.dtypes import NUMBERS, Array
from pto_wsp.ops.tracing import Attrs, Operand, active
from pto_wsp.ops.traits import Neutral, Side
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
    SORT = "rows * cols * log2(cols) of its operand, rounded up"


class Identity(Enum):
    """What a reduction starts from: a value that changes nothing."""

    ZERO = "0"
    ONE = "1"
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

    @property
    def simple(self) -> bool:
        """Whether it is no division."""
        return self.text != "/"


@dataclass(frozen=True, slots=True)
class Function:
    """A C function of `pto_math.h`: {t} stands for the dtype of its operands, {from} for a cast's source.

    `simple`: a few instructions without a division or a series: cheaper than reading the result back from memory, and the same on every
    machine but for the last digit.
    """

    template: str
    simple: bool = False

    def name(self, dtype: DType, source: DType | None = None) -> str:
        """Return the function's name for operands of `dtype`."""
        return self.template.replace("{t}", str(dtype)).replace("{from}", str(source or dtype))


Spelling: TypeAlias = Operator | Function
Arguments: TypeAlias = tuple[tuple[object, ...], Mapping[str, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpEntry(ABC):
    """What every kind of entry has. `dtypes`: what its operands may be; `hint`: what to write for a dtype it does not take.

    `numpy`: the op as a line of NumPy in a package's golden.py. {0}, {1}, {2} are the operands, {all} all of them, {shape} and {dtype}
    those of the result, {picked} the subscript of a slice; attributes stand under their names. What begins with an underscore is a
    function of templates/ascend_npu/golden_functions.py.

    Traits, each with the dtypes of the operands that it holds for, bit for bit; no rewrite relies on a trait that is not stated:
    `undoes_itself`: f(f(x)) is x. `idempotent`: f(f(x)) is f(x); of two operands, f(x, x) is x.
    `neutral`: numbers that leave the other operand as it is. `folds`: on numbers, NumPy and C give the same bits.
    `selects`: each element is the one at its place in an operand behind the first, which is a mask.
    `scales`: small relative changes of operands change results as little: nothing cancels.
    `keeps_range`: integers computed in a wider dtype stay within their own dtype, and need no wrapping.
    `exact_in_f16`: f16 computed in f16 gives what f32 gives, rounded to f16.
    `nan_below_zero`: a negative first operand may make a NaN that its magnitude does not.
    `non_negative`: no result is below zero. `non_negative_of_equals`: none of f(x, x) is.
    """

    name: str
    doc: str
    npu: str | None = None
    unit: Unit = Unit.VECTOR
    work: Work = Work.LARGEST_TILE
    dtypes: tuple[DType, ...] = NUMBERS
    aliases: tuple[str, ...] = ()
    hint: str = ""
    numpy: str = ""
    undoes_itself: tuple[DType, ...] = ()
    idempotent: tuple[DType, ...] = ()
    neutral: tuple[Neutral, ...] = ()
    folds: tuple[DType, ...] = ()
    selects: tuple[DType, ...] = ()
    scales: tuple[DType, ...] = ()
    keeps_range: tuple[DType, ...] = ()
    exact_in_f16: bool = False
    nan_below_zero: tuple[DType, ...] = ()
    non_negative: tuple[DType, ...] = ()
    non_negative_of_equals: tuple[DType, ...] = ()

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

    def call_of(self, types: Sequence[TileType], operands: tuple[object, ...], attrs: Attrs) -> Arguments:
        """Return arguments of a call that `split` makes these operands and attributes of. `types`: of the operands.

        Raises: ValueError for attributes that no call gives.
        """
        return operands, dict(attrs)

    @abstractmethod
    def infer(self, types: Sequence[TileType], attrs: Attrs) -> TileType:
        """Return the type of the result.

        Raises: T202, T203, T204 at the user's line.
        """

    @abstractmethod
    def evaluate(self, operands: Sequence[Array], result: TileType, attrs: Attrs) -> Array:
        """Return the result for NumPy operands; call the function `evaluate` instead, which fixes dtype and warnings."""

    def is_neutral(self, number: int | float, dtype: DType, side: Side) -> bool:
        """Tell whether a number on that side leaves every bit of the other operand, of that dtype, as it is."""
        return any(one.covers(number, dtype, side) for one in self.neutral)

    def weak_dtype(self, position: int, types: Sequence[TileType | None], attrs: Attrs) -> DType | None:
        """Return the dtype that a number takes at `position`, None where it cannot stand; `types` has None for numbers."""
        return next((t.dtype for t in types if t is not None), None)


def positional(names: Sequence[str]) -> Signature:
    """Return the signature of parameters that are all required."""
    return Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names])


def dtype_attr(attrs: Attrs) -> DType:
    """Return the attribute `dtype`."""
    return next(value for name, value in attrs if name == "dtype" and isinstance(value, DType))


def shape_attr(attrs: Attrs) -> tuple[int, int]:
    """Return the attribute `shape`."""
    rows, cols = next(value for name, value in attrs if name == "shape" and isinstance(value, tuple))
    return rows, cols
