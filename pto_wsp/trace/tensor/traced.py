"""Trace a function on whole arrays: `trace_function`, and what a caller needs beside the IR.

    signature = signature_of(function, scope)     # once, at the decorator
    bound = signature.bind(args, kwargs)          # each call: a cache's key is `bound.key` and `CapturedNames(function).key()`
    traced = trace_function(function, bound)      # for a new key alone
    result = traced.rebuild(arrays)               # arrays in the order of traced.function.results

`traced.function.params` stand in the order of `bound.leaves`, `traced.function.scalars` in that of `bound.scalars`.
`inline(function, signature, args, kwargs)` is what a call of a function on tensors means in the body of another (`is_tracing()`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import CodeType
from typing import Any, NoReturn

from pto_wsp.errors import (
    DepthError,
    LostWriteError,
    PtoError,
    TensorBodyError,
    TensorFunctionError,
    TensorResultError,
    TensorTypeMismatchError,
    TensorWriteError,
    no_error_lost,
)
from pto_wsp.ir import flow
from pto_wsp.ir import scalar as s
from pto_wsp.ir import tensor_function as tf
from pto_wsp.ir.layout import Contract, TensorRef
from pto_wsp.ir.scalar import Const, Scalar, SymbolRef
from pto_wsp.ir.symbolic import Symbolic
from pto_wsp.ir.tensor import Tensor, watch_tensors
from pto_wsp.ir.tensor_type import TensorType
from pto_wsp.ir.view import Cut, Pick
from pto_wsp.source import definition_span, here, repeated
from pto_wsp.trace.tensor.blocks import refuse_exit
from pto_wsp.trace.tensor.host_arrays import host_argument, on_arrays, own_arrays
from pto_wsp.trace.tensor.leaves import parts_of, with_leaves, with_parts
from pto_wsp.trace.tensor.names import RESULT
from pto_wsp.trace.tensor.protocols import BodyTrace
from pto_wsp.trace.tensor.signature import ArrayLeaf, BoundArguments, DeclaredType, ScalarLeaf, TensorSignature
from pto_wsp.trace.tensor.trace import TensorTrace, current_trace
from pto_wsp.trace.tensor.trace import is_tracing as is_tracing
from pto_wsp.trace.tensor.value import ArrayRole, Storage, TensorValue
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Traced:
    """A traced function. `structure`: what the function returned, with a number, of a result, in place of each tensor."""

    function: tf.TensorFunction
    structure: object

    def rebuild(self, results: Sequence[object]) -> Any:
        """Return the results in the structure that the function returns them in."""
        return None if self.structure is None else with_leaves(self.structure, iter(results))


def trace_function(function: Callable[..., object], bound: BoundArguments) -> Traced:
    """Trace the body of a function for arguments of these types.

    Raises: the errors of the body, at the user's lines: J1xx, J2xx, and those of the op table.
    """
    code = _code_of(function)
    trace = BodyTrace(code)
    symbols: dict[str, SymbolRef] = {}
    params: list[tuple[ArrayLeaf, Storage]] = []
    scalars: list[SymbolRef] = []

    def leaf(argument: ArrayLeaf | ScalarLeaf) -> object:
        if isinstance(argument, ScalarLeaf):
            scalars.append(SymbolRef(argument.path, -1 - len(scalars), argument.dtype))
            trace.symbols.add(scalars[-1])
            return Symbolic(scalars[-1])
        shape = tuple(Const(n) if isinstance(n, int) else symbols.setdefault(n, SymbolRef(n, len(symbols))) for n in argument.type.extents)
        trace.symbols.update(symbols.values())
        kind = ArrayRole.WRITTEN if argument.type.written else ArrayRole.READ
        made = trace.storage(argument.path, shape, argument.type.dtype, kind, contracts=argument.type.contracts, named=True)
        made.span = argument.span
        params.append((argument, made))
        return TensorValue(trace, made)

    span = definition_span(code)
    arguments = {name: _with_leaves(value, leaf) for name, value in bound.arguments.items()}
    with no_error_lost(f"`{function.__name__}`"), trace.running(), watch_tensors(lambda: None, _refuse_tensor, lambda ref, dim: None):
        try:
            returned = _called(function, arguments)
        except RecursionError as problem:
            found = repeated(problem)
            raise DepthError(f"`{function.__name__}`: the body calls itself without end", found[1] if found else span,
                             help="the body is traced once: end a recursion by a Python number") from None
        if len(trace.blocks.open) > 1:
            refuse_exit()
        trace.blocks.awaited.check()
        results = tuple(_results(trace, function.__name__, returned))
    for argument, made in params:
        if made.kind is ArrayRole.WRITTEN and not made.version:
            raise LostWriteError(f"`{function.__name__}`: the InOut parameter `{argument.path}` is never written", made.span,
                                 expected=f"{argument.path}[:] = ..., or {argument.path} += ...", found="its name alone, bound or not",
                                 help="x = x + 1 makes another tensor; a parameter that is only read is no InOut")
    _name_results(trace, returned, results)
    change = _Changed(trace)
    complete = tf.TensorFunction(
        function.__name__, tuple(tf.ArrayParam(change.array(each.array), each.kind is ArrayRole.WRITTEN, argument.path, argument.span)
                                 for argument, each in params),
        change.body(flow.Sequence(tuple(trace.blocks.innermost.items))), tuple(change.view(value.array_view) for value in results),
        tuple(symbols.values()), tuple(scalars), tuple(replace(each, array=change.array(each.array)) for each in trace.constants),
        tuple(trace.facts.assumptions), span)
    numbers = iter(range(len(results)))
    return Traced(complete, None if returned is None else _with_leaves(returned, lambda _: next(numbers)))


def check_same(first: Traced, second: Traced) -> None:
    """Check that two traces of a body for the same arguments give one function.

    Raises: J108 at the first statement that differs.
    """
    one, other = first.function, second.function
    if repr((one.constants, one.body, one.results)) == repr((other.constants, other.body, other.results)):      # NaN is NaN here
        return
    drawn = {before.array.id for before, after in zip(one.constants, other.constants, strict=False) if before != after}
    spans = (before.span for before, after in zip(flow.leaves(one.body), flow.leaves(other.body), strict=False)
             if repr(before) != repr(after) or any(view.array.id in drawn for view in before.reads))
    raise TensorFunctionError(f"the body of `{one.name}` is traced once, and computes with numbers that change: each call would have those "
                              "of the first", next(spans, one.span), found="a drawn number, or the time",
                              expected="numbers that are the same each time, or come with each call",
                              help="tt.random(shape, seed) draws in each call; or draw before the call, and pass the numbers")


def _with_leaves(value: object, leaf: Callable[[Any], object]) -> object:
    """Return a container with `leaf` of each array and number in it, in order."""
    parts = None if isinstance(value, ArrayLeaf | ScalarLeaf | TensorValue) else parts_of(value)
    if parts is not None:
        return with_parts(value, [_with_leaves(part, leaf) for _, part in parts])
    return leaf(value) if isinstance(value, ArrayLeaf | ScalarLeaf | TensorValue) else value


def _code_of(function: Callable[..., object]) -> CodeType:
    code: CodeType = function.__code__
    return code


def _called(function: Callable[..., object], arguments: Mapping[str, object]) -> object:
    code = _code_of(function)
    places = code.co_varnames[:code.co_posonlyargcount]
    rest = {name: value for name, value in arguments.items() if name not in places}
    return function(*(arguments[name] for name in places), **rest)


def _refuse_tensor(tensor: Tensor) -> NoReturn:
    raise TensorBodyError("Tensor.empty makes a tensor of a workload, in a function on tensors", here(), expected="tt.empty(shape, dtype)",
                          found=repr(tensor))


# -- results -----------------------------------------------------------------------------------------------------------

def _results(trace: TensorTrace, name: str, returned: object) -> Iterator[TensorValue]:
    """Yield the tensors that a function returns.

    Raises: J104 for anything else, for an InOut parameter, and for a tensor whose extents only data knows.
    """
    if returned is None:
        return
    if isinstance(returned, TensorValue):
        try:
            trace.check_read(returned)
        except PtoError as problem:
            problem.span = here_of(trace)
            raise
        if returned.storage.kind is ArrayRole.WRITTEN:
            raise TensorResultError(f"`{name}` returns the InOut parameter `{returned.name}`, which the caller has", here_of(trace),
                                    expected="tensors that the body made", found=repr(returned), help="leave it out of the results")
        if any(isinstance(leaf, s.Element) for extent in returned.extents for leaf in s.leaves(extent)):
            raise TensorResultError(f"`{name}` returns a tensor whose extents only data knows", here_of(trace),
                                    expected="extents of numbers and of symbols, which a call knows", found=repr(returned),
                                    help="reduce it, or put it into a tensor of a known shape: out[lo:hi] = value")
        yield returned
        return
    parts = parts_of(returned)
    if parts is None:
        raise TensorResultError(f"`{name}` returns what is no tensor", here_of(trace), found=f"{type(returned).__name__}: {returned!r:.60}",
                                expected="a tensor, a tuple, list or dict of tensors, or None",
                                help="tt.cast(n, DType.F32) makes a tensor of a number")
    for _, part in parts:
        yield from _results(trace, name, part if part is not None else _NOTHING)


_NOTHING = "None"


def here_of(trace: TensorTrace) -> Any:
    """Return where the traced function is defined."""
    return definition_span(trace.root)


def _name_results(trace: TensorTrace, returned: object, results: Sequence[TensorValue]) -> None:
    """Name the results that no variable of the user names: `out`, of several `out[1]`."""
    several = not isinstance(returned, TensorValue)
    for number, value in enumerate(results):
        storage = value.storage
        if not storage.named and storage.kind in (ArrayRole.RESULT,
                                                  ArrayRole.STATE) and storage.array.name.partition("#")[0].startswith(RESULT):
            storage.named = True
            wanted = f"{RESULT}[{number}]" if several else RESULT
            if storage.array.name != wanted:
                storage.array = replace(storage.array, name=trace.names.unique(wanted))


class _Changed:
    """Rebuild statements with the arrays as they are at the end of the trace.

    A value that the body wrote is state: the operation gives `x.value`, which is put into state `x`. What is written keeps no contract.
    """

    def __init__(self, trace: TensorTrace) -> None:
        self._arrays: dict[int, tf.Array] = {}
        self._promoted: dict[int, tf.Array] = {}
        fresh = max(trace.made, default=-1) + 1
        for number, storage in trace.made.items():
            kept = storage.array.contracts if storage.version == 0 or storage.kind is not ArrayRole.RESULT else ()
            self._arrays[number] = replace(storage.array, contracts=kept)
            if storage.promoted:
                name = trace.names.unique(f"{storage.array.name}.value")
                self._promoted[number] = replace(storage.array, id=fresh, name=name)
                fresh += 1
        for number, array in self._arrays.items():      # extents may read elements of arrays
            self._arrays[number] = replace(array, shape=tuple(map(self.scalar, array.shape)))
        for number, array in self._promoted.items():
            self._promoted[number] = replace(array, shape=tuple(map(self.scalar, array.shape)))

    def array(self, array: tf.Array) -> tf.Array:
        """Return an array as it is at the end."""
        return self._arrays.get(array.id, array)

    def _ref(self, ref: TensorRef) -> TensorRef:
        found = self._arrays.get(ref.id)
        return ref if found is None else found.ref

    def scalar(self, node: Scalar) -> Scalar:
        """Return a scalar with its elements' arrays as they are at the end."""
        if not any(isinstance(leaf, s.Element) for leaf in s.leaves(node)):
            return node
        return s.substitute(node, lambda one: s.Element(self._ref(one.tensor), tuple(map(self.scalar, one.index)))
                            if isinstance(one, s.Element) else None)

    def view(self, view: tf.ArrayView) -> tf.ArrayView:
        """Return a view of an array as it is at the end."""
        return tf.ArrayView(self.array(view.array), tuple(map(self._step, view.steps)))

    def _step(self, step: tf.ArrayStep) -> tf.ArrayStep:
        match step:
            case Pick(dim, at):
                return Pick(dim, self.scalar(at))
            case Cut(dim, start, stop, by):
                return Cut(dim, self.scalar(start), self.scalar(stop), by)
            case tf.Refold(shape):
                return tf.Refold(tuple(map(self.scalar, shape)))
            case _:
                return step

    def _operand(self, operand: tf.Operand) -> tf.Operand:
        return self.view(operand) if isinstance(operand, tf.ArrayView) else self.scalar(operand)

    def body(self, body: tf.Body) -> tf.Body:
        """Return a body as it is at the end."""
        return flow.Sequence(tuple(new for item in body.items for new in self._item(item)))

    def _item(self, item: tf.Item) -> Iterator[tf.Item]:
        match item:
            case flow.Do(leaf):
                yield from map(flow.Do, self._statement(leaf))
            case flow.Loop():
                yield replace(item, start=self.scalar(item.start), stop=self.scalar(item.stop), body=self.body(item.body))
            case flow.Choice(branches, otherwise):
                yield flow.Choice(tuple(replace(each, condition=self.scalar(each.condition), body=self.body(each.body))
                                        for each in branches), self.body(otherwise))
            case _:
                yield item

    def _statement(self, statement: tf.Statement) -> Iterator[tf.Statement]:
        match statement:
            case tf.Apply(op, operands, results, attrs, group, span):
                made = tuple(self._promoted.get(each.id, self.array(each)) for each in results)
                fixed = tuple((name, self.scalar(value) if isinstance(value, Scalar) else value) for name, value in attrs)
                yield tf.Apply(op, tuple(map(self._operand, operands)), made, fixed, group, span)
                for before, value in zip(results, made, strict=True):
                    if before.id in self._promoted:
                        state = self.array(before)
                        yield tf.Make(state, None, span)
                        yield tf.Put(tf.ArrayView(state), tf.ArrayView(value), None, False, group, span)
            case tf.Make(array, fill, span):
                yield tf.Make(self.array(array), fill, span)
            case tf.Put(target, new, table, add, group, span):
                yield tf.Put(self.view(target), self._operand(new), None if table is None else self.view(table), add, group, span)
            case tf.Show(label, shown, group, span):
                yield tf.Show(label, self.view(shown), group, span)


