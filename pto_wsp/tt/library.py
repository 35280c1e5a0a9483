"""Compositions in the language of functions on tensors: softmax, rms_norm, layer_norm, rope, quantize_rows, silu, swiglu.

Each works along the last axis, and as it stands on NumPy arrays too.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from pto_wsp.ir.dtype import DType

TensorLike: TypeAlias = Any      # a tensor of a traced body, or an array of NumPy: what has operators, slices and NumPy's protocols


def softmax(x: TensorLike, axis: int = -1) -> TensorLike:
    """Return exp(x) divided by its sum along an axis; the largest element is subtracted before."""
    peak = np.max(x, axis=axis, keepdims=True)
    weight = np.exp(x - peak)
    total = np.sum(weight, axis=axis, keepdims=True)
    return weight / total


def rms_norm(x: TensorLike, gain: TensorLike, eps: float = 1e-6) -> TensorLike:
    """Return x divided by the root of the mean of its squares, times a gain for each column."""
    mean = np.mean(x * x, axis=-1, keepdims=True)
    return x / np.sqrt(mean + eps) * gain


def layer_norm(x: TensorLike, gain: TensorLike, bias: TensorLike, eps: float = 1e-5) -> TensorLike:
    """Return x less its mean, divided by its standard deviation, times a gain and plus a bias for each column."""
    mean = np.mean(x, axis=-1, keepdims=True)
    away = x - mean
    spread = np.mean(away * away, axis=-1, keepdims=True)
    return away / np.sqrt(spread + eps) * gain + bias


def rope(x: TensorLike, cos: TensorLike, sin: TensorLike) -> TensorLike:
    """Return x with its halves turned: pairs (x[k], x[k + n / 2]) by the angles of cos and sin, which have all columns."""
    left, right = np.split(x, 2, axis=-1)
    turned = np.concatenate([-right, left], axis=-1)
    return x * cos + turned * sin


def quantize_rows(x: TensorLike) -> tuple[TensorLike, TensorLike]:
    """Return x as int8 with a scale for each row: x is about codes * scale; a row of zeros has scale 0 and codes 0."""
    peak = np.max(np.abs(x), axis=-1, keepdims=True)
    scale = peak / 127.0
    steps = x / np.where(peak == 0.0, 1.0, scale)
    codes = np.round(steps).astype(DType.I8)
    return codes, scale


def silu(x: TensorLike) -> TensorLike:
    """Return x times its logistic function."""
    return x / (1.0 + np.exp(-x))


def swiglu(x: TensorLike) -> TensorLike:
    """Return silu of the left half of the columns, times the right half."""
    gate, lift = np.split(x, 2, axis=-1)
    return silu(gate) * lift
