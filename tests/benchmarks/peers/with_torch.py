"""The works in PyTorch: its own fused functions, eager or compiled. Results go to given places where a function takes one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import torch
import torch.nn.functional as F

from tests.benchmarks.works.attention import DIM, requests_of
from tests.benchmarks.works.rows import EPSILON
from tests.benchmarks.works.work import Array, Arrays, output

Run: TypeAlias = tuple[Callable[[], object], Callable[[], Array]]
Function: TypeAlias = Callable[..., Any]
SAME_LIBRARY = frozenset({"attn", "attnc", "ragged"})   # compiled code calls what eager code calls


def prepare(key: str, given: Arrays, threads: int) -> Run | None:
    """Return an eager run of the work and what reads its result."""
    _settings(threads)
    if key in ("mm1024", "mm512"):
        a, b, out = _tensors(given["a"], given["b"], output((len(given["a"]), given["b"].shape[1])))
        return lambda: torch.matmul(a, b, out=out), out.numpy
    if key == "softmax":
        x, out = _tensors(given["x"], output(given["x"].shape))
        return lambda: torch.softmax(x, -1, out=out), out.numpy
    if key == "silu":
        x, y, out = _tensors(given["x"], given["y"], output(given["x"].shape))
        return lambda: torch._C._nn.silu(x, out=out).mul_(y), out.numpy
    if key == "ragged":
        return _ragged(given)
    return _kept(_function(key, given))


def prepare_compiled(key: str, given: Arrays, threads: int) -> Run | None:
    """Return a run compiled by torch.compile, or None where it only calls the library that eager code calls."""
    if key in SAME_LIBRARY:
        return None
    _settings(threads)
    if key in ("rmsnorm", "softmax", "silu", "chain3"):
        out = torch.from_numpy(output(given["x"].shape))
        inner, *args = _parts(key, given)
        into = torch.compile(lambda out, *args: out.copy_(inner(*args)), dynamic=False)
        return lambda: into(out, *args), out.numpy
    function, *args = _parts(key, given)
    compiled = torch.compile(function, dynamic=False)
    return _kept(lambda: compiled(*args))


def _settings(threads: int) -> None:
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)


def _tensors(*arrays: Array) -> list[torch.Tensor]:
    return [torch.from_numpy(array) for array in arrays]


def _kept(call: Callable[[], Any]) -> Run:
    last: list[Any] = []

    def run() -> None:
        last[:] = [call()]

    return run, lambda: last[0].numpy()


def _function(key: str, given: Arrays) -> Callable[[], Any]:
    function, *args = _parts(key, given)
    return lambda: function(*args)


def _parts(key: str, given: Arrays) -> tuple[Any, ...]:
    """Return a function of tensors, and the tensors."""
    if key == "rmsnorm":
        return lambda x, weight: F.rms_norm(x, (x.shape[1],), weight, EPSILON), *_tensors(given["x"], given["weight"])
    if key == "softmax":
        return lambda x: torch.softmax(x, -1), *_tensors(given["x"])
    if key == "silu":
        return lambda x, y: F.silu(x) * y, *_tensors(given["x"], given["y"])
    if key == "chain3":
        return _chain, *_tensors(given["x"])
    if key in ("mm1024", "mm512"):
        return torch.matmul, *_tensors(given["a"], given["b"])
    if key in ("attn", "attnc"):
        def attend(q: Any, k: Any, v: Any) -> Any:
            return F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=key == "attnc")[0]
        return attend, *_tensors(given["q"], given["k"], given["v"])
    if key == "moe":
        return _experts, *_tensors(*(given[name] for name in ("x", "ids", "shares", "w1", "w3", "w2")))
    tensors = _tensors(given["q"], given["keys"], given["weights"])
    if key == "index":
        return _index, *tensors
    k = int(given["k"])
    return lambda q, keys, weights: torch.topk(_index(q, keys, weights), k, dim=1, sorted=False).indices, *tensors


def _chain(x: Any) -> Any:
    clipped = torch.relu(x * 1.5 + 0.5)
    return clipped * clipped + x


def _experts(x: Any, ids: Any, shares: Any, w1: Any, w3: Any, w2: Any) -> Any:
    out = torch.zeros_like(x)
    for e in range(w1.shape[0]):
        tokens, choices = torch.nonzero(ids == e, as_tuple=True)
        rows = x[tokens]
        down = (F.silu(rows @ w1[e]) * (rows @ w3[e])) @ w2[e]
        out.index_add_(0, tokens, shares[tokens, choices][:, None] * down)
    return out


def _index(q: Any, keys: Any, weights: Any) -> Any:
    n_queries, n_heads, width = q.shape
    products = torch._int_mm(q.reshape(-1, width), keys.t()).reshape(n_queries, n_heads, -1)
    return torch.einsum("sh,sht->st", weights, torch.relu(products.float()))


def _ragged(given: Arrays) -> Run:
    requests = [[torch.from_numpy(part)[None] for part in requests_of(given[name], given)] for name in ("q", "k", "v")]
    last: list[Any] = []

    def run() -> None:
        last[:] = [F.scaled_dot_product_attention(q, k, v, is_causal=True) for q, k, v in zip(*requests, strict=True)]

    return run, lambda: np.concatenate([part.numpy().reshape(-1, DIM) for part in last])
