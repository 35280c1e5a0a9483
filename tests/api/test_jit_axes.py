"""Functions on tensors of four and five dimensions: sums along any axes, axes in any order, and pages taken by a table, as in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, Tensor, jit, tt

F32, I32 = DType.F32, DType.I32
KINDS: dict[int, Any] = {4: Tensor["b", 4, 2, 8, F32], 5: Tensor["b", 3, 4, 2, 8, F32]}

CASES: dict[str, tuple[int, Callable[[Any], Any]]] = {
    "sum_1": (5, lambda x: np.sum(x * 2, axis=1)),
    "sum_1_3": (4, lambda x: np.sum(x * 2, axis=(1, 3))),
    "sum_0_2": (4, lambda x: np.sum(x * 2, axis=(0, 2))),
    "sum_2_4": (5, lambda x: np.sum(x * 2, axis=(2, 4))),
    "max_1_3": (5, lambda x: np.max(x * 2, axis=(1, 3))),
    "group_norm": (4, lambda x: (x - np.mean(x, axis=(1, 3), keepdims=True)) / np.sqrt(np.var(x, axis=(1, 3), keepdims=True) + 1e-5)),
    "softmax_1": (4, lambda x: np.exp(x) / np.sum(np.exp(x), axis=1, keepdims=True)),
    "transposed_sum": (4, lambda x: np.sum(np.transpose(x, (3, 1, 0, 2)) * 2, axis=1)),
    "transposed": (4, lambda x: np.transpose(x, (0, 2, 1, 3)) + 1),
    "products_of_heads": (4, lambda x: np.swapaxes(x, 1, 2) @ np.transpose(x, (0, 2, 3, 1))),
    "pooled": (4, lambda x: np.max(x.reshape(x.shape[0], 2, 2, 2, 8), axis=2)),
    "reversed": (4, lambda x: x[:, ::-1] + x),
}


@pytest.mark.parametrize("target", ["interp", pytest.param("cpu_sim", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CASES)
def test_every_order_of_axes_means_what_numpy_means(name: str, target: str) -> None:
    rank, meaning = CASES[name]

    def function(x: Any) -> Any:
        return meaning(x)

    function.__annotations__ = {"x": KINDS[rank]}
    f = jit(function).using(target=target)
    for b in (1, 5, 33):
        x = np.random.default_rng(b).standard_normal((b, *(3, 4, 2, 8)[5 - rank:]), np.float32)
        np.testing.assert_allclose(f(x), meaning(x.astype(np.float64)), rtol=1e-4, atol=1e-5)


@jit
def decode(q: Tensor["b", 8, 16, F32], k_pages: Tensor["layers", "pages", 4, 2, 16, F32], v_pages: Tensor["layers", "pages", 4, 2, 16, F32],
           table: Tensor["b", 3, I32], lengths: Tensor["b", I32], layer: int = 1):
    out = tt.empty(q.shape)
    for b in tt.each(q.shape[0]):
        k = k_pages[layer][table[b]].reshape(12, 2, 16)      # a page holds rows of all heads, one behind the other
        v = v_pages[layer, table[b]].reshape(12, 2, 16)
        score = np.einsum("hgd,nhd->hgn", q[b].reshape(2, 4, 16), k)
        weight = np.exp(np.where(tt.arange(12) < lengths[b], score, -np.inf))
        out[b] = np.einsum("hgn,nhd->hgd", weight / np.sum(weight, axis=-1, keepdims=True), v).reshape(8, 16)
    return out


@pytest.mark.parametrize("target", ["interp", pytest.param("cpu_sim", marks=pytest.mark.slow)])
def test_pages_of_several_heads_are_taken_whole(target: str) -> None:
    rng, b = np.random.default_rng(0), 5
    q, pages = rng.standard_normal((b, 8, 16), np.float32), rng.standard_normal((2, 2, 7, 4, 2, 16), np.float32)
    table, lengths = rng.integers(0, 7, (b, 3)).astype(np.int32), np.array([1, 4, 7, 12, 9], np.int32)
    wanted = np.zeros(q.shape)
    for row in range(b):
        k, v = (pages[which, 1][table[row]].reshape(12, 2, 16)[:lengths[row]].astype(np.float64) for which in (0, 1))
        for head in range(8):
            weight = np.exp(k[:, head // 4] @ q[row, head])
            wanted[row, head] = weight / weight.sum() @ v[:, head // 4]
    np.testing.assert_allclose(decode.using(target=target)(q, pages[0], pages[1], table, lengths), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_pages_of_several_heads_make_a_package() -> None:
    heads, pages = np.zeros((2, 5, 8, 16), np.float32), np.zeros((2, 2, 7, 4, 2, 16), np.float32)
    table, lengths = np.zeros((5, 3), np.int32), np.zeros(5, np.int32)
    program = decode.lower(q=Tensor(heads[0]), k_pages=Tensor(pages[0]), v_pages=Tensor(pages[1]), table=Tensor(table),
                           lengths=Tensor(lengths), out=Tensor(heads[1])).compile("ascend_npu", arch="ascend_910b")
    assert (program.artifact_dir / "kernel_config.py").is_file()


@jit
def sums_between(x: Tensor["a", 3, "b", 4, "c", F32], y: Tensor["a", "b", "c", F32]):
    return (np.mean(x * x, axis=(0, 2, 4)), np.max(x, axis=(1, 3)), np.sum(x, axis=(2, 3, 4), keepdims=True), np.sum(np.exp(y) * 2, axis=1))


@pytest.mark.parametrize("target", ["interp", pytest.param("cpu_sim", marks=pytest.mark.slow)])
def test_sums_of_symbols_between_others_mean_what_numpy_means(target: str) -> None:
    for a, b, c in ((2, 3, 4), (1, 1, 1), (3, 5, 17)):
        rng = np.random.default_rng(a)
        x, y = rng.standard_normal((a, 3, b, 4, c), np.float32), rng.standard_normal((a, b, c), np.float32)
        wide, deep = x.astype(np.float64), y.astype(np.float64)
        wanted = ((wide * wide).mean((0, 2, 4)), wide.max((1, 3)), wide.sum((2, 3, 4), keepdims=True), np.exp(deep).sum(1) * 2)
        for one, other in zip(sums_between.using(target=target)(x, y), wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
