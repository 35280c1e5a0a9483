"""Run the body of a function on tensors as the NumPy program that it is, on arrays of an ndarray subclass: `f.python(*arrays)`.

In parameters are read-only, a DType is a dtype, products widen as in kernels, and a side of `tt.when` that is not taken is left at its
first write, or at its first mistake. What `tt` has beside NumPy has a meaning on arrays here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from types import MappingProxyType, TracebackType
from typing import Any, TypeAlias

import numpy as np

from pto_wsp.calls import bind
from pto_wsp.errors import ExtentError, TensorControlError, TensorWriteError
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Const
from pto_wsp.ops.rounding import MATMUL_RESULT, Array, convert
from pto_wsp.ops.spec import Op
from pto_wsp.ops.tensors import RANDOM, ROWS_OF, ArrayType, SizedType, evaluate, infer
from pto_wsp.source import here
from pto_wsp.trace.tensor.leaves import parts_of, with_parts

Traced: TypeAlias = Callable[..., Any]


class _SideNotTaken(Exception):
    """Leave a side of a branch that is not taken."""


class HostRun:
    """The run of a body on arrays. `skipped`: number of enclosing sides that are not taken; `held`: value of the last condition."""

    def __init__(self) -> None:
        self.skipped = 0
        self.held: bool | None = None


_RUNNING: ContextVar[HostRun | None] = ContextVar("pto_wsp_host_run", default=None)


def is_on_arrays() -> bool:
    """Tell whether a body runs as a NumPy program."""
    return _RUNNING.get() is not None


@contextmanager
def on_arrays() -> Iterator[None]:
    """Give the names of `tt` their meaning on arrays, for the duration of a `with` block."""
    token = _RUNNING.set(HostRun())
    try:
        yield
    finally:
        _RUNNING.reset(token)


class HostArray(np.ndarray[Any, Any]):
    """An array of a body that runs as a NumPy program."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if "out" in options or method == "at":
            _check_write(options["out"][0] if "out" in options else inputs[0])
            options = {key: tuple(map(_plain, value)) if key == "out" else value for key, value in options.items()}
        plain = tuple(map(_plain, inputs))
        if ufunc is np.matmul:
            plain = tuple(map(_widened, plain))
        with np.errstate(all="ignore"):
            return _host(getattr(ufunc, method)(*plain, **options))

    def __array_function__(self, function: Traced, types: object, args: Any, kwargs: Any) -> Any:
        given, named = _each_plain(args), _each_plain(kwargs)
        if function in (np.einsum, np.dot, np.tensordot):
            given = tuple(_widened(each) if isinstance(each, np.ndarray) else each for each in given)
        if function is np.argsort and len(given) < 3 and named.get("kind") is None:
            named["kind"] = "stable"      # NumPy's own choice leaves the order of ties open
        if named.get("dtype") is not None:
            named["dtype"] = _dtype(named["dtype"])
        with np.errstate(all="ignore"):
            return _host(function(*given, **named))

    def __setitem__(self, item: Any, value: Any) -> None:
        _check_write(self)
        super().__setitem__(item, value)

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """Return a copy in another dtype: a DType converts as kernels do."""
        wanted = DType.of(dtype)
        if wanted is None:
            return super().astype(dtype, *args, **kwargs)
        return _host(np.ascontiguousarray(convert(_plain(self), wanted)).reshape(self.shape))

    def argsort(self, *args: Any, **kwargs: Any) -> Any:
        """Return the places in rising order; of equal elements the lower place comes first."""
        return np.argsort(self, *args, **kwargs)

    def to(self, dtype: Any) -> Any:
        """Return a copy in another dtype."""
        return self.astype(dtype)


def _check_write(target: Any) -> None:
    run = _RUNNING.get()
    if run is not None and run.skipped:
        raise _SideNotTaken
    if isinstance(target, np.ndarray) and not target.flags.writeable:
        raise TensorWriteError("an In parameter is only read", here(), expected="state of tt.zeros, or an InOut parameter",
                               found=f"an array of shape {target.shape}")


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, HostArray) else value


