"""The works in NumPy, as somebody would write them who cares for speed: blocks that stay in the cache, results in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from tests.benchmarks.works.attention import SCALE, requests_of
from tests.benchmarks.works.experts import CHOICES
from tests.benchmarks.works.rows import EPSILON
from tests.benchmarks.works.work import Array, Arrays, output

Run: TypeAlias = tuple[Callable[[], object], Callable[[], Array]]
BLOCK = 16


def prepare(key: str, given: Arrays, threads: int) -> Run | None:
    """Return a run of the work and what reads its result. NumPy itself takes one thread, its matrix products all."""
    return {"rmsnorm": _rmsnorm, "softmax": _softmax, "silu": _silu, "mm1024": _product, "mm512": _product, "attn": _attention,
            "attnc": _causal, "ragged": _ragged, "moe": _experts, "chain3": _chain, "index": _index, "indextopk": _topk}[key](given)


def _rmsnorm(given: Arrays) -> Run:
    x, weight, out = given["x"], given["weight"], output(given["x"].shape)

    def run() -> None:
        for t in range(0, len(x), BLOCK):
            rows, result = x[t:t + BLOCK], out[t:t + BLOCK]
            mean = np.einsum("ij,ij->i", rows, rows)[:, None] / np.float32(x.shape[1])
            np.multiply(rows, np.float32(1) / np.sqrt(mean + np.float32(EPSILON)), out=result)
            result *= weight

    return run, lambda: out


def _softmax(given: Arrays) -> Run:
    x, out = given["x"], output(given["x"].shape)

    def run() -> None:
        for t in range(0, len(x), BLOCK):
            rows, result = x[t:t + BLOCK], out[t:t + BLOCK]
            np.subtract(rows, rows.max(axis=1, keepdims=True), out=result)
            np.exp(result, out=result)
            result /= result.sum(axis=1, keepdims=True)

    return run, lambda: out


def _silu(given: Arrays) -> Run:
    x, y, out = given["x"], given["y"], output(given["x"].shape)

    def run() -> None:
        for t in range(0, len(x), 1 << 14):
            part, result = x[t:t + (1 << 14)], out[t:t + (1 << 14)]
            np.negative(part, out=result)
            np.exp(result, out=result)
            result += np.float32(1)
            np.divide(part, result, out=result)
            result *= y[t:t + (1 << 14)]

    return run, lambda: out


def _chain(given: Arrays) -> Run:
    x, out = given["x"], output(given["x"].shape)

    def run() -> None:
        for row, result in zip(x, out, strict=True):
            np.multiply(row, np.float32(1.5), out=result)
            result += np.float32(0.5)
            np.maximum(result, np.float32(0), out=result)
            result *= result
            result += row

    return run, lambda: out


def _product(given: Arrays) -> Run:
    a, b = given["a"], given["b"]
    out = output((len(a), b.shape[1]))
    return lambda: np.matmul(a, b, out=out), lambda: out


def _attend(q: Array, k: Array, v: Array, mask: Array | None, out: Array) -> None:
    for h in range(len(q)):
        score = q[h] @ k[h].T
        score *= np.float32(SCALE)
        if mask is not None:
            score += mask
        score -= score.max(axis=1, keepdims=True)
        np.exp(score, out=score)
        total = score.sum(axis=1, keepdims=True)
        np.matmul(score, v[h], out=out[h])
        out[h] /= total


def _mask(n_tokens: int) -> Array:
    return np.triu(np.full((n_tokens, n_tokens), -np.inf, np.float32), 1)


def _attention(given: Arrays) -> Run:
    out = output(given["q"].shape)
    return lambda: _attend(given["q"], given["k"], given["v"], None, out), lambda: out


def _causal(given: Arrays) -> Run:
    out, mask = output(given["q"].shape), _mask(given["q"].shape[1])
    return lambda: _attend(given["q"], given["k"], given["v"], mask, out), lambda: out


def _ragged(given: Arrays) -> Run:
    out = output(given["q"].shape)
    parts = [requests_of(array, given) for array in (given["q"], given["k"], given["v"], out)]
    masks = [_mask(request.shape[1]) for request in parts[0]]

    def run() -> None:
        for q, k, v, mask, result in zip(*parts[:3], masks, parts[3], strict=True):
            _attend(q, k, v, mask, result)

    return run, lambda: out


def _experts(given: Arrays) -> Run:
    x, ids, shares, w1, w3, w2 = (given[name] for name in ("x", "ids", "shares", "w1", "w3", "w2"))
    out = output(x.shape)

    def run() -> None:
        flat = ids.ravel()
        order = np.argsort(flat, kind="stable")
        ends = np.cumsum(np.bincount(flat, minlength=len(w1)))
        out[:] = 0
        for e, (first, last) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            mine = order[first:last]
            rows = x[mine // CHOICES]
            up = rows @ w1[e]
            up /= np.float32(1) + np.exp(-up)
            up *= rows @ w3[e]
            out[mine // CHOICES] += shares.ravel()[mine][:, None] * (up @ w2[e])

    return run, lambda: out


def _index(given: Arrays) -> Run:
    q, keys, weights = given["q"], given["keys"], given["weights"]
    out = output((len(q), len(keys)))

    def run() -> None:
        wide = keys.T.astype(np.float32)
        for s in range(len(q)):
            np.matmul(weights[s], np.maximum(q[s].astype(np.float32) @ wide, 0), out=out[s])

    return run, lambda: out


def _topk(given: Arrays) -> Run:
    score, scores = _index(given)
    k = int(given["k"])
    out = output((len(given["q"]), k), np.int64)

    def run() -> None:
        score()
        out[:] = np.argpartition(scores(), -k, axis=1)[:, -k:]

    return run, lambda: out
