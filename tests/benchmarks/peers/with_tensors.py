"""The works as functions on whole tensors, with the plans that the compiler chooses by itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from pto_wsp import DType, Monotone, Tensor, jit, tt
from tests.benchmarks.works.attention import DIM, SCALE
from tests.benchmarks.works.experts import CHOICES
from tests.benchmarks.works.rows import EPSILON
from tests.benchmarks.works.work import Array, Arrays, output

Run: TypeAlias = tuple[Callable[[], object], Callable[[], Array]]
F32, I32, I64 = DType.F32, DType.I32, DType.I64
BLOCK = 256      # keys that are seen at once, and queries that see only the keys before them
PART = 32        # of a block on the diagonal
CAUSAL = 128     # the same, of requests of any length: on the diagonal half of a block is computed in vain


def prepare(key: str, given: Arrays, threads: int) -> Run | None:
    """Return a run of the work and what reads its result."""
    function, arguments, out = _calls(key, given)
    ready = function.using(threads=threads)
    return lambda: ready(*arguments, out=out), lambda: out


def _calls(key: str, given: Arrays) -> tuple[Any, tuple[Array, ...], Array]:
    """Return the function of a work, its arguments, and the place of its result."""
    match key:
        case "rmsnorm":
            return rmsnorm, (given["x"], given["weight"]), output(given["x"].shape)
        case "softmax":
            return softmax, (given["x"],), output(given["x"].shape)
        case "silu":
            return silu_mul, (given["x"], given["y"]), output(given["x"].shape)
        case "chain3":
            return chain, (given["x"],), output(given["x"].shape)
        case "mm1024" | "mm512":
            return product, (given["a"], given["b"]), output((len(given["a"]), given["b"].shape[1]))
        case "attn":
            return attention, (given["q"], given["k"], given["v"]), output(given["q"].shape)
        case "attnc":
            return causal, (given["q"], given["k"], given["v"]), output(given["q"].shape)
        case "ragged":
            lengths = np.repeat(given["lens"], int(given["heads"]))
            starts = np.concatenate([[0], np.cumsum(lengths)])
            return ragged, (given["q"], given["k"], given["v"], starts), output(given["q"].shape)
        case "moe":
            return experts, tuple(given[name] for name in ("x", "ids", "shares", "w1", "w3", "w2")), output(given["x"].shape)
        case "index":
            return index, (given["q"], given["keys"], given["weights"]), output((len(given["q"]), len(given["keys"])))
        case _:
            best = output((len(given["q"]), int(given["k"])), np.int32)
            return _best(best.shape[1]), (given["q"], given["keys"], given["weights"]), best


@jit
def rmsnorm(x, weight):
    return x * (1 / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + EPSILON)) * weight


@jit
def softmax(x):
    weight = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return weight * (1 / np.sum(weight, axis=-1, keepdims=True))


@jit
def silu_mul(x, y):
    return tt.silu(x) * y


@jit
def chain(x):
    clipped = np.maximum(x * 1.5 + 0.5, 0)
    return clipped * clipped + x


@jit
def product(a, b):
    return a @ b


def meet(state, score, v):
    """Update sums of values, sums of weights and the largest score with a block of keys of these scores."""
    acc, seen, top = state
    peak = np.maximum(top, np.max(score, axis=-1, keepdims=True))
    weight, fade = np.exp(score - peak), np.exp(top - peak)
    acc[:] = acc * fade + weight @ v
    seen[:] = seen * fade + np.sum(weight, axis=-1, keepdims=True)
    top[:] = peak


def nothing_seen(q):
    """Return the state before any key."""
    return tt.zeros(q.shape), tt.zeros((q.shape[0], 1)), tt.full((q.shape[0], 1), -math.inf)


@jit
def attention(q, k, v):
    out = tt.empty(q.shape)
    for h in tt.each(q.shape[0]):
        qh = q[h] * SCALE
        acc, seen, top = nothing_seen(qh)
        for j in tt.loop(0, k.shape[1], BLOCK):
            meet((acc, seen, top), qh @ k[h, j:j + BLOCK].T, v[h, j:j + BLOCK])
        out[h] = acc / seen
    return out


@jit
def causal(q, k, v):
    out = tt.empty(q.shape)
    for h, i in tt.each(q.shape[0], q.shape[1] // BLOCK):
        mine = slice(i * BLOCK, (i + 1) * BLOCK)
        qh, kh, vh = q[h, mine] * SCALE, k[h, mine], v[h, mine]
        acc, seen, top = nothing_seen(qh)
        for j in tt.loop(0, i * BLOCK, BLOCK):      # every query sees these keys
            meet((acc, seen, top), qh @ k[h, j:j + BLOCK].T, v[h, j:j + BLOCK])
        for start in range(0, BLOCK, PART):          # on the diagonal, queries in parts: less is computed in vain
            end = start + PART
            sees = tt.arange(end) <= tt.arange(PART)[:, None] + start
            score = np.where(sees, qh[start:end] @ kh[:end].T, -math.inf)
            meet((acc[start:end], seen[start:end], top[start:end]), score, vh[:end])
        out[h, mine] = acc / seen
    return out


@jit
def ragged(q: Tensor["rows", DIM, F32], k: Tensor["rows", DIM, F32], v: Tensor["rows", DIM, F32],
           starts: Monotone[Tensor["ends", I64]]):
    out = tt.zeros(q.shape)      # rows of no sequence
    for r in tt.each(starts.shape[0] - 1):
        mine = slice(starts[r], starts[r + 1])
        qr, kr, vr = q[mine], k[mine], v[mine]
        for i in tt.each((qr.shape[0] + CAUSAL - 1) // CAUSAL):
            rows = slice(i * CAUSAL, (i + 1) * CAUSAL)        # the last block may be short
            qh, kh, vh = qr[rows] * SCALE, kr[rows], vr[rows]
            acc, seen, top = nothing_seen(qh)
            for j in tt.loop(0, i * CAUSAL, CAUSAL):
                meet((acc, seen, top), qh @ kr[j:j + CAUSAL].T, vr[j:j + CAUSAL])
            sees = tt.arange(kh.shape[0]) <= tt.arange(qh.shape[0])[:, None]
            meet((acc, seen, top), np.where(sees, qh @ kh.T, -math.inf), vh)
            out[mine][rows] = acc / seen
    return out


@jit
def experts(x, ids, shares, w1, w3, w2):
    pairs = tt.rows_of(ids, w1.shape[0])
    each = tt.empty((x.shape[0] * CHOICES, x.shape[1]))
    for e in tt.each(w1.shape[0]):
        mine = pairs[e]
        rows = x[mine // CHOICES]
        gate = rows @ w1[e]
        each[mine] = gate / (1 + np.exp(-gate)) * (rows @ w3[e]) @ w2[e]
    return np.sum(each.reshape(x.shape[0], CHOICES, -1) * shares[..., None], axis=1)


@jit
def index(q, keys, weights):
    return np.sum(np.maximum((q @ keys.T).astype(F32), 0) * weights[..., None], axis=1)


def _best(n_best: int) -> Any:
    @jit
    def index_best(q, keys, weights):
        score = np.sum(np.maximum((q @ keys.T).astype(F32), 0) * weights[..., None], axis=1)
        _, places = tt.topk(score, n_best)
        return places

    return index_best
