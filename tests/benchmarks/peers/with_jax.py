"""The works in JAX, compiled by XLA for the CPU. XLA places results itself; they are taken as they are, without a copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from tests.benchmarks.works.attention import DIM, SCALE, requests_of
from tests.benchmarks.works.experts import CHOICES
from tests.benchmarks.works.rows import EPSILON
from tests.benchmarks.works.work import Array, Arrays

Run: TypeAlias = tuple[Callable[[], object], Callable[[], Array]]


def prepare(key: str, given: Arrays, threads: int) -> Run | None:
    """Return a run of the work and what reads its result. XLA takes the cores that the process may use."""
    function, args = _parts(key, given)
    compiled = jax.jit(function)
    placed = jax.tree.map(jnp.asarray, args)
    last: list[Any] = []

    def run() -> None:
        last[:] = [jax.block_until_ready(compiled(*placed))]

    def result() -> Array:
        found = last[0]
        return np.concatenate([np.asarray(part).reshape(-1, DIM) for part in found]) if isinstance(found, list) else np.asarray(found)

    return run, result


def _parts(key: str, given: Arrays) -> tuple[Callable[..., Any], Any]:
    """Return a function and its arguments."""
    if key == "ragged":
        requests = [requests_of(given[name], given) for name in ("q", "k", "v")]
        return lambda *each: [_attend(*request, causal=True) for request in each], list(zip(*requests, strict=True))
    function, names = _FUNCTIONS[key]
    args = [given[name] for name in names.split()]
    if key == "indextopk":
        k = int(given["k"])
        return lambda *args: jax.lax.top_k(function(*args), k)[1], args
    return function, args


def _rmsnorm(x: Any, weight: Any) -> Any:
    return x * jax.lax.rsqrt((x * x).mean(axis=-1, keepdims=True) + EPSILON) * weight


def _silu(x: Any, y: Any) -> Any:
    return jax.nn.silu(x) * y


def _chain(x: Any) -> Any:
    clipped = jnp.maximum(x * 1.5 + 0.5, 0)
    return clipped * clipped + x


def _attend(q: Any, k: Any, v: Any, *, causal: bool) -> Any:
    score = jnp.einsum("hqd,hkd->hqk", q, k) * SCALE
    if causal:
        score = jnp.where(jnp.tril(jnp.ones(score.shape[1:], bool)), score, -jnp.inf)
    return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(score, -1), v)


def _experts(x: Any, ids: Any, shares: Any, w1: Any, w3: Any, w2: Any) -> Any:
    order = jnp.argsort(ids.ravel())
    counts = jnp.bincount(ids.ravel(), length=w1.shape[0])
    rows = x[order // CHOICES]
    hidden = jax.nn.silu(jax.lax.ragged_dot(rows, w1, counts)) * jax.lax.ragged_dot(rows, w3, counts)
    down = jax.lax.ragged_dot(hidden, w2, counts)
    in_order = jnp.zeros_like(down).at[order].set(down)
    return (in_order.reshape(x.shape[0], CHOICES, -1) * shares[:, :, None]).sum(axis=1)


def _index(q: Any, keys: Any, weights: Any) -> Any:
    products = jnp.einsum("shd,td->sht", q.astype(jnp.float32), keys.astype(jnp.float32))
    return jnp.einsum("sh,sht->st", weights, jax.nn.relu(products))


_FUNCTIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "rmsnorm": (_rmsnorm, "x weight"),
    "softmax": (lambda x: jax.nn.softmax(x, -1), "x"),
    "silu": (_silu, "x y"),
    "chain3": (_chain, "x"),
    "mm1024": (jnp.matmul, "a b"),
    "mm512": (jnp.matmul, "a b"),
    "attn": (lambda q, k, v: _attend(q, k, v, causal=False), "q k v"),
    "attnc": (lambda q, k, v: _attend(q, k, v, causal=True), "q k v"),
    "moe": (_experts, "x ids shares w1 w3 w2"),
    "index": (_index, "q keys weights"),
    "indextopk": (_index, "q keys weights"),
}
