"""Chains of products whose tiles are short: no row is computed that no output has, and no row is missed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pto_wsp import DType, In, Out, P, Tensor, Tile, ceildiv, kernel, pto, workload
from pto_wsp.ir import kernel as k
from pto_wsp.ir.kernel_walk import walk
from pto_wsp.ops.spec import Matmul
from pto_wsp.ops.table import computes
from pto_wsp.passes.kernel.products import ROWS_OF
from tests.passes.kernel.test_passes import PASSES, context, trace, upto

F32 = DType.F32
M, K, N = 16, 24, 32


def chain(x: In[Tile[M, K, F32]], up: In[Tile[K, N, F32]], lift: In[Tile[K, N, F32]], down: In[Tile[N, K, F32]],
          y: Out[Tile[M, K, F32]]) -> None:
    gate = x @ up
    pto.store(y, gate / (1 + pto.exp(-gate)) * (x @ lift) @ down)


def summed(x: In[Tile[M, K, F32]], up: In[Tile[K, N, F32]], lift: In[Tile[K, N, F32]], down: In[Tile[N, K, F32]],
           y: Out[Tile[M, K, F32]]) -> None:
    gate = pto.exp(x @ up)
    pto.store(y, gate @ down + pto.colsum(gate @ down))                # the sum needs every row


def turned(x: In[Tile[M, K, F32]], up: In[Tile[K, N, F32]], lift: In[Tile[K, N, F32]], down: In[Tile[N, K, F32]],
           y: Out[Tile[M, K, F32]]) -> None:
    gate = pto.exp(x @ up)
    pto.store(y, (x @ lift) @ gate.T @ x)                                # rows of gate are columns of the product


def trimmed(function: Callable[..., None]) -> tuple[list[bool], list[bool]]:
    """Return for each product, and for each loop over rows, whether it ends with the output."""
    found = trace(function)
    after = PASSES["trim_rows"].run(upto("trim_rows", found), context(found))
    PASSES["trim_rows"].verify_after(after)
    products = [ROWS_OF in dict(stmt.attrs) for stmt in walk(after.body) if isinstance(stmt, k.Compute) and computes(stmt, Matmul)]
    return products, [stmt.of == "y" for stmt in walk(after.body) if isinstance(stmt, k.Rows)]


def test_products_and_loops_before_the_last_product_end_with_the_output() -> None:
    products, loops = trimmed(chain)
    assert products == [True] * 3 and all(loops) and len(loops) >= 2


@pytest.mark.parametrize("function", [summed, turned])
def test_rows_that_others_need_are_computed(function: Callable[..., None]) -> None:
    products, _ = trimmed(function)
    assert not products[0]


@pytest.mark.slow
@pytest.mark.parametrize("function", [chain, summed, turned])
@pytest.mark.parametrize("rows", [M, 2 * M - 3, 5])
def test_short_tiles_give_the_numbers_of_numpy(function: Callable[..., None], rows: int) -> None:
    rng = np.random.default_rng(rows)
    x, up, lift, down = (rng.standard_normal(shape).astype(np.float32) / 4 for shape in ((rows, K), (K, N), (K, N), (N, K)))
    out = np.full((rows, K), np.nan, np.float32)
    X, UP, LIFT, DOWN, OUT = map(Tensor, (x, up, lift, down, out))
    computed = kernel(function)

    @workload
    def program() -> None:
        for i in P(ceildiv(rows, M)):
            computed[i](X[i * M:].clip(M, K), UP, LIFT, DOWN, OUT[i * M:].clip(M, K))

    program().compile().run()
    want = np.concatenate([meaning(function, x[i:i + M], up, lift, down) for i in range(0, rows, M)])
    assert np.allclose(out, want, atol=1e-4, rtol=1e-4)


def meaning(function: Callable[..., None], x: np.ndarray, up: np.ndarray, lift: np.ndarray, down: np.ndarray) -> np.ndarray:
    """Return what a kernel gives for a tile, rows of zeros behind the last one."""
    tile = np.zeros((M, K), np.float64)
    tile[:len(x)] = x
    gate = tile @ up
    if function is chain:
        found = gate / (1 + np.exp(-gate)) * (tile @ lift) @ down
    elif function is summed:
        found = np.exp(gate) @ down + (np.exp(gate) @ down).sum(0)
    else:
        found = tile @ lift @ np.exp(gate).T @ tile
    return found[:len(x)]
