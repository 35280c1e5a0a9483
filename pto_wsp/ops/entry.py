"""Define what all entries of the op table share, and connect them to the kernel being traced.

An entry has a name, a meaning, a unit and a cost; it is also the function that traces the op. While the front end runs a kernel's body
it activates its `Emitter`, which receives the ops; outside a body, calling an op is an error. Calls with too few, too many or unknown
arguments are errors at the user's line.

>>> find("exp").work
<Work.LARGEST_TILE: 'rows * cols of its largest operand or result'>
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, Protocol, TypeAlias, TypeGuard, cast

from pto_wsp import calls
from pto_wsp.calls import Decorator, F
from pto_wsp.calls import bind as bind
from pto_wsp.errors import OutsideTraceError
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.symbolic import Symbolic
from pto_wsp.ir.tile import TileType
from pto_wsp.ops.rounding import NUMBERS, Array
from pto_wsp.ops.traits import Neutral, Side
from pto_wsp.source import here
from pto_wsp.values import dataclass
from pto_wsp.wording import form_elsewhere

Attr: TypeAlias = int | float | bool | str | DType | tuple[int, ...] | None
Attrs: TypeAlias = tuple[tuple[str, Attr], ...]


# -- tiles and emitter -------------------------------------------------------------------------------------------------
class Operand(Protocol):
    """A tile in the body of a kernel: a value, a parameter or a buffer."""

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, cols)."""
        ...

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        ...

    def __pto_tile__(self) -> None:
        """Mark the class as a tile."""
        ...


def is_tile(value: object) -> TypeGuard[Operand]:
    """Tell whether `value` is a tile of a kernel."""
    return hasattr(type(value), "__pto_tile__")


def is_stack(value: object) -> bool:
    """Tell whether `value` is a tile of rank 3 or more: a stack of tiles [rows, cols]."""
    return hasattr(type(value), "__pto_stack__")


class Emitter(Protocol):
    """The trace of one kernel."""

    def emit(self, op: str, operands: tuple[object, ...], attrs: Attrs) -> Operand:
        """Append the op called `op` on tiles and numbers, and return its result; errors have the user's line."""
        ...

    def read(self, tile: Operand) -> Operand:
        """Return the value that a parameter or buffer has at this point in the kernel."""
        ...

    def spread(self, name: str, function: Callable[..., Any], expected: Signature, args: tuple[object, ...],
               kwargs: Mapping[str, object]) -> Any:
        """Return what a function gives for stacks of tiles, by calling `function` on tiles [rows, cols]."""
        ...

    def stack(self, tiles: object, axis: object) -> Any:
        """Return tiles of one type as a stack, along a new leading axis."""
        ...

    def read_part(self, tile: Operand, item: object) -> Operand:
        """Return the part of a tile in the brackets `item`, which starts where only the run tells."""
        ...

    def element(self, tile: Operand, row: object, col: object) -> Symbolic:
        """Append the read of one element of a tile, and return it as a scalar."""
        ...


_ACTIVE: ContextVar[Emitter | None] = ContextVar("pto_wsp_active_emitter", default=None)


@contextmanager
def activate(emitter: Emitter) -> Iterator[None]:
    """Make `emitter` receive the ops inside a `with` block."""
    token = _ACTIVE.set(emitter)
    try:
        yield
    finally:
        _ACTIVE.reset(token)


def is_active() -> bool:
    """Tell whether a kernel is being traced."""
    return _ACTIVE.get() is not None


def active(name: str) -> Emitter:
    """Return the active emitter for an op called `name`.

    Raises: K105 if no kernel is being traced.
    """
    emitter = _ACTIVE.get()
    if emitter is None:
        raise OutsideTraceError(f"`pto.{name}` was called outside a kernel", here(), help=form_elsewhere(name) or
                                "call it in the body of a @kernel; for NumPy arrays at once use kernel.run(...)")
    return emitter


def spreads(args: tuple[object, ...], kwargs: Mapping[str, object]) -> bool:
    """Tell whether arguments have a stack, or more than two whole numbers, which may be the shape of a stack."""
    return any(_spreads(value) for value in args) or any(_spreads(value) for value in kwargs.values())


def _spreads(value: object) -> bool:
    if isinstance(value, tuple | list):
        return any(map(is_stack, value)) or (len(value) > 2 and all(map(_is_whole, value)))
    return is_stack(value)


def _is_whole(value: object) -> bool:
    """Tell whether a value is an integer of Python or NumPy, or a scalar."""
    return hasattr(type(value), "__index__") and not isinstance(value, bool) and not is_tile(value)


def user_call(called: str = "", /, **other_names: str) -> Decorator:
    """Decorate a function of tiles whose arguments a user writes, as `calls.user_call` does; of stacks, it takes tile by tile."""
    def decorate(function: F) -> F:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if spreads(args, kwargs):
                return active(name.removeprefix("pto.")).spread(name, function, signature(function), args, kwargs)
            return function(*args, **kwargs)
        name = called or function.__name__
        return cast(F, calls.user_call(name, **other_names)(call))
    return decorate


# -- entries -----------------------------------------------------------------------------------------------------------
class Unit(Enum):
    """The execution unit of a core that runs an op."""

    VECTOR = "vector"
    CUBE = "cube"


