"""Functions as a person from PyTorch, JAX or Triton writes them first: each agrees with NumPy in float64, on each target."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from pto_wsp import DType, Scalar, Tensor, jit, tt
from pto_wsp.tt.library import silu, softmax

F32, I8, I64 = DType.F32, DType.I8, DType.I64
RNG = np.random.default_rng(0)
CASES: list[Any] = []
BROKEN_ONCE = ("window", "layer_norm_backward", "embedding")      # each in the fast tests, on interp


def arrays(*shapes: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    return tuple(RNG.standard_normal(shape, np.float32) for shape in shapes)


def case(*args: Any) -> Callable[[Any], Any]:
    """Keep arguments and the reference of a function that stands before it."""
    def keep(wanted: Any) -> Any:
        CASES.append((wanted.__name__.removesuffix("_of_numpy"), args, wanted))
        return wanted
    return keep


def share(z: np.ndarray) -> np.ndarray:
    grown = np.exp(z - z.max(-1, keepdims=True))
    return grown / grown.sum(-1, keepdims=True)


class Weights(NamedTuple):
    """A gated MLP."""

    gate: Tensor[32, 48, F32]
    up: Tensor[32, 48, F32]
    down: Tensor[48, 32, F32]


def gated_mlp(x: Tensor["t", 32, F32], w: Weights):
    return x + (silu(x @ w.gate) * (x @ w.up)) @ w.down


@case(*arrays((7, 32)), Weights(*arrays((32, 48), (32, 48), (48, 32))))
def gated_mlp_of_numpy(x, w):
    gate = x @ w.gate
    return x + (gate / (1 + np.exp(-gate)) * (x @ w.up)) @ w.down


def grouped_queries(q: Tensor["s", 8, 16, F32], k: Tensor["s", 2, 16, F32], v: Tensor["s", 2, 16, F32]):
    s, heads, d = q.shape
    tt.assume(s <= 64)
    out, mask = tt.empty(q.shape), tt.arange(s)[:, None] >= tt.arange(s)[None, :]
    for h in range(heads):
        score = q[:, h] @ k[:, h // 4].T / math.sqrt(d)
        out[:, h] = softmax(np.where(mask, score, -math.inf)) @ v[:, h // 4]
    return out


@case(*arrays((9, 8, 16), (9, 2, 16), (9, 2, 16)))
def grouped_queries_of_numpy(q, k, v):
    score = np.einsum("shd,nhd->hsn", q, np.repeat(k, 4, 1)) / 4
    score[:, *np.triu_indices(len(q), 1)] = -np.inf
    return np.einsum("hsn,nhd->shd", share(score), np.repeat(v, 4, 1))


def repeated_heads(q: Tensor["s", 8, 16, F32], k: Tensor["n", 2, 16, F32], v: Tensor["n", 2, 16, F32]):
    tt.assume(k.shape[0] <= 64)
    score = np.einsum("shd,nhd->hsn", q, np.repeat(k, 4, axis=1)) / 4.0
    return np.einsum("hsn,nhd->shd", softmax(score), np.repeat(v, 4, axis=1))


@case(*arrays((9, 8, 16), (11, 2, 16), (11, 2, 16)))
def repeated_heads_of_numpy(q, k, v):
    return np.einsum("hsn,nhd->shd", share(np.einsum("shd,nhd->hsn", q, np.repeat(k, 4, 1)) / 4), np.repeat(v, 4, 1))


def window(q: Tensor["s", 16, F32], k: Tensor["s", 16, F32], v: Tensor["s", 16, F32], size: int = 4):
    out = tt.empty(q.shape)
    for i in tt.each(q.shape[0]):
        first = np.maximum(i - size + 1, 0)
        out[i:i + 1] = softmax(q[i:i + 1] @ k[first:i + 1].T * 0.25) @ v[first:i + 1]
    return out


@case(*arrays((9, 16), (9, 16), (9, 16)))
def window_of_numpy(q, k, v):
    rows = [slice(max(i - 3, 0), i + 1) for i in range(len(q))]
    return np.array([share(q[i] @ k[at].T * 0.25) @ v[at] for i, at in enumerate(rows)])


def rope_pairs(x: Tensor["t", 4, 16, F32], cos: Tensor["t", 8, F32], sin: Tensor["t", 8, F32]):
    even, odd, c, s = x[..., ::2], x[..., 1::2], cos[:, None], sin[:, None]
    return np.stack([even * c - odd * s, even * s + odd * c], axis=-1).reshape(x.shape)


@case(*arrays((5, 4, 16), (5, 8), (5, 8)))
def rope_pairs_of_numpy(x, cos, sin):
    turned = (x[..., ::2] + 1j * x[..., 1::2]) * (cos + 1j * sin)[:, None]
    return np.stack([turned.real, turned.imag], -1).reshape(x.shape)


def top_p(logits: Tensor["b", 64, F32], p: float = 0.8):
    order = np.argsort(-logits, axis=-1)
    ranked = np.take_along_axis(logits, order, axis=-1)
    shares = softmax(ranked)
    kept = np.where(np.cumsum(shares, axis=-1) - shares < p, ranked, -math.inf)
    return softmax(np.take_along_axis(kept, np.argsort(order, axis=-1), axis=-1))


@case(*arrays((6, 64)))
def top_p_of_numpy(logits):
    order = np.argsort(-logits, -1, kind="stable")
    ranked = np.take_along_axis(logits, order, -1)
    kept = np.where(np.cumsum(share(ranked), -1) - share(ranked) < 0.8, ranked, -np.inf)
    return share(np.take_along_axis(kept, np.argsort(order, -1), -1))


def layer_norm_backward(dy: Tensor["t", 32, F32], x: Tensor["t", 32, F32], g: Tensor[32, F32], eps: float = 1e-5):
    inverse = 1 / np.sqrt(np.var(x, axis=-1, keepdims=True) + eps)
    normed, d = (x - np.mean(x, axis=-1, keepdims=True)) * inverse, dy * g
    dx = (d - np.mean(d, axis=-1, keepdims=True) - normed * np.mean(d * normed, axis=-1, keepdims=True)) * inverse
    return dx, np.sum(dy * normed, axis=0), np.sum(dy, axis=0)


@case(*arrays((13, 32), (13, 32), (32,)))
def layer_norm_backward_of_numpy(dy, x, g):
    inverse = 1 / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    normed, d = (x - x.mean(-1, keepdims=True)) * inverse, dy * g
    return (d - d.mean(-1, keepdims=True) - normed * (d * normed).mean(-1, keepdims=True)) * inverse, (dy * normed).sum(0), dy.sum(0)


def conv1d(x: Tensor["t", 8, F32], w: Tensor[3, 8, 16, F32]):
    padded, n = np.pad(x, ((1, 1), (0, 0))), x.shape[0]
    return sum(padded[k:k + n] @ w[k] for k in range(3))


@case(*arrays((10, 8), (3, 8, 16)))
def conv1d_of_numpy(x, w):
    padded = np.pad(x, ((1, 1), (0, 0)))
    return sum(padded[k:k + len(x)] @ w[k] for k in range(3))


def conv2d(x: Tensor["b", 4, 8, 8, F32], w: Tensor[6, 4, 3, 3, F32]):
    columns = np.stack([x[:, :, i:i + 6, j:j + 6] for i in range(3) for j in range(3)], axis=2).reshape(x.shape[0], 36, 36)
    return (w.reshape(6, 36) @ columns).reshape(x.shape[0], 6, 6, 6)


@case(*arrays((2, 4, 8, 8), (6, 4, 3, 3)))
def conv2d_of_numpy(x, w):
    return np.stack([np.stack([np.einsum("bcij,ocij->bo", x[:, :, i:i + 3, j:j + 3], w) for j in range(6)], -1) for i in range(6)], 2)


def cross_entropy(logits: Tensor["t", 50, F32], target: Tensor["t", I64]):
    peak = np.max(logits, axis=-1, keepdims=True)
    whole = np.log(np.sum(np.exp(logits - peak), axis=-1)) + peak[:, 0]
    return np.mean(whole - np.take_along_axis(logits, target[:, None], axis=-1)[:, 0])


@case(*arrays((11, 50)), RNG.integers(0, 50, 11))
def cross_entropy_of_numpy(logits, target):
    return np.mean(np.log(np.exp(logits).sum(-1)) - logits[np.arange(len(logits)), target])


def embedding(table: Tensor[100, 16, F32], ids: Tensor["b", "s", I64]):
    return table[ids] * 4.0


@case(*arrays((100, 16)), RNG.integers(0, 100, (3, 5)))
def embedding_of_numpy(table, ids):
    return table[ids] * 4


def embedding_gradient(dy: Tensor["n", 16, F32], ids: Tensor["n", I64], rows: int = 10):
    grad = tt.zeros((rows, 16))
    np.add.at(grad, ids, dy)
    return grad


@case(*arrays((20, 16)), RNG.integers(0, 10, 20))
def embedding_gradient_of_numpy(dy, ids):
    return np.array([dy[ids == row].sum(0) for row in range(10)])


def beam(scores: Tensor["b", 4, 30, F32], history: Tensor["b", 4, F32]):
    best, place = tt.topk((scores + history[:, :, None]).reshape(scores.shape[0], -1), 4)
    return best, place // 30, place % 30


@case(*arrays((3, 4, 30), (3, 4)))
def beam_of_numpy(scores, history):
    total = (scores + history[:, :, None]).reshape(len(scores), -1)
    order = np.argsort(-total, -1, kind="stable")[:, :4]
    return np.take_along_axis(total, order, -1), order // 30, order % 30


def alibi(q: Tensor["b", "s", 16, F32], k: Tensor["b", "n", 16, F32], slope: Scalar[F32]):
    tt.assume(k.shape[1] <= 128)
    distance = tt.cast(tt.arange(k.shape[1])[None, :] - tt.arange(q.shape[1])[:, None], F32)
    return softmax(q @ k.swapaxes(1, 2) + distance * slope)


@case(*arrays((2, 5, 16), (2, 9, 16)), 0.25)
def alibi_of_numpy(q, k, slope):
    return share(q @ k.swapaxes(1, 2) + (np.arange(k.shape[1]) - np.arange(q.shape[1])[:, None]) * slope)


def batch_norm(x: Tensor["n", 24, F32]):
    return (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + 1e-5)


@case(*arrays((33, 24)))
def batch_norm_of_numpy(x):
    return (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5)


def recurrence(x: Tensor["t", 8, F32], a: Tensor["t", 8, F32]):
    h, out = tt.zeros((8,)), tt.empty(x.shape)
    for i in tt.loop(x.shape[0]):
        h[:] = h * a[i] + x[i]
        out[i] = h
    return out


@case(*arrays((9, 8), (9, 8)))
def recurrence_of_numpy(x, a):
    rows, h = [], np.zeros(8)
    for one, factor in zip(x, a, strict=True):
        h = h * factor + one
        rows.append(h)
    return np.array(rows)


def quantised(x: Tensor["t", 64, I8], w: Tensor[64, 24, I8], sx: Tensor["t", 1, F32], sw: Tensor[24, F32]):
    return (x @ w).astype(F32) * sx * sw


@case(RNG.integers(-9, 9, (5, 64), np.int8), RNG.integers(-9, 9, (64, 24), np.int8), *arrays((5, 1), (24,)))
def quantised_of_numpy(x, w, sx, sw):
    return (x.astype(int) @ w.astype(int)) * sx * sw


def wide(value: Any) -> Any:
    if isinstance(value, tuple):
        return type(value)(*map(wide, value))
    return value.astype(np.float64) if isinstance(value, np.ndarray) and value.dtype == np.float32 else value


@pytest.mark.parametrize(("name", "args", "wanted", "target"), [
    pytest.param(*one, target, id=f"{one[0]}-{target}", marks=() if target == "interp" and one[0] in BROKEN_ONCE else pytest.mark.slow)
    for one in CASES for target in ("interp", "cpu_sim")])
def test_a_function_agrees_with_numpy(name: str, args: Any, wanted: Any, target: str) -> None:
    f = jit(target=target)(globals()[name])
    expected = wanted(*map(wide, args))
    for found in (f(*args), f.reference(*args), f.python(*args)):
        for one, other in zip(found if isinstance(found, tuple) else (found,), expected if isinstance(expected, tuple) else (expected,),
                              strict=True):
            assert one.shape == np.shape(other)
            np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-4)


def test_an_ejected_module_takes_a_parameter_that_nothing_reads() -> None:
    @jit(target="interp")
    def first(x: Tensor["t", 8, F32], unread: Tensor["t", "n", F32]):
        return x * 2

    x, namespace = np.ones((3, 8), np.float32), {"__name__": "ejected"}
    exec(first.lower().source().replace(".compile()", ".compile('interp')"), namespace)
    np.testing.assert_array_equal(namespace["run"](x, np.ones((3, 5), np.float32)), first(x, np.ones((3, 5), np.float32)))      # type: ignore[operator]