# -- functions in functions --------------------------------------------------------------------------------------------

def inline(function: Callable[..., object], signature: TensorSignature, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Any:
    """Return what a function on tensors gives in the body of another: its body is traced there, with symbols of its own.

    Raises: J109 for an argument of another type, J201 for extents of one name that are not provably equal, J102 for an InOut argument
    that may not be written, and the errors of the body.
    """
    trace = current_trace(signature.name)
    symbols: dict[str, tuple[Scalar, str]] = {}
    values = signature.values(args, kwargs)
    arguments = {param.name: _inner(trace, signature.name, value, param.declared, param.name, symbols)
                 for param, value in zip(signature.params, values, strict=True)}
    return _called(function, arguments)


def _inner(trace: TensorTrace, name: str, value: object, declared: DeclaredType, path: str, symbols: dict[str, tuple[Scalar,
                                                                                                                     str]]) -> object:
    """Return an argument of an inner function: In parameters are only read there."""
    if isinstance(declared.leaf, TensorType) or isinstance(value, TensorValue):
        return _inner_array(trace, f"`{name}`: argument `{path}`", trace.value(f"`{name}`: argument `{path}`", value),
                            declared.leaf if isinstance(declared.leaf, TensorType) else None, path, symbols)
    parts = parts_of(value)
    if parts is None:
        return value
    return with_parts(value, [_inner(trace, name, part, declared.of_part(key), f"{path}.{key}", symbols) for key, part in parts])


def _inner_array(trace: TensorTrace, where: str, value: TensorValue, wanted: TensorType | None, path: str,
                 symbols: dict[str, tuple[Scalar, str]]) -> TensorValue:
    if wanted is None:
        return TensorValue(trace, value.storage, value.steps, value.taken, readonly=True)
    if value.dtype is not wanted.dtype or value.rank != wanted.rank:
        what = "dtype" if value.rank == wanted.rank else "rank"
        raise TensorTypeMismatchError(f"{where} is of another {what}", here(), expected=repr(wanted), found=repr(value))
    for extent, named in zip(value.extents, wanted.extents, strict=True):
        known, first = (Const(named), "the annotation") if isinstance(named, int) else symbols.setdefault(named, (extent, path))
        if not trace.facts.are_same(known, extent):
            trace.refuse_extents(f"{where}: `{named}`, by {first}", known, extent, f"{value!r} for {wanted!r}")
    for contract in wanted.contracts:
        if contract not in value.storage.array.contracts:
            raise TensorTypeMismatchError(f"{where}: nothing says that the table is {contract.value}", here(), expected=repr(wanted),
                                          found=repr(value), help=f"declare the outer parameter as {contract.value.capitalize()}[...]"
                                          if contract in Contract else None)
    if wanted.written and (value.readonly or not value.storage.writable or value.taken):
        raise TensorWriteError(f"{where} is written in place, and may only be read", here(),
                               expected="state of tt.zeros, or an InOut parameter",
                               found=repr(value))
    return TensorValue(trace, value.storage, value.steps, value.taken, readonly=not wanted.written)


def run_on_arrays(function: Callable[..., object], bound: BoundArguments) -> Any:
    """Run a body as a NumPy program on the arrays of a call; InOut arrays are written.

    Raises: what the body raises.
    """
    arrays, numbers = iter(zip(bound.leaves, bound.arrays, strict=True)), iter(bound.numbers)

    def leaf(argument: ArrayLeaf | ScalarLeaf) -> object:
        if isinstance(argument, ScalarLeaf):
            return next(numbers)
        known, array = next(arrays)
        return None if array is None else host_argument(array, written=known.type.written)

    arguments = {name: _with_leaves(value, leaf) for name, value in bound.arguments.items()}
    with on_arrays():
        return own_arrays(_called(function, arguments))
