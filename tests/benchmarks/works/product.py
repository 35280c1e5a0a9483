"""Matrix products in f32: 1024³, and 512 rows by a 4096 x 4096 matrix. A task makes one block of the result."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pto_wsp import DType, In, Kernel, Out, P, Tensor, Tile, Workload, kernel, pto, workload
from tests.benchmarks.works.work import Array, Arrays, Bound, Sizes, Work, output, relative_error

F32 = DType.F32


BLOCK = 512     # rows and columns of a task: what is packed of one operand serves as many of the other


def product_kernel(block_rows: int, block_cols: int, depth: int) -> Kernel:
    """Return one block of a product, over the whole inner dimension."""

    @kernel
    def product(a: In[Tile[block_rows, depth, F32]], b: In[Tile[depth, block_cols, F32]], out: Out[Tile[block_rows, block_cols, F32]]):
        pto.store(out, a @ b)

    return product


def product_workload(a: Array, b: Array, out: Array, block_rows: int, block_cols: int) -> Workload:
    """Return a @ b in blocks."""
    A, B, C = Tensor(a), Tensor(b), Tensor(out)
    product = product_kernel(block_rows, block_cols, a.shape[1])

    @workload
    def multiply():
        for j, i in P(out.shape[1] // block_cols, out.shape[0] // block_rows):
            rows = slice(i * block_rows, (i + 1) * block_rows)
            cols = slice(j * block_cols, (j + 1) * block_cols)
            product[i, j](a=A[rows], b=B[:, cols], out=C[rows, cols])

    return multiply()


def product_inputs(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    """Return two normal matrices."""
    return {"a": rng.standard_normal((sizes["m"], sizes["k"]), dtype=np.float32),
            "b": rng.standard_normal((sizes["k"], sizes["n"]), dtype=np.float32)}


def product_expected(given: Arrays) -> Array:
    """Return the product in float64."""
    return given["a"].astype(np.float64) @ given["b"].astype(np.float64)


def prepare_product(given: Arrays, threads: int) -> tuple[Callable[[], object], Array]:
    """Return our run and where its result is."""
    a, b = given["a"], given["b"]
    out = output((a.shape[0], b.shape[1]))
    block_rows, block_cols = (min(size, BLOCK) for size in out.shape)
    return product_workload(a, b, out, block_rows, block_cols).compile(threads=threads).run, out


def _operations(sizes: Sizes) -> int:
    return 2 * int(sizes["m"]) * int(sizes["n"]) * int(sizes["k"])


WORKS = (
    Work("mm1024", "matmul 1024³ f32", Bound.FMA, {"m": 1024, "n": 1024, "k": 1024}, {"m": 128, "n": 256, "k": 512}, product_inputs,
         product_expected, prepare_product, _operations, relative_error, 1e-5),
    Work("mm512", "matmul 512x4096x4096 f32", Bound.FMA, {"m": 512, "n": 4096, "k": 4096}, {"m": 256, "n": 256, "k": 256}, product_inputs,
         product_expected, prepare_product, _operations, relative_error, 1e-5),
)
