"""Define the values that a kernel's body handles: tile values, parameters and buffers, with Python's operators.

Every operator traces an op of the table. A tile is no Python number or truth value; converting one is an error at the user's line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import signature
from types import EllipsisType
from typing import NoReturn, Protocol, TypeGuard

import numpy as np

from pto_wsp.calls import user_call
from pto_wsp.errors import BufferMisuseError, SymbolicControlError, UnknownNameError, ValueUseError
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel import COMBINES, Buffer, Role, TensorParam, TileParam, Value
from pto_wsp.ir.scalar import ParamExtent
from pto_wsp.ir.symbolic import Symbolic
from pto_wsp.ir.tile import TileType
from pto_wsp.ops import array_names
from pto_wsp.ops.entries import compare, elementwise, functions, matmul, movement
from pto_wsp.ops.entry import Operand, active, bind
from pto_wsp.ops.other_names import instead_of
from pto_wsp.ops.slices import axes_of
from pto_wsp.source import here


class Writer(Protocol):
    """The part of the trace that writes buffers and parameters, for `[:] =`."""

    def assign(self, target: BufferRef | TileParamRef, value: object) -> None:
        """Write `value` to the whole of `target`."""
        ...

    def assign_part(self, target: BufferRef | TileParamRef, item: object, value: object) -> None:
        """Write `value` to the part of `target` in the brackets `item`."""
        ...


class TileOperators:
    """The operators of tiles; each traces the op of its name."""

    __slots__ = ("type",)
    type: TileType

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> object:
        """Trace the op that corresponds to `ufunc`: np.exp(x) is pto.exp(x), np.float32(2) * x is pto.mul.

        Raises: T206 for a ufunc that no op of the table means, and for its methods and options.
        """
        op = array_names.ufunc_of(ufunc, method)
        if op is None or (method == "__call__" and options):
            asked = f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
            given = f" with {', '.join(options)}" if options else ""
            raise ValueUseError(f"no op of kernels is {asked}{given}", here(), expected="a tile's op, e.g. np.exp(x) or pto.exp(x)",
                                help=instead_of(ufunc.__name__) or "dir(pto) lists the ops; pto.rowsum and the like reduce")
        return op(*inputs, **options)

    def __array_function__(self, function: Callable[..., object], types: object, args: Sequence[object],
                           kwargs: Mapping[str, object]) -> object:
        """Trace the op that a function of NumPy means: np.where(mask, a, b), np.sum(x, axis=1, keepdims=True).

        Raises: T206 for a function that no op means, with what kernels have instead.
        """
        name = function.__name__
        op = array_names.function_of(function)
        if op is not None:
            bind(f"np.{name}", signature(op), tuple(args), kwargs)
            return op(*args, **kwargs)
        called = array_names.full_name(function)
        raise ValueUseError(f"{called} knows no tile", here(), expected="an op of kernels",
                            help=instead_of(name) or f"kernels have no {called}; dir(pto) lists the ops")

    def __getattr__(self, name: str) -> Callable[..., object]:
        if name.startswith("__"):
            raise AttributeError(name)
        op = array_names.method(name)
        if op is not None:
            return partial(op, self)
        raise UnknownNameError(f"a tile has no `{name}`", here(), expected="shape, dtype, T, operators, and the ops of pto",
                               help=instead_of(name) or "dir(pto) lists the ops")

    def __pto_tile__(self) -> None:
        """Mark tiles, for duck typing."""

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, cols)."""
        return self.type.shape

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.type.dtype

    @user_call("item")
    def item(self, row: object = None, col: object = None) -> Symbolic:
        """Return the element (row, col) as a scalar of the kernel, as `pto.item` does; a tile [1, 1] needs no index."""
        row, col = row if isinstance(row, tuple | list) and len(row) == 2 and col is None else (row, col)
        return active("item").element(self, row, col)

    @property
    def T(self) -> Operand:
        """The transposed tile."""
        return movement.transpose(self)

    @property
    def mT(self) -> Operand:
        """The tile with its last two axes exchanged."""
        return movement.transpose(self)

    def __add__(self, other: object) -> Operand:
        return elementwise.add(self, other)

    def __radd__(self, other: object) -> Operand:
        return elementwise.add(other, self)

    def __sub__(self, other: object) -> Operand:
        return elementwise.sub(self, other)

    def __rsub__(self, other: object) -> Operand:
        return elementwise.sub(other, self)

    def __mul__(self, other: object) -> Operand:
        return elementwise.mul(self, other)

    def __rmul__(self, other: object) -> Operand:
        return elementwise.mul(other, self)

    def __truediv__(self, other: object) -> Operand:
        return elementwise.div(self, other)

    def __rtruediv__(self, other: object) -> Operand:
        return elementwise.div(other, self)

    def __floordiv__(self, other: object) -> Operand:
        return elementwise.floordiv(self, other)

    def __rfloordiv__(self, other: object) -> Operand:
        return elementwise.floordiv(other, self)

    def __mod__(self, other: object) -> Operand:
        return elementwise.mod(self, other)

    def __rmod__(self, other: object) -> Operand:
        return elementwise.mod(other, self)

    def __pow__(self, other: object) -> Operand:
        return functions.pow(self, other)

    def __rpow__(self, other: object) -> Operand:
        return functions.pow(other, self)

    def __matmul__(self, other: object) -> Operand:
        return matmul.matmul(self, other)

    def __rmatmul__(self, other: object) -> Operand:
        return matmul.matmul(other, self)

    def __and__(self, other: object) -> Operand:
        return elementwise.and_(self, other)

    def __rand__(self, other: object) -> Operand:
        return elementwise.and_(other, self)

    def __or__(self, other: object) -> Operand:
        return elementwise.or_(self, other)

    def __ror__(self, other: object) -> Operand:
        return elementwise.or_(other, self)

    def __xor__(self, other: object) -> Operand:
        return elementwise.xor(self, other)

    def __rxor__(self, other: object) -> Operand:
        return elementwise.xor(other, self)

    def __lshift__(self, other: object) -> Operand:
        return elementwise.shl(self, other)

    def __rlshift__(self, other: object) -> Operand:
        return elementwise.shl(other, self)

    def __rshift__(self, other: object) -> Operand:
        return elementwise.shr(self, other)

    def __rrshift__(self, other: object) -> Operand:
        return elementwise.shr(other, self)

    def __neg__(self) -> Operand:
        return elementwise.neg(self)

    def __pos__(self) -> TileOperators:
        return self

    def __abs__(self) -> Operand:
        return elementwise.abs(self)

    def __divmod__(self, other: object) -> tuple[Operand, Operand]:
        return elementwise.floordiv(self, other), elementwise.mod(self, other)

    def __rdivmod__(self, other: object) -> tuple[Operand, Operand]:
        return elementwise.floordiv(other, self), elementwise.mod(other, self)

    def __round__(self, decimals: object = 0) -> object:
        return self.round(0 if decimals is None else decimals)

    def __floor__(self) -> Operand:
        return elementwise.floor(self)

    def __ceil__(self) -> Operand:
        return elementwise.ceil(self)

    def __trunc__(self) -> NoReturn:
        raise ValueUseError("math.trunc knows no tile", here(), expected="an op of kernels", help=instead_of("trunc"))

    def __invert__(self) -> Operand:
        return elementwise.not_(self)

    def __eq__(self, other: object) -> Operand:  # type: ignore[override]
        return compare.eq(self, other)

    def __ne__(self, other: object) -> Operand:  # type: ignore[override]
        return compare.ne(self, other)

    def __lt__(self, other: object) -> Operand:
        return compare.lt(self, other)

    def __le__(self, other: object) -> Operand:
        return compare.le(self, other)

    def __gt__(self, other: object) -> Operand:
        return compare.gt(self, other)

    def __ge__(self, other: object) -> Operand:
        return compare.ge(self, other)

    def __bool__(self) -> NoReturn:
        _refuse(self, "bool", "if, while, and, or, not and chained comparisons decide while the body is traced; choose elements with "
                "pto.where(mask, a, b), and join masks with &, | and ~")

    def __int__(self) -> NoReturn:
        _refuse(self, "int", "a tile is known only at run time; pto.item(x, row, col) is an element as a scalar of the kernel")

    def __float__(self) -> NoReturn:
        _refuse(self, "float", "a tile is known only at run time; pto.item(x, row, col) is an element as a scalar of the kernel")

    def __index__(self) -> NoReturn:
        _refuse(self, "index", "a tile is known only at run time; pto.item(x, row, col) is an element as a scalar of the kernel")

    def __hash__(self) -> NoReturn:
        _refuse(self, "hash", "keep tiles in a list or under names, not in a set or as keys")

    def __iter__(self) -> NoReturn:
        _refuse(self, "iter", "ops work on whole tiles; reduce with pto.rowsum and the like")

    def __len__(self) -> NoReturn:
        _refuse(self, "len", "take the shape: x.shape[0]")

    def __array__(self, *_: object, **__: object) -> NoReturn:
        _refuse(self, "NumPy array", "a kernel computes with the ops of pto: pto.exp(x) for np.exp(x); dir(pto) lists them")

    def __str__(self) -> NoReturn:
        _refuse(self, "str", "pto.print(x) prints it when the kernel runs; repr(x) says its type")

    def __format__(self, spec: str) -> NoReturn:
        _refuse(self, "format", "pto.print(\"x\", x) prints it when the kernel runs; {x!r} says its type")

    def __getitem__(self, item: object) -> Operand:
        if _is_whole(item):
            return self._read()
        if _is_run_time(item):
            return active(movement.slice_.name).read_part(self, item)
        return movement.slice_(self, *axes_of(item))

    def _read(self) -> Operand:
        return active("load").read(self)

    def __repr__(self) -> str:
        return f"<{self.type!r}>"


