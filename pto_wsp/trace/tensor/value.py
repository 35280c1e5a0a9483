"""Define the values that a body on whole tensors handles: `TensorValue`, with Python's operators and the protocols of NumPy and torch.

A value is a view of a *storage*: of a parameter, of state (`tt.zeros`), of a constant, or of what an operation gave. Views are read when
they are used, and written through. What Python may ask of a value while the body is traced is its shape and dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Any, NoReturn, Protocol

import numpy as np

from pto_wsp.errors import SymbolicControlError, TensorIndexError, ValueUseError
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.extents import simplified
from pto_wsp.ir.layout import Contract
from pto_wsp.ir.scalar import Const, Op, Scalar, add, binary, mul, print_scalar, sub
from pto_wsp.ir.symbolic import Symbolic
from pto_wsp.ir.tensor_function import Array, ArrayStep, ArrayView, Extents, Flip, Insert, Refold, TileCut
from pto_wsp.ir.view import Cut, Permute, Pick
from pto_wsp.ops.entry import Operand
from pto_wsp.source import Span, here
from pto_wsp.trace.kernel.tile_value import TileOperators


class ArrayRole(Enum):
    """What an array of a body is."""

    READ = "parameter"
    WRITTEN = "InOut parameter"
    CONSTANT = "constant"
    STATE = "state"
    RESULT = "value"


class Storage:
    """The memory of an array in a body. `version` counts its writes; a value that is written becomes state: `promoted`.

    `block`: the body that made it. `named`: the user's variable says the name.
    """

    __slots__ = ("array", "block", "kind", "named", "promoted", "span", "version")

    def __init__(self, array: Array, kind: ArrayRole, block: int, span: Span, *, named: bool = False) -> None:
        self.array = array
        self.kind = kind
        self.block = block
        self.span = span
        self.named = named
        self.version = 0
        self.promoted = False

    @property
    def writable(self) -> bool:
        """Whether a body may write it."""
        return self.kind in (ArrayRole.WRITTEN, ArrayRole.STATE, ArrayRole.RESULT)


class TakenCopy:
    """When a copy of a storage's elements was taken: NumPy may or may not copy there, so it is used before the storage is written."""

    __slots__ = ("block", "span", "storage", "version", "what")

    def __init__(self, what: str, storage: Storage, block: int) -> None:
        self.what = what
        self.storage = storage
        self.version = storage.version
        self.block = block
        self.span = here()


class TensorWriter(Protocol):
    """The part of the trace that values use."""

    def index(self, value: TensorValue, item: object) -> object:
        """Return `value[item]`."""
        ...

    def assign(self, value: TensorValue, item: object, new: object) -> None:
        """Write `value[item] = new`."""
        ...

    def method_of(self, value: TensorValue, name: str) -> Callable[..., object]:
        """Return what a method of the name does, with the value as the first argument."""
        ...

    def numpy(self, function: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]) -> object:
        """Return what a function of NumPy means."""
        ...

    def ufunc(self, ufunc: np.ufunc, method: str, inputs: Sequence[object], options: Mapping[str, object]) -> object:
        """Return what a ufunc of NumPy means."""
        ...

    def torch(self, function: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]) -> object:
        """Return what a function of torch means."""
        ...


