"""Functions of torch on traced tensors, where their arguments or their meaning differ from NumPy's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import accumulate
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from pto_wsp.errors import TensorOptionError
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.indexing import whole_number
from pto_wsp.ir.scalar import Const
from pto_wsp.ops.entries import formulas
from pto_wsp.ops.entries.elementwise import maximum as larger
from pto_wsp.ops.entries.elementwise import minimum as smaller
from pto_wsp.ops.entries.formula import in_dtype
from pto_wsp.ops.entries.matmul import matmul as multiplied
from pto_wsp.source import here
from pto_wsp.trace.tensor import functions as fn
from pto_wsp.trace.tensor import reductions as red
from pto_wsp.trace.tensor.along import moved_back, moved_last, one_axis, value_of
from pto_wsp.trace.tensor.einsum import einsum
from pto_wsp.trace.tensor.trace import current_trace
from pto_wsp.trace.tensor.value import TensorValue


class ValuesAndPlaces(NamedTuple):
    """What torch returns of max, min, sort and topk along a dimension."""

    values: TensorValue
    indices: TensorValue


def _sum(input: object, dim: object = None, keepdim: object = False, *, dtype: object = None) -> TensorValue:
    return red.sum_(input, dim, dtype, keepdims=keepdim)


def _mean(input: object, dim: object = None, keepdim: object = False, *, dtype: object = None) -> TensorValue:
    return red.mean(input, dim, dtype, keepdims=keepdim)


def _extreme(values: Callable[..., TensorValue], places: Callable[..., TensorValue], pair: Callable[..., object]) -> Callable[..., object]:
    def function(input: object, dim: object = None, keepdim: object = False) -> object:
        if isinstance(dim, TensorValue):
            return pair(input, dim)
        if dim is None:
            return values(input)
        return ValuesAndPlaces(values(input, dim, keepdim=keepdim), places(input, dim, keepdim=keepdim))
    return function


def _spread(of_numpy: Callable[..., TensorValue]) -> Callable[..., TensorValue]:
    def function(input: object, dim: object = None, unbiased: object = None, keepdim: object = False, *, correction: object = None,
                 ) -> TensorValue:
        less = (1 if unbiased in (None, True) else 0) if correction is None else correction
        return of_numpy(input, dim, ddof=less, keepdims=keepdim)
    return function


def _split(tensor: object, split_size_or_sections: object, dim: object = 0) -> tuple[TensorValue, ...]:
    value = value_of("split", tensor)
    at = one_axis("split", value, dim)
    if isinstance(split_size_or_sections, tuple | list):
        sizes = [whole_number(n) for n in split_size_or_sections]
        places = list(accumulate(n or 0 for n in sizes))[:-1]
        return tuple(fn.split(value, places, at))
    size, extent = whole_number(split_size_or_sections), value.extents[at]
    if size is None or size < 1 or not isinstance(extent, Const):
        raise TensorOptionError("torch.split by size takes an axis whose extent is a number", here(), expected="a size >= 1",
                               found=f"{split_size_or_sections!r} of {value!r}", help="np.split(x, parts, axis) takes the number of parts")
    return tuple(fn.split(value, list(range(size, int(extent.value), size)), at))


def _chunk(input: object, chunks: object, dim: object = 0) -> tuple[TensorValue, ...]:
    value, count = value_of("chunk", input), whole_number(chunks)
    at = one_axis("chunk", value, dim)
    extent = value.extents[at]
    if count is not None and count >= 1 and isinstance(extent, Const):
        return _split(value, -(-int(extent.value) // count), at)
    return tuple(fn.split(value, chunks, at))


def _softmax(input: object, dim: object = -1, *args: object, dtype: object = None, **more: object) -> TensorValue:
    return red.softmax(input if dtype is None else fn.astype(input, dtype), dim)


def _log_softmax(input: object, dim: object = -1, *args: object, dtype: object = None, **more: object) -> TensorValue:
    return red.log_softmax(input if dtype is None else fn.astype(input, dtype), dim)


def _topk(input: object, k: object, dim: object = -1, largest: object = True, sorted: object = True) -> ValuesAndPlaces:
    value = value_of("topk", input)
    at = one_axis("topk", value, dim)
    values, places = fn.topk(moved_last(value, at), k, largest=largest)
    return ValuesAndPlaces(moved_back(values, at), moved_back(places, at))


def _sort(input: object, dim: object = -1, descending: object = False, stable: object = False) -> ValuesAndPlaces:
    value = value_of("sort", input)
    at = one_axis("sort", value, dim)
    places = fn.argsort(value, at, descending=descending)
    return ValuesAndPlaces(fn.take_along_axis(value, places, at), places)


def _transpose(input: object, dim0: object, dim1: object) -> TensorValue:
    return fn.swapaxes(input, dim0, dim1)


def _sigmoid_times(input: TensorValue, inplace: object = False) -> object:
    return input * input.sigmoid()


def _flatten(input: object, start_dim: object = 0, end_dim: object = -1) -> TensorValue:
    value = value_of("flatten", input)
    first, last = one_axis("flatten", value, start_dim), one_axis("flatten", value, end_dim)
    return fn.reshape(value, *value.shape[:first], -1, *value.shape[last + 1:])


def _masked_fill(input: object, mask: object, value: object) -> TensorValue:
    return fn.where_(mask, value, input)


def _gather(input: object, dim: object, index: object) -> TensorValue:
    return fn.take_along_axis(input, index, dim)


def _index_select(input: object, dim: object, index: object) -> TensorValue:
    return fn.take(input, index, dim)


def _linear(input: TensorValue, weight: TensorValue, bias: object = None) -> object:
    made = input @ weight.T
    return made if bias is None else made + bias  # type: ignore[operator]


def _pad(input: object, pad: object, mode: object = "constant", value: object = None) -> TensorValue:
    tensor = value_of("pad", input)
    if not isinstance(pad, tuple | list) or len(pad) % 2 or len(pad) > 2 * tensor.rank:
        raise TensorOptionError("torch.pad takes two widths a dimension, the last dimension first", here(), expected="(left, right)",
                                found=f"{pad!r} of {tensor!r}")
    pairs = [(0, 0)] * (tensor.rank - len(pad) // 2) + [(pad[k], pad[k + 1]) for k in range(len(pad) - 2, -1, -2)]
    return fn.pad(tensor, pairs, mode, constant_values=0 if value is None else value)


def _norm(input: object, p: object = None, dim: object = None, keepdim: object = False) -> TensorValue:
    if p not in (None, 2, "fro"):
        raise TensorOptionError("torch.norm is the root of a sum of squares", here(), expected="p=2", found=f"p={p!r}",
                                help="np.sum(np.abs(x), axis) and np.max(np.abs(x), axis) are those of 1 and infinity")
    return fn.norm(input, dim, keepdims=keepdim)


def _last_axes(name: str, input: object, shape: object) -> tuple[TensorValue, tuple[int, ...]]:
    value, sizes = value_of(name, input), tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    last = value.shape[value.rank - len(sizes):]
    if not sizes or len(sizes) > value.rank or any(not isinstance(one, int) or one != whole_number(n)
                                                   for one, n in zip(last, sizes, strict=True)):
        raise TensorOptionError(f"torch.{name} takes the extents of the last dimensions, which are numbers", here(),
                                expected=repr(last), found=repr(shape))
    return value, tuple(range(-len(sizes), 0))


def _layer_norm(input: object, normalized_shape: object, weight: object = None, bias: object = None, eps: float = 1e-5) -> Any:
    value, axes = _last_axes("layer_norm", input, normalized_shape)
    away: Any = value - red.mean(value, axes, keepdims=True)
    mean: Any = red.mean(away * away, axes, keepdims=True)
    made = away * (mean + eps).rsqrt()
    made = made if weight is None else made * weight
    return made if bias is None else made + bias


def _rms_norm(input: object, normalized_shape: object, weight: object = None, eps: float | None = None) -> Any:
    value, axes = _last_axes("rms_norm", input, normalized_shape)
    least = float(np.finfo(np.float32).eps) if eps is None else eps
    mean: Any = red.mean(value * value, axes, keepdims=True)
    made: Any = value * (mean + least).rsqrt()
    return made if weight is None else made * weight


def _leaky_relu(input: Any, negative_slope: float = 0.01, inplace: object = False) -> object:
    return fn.where_(input > 0, input, input * negative_slope)


def _attention(query: TensorValue, key: TensorValue, value: TensorValue, attn_mask: TensorValue | None = None, dropout_p: object = 0.0,
               is_causal: object = False, scale: float | None = None, enable_gqa: object = False) -> Any:
    if dropout_p != 0 or enable_gqa or not isinstance(query.shape[-1], int):
        raise TensorOptionError("torch.scaled_dot_product_attention has no dropout, no enable_gqa, and heads of a known size", here(),
                                expected="dropout_p=0.0", found=f"{query!r}, dropout_p={dropout_p!r}, enable_gqa={enable_gqa!r}")
    score: Any = query @ key.mT
    score = score * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if is_causal:
        trace = current_trace("scaled_dot_product_attention")
        places = [trace.counted(extent, DType.I32) for extent in score.extents[-2:]]
        score = fn.where_(places[0][:, None] >= places[1][None], score, -math.inf)
    if attn_mask is not None:
        score = fn.where_(attn_mask, score, -math.inf) if attn_mask.dtype.is_bool else score + attn_mask
    return red.softmax(score, -1) @ value


def _addmm(input: object, mat1: object, mat2: object, *, beta: float = 1, alpha: float = 1) -> Any:
    product: Any = multiplied(mat1, mat2)
    scaled: Any = input if beta == 1 else input * beta  # type: ignore[operator]
    return scaled + (product if alpha == 1 else product * alpha)


def _float(input: TensorValue) -> object:
    return in_dtype(input, DType.F32)


FUNCTIONS: Mapping[str, Callable[..., object]] = MappingProxyType({
    "sum": _sum, "mean": _mean, "prod": lambda input, dim=None, keepdim=False: red.prod(input, dim, keepdims=keepdim),
    "max": _extreme(red.amax, red.argmax, lambda x, y: larger(x, y)), "min": _extreme(red.amin, red.argmin, lambda x, y: smaller(x, y)),
    "amax": lambda input, dim=None, keepdim=False: red.amax(input, dim, keepdims=keepdim),
    "amin": lambda input, dim=None, keepdim=False: red.amin(input, dim, keepdims=keepdim),
    "any": lambda input, dim=None, keepdim=False: red.any_(input, dim, keepdims=keepdim),
    "all": lambda input, dim=None, keepdim=False: red.all_(input, dim, keepdims=keepdim),
    "argmax": lambda input, dim=None, keepdim=False: red.argmax(input, dim, keepdims=keepdim),
    "argmin": lambda input, dim=None, keepdim=False: red.argmin(input, dim, keepdims=keepdim),
    "var": _spread(red.var), "std": _spread(red.std), "logsumexp": lambda input, dim, keepdim=False: red.logsumexp(input, dim,
                                                                                                                keepdims=keepdim),
    "softmax": _softmax, "log_softmax": _log_softmax, "cumsum": lambda input, dim, *, dtype=None: red.cumsum(input, dim, dtype),
    "reshape": lambda input, shape: fn.reshape(input, shape), "flatten": _flatten, "ravel": lambda input: fn.ravel(input),
    "transpose": _transpose, "swapaxes": lambda input, axis0, axis1: fn.swapaxes(input, axis0, axis1),
    "permute": lambda input, dims: fn.transpose(input, dims), "t": lambda input: fn.transpose(input),
    "movedim": lambda input, source, destination: fn.moveaxis(input, source, destination),
    "squeeze": lambda input, dim=None: fn.squeeze(input, dim), "unsqueeze": lambda input, dim: fn.expand_dims(input, dim),
    "broadcast_to": lambda input, size: fn.broadcast_to(input, size), "flip": lambda input, dims: fn.flip(input, dims),
    "split": _split, "chunk": _chunk, "cat": lambda tensors, dim=0: fn.concatenate(tensors, dim),
    "concat": lambda tensors, dim=0: fn.concatenate(tensors, dim), "concatenate": lambda tensors, dim=0: fn.concatenate(tensors, dim),
    "stack": lambda tensors, dim=0: fn.stack(tensors, dim), "hstack": lambda tensors: fn.hstack(tensors),
    "vstack": lambda tensors: fn.vstack(tensors), "roll": lambda input, shifts, dims=None: fn.roll(input, shifts, dims),
    "where": lambda condition, input=None, other=None: fn.where_(condition, input, other), "masked_fill": _masked_fill,
    "clamp": lambda input, min=None, max=None: formulas.clamp(input, min, max),
    "clip": lambda input, min=None, max=None: formulas.clamp(input, min, max),
    "matmul": lambda input, other: multiplied(input, other), "mm": lambda input, mat2: multiplied(input, mat2),
    "bmm": lambda input, mat2: multiplied(input, mat2), "linear": _linear, "einsum": lambda equation, *operands: einsum(equation,
                                                                                                                        *operands),
    "sort": _sort, "topk": _topk,
    "argsort": lambda input, dim=-1, descending=False, stable=False: fn.argsort(input, dim, descending=descending),
    "gather": _gather, "index_select": _index_select, "take_along_dim": lambda input, indices, dim: fn.take_along_axis(input, indices, dim),
    "tril": lambda input, diagonal=0: fn.tril(input, diagonal), "triu": lambda input, diagonal=0: fn.triu(input, diagonal),
    "zeros_like": lambda input, *, dtype=None: fn.zeros_like(input, dtype), "ones_like": lambda input, *, dtype=None: fn.ones_like(input,
                                                                                                                                   dtype),
    "full_like": lambda input, fill_value, *, dtype=None: fn.full_like(input, fill_value, dtype),
    "empty_like": lambda input, *, dtype=None: fn.empty_like(input, dtype), "clone": lambda input: fn.copy(input), "silu": _sigmoid_times,
    "pad": _pad, "norm": _norm, "linalg_norm": lambda A, ord=None, dim=None, keepdim=False: _norm(A, ord, dim, keepdim),
    "linalg_vector_norm": lambda x, ord=2, dim=None, keepdim=False: _norm(x, ord, dim, keepdim), "layer_norm": _layer_norm,
    "rms_norm": _rms_norm, "leaky_relu": _leaky_relu, "scaled_dot_product_attention": _attention, "addmm": _addmm,
    "embedding": lambda input, weight: fn.take(weight, input, 0), "diff": lambda input, n=1, dim=-1: fn.diff(input, n, dim),
    "round": lambda input, *, decimals=0: fn.round_(input, decimals), "outer": lambda input, vec2: fn.outer(input, vec2),
    "dot": lambda input, tensor: fn.dot(input, tensor), "mv": lambda input, vec: multiplied(input, vec),
    "relu": lambda input, inplace=False: input.relu(), "float": _float, "repeat_interleave": lambda input, repeats, dim=None: fn.repeat(
        input, repeats, dim),
})
