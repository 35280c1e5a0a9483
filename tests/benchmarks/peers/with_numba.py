"""The works in Numba: loops over rows or blocks in parallel, results in given arrays. What only calls a library is left to NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numba
import numpy as np

from tests.benchmarks.works.attention import DIM, SCALE, requests_of
from tests.benchmarks.works.rows import EPSILON
from tests.benchmarks.works.work import Array, Arrays, output

Run: TypeAlias = tuple[Callable[[], object], Callable[[], Array]]
BLOCK = 64
# Infinities carry the masks of attention, so nothing may assume that there are none.
_LOOSE, _KEEPS_INFINITY = True, {"reassoc", "contract", "arcp", "nsz"}


def prepare(key: str, given: Arrays, threads: int) -> Run | None:
    """Return a run of the work and what reads its result, or None where Numba has nothing of its own to offer."""
    numba.set_num_threads(threads)
    makers = {"rmsnorm": _rmsnorm, "softmax": _softmax, "silu": _silu, "chain3": _chain, "mm1024": _product, "attn": _attention,
              "attnc": _causal, "ragged": _ragged, "index": _index}
    return makers[key](given) if key in makers else None


def _rmsnorm(given: Arrays) -> Run:
    x, weight, out = given["x"], given["weight"], output(given["x"].shape)
    return lambda: _rmsnorm_loop(x, weight, np.float32(EPSILON), out), lambda: out


@numba.njit(parallel=True, fastmath=_LOOSE)
def _rmsnorm_loop(x, weight, epsilon, out):  # type: ignore[no-untyped-def]
    n_rows, cols = x.shape
    for r in numba.prange(n_rows):
        total = np.float32(0)
        for c in range(cols):
            total += x[r, c] * x[r, c]
        inverse = np.float32(1) / np.sqrt(total / np.float32(cols) + epsilon)
        for c in range(cols):
            out[r, c] = x[r, c] * inverse * weight[c]


def _softmax(given: Arrays) -> Run:
    x, out = given["x"], output(given["x"].shape)
    return lambda: _softmax_loop(x, out), lambda: out


@numba.njit(parallel=True, fastmath=_LOOSE)
def _softmax_loop(x, out):  # type: ignore[no-untyped-def]
    n_rows, cols = x.shape
    for r in numba.prange(n_rows):
        top = x[r, 0]
        for c in range(cols):
            top = max(top, x[r, c])
        total = np.float32(0)
        for c in range(cols):
            weight = math.exp(x[r, c] - top)
            out[r, c] = weight
            total += weight
        share = np.float32(1) / total
        for c in range(cols):
            out[r, c] *= share


def _silu(given: Arrays) -> Run:
    x, y, out = given["x"], given["y"], output(given["x"].shape)
    return lambda: _silu_loop(x, y, out), lambda: out


@numba.njit(parallel=True, fastmath=_LOOSE)
def _silu_loop(x, y, out):  # type: ignore[no-untyped-def]
    for i in numba.prange(x.size):
        out[i] = x[i] / (np.float32(1) + math.exp(-x[i])) * y[i]


def _chain(given: Arrays) -> Run:
    x, out = given["x"], output(given["x"].shape)
    return lambda: _chain_loop(x, out), lambda: out


@numba.njit(parallel=True, fastmath=_LOOSE)
def _chain_loop(x, out):  # type: ignore[no-untyped-def]
    n_rows, cols = x.shape
    for r in numba.prange(n_rows):
        for c in range(cols):
            clipped = max(x[r, c] * np.float32(1.5) + np.float32(0.5), np.float32(0))
            out[r, c] = clipped * clipped + x[r, c]


def _product(given: Arrays) -> Run:
    a, b = given["a"], given["b"]
    out = output((len(a), b.shape[1]))
    return lambda: _product_loop(a, b, out), lambda: out


@numba.njit(parallel=True, fastmath=_LOOSE)
def _product_loop(a, b, out):  # type: ignore[no-untyped-def]
    n_rows, depth = a.shape
    for t in numba.prange(n_rows // BLOCK):
        for i in range(t * BLOCK, (t + 1) * BLOCK):
            for j in range(b.shape[1]):
                out[i, j] = 0
        for first in range(0, depth, BLOCK):
            for i in range(t * BLOCK, (t + 1) * BLOCK):
                for k in range(first, first + BLOCK):
                    factor = a[i, k]
                    for j in range(b.shape[1]):
                        out[i, j] += factor * b[k, j]


def _attention(given: Arrays) -> Run:
    out = output(given["q"].shape)
    return lambda: _attend_loop(given["q"], given["k"], given["v"], out, np.float32(SCALE), False), lambda: out


def _causal(given: Arrays) -> Run:
    out = output(given["q"].shape)
    return lambda: _attend_loop(given["q"], given["k"], given["v"], out, np.float32(SCALE), True), lambda: out


def _ragged(given: Arrays) -> Run:
    out = output(given["q"].shape)
    requests = list(zip(*(requests_of(array, given) for array in (given["q"], given["k"], given["v"], out)), strict=True))

    def run() -> None:
        for q, k, v, result in requests:
            _attend_loop(q, k, v, result, np.float32(SCALE), True)

    return run, lambda: out


@numba.njit(parallel=True, fastmath=_KEEPS_INFINITY)
def _attend_loop(q, k, v, out, scale, causal):  # type: ignore[no-untyped-def]
    heads, tokens, _ = q.shape
    blocks = (tokens + BLOCK - 1) // BLOCK
    for task in numba.prange(heads * blocks):
        h = task // blocks
        b = blocks - 1 - task % blocks
        queries = q[h, b * BLOCK:(b + 1) * BLOCK] * scale
        n = queries.shape[0]
        acc = np.zeros((n, DIM), np.float32)
        top = np.full(n, -np.inf, np.float32)
        total = np.zeros(n, np.float32)
        for c in range(b + 1 if causal else blocks):
            score = np.dot(queries, k[h, c * BLOCK:(c + 1) * BLOCK].T)
            for i in range(n):
                if causal and c == b:
                    score[i, i + 1:] = -np.inf
                new = top[i]
                for j in range(score.shape[1]):
                    new = max(new, score[i, j])
                here = np.float32(0)
                for j in range(score.shape[1]):
                    weight = math.exp(score[i, j] - new)
                    score[i, j] = weight
                    here += weight
                shrink = math.exp(top[i] - new)
                total[i] = total[i] * shrink + here
                top[i] = new
                for j in range(DIM):
                    acc[i, j] *= shrink
            acc += np.dot(score, v[h, c * BLOCK:(c + 1) * BLOCK])
        for i in range(n):
            for j in range(DIM):
                out[h, b * BLOCK + i, j] = acc[i, j] / total[i]


def _index(given: Arrays) -> Run:
    q, weights = given["q"], given["weights"]
    by_width = np.ascontiguousarray(given["keys"].T)
    out = output((len(q), len(given["keys"])))
    return lambda: _index_loop(q, by_width, weights, out), lambda: out


@numba.njit(parallel=True, fastmath=_LOOSE)
def _index_loop(q, by_width, weights, out):  # type: ignore[no-untyped-def]
    queries, heads, width = q.shape
    n_keys = by_width.shape[1]
    for s in numba.prange(queries):
        score = np.zeros(n_keys, np.float32)
        for h in range(heads):
            product = np.zeros(n_keys, np.int32)
            for d in range(width):
                factor = np.int32(q[s, h, d])
                for t in range(n_keys):
                    product[t] += factor * np.int32(by_width[d, t])
            for t in range(n_keys):
                score[t] += weights[s, h] * max(np.float32(product[t]), np.float32(0))
        out[s] = score