class TensorValue(TileOperators):
    """A view of an array in a body. `readonly`: an In parameter of an inner function. `taken`: of what it holds a copy."""

    __slots__ = ("readonly", "steps", "storage", "taken", "trace")

    def __init__(self, trace: TensorWriter, storage: Storage, steps: tuple[ArrayStep, ...] = (), taken: tuple[TakenCopy, ...] = (), *,
                 readonly: bool = False) -> None:
        self.trace = trace
        self.storage = storage
        self.steps = steps
        self.taken = taken
        self.readonly = readonly

    @property
    def array_view(self) -> ArrayView:
        """The view in the IR."""
        return ArrayView(self.storage.array, self.steps)

    @property
    def extents(self) -> Extents:
        """The extents as scalars."""
        return self.array_view.shape

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.extents)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.extents)

    @property
    def shape(self) -> tuple[Any, ...]:
        """The extents: numbers, and scalars of the function's symbols."""
        return tuple(number_of(extent) for extent in self.extents)

    @property
    def size(self) -> Any:
        """The number of elements."""
        total: Any = 1
        for extent in self.shape:
            total = extent * total
        return total

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.storage.array.dtype

    @property
    def name(self) -> str:
        """The name of the array that this value is a view of."""
        return self.storage.array.name

    def then(self, *steps: ArrayStep) -> TensorValue:
        """Return a view of this view."""
        return TensorValue(self.trace, self.storage, self.steps + steps, self.taken, readonly=self.readonly)

    @property
    def T(self) -> TensorValue:
        """The view with its dimensions reversed."""
        return self.then(Permute(tuple(reversed(range(self.rank))))) if self.rank > 1 else self

    @property
    def mT(self) -> TensorValue:
        """The view with its last two dimensions exchanged."""
        if self.rank < 2:
            raise ValueUseError("`mT` exchanges the last two dimensions", here(), expected="two dimensions or more", found=repr(self))
        order = list(range(self.rank))
        order[-2:] = order[:-3:-1]
        return self.then(Permute(tuple(order)))

    def __getitem__(self, item: object) -> Any:
        return self.trace.index(self, item)

    def __setitem__(self, item: object, value: object) -> None:
        self.trace.assign(self, item, value)

    def _updated(self, value: object) -> TensorValue:
        self.trace.assign(self, Ellipsis, value)
        return self

    def __iadd__(self, other: object) -> TensorValue:
        return self._updated(self + other)

    def __isub__(self, other: object) -> TensorValue:
        return self._updated(self - other)

    def __imul__(self, other: object) -> TensorValue:
        return self._updated(self * other)

    def __itruediv__(self, other: object) -> TensorValue:
        return self._updated(self / other)

    def __ifloordiv__(self, other: object) -> TensorValue:
        return self._updated(self // other)

    def __imod__(self, other: object) -> TensorValue:
        return self._updated(self % other)

    def __iand__(self, other: object) -> TensorValue:
        return self._updated(self & other)

    def __ior__(self, other: object) -> TensorValue:
        return self._updated(self | other)

    def __ixor__(self, other: object) -> TensorValue:
        return self._updated(self ^ other)

    def __ilshift__(self, other: object) -> TensorValue:
        return self._updated(self << other)

    def __irshift__(self, other: object) -> TensorValue:
        return self._updated(self >> other)

    def __ipow__(self, other: object) -> TensorValue:
        return self._updated(self ** other)

    def __imatmul__(self, other: object) -> TensorValue:
        return self._updated(self @ other)

    def __pos__(self) -> TensorValue:
        return self

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> object:
        """Return what a ufunc of NumPy means: np.exp(x), np.add.reduce(x, axis=1), np.add.at(out, table, x)."""
        return self.trace.ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Callable[..., object], types: object, args: Sequence[object],
                           kwargs: Mapping[str, object]) -> object:
        """Return what a function of NumPy means: np.where(mask, a, b), np.sum(x, axis=1)."""
        return self.trace.numpy(function, args, kwargs)

    @classmethod
    def __torch_function__(cls, function: Callable[..., object], types: object, args: Sequence[object] = (),
                           kwargs: Mapping[str, object] | None = None) -> object:
        """Return what a function of torch means: torch.exp(x)."""
        value = _first_value((*args, *(kwargs or {}).values()))
        return value.trace.torch(function, args, kwargs or {})

    def __getattr__(self, name: str) -> Callable[..., object]:
        if name.startswith("__"):
            raise AttributeError(name)
        return partial(self.trace.method_of(self, name), self)

    def _read(self) -> Operand:
        return self

    def item(self, *index: object) -> Any:
        """Return an element, by one index a dimension; without an index, the only element.

        Raises: J202.
        """
        if len(index) != self.rank and (index or any(extent != Const(1) for extent in self.extents)):
            raise TensorIndexError("`item` takes one element", here(), expected=f"{self.rank} whole numbers",
                                   found=f"{list(index)} of {self!r}",
                                   help="x[i, j] takes an element; np.sum, np.max and kin make one number of many")
        return self.trace.index(self, tuple(index) if index else (0,) * self.rank)

    def __round__(self, decimals: object = 0) -> object:
        return self.__getattr__("round")(0 if decimals is None else decimals)

    def __bool__(self) -> NoReturn:
        _refuse(self, "bool", "if, while, and, or, not and chained comparisons decide while the body is traced: branch on scalars by "
                "`with tt.when(c):`, choose elements with np.where(mask, a, b), join masks with &, | and ~, "
                "compare by np.maximum and np.minimum in place of max and min")

    def __int__(self) -> NoReturn:
        _refuse(self, "int", "an element is known only at run time; x[i] of whole numbers is a scalar for indices and bounds")

    def __float__(self) -> NoReturn:
        _refuse(self, "float", "an element is known only at run time; compute with it as it is, by np. functions in place of math's")

    def __index__(self) -> NoReturn:
        _refuse(self, "index", "an element is known only at run time; loop with tt.loop(...), and slice with x[i] of whole numbers")

    def __complex__(self) -> NoReturn:
        _refuse(self, "complex", "an element is known only at run time")

    def __hash__(self) -> NoReturn:
        _refuse(self, "hash", "keep tensors in a list or under names, not in a set or as keys")

    def __iter__(self) -> NoReturn:
        _refuse(self, "iter", "loop over positions: for i in tt.loop(x.shape[0]) (in order) or tt.each(x.shape[0]); np.split takes apart; "
                "np.sum, np.max, np.all and kin, of Python's functions of these names")

    def __len__(self) -> NoReturn:
        _refuse(self, "len", "take the shape: x.shape[0]")

    def __contains__(self, value: object) -> NoReturn:
        _refuse(self, "in", "np.any(x == value) is a tensor; the elements are known only at run time")

    def __delitem__(self, item: object) -> NoReturn:
        _refuse(self, "del", "slices take the elements that stay: x[1:], or np.concatenate of several")

    def __array__(self, *_: object, **__: object) -> NoReturn:
        _refuse(self, "NumPy array", "compute with np. functions on the tensor itself, which is an array already; "
                "np.stack makes one of several")

    def __str__(self) -> str:  # type: ignore[override]
        return repr(self)

    def __format__(self, spec: str) -> str:  # type: ignore[override]
        return repr(self)

    def __repr__(self) -> str:
        return f"<{self.name}: Tensor[{', '.join([*map(print_scalar, self.extents), str(self.dtype)])}]>"


