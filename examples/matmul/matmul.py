"""Matrix products: in tiles, with the inner dimension split over tasks, in bfloat16, and in int8.

Split K is for products whose result is small and whose inner dimension is long: there are few blocks of the result, so several
tasks work on one, each on a part of the inner dimension, and another task adds up what they have. bfloat16 is multiplied into f32,
and int8 into i32, where sums are exact.

    python examples/matmul/matmul.py
    python examples/matmul/matmul.py --m 300 --n 500 --k 2000
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import ml_dtypes
import numpy as np

from pto_wsp import DType, In, Kernel, Out, P, Tensor, Tile, Workload, ceildiv, kernel, minimum, pto, workload

ROWS, COLS, DEPTH = 64, 128, 128      # a block of the result, and how much of the inner dimension is on chip at a time
SPLITS = 4
F32 = DType.F32


# ---- the kernels ----

def product_kernel(accumulator: DType) -> Kernel:
    """Return one block of a product, added up in `accumulator`."""

    @kernel
    def product(a: In[Tensor], b: In[Tensor], out: Out[Tile[ROWS, COLS, accumulator]]):
        """`a`: [at most ROWS, K], `b`: [K, at most COLS]; outside of them a tile is zero and adds nothing."""
        total = pto.alloc((ROWS, COLS), accumulator, init=0)
        for k in pto.range(0, a.shape[1], DEPTH):
            depth = minimum(DEPTH, a.shape[1] - k)
            rows = pto.load(a, (0, k), shape=(ROWS, DEPTH), valid=(a.shape[0], depth))
            cols = pto.load(b, (k, 0), shape=(DEPTH, COLS), valid=(depth, b.shape[1]))
            total[:] = pto.matmul(rows, cols, total)
        pto.store(out, total)

    return product


@kernel
def add_up(parts: In[Tensor], out: Out[Tile[ROWS, COLS, F32]]):
    """`parts`: SPLITS blocks [ROWS, COLS], one below the other."""
    total = pto.alloc((ROWS, COLS), F32, init=0)
    for s in pto.range(SPLITS):
        total += pto.load(parts, (s * ROWS, 0), shape=(ROWS, COLS))
    pto.store(out, total)


# ---- the workloads ----

def tiled(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Workload:
    """Return c = a @ b, a task for each block of `c`."""
    A, B, C = Tensor(a), Tensor(b), Tensor(c)
    product = product_kernel(C.dtype)

    @workload
    def multiply():
        for i, j in P(ceildiv(len(a), ROWS), ceildiv(b.shape[1], COLS)):
            product[i, j](a=A[i * ROWS:].clip(ROWS, a.shape[1]), b=B[:, j * COLS:].clip(len(b), COLS),
                          out=C[i * ROWS:, j * COLS:].clip(ROWS, COLS))

    return multiply()


def split_k(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Workload:
    """Return c = a @ b, for each block of `c` a task for each part of the inner dimension and one that adds up."""
    A, B, C = Tensor(a), Tensor(b), Tensor(c)
    n_i, n_j = ceildiv(len(a), ROWS), ceildiv(b.shape[1], COLS)
    parts = Tensor.empty((n_i, n_j, SPLITS * ROWS, COLS), F32)
    part = ceildiv(len(b), SPLITS)
    product = product_kernel(F32)

    @workload
    def multiply():
        for i, j in P(n_i, n_j):
            rows, cols = A[i * ROWS:].clip(ROWS, a.shape[1]), B[:, j * COLS:].clip(len(b), COLS)
            for s in P(SPLITS):
                product[i, j, s](a=rows[:, s * part:].clip(ROWS, part), b=cols[s * part:].clip(part, COLS),
                                 out=parts[i, j, s * ROWS:(s + 1) * ROWS])
            add_up[i, j](parts=parts[i, j], out=C[i * ROWS:, j * COLS:].clip(ROWS, COLS))

    return multiply()


# ---- the runs ----

def check(name: str, make: Callable[..., Workload], a: np.ndarray, b: np.ndarray, dtype: np.dtype, tolerance: float) -> bool:
    """Run one product, print a line, and tell whether it agrees with NumPy's in float64."""
    c = np.zeros((len(a), b.shape[1]), dtype)
    program = make(a, b, c).compile().run()
    expected = a.astype(np.float64) @ b.astype(np.float64)
    error = float(np.abs(c - expected).max())
    right = error <= tolerance      # not so for NaN
    print(f"{name:<20}{program.stats.task_count:>4} tasks, max |error| {error:.1e}: "
          f"{'agrees with NumPy' if right else f'FAILED, more than {tolerance:.0e}'}")
    return right


def main() -> int:
    """Run all four on random matrices."""
    parser = argparse.ArgumentParser(description="Matrix products.")
    parser.add_argument("--m", type=int, default=100, help="rows of the result (default %(default)s)")
    parser.add_argument("--n", type=int, default=200, help="columns of the result (default %(default)s)")
    parser.add_argument("--k", type=int, default=1000, help="the inner dimension (default %(default)s)")
    options = parser.parse_args()
    if min(options.m, options.n) < 1 or options.k < SPLITS * SPLITS:
        parser.error(f"--m and --n are at least 1, --k at least {SPLITS * SPLITS}")
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((options.m, options.k), np.float32), rng.standard_normal((options.k, options.n), np.float32)
    low_a, low_b = a.astype(ml_dtypes.bfloat16), b.astype(ml_dtypes.bfloat16)
    int_a, int_b = (rng.integers(-127, 128, m.shape, np.int8) for m in (a, b))
    size = np.sqrt(options.k)             # of a sum of k products of normal numbers
    f32 = np.dtype(np.float32)
    return 0 if all([
        check("f32", tiled, a, b, f32, 4e-6 * size),
        check("f32, split K", split_k, a, b, f32, 4e-6 * size),
        check("bf16 into f32", tiled, low_a, low_b, f32, 4e-6 * size),
        check("int8 into i32", tiled, int_a, int_b, np.dtype(np.int32), 0),
    ]) else 1


if __name__ == "__main__":
    sys.exit(main())