class Work(Enum):
    """The quantity that an op's cost is proportional to."""

    LARGEST_TILE = "rows * cols of its largest operand or result"
    MKN = "m * k * n"
    SORT = "rows * cols * log2(cols) of its operand, rounded up"


class Identity(Enum):
    """The initial value of a reduction, which leaves every other value unchanged."""

    ZERO = "0"
    ONE = "1"
    LOWEST = "-inf, or the smallest integer"
    HIGHEST = "+inf, or the largest integer"


class Finish(Enum):
    """The last step of a reduction."""

    NONE = "nothing"
    DIVIDE_BY_COUNT = "divide by the number of elements reduced, in the dtype"


@dataclass(frozen=True, slots=True)
class Operator:
    """A C operator: prefix for one operand (empty text: the operand itself), infix for two."""

    text: str

    @property
    def simple(self) -> bool:
        """Whether it is no division."""
        return self.text != "/"


@dataclass(frozen=True, slots=True)
class CFunction:
    """A C function of `pto_math.h`: {t} is replaced by the dtype of its operands, {from} by the source dtype of a cast.

    `simple` marks functions of a few instructions, without a division or a series. They cost less than reading the result from memory, and
    are equal on every machine except for the last digit.
    """

    template: str
    simple: bool = False

    def name(self, dtype: DType, source: DType | None = None) -> str:
        """Return the name of the function for operands of `dtype`."""
        return self.template.replace("{t}", str(dtype)).replace("{from}", str(source or dtype))


Spelling: TypeAlias = Operator | CFunction
Arguments: TypeAlias = tuple[tuple[object, ...], Mapping[str, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpEntry(ABC):
    """The base of all entries. `dtypes` are those that operands may have; `hint` advises what to write for another dtype.

    `aliases` are names that call the op, those of NumPy and torch that mean the same; `synonyms` are words that call nothing, and for
    which an error names the op.

    `numpy`: the op as a line of NumPy in a package's golden.py. {0}, {1}, {2} are the operands, {all} all of them, {shape} and {dtype}
    those of the result, {picked} the subscript of a slice; attributes stand under their names. A name with a leading underscore is a
    function of templates/ascend_npu/golden_functions.py.

    Traits, each with the dtypes of the operands that it holds for, bit for bit; no rewrite relies on a trait that is not stated:
    `undoes_itself`: f(f(x)) is x. `idempotent`: f(f(x)) is f(x); of two operands, f(x, x) is x.
    `neutral`: numbers that leave the other operand unchanged. `folds`: on numbers, NumPy and C give the same bits.
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
    synonyms: tuple[str, ...] = ()
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

        Raises: K105 outside a kernel; T101, T202, T203, T204, T207, T209, T213 for what does not fit.
        """
        emitter = active(self.name)
        if spreads(args, kwargs):
            return cast(Operand, emitter.spread(f"pto.{self.name}", self._emitted, self.signature, args, kwargs))
        return self._emitted(*args, **kwargs)

    def _emitted(self, *args: object, **kwargs: object) -> Operand:
        emitter = active(self.name)
        operands, attrs = self.split(bind(f"pto.{self.name}", self.signature, args, kwargs))
        return emitter.emit(self.name, self.prepared(emitter, operands), attrs)

    def prepared(self, emitter: Emitter, operands: tuple[object, ...]) -> tuple[object, ...]:
        """Return the operands of a call as the op computes with them; ops that this takes are emitted before."""
        return operands

    def split(self, bound: Mapping[str, object]) -> tuple[tuple[object, ...], Attrs]:
        """Return the tile operands and the attributes of a call."""
        return tuple(bound.values()), ()

    def call_of(self, types: Sequence[TileType], operands: tuple[object, ...], attrs: Attrs) -> Arguments:
        """Return the arguments of a call for which `split` returns these operands and attributes; `types` are the types of the operands.

        Raises: ValueError for attributes that no call produces.
        """
        return operands, dict(attrs)

    @abstractmethod
    def infer(self, types: Sequence[TileType], attrs: Attrs) -> TileType:
        """Return the type of the result.

        Raises: T202, T203, T204 at the user's line.
        """

    @abstractmethod
    def evaluate(self, operands: Sequence[Array], result: TileType, attrs: Attrs) -> Array:
        """Return the result on NumPy operands. Call the function `evaluate` instead, which fixes the dtype and suppresses warnings."""

    def is_neutral(self, number: int | float, dtype: DType, side: Side) -> bool:
        """Tell whether a number on that side leaves every bit of the other operand, of that dtype, as it is."""
        return any(one.covers(number, dtype, side) for one in self.neutral)

    def weak_dtype(self, position: int, types: Sequence[TileType | None], attrs: Attrs) -> DType | None:
        """Return the dtype of a number at `position`, or None if it cannot be a number; `types` has None for numbers."""
        return next((t.dtype for t in types if t is not None), None)


def positional(names: Sequence[str]) -> Signature:
    """Return a signature whose parameters are all required."""
    return Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names])


def dtype_attr(attrs: Attrs) -> DType:
    """Return the attribute `dtype`."""
    return next(value for name, value in attrs if name == "dtype" and isinstance(value, DType))


def shape_attr(attrs: Attrs) -> tuple[int, int]:
    """Return the attribute `shape`."""
    rows, cols = next(value for name, value in attrs if name == "shape" and isinstance(value, tuple))
    return rows, cols