def _each_plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _each_plain(each) for key, each in value.items()}
    if type(value) in (tuple, list):
        return type(value)(map(_each_plain, value))
    return _plain(value)


def _host(value: Any) -> Any:
    if isinstance(value, np.ndarray) and not isinstance(value, HostArray):
        return value.view(HostArray)
    return type(value)(map(_host, value)) if type(value) in (tuple, list) else value


def _dtype(value: Any) -> Any:
    known = DType.of(value)
    return value if known is None else known.np


def _widened(value: Any) -> Any:
    """Return an operand of a product in the dtype that products add up in."""
    dtype = DType.of(value.dtype) if isinstance(value, np.ndarray) else None
    return value if dtype is None or dtype not in MATMUL_RESULT else value.astype(MATMUL_RESULT[dtype].np)


def host_argument(array: Array, *, written: bool) -> Array:
    """Return a view of an argument for the body: on the same memory, read-only unless the function writes the argument."""
    made = array.view(HostArray)
    if not written:
        made = made.view()
        made.flags.writeable = False
    return made


def own_arrays(value: Any) -> Any:
    """Return results as plain arrays of their own."""
    if isinstance(value, np.ndarray):
        return np.array(value.view(np.ndarray))
    if isinstance(value, np.generic):
        return np.asarray(value)
    parts = parts_of(value)
    return value if parts is None else with_parts(value, [own_arrays(part) for _, part in parts])


# -- what tt has beside NumPy ------------------------------------------------------------------------------------------

def _loop(start: Any, stop: Any = None, step: Any = 1) -> range:
    run = _RUNNING.get()
    if run is not None and run.skipped:
        raise _SideNotTaken
    return range(int(start)) if stop is None else range(int(start), int(stop), int(step))


def _each(*extents: Any) -> Iterator[Any]:
    return iter(_loop(*extents)) if len(extents) == 1 else itertools.product(*map(_loop, extents))


class _HostSide:
    """One side of a branch; a side that is not taken is left at its first write."""

    def __init__(self, taken: bool) -> None:
        self._taken = taken

    def __enter__(self) -> None:
        run = _RUNNING.get()
        if run is not None and not self._taken:
            run.skipped += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        run = _RUNNING.get()
        if run is None or self._taken:
            if run is not None:
                run.held = True
            return False
        run.skipped -= 1
        run.held = False
        return isinstance(error, Exception)


def _when(condition: Any) -> _HostSide:
    return _HostSide(bool(condition))


def _otherwise() -> _HostSide:
    run = _RUNNING.get()
    if run is None or run.held is None:
        raise TensorControlError("`tt.otherwise()` does not stand directly behind a `with tt.when(...)`", here())
    return _HostSide(not run.held)


@contextmanager
def _group(name: str) -> Iterator[None]:
    yield


def _state(fill: Any) -> Traced:
    def make(shape: Any, dtype: Any = DType.F32) -> Any:
        return _host(np.full(shape, fill, _dtype(dtype)))
    return make


def _full(shape: Any, value: Any, dtype: Any = DType.F32) -> Any:
    return _host(np.full(shape, value, _dtype(dtype)))


def _empty(shape: Any, dtype: Any = DType.F32) -> Any:
    kind = np.dtype(_dtype(dtype))
    return _host(np.full(shape, np.nan if kind.kind not in "iub" else 0, kind))


def _arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = DType.I32) -> Any:
    low, high = (0, start) if stop is None else (start, stop)
    return _host(np.arange(int(low), int(high), int(step)).astype(_dtype(dtype)))


def _cast(x: Any, dtype: Any) -> Any:
    return _host(np.asarray(x)).astype(dtype)


def _topk(x: Any, k: Any, largest: Any = True) -> tuple[Any, Any]:
    plain = _plain(x)
    wanted = SizedType((*plain.shape[:-1], int(k)), DType.I32)
    places, = evaluate("topk", (plain,), (("k", int(k)), ("descending", bool(largest))), (wanted,))
    return _host(np.take_along_axis(plain, places, -1)), _host(places)