class TileValue(TileOperators):
    """The result of an op or a load; immutable."""

    __slots__ = ("block", "trace", "value")

    def __init__(self, trace: Writer, value: Value, block: int) -> None:
        self.trace = trace
        self.value = value
        self.block = block
        self.type = value.type

    def __setitem__(self, item: object, value: object) -> NoReturn:
        raise BufferMisuseError("a tile value never changes", here(),
                                help="keep state in a buffer: acc = pto.alloc(x.shape, x.dtype), then acc[:] = ...")


class BufferRef(TileOperators):
    """State made by pto.alloc: its name reads it, `[:] =` and `+=` write it."""

    __slots__ = ("block", "buffer", "trace")

    def __init__(self, trace: Writer, buffer: Buffer, block: int) -> None:
        self.trace = trace
        self.buffer = buffer
        self.block = block
        self.type = buffer.type

    def __setitem__(self, item: object, value: object) -> None:
        _assign(self.trace, self, item, value)

    def __iadd__(self, other: object) -> BufferRef:
        return self._updated(self + other)

    def __isub__(self, other: object) -> BufferRef:
        return self._updated(self - other)

    def __imul__(self, other: object) -> BufferRef:
        return self._updated(self * other)

    def __itruediv__(self, other: object) -> BufferRef:
        return self._updated(self / other)

    def __iand__(self, other: object) -> BufferRef:
        return self._updated(self & other)

    def __ior__(self, other: object) -> BufferRef:
        return self._updated(self | other)

    def __ixor__(self, other: object) -> BufferRef:
        return self._updated(self ^ other)

    def __ilshift__(self, other: object) -> BufferRef:
        return self._updated(self << other)

    def __irshift__(self, other: object) -> BufferRef:
        return self._updated(self >> other)

    def __ifloordiv__(self, other: object) -> BufferRef:
        return self._updated(self // other)

    def __imod__(self, other: object) -> BufferRef:
        return self._updated(self % other)

    def _updated(self, value: object) -> BufferRef:
        self.trace.assign(self, value)
        return self

    def __repr__(self) -> str:
        return f"<buffer {self.buffer.name}: {self.type!r}>"


class TileParamRef(TileOperators):
    """A Tile parameter: its name loads it; `[:] =` stores, like pto.store."""

    __slots__ = ("param", "trace")

    def __init__(self, trace: Writer, param: TileParam) -> None:
        self.trace = trace
        self.param = param
        self.type = param.type

    @property
    def valid(self) -> tuple[Symbolic, Symbolic]:
        """The bound rows and columns, known at run time."""
        return Symbolic(ParamExtent(self.param.name, 0)), Symbolic(ParamExtent(self.param.name, 1))

    def __setitem__(self, item: object, value: object) -> None:
        _assign(self.trace, self, item, value)

    def __iadd__(self, other: object) -> TileParamRef | Operand:
        if self.param.role is Role.OUT and self.param.combine == COMBINES[0]:     # a store to an Acc parameter adds
            self.trace.assign(self, other)
            return self
        return self._updated(self + other)

    def __isub__(self, other: object) -> TileParamRef | Operand:
        return self._updated(self - other)

    def __imul__(self, other: object) -> TileParamRef | Operand:
        return self._updated(self * other)

    def __itruediv__(self, other: object) -> TileParamRef | Operand:
        return self._updated(self / other)

    def _updated(self, value: Operand) -> TileParamRef | Operand:
        """Store to a writable parameter; for an In parameter return the value, so that its Python name is rebound, as for a number."""
        if self.param.role is Role.IN:
            return value
        self.trace.assign(self, value)
        return self

    def __repr__(self) -> str:
        return f"<parameter {self.param.name}: {self.param.role.value}[{self.type!r}]>"


class TensorParamRef:
    """A Tensor parameter, accessed in pieces by pto.load and pto.store."""

    __slots__ = ("param",)

    def __init__(self, param: TensorParam) -> None:
        self.param = param

    @property
    def shape(self) -> tuple[Symbolic, Symbolic]:
        """Rows and columns of the bound region, known at run time."""
        return Symbolic(ParamExtent(self.param.name, 0)), Symbolic(ParamExtent(self.param.name, 1))

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.param.dtype

    def _refuse(self, asked: str) -> NoReturn:
        raise ValueUseError(f"`{self.param.name}` is a Tensor, not a tile: {asked}", here(), expected="a tile",
                            help=f"load a piece: pto.load({self.param.name}, (row, col), shape=(r, c))")

    def _no_operator(self, *_: object) -> NoReturn:
        self._refuse("it has no operators")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __floordiv__ = __mod__ = _no_operator
    __matmul__ = __rmatmul__ = __pow__ = __rpow__ = __neg__ = __abs__ = __lt__ = __le__ = __gt__ = __ge__ = _no_operator
    __and__ = __rand__ = __or__ = __ror__ = __invert__ = __rfloordiv__ = __rmod__ = _no_operator

    def __getitem__(self, item: object) -> NoReturn:
        self._refuse("it is not indexed in a kernel")

    def __setitem__(self, item: object, value: object) -> NoReturn:
        raise ValueUseError(f"`{self.param.name}` is a Tensor, not a tile: it is not assigned to", here(),
                            help=f"store a piece: pto.store({self.param.name}, value, (row, col))")

    def __iter__(self) -> NoReturn:
        self._refuse("it is not looped over")

    def __len__(self) -> NoReturn:
        self._refuse("its length is known only at run time, as .shape[0]")

    def __array__(self, *_: object, **__: object) -> NoReturn:
        self._refuse("NumPy computes nothing of it")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> NoReturn:
        self._refuse(f"np.{ufunc.__name__} knows no such thing")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise UnknownNameError(f"`{self.param.name}` is a Tensor, not a tile: it has no `{name}`", here(), expected="shape, dtype",
                               help=f"load a piece: pto.load({self.param.name}, (row, col), shape=(r, c))")

    def __repr__(self) -> str:
        return f"<parameter {self.param.name}: {self.param.role.value}[Tensor {self.param.dtype}]>"


def is_tile(value: object) -> TypeGuard[TileValue | BufferRef | TileParamRef]:
    """Tell whether `value` is a tile of a kernel."""
    return isinstance(value, TileValue | BufferRef | TileParamRef)


def _refuse(value: object, what: str, advice: str) -> NoReturn:
    raise SymbolicControlError(f"{what} of a tile, whose elements are known only at run time", here(),
                               expected="a value that is known while the body is traced", found=repr(value)[:80], help=advice)


def _is_whole(item: object) -> bool:
    items = item if isinstance(item, tuple) else (item,)
    return len(items) <= 2 and all(isinstance(i, EllipsisType) or (isinstance(i, slice) and i.start is i.stop is i.step is None)
                                   for i in items)


def _is_run_time(item: object) -> bool:
    """Tell whether brackets hold a scalar that is known only at run time."""
    parts = (part for one in (item if isinstance(item, tuple) else (item,))
             for part in ((one.start, one.stop, one.step) if isinstance(one, slice) else (one,)))
    return any(isinstance(part, Symbolic) for part in parts)


def _assign(trace: Writer, target: BufferRef | TileParamRef, item: object, value: object) -> None:
    if not _is_whole(item):
        trace.assign_part(target, item, value)
    elif value is not target:
        trace.assign(target, value)
