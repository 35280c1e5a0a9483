"""Find what NumPy's and torch's functions and methods mean on traced tensors.

`np.` functions and methods mean NumPy's; `torch.` functions torch's: split by size, std with n - 1, max along a dimension a pair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from pto_wsp.calls import bind
from pto_wsp.errors import TensorFunctionError, UnknownNameError
from pto_wsp.ops import array_names
from pto_wsp.ops.entries import formulas
from pto_wsp.ops.entries.matmul import matmul as multiplied
from pto_wsp.ops.spec import Elementwise
from pto_wsp.ops.table import find_ufunc
from pto_wsp.source import here
from pto_wsp.trace.tensor import functions as fn
from pto_wsp.trace.tensor import reductions as red
from pto_wsp.trace.tensor import torch_functions
from pto_wsp.trace.tensor.einsum import einsum
from pto_wsp.trace.tensor.trace import TensorTrace
from pto_wsp.trace.tensor.value import TensorValue
from pto_wsp.trace.tensor.views import add_at, assign, index
from pto_wsp.wording import nearest

Traced: TypeAlias = Callable[..., object]

_OF_ELEMENTS: Mapping[str, Traced] = MappingProxyType({
    f.__name__: f for f in (formulas.square, formulas.isnan, formulas.isinf, formulas.isfinite, formulas.logical_and, formulas.logical_or,
                            formulas.logical_xor, formulas.logical_not, formulas.clamp)})
_BOTH: Mapping[str, Traced] = MappingProxyType({
    **_OF_ELEMENTS, "sum": red.sum_, "prod": red.prod, "mean": red.mean, "max": red.max_, "min": red.min_, "amax": red.amax,
    "amin": red.amin,
    "any": red.any_, "all": red.all_, "argmax": red.argmax, "argmin": red.argmin, "var": red.var, "std": red.std, "cumsum": red.cumsum,
    "reshape": fn.reshape, "ravel": fn.ravel, "transpose": fn.transpose, "swapaxes": fn.swapaxes, "moveaxis": fn.moveaxis,
    "squeeze": fn.squeeze, "expand_dims": fn.expand_dims, "broadcast_to": fn.broadcast_to, "flip": fn.flip, "split": fn.split,
    "repeat": fn.repeat, "astype": fn.astype, "clip": fn.clip, "round": fn.round_, "dot": fn.dot, "matmul": multiplied, "copy": fn.copy,
    "sort": fn.sort, "argsort": fn.argsort, "take": fn.take, "tril": fn.tril, "triu": fn.triu, "diff": fn.diff, "outer": fn.outer,
})
METHODS: Mapping[str, Traced] = MappingProxyType({
    **_BOTH, "flatten": fn.ravel, "softmax": red.softmax, "log_softmax": red.log_softmax, "logsumexp": red.logsumexp, "to": fn.astype,
    "type": fn.astype, "view": fn.reshape, "permute": fn.transpose, "unsqueeze": lambda x, dim: fn.expand_dims(x, dim), "mm": multiplied,
    "bmm": multiplied, "fill": fn.fill, "fill_": fn.fill, "topk": fn.topk, "t": lambda x: fn.transpose(x), "clone": fn.copy,
    "contiguous": lambda x: x, "expand": fn.broadcast_to,
})
FUNCTIONS: Mapping[str, Traced] = MappingProxyType({
    **_BOTH, "where": fn.where_, "concatenate": fn.concatenate, "stack": fn.stack, "hstack": fn.hstack, "vstack": fn.vstack, "tile":
    fn.tile,
    "pad": fn.pad, "roll": fn.roll, "einsum": einsum, "take_along_axis": fn.take_along_axis, "zeros_like": fn.zeros_like,
    "ones_like": fn.ones_like, "full_like": fn.full_like, "empty_like": fn.empty_like, "permute_dims": fn.transpose, "norm": fn.norm,
    "fliplr": lambda m: fn.flip(m, 1), "flipud": lambda m: fn.flip(m, 0), "around": fn.round_, "row_stack": fn.vstack,
    "shape": lambda a: a.shape, "ndim": lambda a: a.ndim, "size": lambda a: a.size, "concat": fn.concatenate,
    "matrix_transpose": lambda x: x.mT, "isneginf": lambda x: formulas.isinf(x) & (x < 0), "array_split": fn.split,
})
_UFUNCS: Mapping[str, Traced] = MappingProxyType({
    "square": formulas.square, "isnan": formulas.isnan, "isinf": formulas.isinf, "isfinite": formulas.isfinite,
    "logical_and": formulas.logical_and, "logical_or": formulas.logical_or, "logical_xor": formulas.logical_xor,
    "logical_not": formulas.logical_not, "positive": lambda x: x})
_REDUCTIONS: Mapping[str, Traced] = MappingProxyType({
    "add": red.sum_, "multiply": red.prod, "maximum": red.amax, "minimum": red.amin, "logical_and": red.all_, "logical_or": red.any_})
_OUTSIDE = "compute it before the call, and pass it as a parameter"
_AFTER = "return the tensor: what the call gives is an array"
_MASKED = "np.where(mask, x, 0) keeps the shape"
_SETS = "tt.rows_of(table, n) groups places"
_PRODUCT = "np.einsum names the letters"
_INSTEAD: Mapping[str, str] = MappingProxyType({      # what does in a body what a function or a method would do
    "nonzero": f"{_MASKED}; {_SETS}", "argwhere": _MASKED, "flatnonzero": _MASKED, "extract": _MASKED, "compress": _MASKED,
    "count_nonzero": "np.sum(x != 0)", "unique": _SETS, "intersect1d": _SETS, "setdiff1d": _SETS, "union1d": _SETS,
    "histogram": "tt.rows_of(table, n).sizes counts", "bincount": "tt.rows_of(table, n).sizes counts",
    "isin": "np.any(x[..., None] == values, axis=-1)", "searchsorted": "np.sum(table < x[..., None], axis=-1)",
    "digitize": "np.sum(edges <= x[..., None], axis=-1)", "isclose": "np.abs(a - b) <= tolerance",
    "allclose": "np.all(np.abs(a - b) <= tolerance)", "array_equal": "np.all(a == b)",
    "nansum": "np.sum(np.where(np.isnan(x), 0, x), axis)", "nanmax": "np.max(np.where(np.isnan(x), -math.inf, x), axis)",
    "nanmin": "np.min(np.where(np.isnan(x), math.inf, x), axis)",
    "nanmean": "np.sum(np.where(np.isnan(x), 0, x), axis) / np.sum(x == x, axis).astype(DType.F32)",
    "nan_to_num": "np.where(np.isnan(x), 0, x)", "expm1": "np.exp(x) - 1", "log1p": "np.log(x + 1)", "log10": "np.log(x) / math.log(10)",
    "tan": "np.sin(x) / np.cos(x)", "sinh": "(np.exp(x) - np.exp(-x)) / 2", "cosh": "(np.exp(x) + np.exp(-x)) / 2",
    "deg2rad": "x * (math.pi / 180)", "radians": "x * (math.pi / 180)", "rad2deg": "x * (180 / math.pi)", "degrees": "x * (180 / math.pi)",
    "trunc": "np.where(x < 0, np.ceil(x), np.floor(x))", "vecdot": "np.sum(a * b, axis=-1)", "divmod": "a // b and a % b",
    "cumprod": "np.exp(np.cumsum(np.log(x), axis)) of positive numbers",
    "logaddexp": "np.maximum(a, b) + np.log(1 + np.exp(-np.abs(a - b)))", "hypot": "np.sqrt(a * a + b * b)",
    "median": "np.sort(x, axis) and a slice", "percentile": "np.sort(x, axis) and a slice", "quantile": "np.sort(x, axis) and a slice",
    "partition": "np.sort(x, axis)", "argpartition": "tt.topk(x, k)[1]", "ptp": "np.max(x, axis) - np.min(x, axis)",
    "average": "np.sum(x * w, axis)", "cov": "x - np.mean(x, axis) and a product", "corrcoef": "x - np.mean(x, axis) and a product",
    "tensordot": _PRODUCT, "inner": _PRODUCT, "kron": _PRODUCT, "vdot": "np.sum(a * b)", "multi_dot": "a @ b @ c",
    "trace": "np.sum(x * np.eye(n, dtype=np.float32))", "diag": "np.sum(x * np.eye(n, dtype=np.float32), axis=-1)",
    "diagonal": "np.sum(x * np.eye(n, dtype=np.float32), axis=-1)", "vector_norm": "np.linalg.norm(x, axis=-1)",
    "convolve": "a sum of slices, each times a number", "correlate": "a sum of slices, each times a number",
    "gradient": "differences of slices, (x[2:] - x[:-2]) / 2", "ediff1d": "np.diff(x)", "interp": "write it by np.where and x[table]",
    "select": "np.where(mask, a, np.where(other, b, c))", "choose": "np.where(mask, a, np.where(other, b, c))",
    "piecewise": "np.where(mask, a, np.where(other, b, c))", "apply_along_axis": "functions take axis=, or loop with tt.each",
    "meshgrid": "x[:, None] and y[None] broadcast", "broadcast_arrays": "np.broadcast_to(x, shape)", "rot90": "np.flip(x.T, 0)",
    "hsplit": "np.split(x, n, axis=1)", "vsplit": "np.split(x, n, axis=0)", "dsplit": "np.split(x, n, axis=2)",
    "dstack": "np.stack(parts, axis=-1)", "column_stack": "np.concatenate(parts, axis=1)", "block": "np.concatenate(parts, axis)",
    "append": "np.concatenate((a, b), axis)", "insert": "np.concatenate of slices", "delete": "np.concatenate of slices",
    "resize": "x.reshape(shape)", "atleast_1d": "x[None]", "atleast_2d": "x[None]", "linspace": "tt.arange(n) * step + start",
    "array": "a tensor is one already", "asarray": "a tensor is one already", "put": "x[table] = value", "place": "x[mask] = number",
    "putmask": "x[mask] = number", "copyto": "x[:] = value", "save": _AFTER, "savez": _AFTER, "savetxt": _AFTER, "array2string": _AFTER,
    "tolist": _AFTER, "tobytes": _AFTER, "tofile": _AFTER, "dump": _AFTER, "numpy": _AFTER, "cpu": _AFTER, "cuda": _AFTER,
    "detach": "leave it out: functions are forward only", "requires_grad_": "leave it out: functions are forward only",
    "data": "a tensor has no memory while the body is traced", "flat": "x.reshape(-1)", "real": "x is real", "conj": "x is real",
})


class BodyTrace(TensorTrace):
    """The trace of a body, with what NumPy's and torch's names mean."""

    def index(self, value: TensorValue, item: object) -> object:
        """Return `value[item]`."""
        return index(self, value, item)

    def assign(self, value: TensorValue, item: object, new: object) -> None:
        """Write `value[item] = new`."""
        assign(self, value, item, new)

    def method_of(self, value: TensorValue, name: str) -> Traced:
        """Return what a method does, with the value as the first argument.

        Raises: T211 for a name that tensors do not have.
        """
        found = METHODS.get(name)
        if found is None:
            of_elements = array_names.method(name)
            found = of_elements if isinstance(of_elements, Elementwise) else None
        if found is None:
            raise UnknownNameError(f"a tensor has no `{name}`", here(),
                                   expected="shape, dtype, T, operators, and methods of NumPy's arrays",
                                   help=_INSTEAD.get(name) or _near(name, METHODS))
        return found

    def numpy(self, function: Traced, args: Sequence[object], kwargs: Mapping[str, object]) -> object:
        """Return what a function of NumPy gives.

        Raises: J108 for one without a meaning here, T101 for arguments that it does not take here.
        """
        name = function.__name__
        module = function.__module__ or ""
        op = FUNCTIONS.get(name) if module in ("numpy", "numpy.linalg") or name == "norm" else None
        if op is None or (module == "numpy.linalg" and name != "norm"):
            raise TensorFunctionError(f"{array_names.full_name(function)} has no meaning on traced tensors", here(),
                                      expected="a function that the op table has, or tt", help=_of_module(name, module))
        bind(f"np.{name}", signature(op), tuple(args), kwargs)
        return op(*args, **kwargs)

    def ufunc(self, ufunc: np.ufunc, method: str, inputs: Sequence[object], options: Mapping[str, object]) -> object:
        """Return what a ufunc of NumPy gives: called, as a reduction, as running sums, or `np.add.at`.

        Raises: J108 for one without a meaning here, and for options.
        """
        name = ufunc.__name__
        if method == "at" and ufunc is np.add and isinstance(inputs[0], TensorValue):
            add_at(self, inputs[0], inputs[1], inputs[2])
            return None
        if method == "reduce" and name in _REDUCTIONS:
            axis = options.get("axis", 0)
            unknown = set(options) - {"axis", "keepdims", "dtype"}
            rest = {key: value for key, value in options.items() if key != "axis"}
            if not unknown:
                return _REDUCTIONS[name](*inputs, axis=axis, **rest)
        if method == "accumulate" and ufunc is np.add and set(options) <= {"axis"}:
            return red.cumsum(inputs[0], axis=options.get("axis", 0))
        op = meaning_of_ufunc(ufunc) if method == "__call__" else None
        if op is None or options:
            asked = f"np.{name}" + ("" if method == "__call__" else f".{method}")
            given = f" with {', '.join(options)}=" if options and op is not None else ""
            raise TensorFunctionError(f"{asked}{given} has no meaning on traced tensors", here(),
                                      expected="a function that the op table has",
                                      help=_option_help(name, options) if options and op is not None else
                                      "a[:, None] and b[None] broadcast" if method == "outer" else _INSTEAD.get(name) or _LISTS)
        return op(*inputs)

    def torch(self, function: Traced, args: Sequence[object], kwargs: Mapping[str, object]) -> object:
        """Return what a function of torch gives.

        Raises: J108 for one without a meaning here, T101 for arguments that it does not take here.
        """
        name = getattr(function, "__name__", "").strip("_")
        found = torch_functions.FUNCTIONS.get(name)
        if found is None:
            of_elements = array_names.method(name)
            found = of_elements if isinstance(of_elements, Elementwise) else _OF_ELEMENTS.get(name)
        if found is None:
            raise TensorFunctionError(f"torch.{name} has no meaning on traced tensors", here(), expected="a function that the op table has",
                                      help=_INSTEAD.get(name) or _LISTS)
        shown = getattr(found, "__signature__", None) or (found.signature if isinstance(found, Elementwise) else signature(found))
        given = {key: value for key, value in kwargs.items() if value is not None or key not in _LEFT_OUT}
        bind(f"torch.{name}", shown, tuple(args), given)
        return found(*args, **given)


def meaning_of_ufunc(ufunc: np.ufunc) -> Traced | None:
    """Return the function that traces a call of a NumPy ufunc; None for a ufunc that bodies do not support."""
    return find_ufunc(ufunc) or _UFUNCS.get(ufunc.__name__) or array_names.ufunc_of(ufunc, "__call__")


_LISTS = "dir(tt) lists the ops; tt.library has compositions of them"
_LEFT_OUT = ("out", "dtype", "layout", "device")       # what torch hands on as None where the user says nothing


def _of_module(name: str, module: str) -> str:
    """Return the help for a function of a module of NumPy: there it is, so no name near it was meant."""
    if module == "numpy.linalg" and name in FUNCTIONS:
        return f"np.{name}"
    return _INSTEAD.get(name) or (_OUTSIDE if module.startswith(("numpy.linalg", "numpy.fft")) else _LISTS)


def _option_help(name: str, options: Mapping[str, object]) -> str:
    if "out" in options:
        return "x[:] = value writes in place"
    return f"np.where(mask, np.{name}(...), x)" if "where" in options else "leave it out; x.astype(dtype) converts"


def _help_for(name: str) -> str | None:
    return _INSTEAD.get(name)


def _near(name: str, known: Mapping[str, Traced]) -> str:
    near = nearest(name, known)
    return f"did you mean {near}?" if near else _LISTS
