"""Attention without the matrix of scores: keys come in blocks, and an accumulator is scaled down where a larger score comes along.

The accumulator is state that the loop carries: a tensor, read and written in place. `causal_attention` takes queries in blocks too, and
reads no block of keys that all of its queries come before.

    python examples/tensors/flash_attention.py
"""

import math
import sys

import numpy as np
from compare import compare

from pto_wsp import DType, Tensor, Tunable, jit, tt

F32 = DType.F32
HEAD = 32


@jit
def attention(q: Tensor["h", "s", HEAD, F32], k: Tensor["h", "n", HEAD, F32], v: Tensor["h", "n", HEAD, F32],
              block: int = Tunable(32, 16, 64)):
    out, scale = tt.empty(q.shape), 1 / math.sqrt(q.shape[-1])
    for h in tt.each(q.shape[0]):
        qh = q[h] * scale
        acc, seen, top = tt.zeros(qh.shape), tt.zeros((qh.shape[0], 1)), tt.full((qh.shape[0], 1), -math.inf)
        for j in tt.loop(0, k.shape[1], block):
            score = qh @ k[h, j:j + block].T                  # the last block may be short
            peak = np.maximum(top, np.max(score, axis=-1, keepdims=True))
            weight, fade = np.exp(score - peak), np.exp(top - peak)
            acc[:] = acc * fade + weight @ v[h, j:j + block]
            seen[:] = seen * fade + np.sum(weight, axis=-1, keepdims=True)
            top[:] = peak
        out[h] = acc / seen
    return out


@jit
def causal_attention(q: Tensor["h", "n", HEAD, F32], k: Tensor["h", "n", HEAD, F32], v: Tensor["h", "n", HEAD, F32],
                     rows: int = Tunable(16, 32), block: int = Tunable(32, 16, 64)):
    heads, n, width = q.shape
    out, scale = tt.empty(q.shape), 1 / math.sqrt(width)
    for h, i in tt.each(heads, (n + rows - 1) // rows):
        qi = q[h, i * rows:(i + 1) * rows] * scale
        acc, seen, top = tt.zeros(qi.shape), tt.zeros((qi.shape[0], 1)), tt.full((qi.shape[0], 1), -math.inf)
        for j in tt.loop(0, np.minimum((i + 1) * rows, n), block):
            score = qi @ k[h, j:j + block].T
            before = j + tt.arange(score.shape[1]) <= i * rows + tt.arange(score.shape[0])[:, None]
            score = np.where(before, score, -math.inf)
            peak = np.maximum(top, np.max(score, axis=-1, keepdims=True))
            weight, fade = np.exp(score - peak), np.exp(top - peak)
            acc[:] = acc * fade + weight @ v[h, j:j + block]
            seen[:] = seen * fade + np.sum(weight, axis=-1, keepdims=True)
            top[:] = peak
        out[h, i * rows:(i + 1) * rows] = acc / seen
    return out


FUNCTIONS = {attention: {"tiles": {"out": {"s": 16}}}, causal_attention: {"tiles": {"qi": {0: 8}}}}      # with the entries of tuned plans


def draw(h=3, n=85, seed=0):
    """Return the arguments by name, for as many queries as keys."""
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal((h, n, HEAD), np.float32) for name in "qkv"}


def _attend(q, k, v, seen):
    """Return attention in float64 for one head after the other; `seen` masks the scores."""
    result = []
    for head in range(len(q)):
        weight = np.exp(q[head].astype(np.float64) @ k[head].T / np.sqrt(HEAD)) * seen
        result.append(weight @ v[head] / weight.sum(1, keepdims=True))
    return np.array(result)


def expected(q, k, v):
    """Return the results in float64, with the whole matrix of scores."""
    return {attention: _attend(q, k, v, 1), causal_attention: _attend(q, k, v, np.tri(q.shape[1]))}


if __name__ == "__main__":
    sys.exit(compare(FUNCTIONS, draw, expected))
