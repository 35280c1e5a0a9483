"""Evaluate functions on whole tensors in NumPy: the reference meaning of the tensor level, of every stage from trace to emission.

>>> results = evaluate(function, (x, w), {"scale": 0.5})      # InOut parameters are written in place
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any, NoReturn, TypeAlias

import numpy as np

from pto_wsp.errors import ArrayBindingError, BindingError, InternalError, PtoError, RunBoundsError, unreachable
from pto_wsp.ir import flow
from pto_wsp.ir import scalar as s
from pto_wsp.ir import tensor_function as t
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Number, Scalar, print_scalar
from pto_wsp.ir.view import Cut, Permute, Pick
from pto_wsp.ops.formula_trace import as_array
from pto_wsp.ops.rounding import Array
from pto_wsp.ops.tensors import SizedType, check_table
from pto_wsp.ops.tensors import evaluate as evaluate_op
from pto_wsp.run.bound import contract_breach
from pto_wsp.source import UNKNOWN, Span, here
from pto_wsp.values import dataclass

ShowArray: TypeAlias = Callable[[str, Array], None]


def evaluate(function: t.TensorFunction, arrays: Sequence[Array], scalars: Mapping[str, Number] | None = None, *,
             order: int | None = None, show: ShowArray | None = None) -> tuple[Array, ...]:
    """Return the results, as arrays of their own; write the InOut parameters.

    `arrays`: of the parameters, in order; `scalars`: the parameters that are numbers, by name, and symbols that no array's shape tells.
    `order`: seed of a permutation of the iterations of each unordered loop. `show`: is called for each print. Memory that was made
    without a number holds NaN, or integers far outside.
    Raises: R113 and R102 for arguments that do not fit, R102 for a broken assumption, R110 for a broken contract, R104 for an index
    outside and for a choice among nothing, at the user's line.
    """
    return TensorRun(function, order, show).run(arrays, scalars or {})


def symbols_of(function: t.TensorFunction, shapes: Sequence[tuple[int, ...]]) -> dict[s.SymbolRef, int]:
    """Return the number of each symbol that stands alone as an extent of a parameter, from the shapes of the arguments.

    Raises: R102 where two arguments give one symbol two numbers.
    """
    found: dict[s.SymbolRef, tuple[int, str]] = {}
    for param, shape in zip(function.params, shapes, strict=True):
        for extent, size in zip(param.array.shape, shape, strict=False):
            if isinstance(extent, s.SymbolRef):
                known, name = found.setdefault(extent, (size, param.array.name))
                if known != size:
                    raise _refused(f"`{extent.name}` has two numbers in a call of `{function.name}`", here(), f"{known}, from `{name}`",
                                   f"{size}, from `{param.array.name}`")
    return {symbol: size for symbol, (size, _) in found.items()}


def poison(shape: tuple[int, ...], dtype: DType) -> Array:
    """Return the contents of unwritten memory: NaN in every element, for integers the extreme value, for masks True."""
    if dtype.is_bool:
        return np.ones(shape, np.bool_)
    if dtype.is_real:
        return np.full(shape, np.nan).astype(dtype.np)
    limits = np.iinfo(dtype.np)
    return np.full(shape, limits.min if limits.min else limits.max, dtype.np)


@dataclass(slots=True)
class TensorRun:
    """One evaluation: arrays by number, symbols and loop variables."""

    function: t.TensorFunction
    order: int | None = None
    show: ShowArray | None = None
    arrays: dict[int, Array] = field(default_factory=dict)
    numbers: dict[Scalar, Number] = field(default_factory=dict)
    named: dict[str, Number] = field(default_factory=dict)
    shuffle: random.Random = field(default_factory=random.Random)
    made: list[int] = field(default_factory=list)

    def run(self, arrays: Sequence[Array], scalars: Mapping[str, Number]) -> tuple[Array, ...]:
        """Return the results."""
        function, self.shuffle = self.function, random.Random(self.order)
        self.bind(arrays, scalars)
        for assumption in function.assumptions:
            if not self.number(assumption.condition):
                raise _refused(f"`{function.name}` assumes {print_scalar(assumption.condition)}", _known(assumption.span),
                               found=", ".join(f"{symbol.name} = {self.number(symbol)}" for symbol in function.symbols))
        self.sequence(function.body)
        with self.at(function.span, "the results"):
            return tuple(np.array(self.view(view), order="C", copy=True).reshape(self.view(view).shape) for view in function.results)

    def bind(self, arrays: Sequence[Array], scalars: Mapping[str, Number]) -> None:
        """Bind arrays and scalars to the parameters, after a check of their number, dtypes and shapes."""
        function = self.function
        if len(arrays) != len(function.params):
            raise _unfit(f"`{function.name}` takes another number of arrays", str(len(function.params)), str(len(arrays)))
        for param, array in zip(function.params, arrays, strict=True):
            if array.ndim != param.array.rank or DType.from_numpy(array.dtype) is not param.array.dtype:
                raise _unfit(f"an array does not fit `{param.array.name}`", type_text(param.array), f"{list(array.shape)} {array.dtype}")
        self.named |= scalars
        for symbol, size in symbols_of(function, [array.shape for array in arrays]).items():
            self.numbers[symbol] = size
        for param, array in zip(function.params, arrays, strict=True):
            if tuple(map(self.whole, param.array.shape)) != array.shape:
                raise _unfit(f"an array does not fit `{param.array.name}`", type_text(param.array), f"{list(array.shape)} {array.dtype}")
            self.define(param.array, array)
        for constant in function.constants:
            shape = tuple(map(self.whole, constant.array.shape))
            self.define(constant.array, np.frombuffer(constant.data, constant.array.dtype.np).reshape(shape))

    def define(self, array: t.Array, value: Array) -> None:
        """Store the elements of an array.

        Raises: R110 if the elements break a contract of the array.
        """
        for contract in array.contracts:
            breach = contract_breach(contract, array.name, value)
            if breach is not None:
                raise breach
        self.arrays[array.id] = value
        self.made.append(array.id)

    # -- control -------------------------------------------------------------------------------------------------------
    def sequence(self, body: t.Body) -> None:
        """Run the items of a body, then drop the arrays that the body made (not those of the function's body)."""
        kept = len(self.made)
        for item in body.items:
            self.item(item)
        if body is not self.function.body:
            for number in self.made[kept:]:
                self.arrays.pop(number, None)
            del self.made[kept:]

    def item(self, item: t.Item) -> None:
        """Run one item."""
        match item:
            case flow.Do(statement):
                with self.at(statement.span, statement):
                    self.statement(statement)
            case flow.Sequence(items):      # no scope of its own
                for inner in items:
                    self.item(inner)
            case flow.Loop(var, start, stop, step, ordered, body):
                with self.at(item.span, "a loop"):
                    iterations: Sequence[int] = range(self.whole(start), self.whole(stop), self.step(step))
                if not ordered and self.order is not None:
                    iterations = self.shuffle.sample(iterations, len(iterations))
                for iteration in iterations:
                    self.numbers[var] = iteration
                    self.sequence(body)
                self.numbers.pop(var, None)
            case flow.Choice(branches, otherwise):
                for branch in branches:
                    with self.at(branch.span, "a condition"):
                        holds = bool(self.number(branch.condition))
                    if holds:
                        return self.sequence(branch.body)
                self.sequence(otherwise)
            case _:
                unreachable(f"{type(item).__name__} at the tensor level")

    def step(self, step: Scalar) -> int:
        """Return the step of a loop."""
        found = self.whole(step)
        if found < 1:
            raise RunBoundsError("the step of a loop is below 1", expected="at least 1", found=str(found))
        return found

    @contextmanager
    def at(self, span: Span, what: object) -> Iterator[None]:
        """Give errors that are raised in the `with` block the user's line; report other exceptions as internal errors."""
        try:
            yield
        except PtoError as problem:
            if span is not UNKNOWN:
                problem.span = span
            raise
        except InternalError:
            raise
        except (ValueError, IndexError, TypeError, KeyError) as problem:
            raise InternalError(f"the evaluation of `{self.function.name}` fails: {type(problem).__name__}: {problem}",
                                f"{span}: {what}") from problem

    # -- statements ----------------------------------------------------------------------------------------------------
    def statement(self, statement: t.Statement) -> None:
        """Run one statement."""
        match statement:
            case t.Apply():
                self.apply(statement)
            case t.Make(array, fill):
                shape = self.shape(array)
                self.define(array, poison(shape, array.dtype) if fill is None else as_array(fill, array.dtype, shape))
            case t.Put():
                self.put(statement)
            case t.Show(label, value):
                if self.show is not None:
                    self.show(label, self.view(value).copy())

    def apply(self, statement: t.Apply) -> None:
        """Define the results of an operation."""
        operands = [self.view(each) if isinstance(each, t.ArrayView) else self.number(each) for each in statement.operands]
        attrs = tuple((name, self.whole(value) if isinstance(value, Scalar) else value) for name, value in statement.attrs)
        results = [SizedType(self.shape(array), array.dtype) for array in statement.results]
        values = evaluate_op(statement.op, operands, attrs, results)
        for array, wanted, value in zip(statement.results, results, values, strict=True):
            if (value.shape, DType.from_numpy(value.dtype)) != wanted:
                raise InternalError(f"`{statement.op}` gives {list(value.shape)} {value.dtype} for `{array.name}`, which is "
                                    f"{list(wanted.shape)} {wanted.dtype}", str(statement.span))
            shared = any(isinstance(x, np.ndarray) and np.may_share_memory(x, value) for x in operands)
            self.define(array, value.copy() if shared else value)

    def put(self, statement: t.Put) -> None:
        """Write a value."""
        target, dtype = self.view(statement.target), statement.target.dtype
        storage = self.arrays[statement.target.array.id]
        if not storage.flags.writeable:
            raise _unfit(f"`{statement.target.array.name}` is written, and its array is read-only")
        value = self.view(statement.value).copy() if isinstance(statement.value, t.ArrayView) else \
            as_array(self.number(statement.value), dtype)
        if value.dtype != target.dtype:
            raise InternalError(f"{value.dtype} is put into `{statement.target.array.name}`, which is {dtype}", str(statement.span))
        table = None if statement.table is None else \
            check_table(statement.table.array.name, self.view(statement.table), target.shape[0])
        if target.size and not np.may_share_memory(target, storage):      # a reshape that is no view: write by flat places
            places = self.steps(np.arange(storage.size).reshape(storage.shape), statement.target)
            flat = storage.reshape(-1).copy()
            _write(flat, places if table is None else places[table], value, statement.add)
            storage[...] = flat.reshape(storage.shape)
        else:
            _write(target, ... if table is None else table, value, statement.add)

    # -- views and numbers ---------------------------------------------------------------------------------------------
    def view(self, view: t.ArrayView) -> Array:
        """Return a part of an array; writes go through, except where it has another shape than memory can show."""
        if view.array.id not in self.arrays:
            unreachable(f"read of `{view.array.name}`, which is not made here")
        return self.steps(self.arrays[view.array.id], view)

    def steps(self, array: Array, view: t.ArrayView) -> Array:
        """Return what the steps of a view give on an array."""
        for step in view.steps:
            match step:
                case Pick(dim, index):
                    array = array[(slice(None),) * dim + (self.inside(view, dim, self.whole(index), array.shape[dim]), ...)]
                case Cut(dim, start, stop, by):
                    first, last = self.whole(start), self.whole(stop)
                    if not 0 <= first <= last <= array.shape[dim]:
                        self.outside(view, dim, f"{first}:{last}", array.shape[dim])
                    array = array[(slice(None),) * dim + (slice(first, last, by),)]
                case Permute(order):
                    array = array.transpose(order)
                case t.Insert(dim):
                    array = np.expand_dims(array, dim)
                case t.Flip(dim):
                    array = np.flip(array, dim)
                case t.Refold(extents):
                    shape = tuple(map(self.whole, extents))
                    if math.prod(shape) != array.size or min(shape, default=0) < 0:
                        raise RunBoundsError(f"`{view.array.name}` does not have the elements of another shape",
                                             expected=f"{array.size} elements", found=str(list(shape)))
                    array = array.reshape(shape)
                case t.TileCut(dim, start, size):
                    first = self.whole(start)
                    if not 0 <= first <= array.shape[dim]:
                        self.outside(view, dim, f"{first}:", array.shape[dim])
                    array = array[(slice(None),) * dim + (slice(first, first + size),)]
        return array

    def inside(self, view: t.ArrayView, dim: int, index: int, extent: int) -> int:
        """Return an index, checked."""
        if not 0 <= index < extent:
            self.outside(view, dim, str(index), extent)
        return index

    def outside(self, view: t.ArrayView, dim: int, found: str, extent: int) -> NoReturn:
        """Raise R104."""
        raise RunBoundsError(f"an index of `{view.array.name}` is outside, in dimension {dim} of its view", expected=f"0 … {extent - 1}"
                             if extent else "no index: there is nothing", found=found)

    def shape(self, array: t.Array) -> tuple[int, ...]:
        """Return the extents of an array that is made now."""
        shape = tuple(map(self.whole, array.shape))
        if min(shape, default=0) < 0:
            raise RunBoundsError(f"`{array.name}` has an extent below 0", found=str(list(shape)))
        return shape

    def whole(self, node: Scalar) -> int:
        """Return the value of an integer scalar."""
        return s.wrap_i64(int(self.number(node)))

    def number(self, node: Scalar) -> Number:
        """Return the value of a scalar at this point."""
        return s.evaluate(node, self.leaf)

    def leaf(self, node: Scalar) -> Number:
        """Return the value of a symbol, a loop variable, or an element of an array."""
        if node in self.numbers:
            return self.numbers[node]
        match node:
            case s.SymbolRef(name, dtype=dtype):
                if name not in self.named:
                    raise _refused(f"`{self.function.name}` needs a number for `{name}`", here())
                given = self.named[name]
                kind = DType.I64 if dtype is None else dtype
                rounded: Number = as_array(given, kind).item()
                self.numbers[node] = rounded
                return rounded
            case s.Element(tensor, index):
                array = self.arrays[tensor.id]
                places = tuple(map(self.whole, index))
                if any(not 0 <= place < extent for place, extent in zip(places, array.shape, strict=True)):
                    raise RunBoundsError(f"an element of `{tensor.shown}` that is read is outside",
                                         expected=f"an element of {list(array.shape)}", found=str(list(places)))
                element = array[places]
                return float(element) if tensor.dtype.is_real else bool(element) if tensor.dtype.is_bool else int(element)
            case _:
                unreachable(f"scalar at the tensor level: {print_scalar(node)}")


def type_text(array: t.Array) -> str:
    """Return the type of an array as errors show it: `[t, 4096] f32`."""
    return f"[{', '.join(map(print_scalar, array.shape))}] {array.dtype}"


def _refused(message: str, span: Span | None, expected: str | None = None, found: str | None = None) -> BindingError:
    return BindingError(message, span, expected=expected, found=found)


def _unfit(message: str, expected: str | None = None, found: str | None = None) -> ArrayBindingError:
    return ArrayBindingError(message, here(), expected=expected, found=found)


def _known(span: Span) -> Span | None:
    return None if span is UNKNOWN else span


def _write(target: Array, places: Any, value: Array, add: bool) -> None:
    """Write or add a value, which broadcasts, at places of an array."""
    with np.errstate(all="ignore"):
        if add:
            np.add.at(target, places, value)
        else:
            target[places] = np.broadcast_to(value, target[places].shape)