def number_of(node: Scalar) -> Any:
    """Return a scalar as a user handles it: a Python number, or a Symbolic."""
    return node.value if isinstance(node, Const) else Symbolic(node)


def _first_value(values: Sequence[object]) -> TensorValue:
    for value in values:
        if isinstance(value, TensorValue):
            return value
        if isinstance(value, tuple | list):
            inner = [each for each in value if isinstance(each, TensorValue)]
            if inner:
                return inner[0]
    raise SymbolicControlError("a function of torch without a tensor", here(), expected="a tensor of the function among its arguments",
                               found=", ".join(type(each).__name__ for each in values) or "no arguments")


def _refuse(value: TensorValue, what: str, advice: str) -> NoReturn:
    raise SymbolicControlError(f"{what} of a tensor, whose elements are known only at run time", here(),
                               expected="a value that is known while the body is traced", found=repr(value)[:80], help=advice)


def contracts_of(value: TensorValue) -> tuple[Contract, ...]:
    """Return the contracts that a view keeps of its array: parts of different entries are different, rising parts rise."""
    contracts = value.storage.array.contracts
    if all(isinstance(step, Pick | Cut | Insert) for step in value.steps):
        return contracts
    return tuple(each for each in contracts if each is Contract.INJECTIVE)


def place_of(view: ArrayView, index: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    """Return the place in the array of an element of a view."""
    shapes = [view.array.shape]
    for count in range(1, len(view.steps) + 1):
        shapes.append(ArrayView(view.array, view.steps[:count]).shape)
    place = list(index)
    for step, before in zip(reversed(view.steps), reversed(shapes[:-1]), strict=True):
        match step:
            case Pick(dim, at):
                place.insert(dim, at)
            case Cut(dim, start, _, by):
                place[dim] = add(start, mul(place[dim], Const(by)))
            case Permute(order):
                old: list[Scalar] = [Const(0)] * len(order)
                for new, source in enumerate(order):
                    old[source] = place[new]
                place = old
            case Insert(dim):
                del place[dim]
            case Flip(dim):
                place[dim] = sub(sub(before[dim], Const(1)), place[dim])
            case TileCut(dim, start, _):
                place[dim] = add(start, place[dim])
            case Refold(shape):
                flat: Scalar = Const(0)
                for extent, at in zip(shape, place, strict=True):
                    flat = add(mul(flat, extent), at)
                place = []
                for extent in reversed(before):
                    place.insert(0, binary(Op.MOD, flat, extent))
                    flat = binary(Op.FLOORDIV, flat, extent)
    return tuple(map(simplified, place))
