"""The functions of `tt`: what functions on whole tensors have beside NumPy. Each acts on the trace that runs, or, in `f.python`, on arrays.

>>> sorted(OWN)[:3]
['arange', 'assume', 'cast']
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NoReturn, TypeAlias

from pto_wsp.calls import user_call
from pto_wsp.errors import (
    ConditionError,
    ExtentError,
    TensorControlError,
    TensorOperandError,
    TensorOptionError,
    UnknownNameError,
    UnsupportedDTypeError,
)
from pto_wsp.ir import scalar as s
from pto_wsp.ir import tensor_function as tf
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.extents import product, simplified
from pto_wsp.ir.layout import Contract
from pto_wsp.ir.scalar import Const, Element
from pto_wsp.ir.symbolic import Symbolic
from pto_wsp.ir.view import Cut
from pto_wsp.ops import typing
from pto_wsp.ops.entries import formulas
from pto_wsp.ops.entries.matmul import matmul as multiplied
from pto_wsp.ops.rounding import ALL, NUMBERS
from pto_wsp.ops.spec import ColReduce, Elementwise, RowReduce
from pto_wsp.ops.table import ENTRIES
from pto_wsp.ops.tensors import FULL, RANDOM, ROWS_OF
from pto_wsp.source import here
from pto_wsp.trace.tensor import control
from pto_wsp.trace.tensor import functions as fn
from pto_wsp.trace.tensor import reductions as red
from pto_wsp.trace.tensor.along import value_of
from pto_wsp.trace.tensor.einsum import einsum
from pto_wsp.trace.tensor.host_arrays import on_both
from pto_wsp.trace.tensor.names import frames_of_body, target_of_statement
from pto_wsp.trace.tensor.trace import TensorTrace, current_trace
from pto_wsp.trace.tensor.value import TensorValue
from pto_wsp.wording import nearest

Traced: TypeAlias = Callable[..., Any]


# -- state and numbers -------------------------------------------------------------------------------------------------

@user_call("tt.zeros")
def zeros(shape: object, dtype: object = DType.F32) -> TensorValue:
    """Return state of zeros: a tensor that the body writes, new in each iteration of the body it stands in."""
    return _state("zeros", shape, 0, dtype)


@user_call("tt.ones")
def ones(shape: object, dtype: object = DType.F32) -> TensorValue:
    """Return state of ones."""
    return _state("ones", shape, 1, dtype)


@user_call("tt.full")
def full(shape: object, value: object, dtype: object = DType.F32) -> TensorValue:
    """Return state of one number, or of a scalar of the function."""
    return _state("full", shape, value, dtype)


@user_call("tt.empty")
def empty(shape: object, dtype: object = DType.F32) -> TensorValue:
    """Return a tensor with undefined elements: write each element before it is read."""
    return _state("empty", shape, None, dtype)


def _state(name: str, shape: object, fill: object, dtype: object) -> TensorValue:
    trace = current_trace(name)
    return fn.made_state(trace, name, trace.extents(f"`tt.{name}`", shape), fill, typing.as_dtype(name, dtype, ALL))


@user_call("tt.arange")
def arange(start: object, stop: object = None, step: object = 1, dtype: object = DType.I32) -> TensorValue:
    """Return start, start + step, … below stop: tt.arange(n), tt.arange(start, stop), tt.arange(start, stop, step)."""
    trace = current_trace("arange")
    first, last = (0, start) if stop is None else (start, stop)
    low, high = trace.whole("`tt.arange`: the start", first), trace.whole("`tt.arange`: the stop", last)
    by = trace.whole("`tt.arange`: the step", step)
    if not isinstance(by, Const) or by.value == 0:
        raise TensorOptionError("`tt.arange`: the step is a number, and not 0", here(), expected="a constant", found=s.print_scalar(by))
    kind = typing.as_dtype("arange", dtype, NUMBERS)
    span = s.sub(high, low) if by.value > 0 else s.sub(low, high)
    extent = simplified(s.ceil_div(span, Const(abs(int(by.value)))))
    if not trace.facts.is_natural(extent):
        extent = s.maximum(extent, Const(0))
    return trace.counted(extent, kind, low, by)


@user_call("tt.cast")
def cast(x: object, dtype: object) -> TensorValue:
    """Return a tensor in another dtype, or a scalar as a tensor without dimensions: tt.cast(n, DType.F32)."""
    trace = current_trace("cast")
    if isinstance(x, TensorValue):
        return fn.astype(x, dtype)
    wanted = typing.as_dtype("cast", dtype, ALL)
    node = trace.scalar("`tt.cast`", x)
    if wanted.is_integer and s.scalar_dtype(node).is_float:
        raise TensorOptionError("`tt.cast`: a float scalar becomes no whole number", here(), expected="a float dtype",
                               found=s.print_scalar(node))
    return trace.apply(FULL, (node,), (), wanted)


@user_call("tt.random")
def random(shape: object, seed: object) -> TensorValue:
    """Return f32 numbers in [0, 1) that depend on the seed and the flat index (modulo 2^32) alone, on every target, whatever the plan."""
    trace = current_trace("random")
    extents = trace.extents("`tt.random`", shape)
    strides = [simplified(product(extents[dim + 1:])) for dim in range(len(extents))]
    return trace.apply(RANDOM, (trace.whole("`tt.random`: the seed", seed), Const(0), *strides), extents, DType.F32)


@user_call("tt.assume")
def assume(condition: object) -> None:
    """Promise a condition on extents and Scalars, which each call checks: tt.assume(x.shape[0] <= 4096).

    Raises: T210 for what is no condition, J201 for one that is false.
    """
    trace = current_trace("assume")
    if condition is True:
        return
    if condition is False:
        raise ExtentError("`tt.assume`: the condition is false", here(), expected="a condition that holds", found="False")
    if not isinstance(condition, Symbolic):
        raise ConditionError("`tt.assume` takes a condition on scalars", here(), expected="a comparison, e.g. x.shape[0] <= 4096",
                             found=f"{condition!r:.60}")
    node = trace.scalar("`tt.assume`", condition)
    if not s.scalar_dtype(node).is_bool or any(not isinstance(leaf, s.SymbolRef) for leaf in s.leaves(node)):
        raise ConditionError("`tt.assume` takes a condition on extents and Scalars, which a call knows", here(),
                             expected="a comparison, e.g. x.shape[0] <= 4096", found=s.print_scalar(node))
    todo = [node]
    while todo:
        one = todo.pop()
        if isinstance(one, s.Binary) and one.op is s.Op.AND:
            todo += [one.lhs, one.rhs]
        else:
            trace.facts.assumptions.append(tf.Assumption(one, here()))


@user_call("tt.print")
def print_(*values: object) -> None:
    """Print a tensor while the function runs: tt.print(x), or tt.print("label", x)."""
    trace = current_trace("print")
    if len(values) not in (1, 2) or (len(values) == 2 and not isinstance(values[0], str)):
        raise TensorOptionError("`tt.print` takes one value, perhaps behind a label", here(),
                                expected='tt.print(x) or tt.print("label", x)',
                         found=f"{len(values)} arguments")
    label, value = values if len(values) == 2 else ("", values[0])
    if not isinstance(value, TensorValue):
        node = trace.scalar("`tt.print`", value)
        kind = s.scalar_dtype(node)
        value = trace.apply(FULL, (node,), (), DType.F32 if kind.is_float else kind, name="printed")
    trace.check_read(value)
    trace.blocks.append(tf.Show(str(label), value.array_view, trace.group, here()))


# -- places ------------------------------------------------------------------------------------------------------------

@user_call("tt.topk")
def topk(x: object, k: object, largest: object = True) -> tuple[TensorValue, TensorValue]:
    """Return the k largest elements along the last axis, falling, and their places, i32; NaN is the largest, then the lower place.

    Raises: J205 for an axis without a bound.
    """
    first, second = _two_names("topk", "topk.values", "topk.places")
    return fn.topk(x, k, largest=largest, names=(first, second))


def _two_names(op: str, first: str, second: str) -> tuple[str | None, str | None]:
    """Return the names of two results: the variables of `a, b = tt.topk(…)`."""
    trace = current_trace(op)
    frames = frames_of_body(trace.root)
    names = target_of_statement(frames[0]).names if frames else ()
    prefix = trace.names.of_value(op, trace.root)[0].rpartition(".")[0] if len(frames) > 1 else ""
    prefix = f"{prefix}." if prefix else ""
    return (f"{prefix}{names[0]}", f"{prefix}{names[1]}") if len(names) == 2 else (f"{prefix}{first}", f"{prefix}{second}")


class RowsOf:
    """The places of each number 0 … n - 1 in a table: `pairs[e]` are those of e, rising."""

    __slots__ = ("_count", "_places", "_starts", "_trace")

    def __init__(self, trace: TensorTrace, places: TensorValue, starts: TensorValue, count: s.Scalar) -> None:
        self._trace = trace
        self._places = places
        self._starts = starts
        self._count = count

    def __getitem__(self, item: object) -> TensorValue:
        if isinstance(item, slice | tuple | list) or item is None or item is Ellipsis:
            raise TensorOperandError("the rows of a table are taken one by one", here(), expected="pairs[e], e a whole number or scalar",
                                   found=f"pairs[{item!r:.40}]")
        first = self._starts[item]
        node = self._trace.whole("an index", item)
        if isinstance(node, Const) and node.value < 0:
            node = simplified(s.add(self._count, node))
        last = Element(self._starts.storage.array.ref, (simplified(s.add(node, Const(1))),))
        start = self._trace.whole("a start", first)
        self._trace.facts.naturals.add(simplified(s.sub(last, start)))
        return self._places.then(Cut(0, start, last))

    @property
    def sizes(self) -> TensorValue:
        """How many places each number has, [n] i32."""
        return self._starts[1:] - self._starts[:-1]  # type: ignore[no-any-return]

    def __len__(self) -> NoReturn:
        raise TensorControlError("len of the rows of a table", here(), help="it is the n that tt.rows_of was given")

    def __iter__(self) -> NoReturn:
        raise TensorControlError("iter of the rows of a table", here(), help="for e in tt.each(n): mine = pairs[e]")

    def __repr__(self) -> str:
        return f"<rows of {self._places!r}>"


@user_call("tt.rows_of")
def rows_of(table: object, n: object) -> RowsOf:
    """Return the places of 0 … n - 1 in a table, flattened: `tt.rows_of(expert, n)[e]` are the places that hold e, rising.

    An entry outside 0 … n - 1 ends the run. `.sizes` is [n].
    """
    trace, value = current_trace("rows_of"), value_of("rows_of", table)
    if not value.dtype.is_integer:
        raise UnsupportedDTypeError("`tt.rows_of` takes a table of whole numbers", here(), expected="any integer dtype", found=repr(value))
    count = trace.whole("`tt.rows_of`: n", n)
    name = trace.names.of_value("rows_of", trace.root)[0]
    frames = frames_of_body(trace.root)
    names = target_of_statement(frames[0]).names if frames else ()
    kept = ((product(value.extents),), DType.I32, (Contract.INJECTIVE,)), ((simplified(s.add(count, Const(1))),), DType.I32,
                                                                           (Contract.MONOTONE,))
    number: object = int(count.value) if isinstance(count, Const) else count
    places, starts = trace.apply_all(ROWS_OF, (value,), kept, (("n", number),), (name, f"{names[-1] if names else name}.starts"))
    return RowsOf(trace, places, starts, count)


# -- the namespace -----------------------------------------------------------------------------------------------------

OWN: Mapping[str, Traced] = MappingProxyType({
    "loop": control.loop, "each": control.each, "when": control.when, "otherwise": control.otherwise, "group": control.group,
    "zeros": zeros, "ones": ones, "full": full, "empty": empty, "arange": arange, "topk": topk, "rows_of": rows_of, "cast": cast,
    "assume": assume, "random": random, "print": print_})
_OF_NUMPY: Mapping[str, Traced] = MappingProxyType({
    "sum": red.sum_, "prod": red.prod, "mean": red.mean, "max": red.max_, "min": red.min_, "amax": red.amax, "amin": red.amin,
    "any": red.any_,
    "all": red.all_, "argmax": red.argmax, "argmin": red.argmin, "var": red.var, "std": red.std, "softmax": red.softmax,
    "log_softmax": red.log_softmax, "logsumexp": red.logsumexp, "cumsum": red.cumsum, "reshape": fn.reshape, "transpose": fn.transpose,
    "concatenate": fn.concatenate, "cat": fn.concatenate, "stack": fn.stack, "split": fn.split, "pad": fn.pad, "tril": fn.tril,
    "triu": fn.triu, "where": fn.where_, "select": fn.where_, "sort": fn.sort, "argsort": fn.argsort, "einsum": einsum,
    "zeros_like": fn.zeros_like, "ones_like": fn.ones_like, "full_like": fn.full_like, "clip": fn.clip, "repeat": fn.repeat,
    "gather": fn.take_along_axis, "matmul": multiplied, "flip": fn.flip, "expand": fn.broadcast_to,
    **{f.__name__: f for f in (formulas.square, formulas.isnan, formulas.isinf, formulas.isfinite, formulas.logical_and,
                               formulas.logical_or,
                               formulas.logical_xor, formulas.logical_not, formulas.clamp)}})
_OF_TABLE: Mapping[str, Traced] = MappingProxyType({
    name: op for op in ENTRIES if isinstance(op, Elementwise | RowReduce | ColReduce) or op.name in ("rowargmax", "rowargmin")
    for name in (op.name, *op.aliases)})
MEMBERS: Mapping[str, Traced] = MappingProxyType({
    name: on_both(name, function) if name in OWN or not isinstance(function, Elementwise | RowReduce | ColReduce) else function
    for name, function in {**_OF_TABLE, **_OF_NUMPY, **OWN}.items()})


def member(name: str) -> Traced:
    """Return a function of `tt` by name.

    Raises: T211 for a name that it does not have.
    """
    found = MEMBERS.get(name)
    if found is None:
        near = nearest(name, MEMBERS)
        raise UnknownNameError(f"`tt` has no `{name}`", here(), help=f"did you mean tt.{near}?" if near else "dir(tt) lists the names")
    return found