class HostRows:
    """The places of each number in a table of an array."""

    def __init__(self, table: Any, n: Any) -> None:
        plain, count = _plain(table), int(n)
        types = (SizedType((plain.size,), DType.I32), SizedType((count + 1,), DType.I32))
        self._places, self._starts = evaluate(ROWS_OF, (plain,), (("n", count),), types)

    def __getitem__(self, item: Any) -> Any:
        at = int(item) % (len(self._starts) - 1)
        return _host(self._places[self._starts[at]:self._starts[at + 1]])

    @property
    def sizes(self) -> Any:
        """How many places each number has."""
        return _host(np.diff(self._starts))


def _assume(condition: Any) -> None:
    if not bool(condition):
        raise ExtentError("`tt.assume`: the condition is false", here(), expected="a condition that holds", found="False")


def _random(shape: Any, seed: Any) -> Any:
    extents = tuple(map(int, shape)) if isinstance(shape, tuple | list) else (int(shape),)
    strides = [math.prod(extents[dim + 1:]) for dim in range(len(extents))]
    made, = evaluate(RANDOM, (int(seed), 0, *strides), (), (SizedType(extents, DType.F32),))
    return _host(made)


def _print(*values: Any) -> None:
    run = _RUNNING.get()
    if run is None or not run.skipped:
        print(*values)


OWN: Mapping[str, Traced] = MappingProxyType({
    "loop": _loop, "each": _each, "when": _when, "otherwise": _otherwise, "group": _group, "zeros": _state(0), "ones": _state(1),
    "full": _full, "empty": _empty, "arange": _arange, "topk": _topk, "rows_of": HostRows, "cast": _cast, "assume": _assume,
    "random": _random, "print": _print})


def _shifted(x: Any, axis: Any = -1) -> Any:
    return np.exp(x - np.max(x, axis=axis, keepdims=True))


def _softmax(x: Any, axis: Any = -1) -> Any:
    grown = _shifted(x, axis)
    return grown / np.sum(grown, axis=axis, keepdims=True)


def _logsumexp(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
    top = np.max(x, axis=axis, keepdims=True)
    total = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top
    return total if keepdims else np.squeeze(total, axis)


_OTHERS: Mapping[str, Traced] = MappingProxyType({
    "softmax": _softmax, "log_softmax": lambda x, axis=-1: np.log(_softmax(x, axis)), "logsumexp": _logsumexp,
    "cat": np.concatenate, "select": np.where, "gather": lambda x, places, axis=-1: np.take_along_axis(x, places, axis),
    "clamp": np.clip, "expand": np.broadcast_to})


def on_both(name: str, traced: Traced) -> Traced:
    """Return a function of `tt` that has a meaning in traces, and on arrays while a body runs as a NumPy program."""
    @wraps(traced)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not is_on_arrays():
            return traced(*args, **kwargs)
        return _of_arrays(name, traced)(*args, **kwargs)
    return call


def _of_arrays(name: str, traced: Traced) -> Traced:
    own = OWN.get(name) or _OTHERS.get(name)
    if own is not None:
        return own
    if isinstance(traced, Op):
        return lambda *args, **kwargs: _op(traced, args, kwargs)
    return getattr(np, name)  # type: ignore[no-any-return]


def _op(op: Op, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return what an op of the table gives on arrays."""
    operands, attrs = op.split(bind(f"tt.{op.name}", op.signature, tuple(args), kwargs))
    plain = [_plain(each) for each in operands]
    types = [ArrayType(tuple(map(Const, each.shape)), DType.from_numpy(each.dtype)) if isinstance(each, np.ndarray) else None
             for each in plain]
    found, = infer(op.name, types, attrs)
    sized = SizedType(tuple(int(n.value) for n in found.shape if isinstance(n, Const)), found.dtype)
    return _host(evaluate(op.name, plain, attrs, (sized,))[0])


