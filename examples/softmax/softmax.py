"""Softmax of the rows of a matrix, twice: rows that fit on the chip, and rows of any length, read in blocks.

The first kernel has whole rows in a tile. The second reads a row block by block, twice: once for the maximum and the sum, once to
divide. Where a larger maximum comes along, the sum so far is scaled down to it. The last block is short.

    python examples/softmax/softmax.py
    python examples/softmax/softmax.py --rows 100 --cols 50257
"""

from __future__ import annotations

import argparse
import math
import sys

import numpy as np

from pto_wsp import DType, In, Kernel, Out, P, Tensor, Tile, Workload, ceildiv, kernel, minimum, pto, workload

F32 = DType.F32
ROWS, BLOCK = 16, 512     # rows of a task, columns of a block
MOST_COLS = 2048          # longer rows are read in blocks
TOLERANCE = 1e-6          # of f32 against a float64 reference; results lie between 0 and 1


# ---- the reference ----

def reference(x: np.ndarray) -> np.ndarray:
    """Return softmax of the rows in float64."""
    weight = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return weight / weight.sum(axis=1, keepdims=True)


# ---- rows that fit into a tile ----

def whole_rows(cols: int) -> Kernel:
    """Return softmax of 16 rows of `cols` columns."""

    @kernel
    def softmax(x: In[Tile[ROWS, cols, F32]], out: Out[Tile[ROWS, cols, F32]]):
        weight = pto.exp(x - pto.rowmax(x))
        pto.store(out, weight / pto.rowsum(weight))

    return softmax


# ---- rows of any length ----

@kernel
def softmax_in_blocks(x: In[Tensor], out: Out[Tensor]):
    """`x`, `out`: [at most 16 rows, any number of columns]."""
    n_rows, n_cols = x.shape
    row_max = pto.alloc((ROWS, 1), F32, init=-math.inf)
    row_sum = pto.alloc((ROWS, 1), F32, init=0)
    for start in pto.range(0, n_cols, BLOCK):
        there = (n_rows, minimum(BLOCK, n_cols - start))
        block = pto.load(x, (0, start), shape=(ROWS, BLOCK), valid=there, fill=-math.inf)   # exp(-inf) adds nothing
        new_max = pto.maximum(row_max, pto.rowmax(block))
        row_sum[:] = row_sum * pto.exp(row_max - new_max) + pto.rowsum(pto.exp(block - new_max))
        row_max[:] = new_max
    share = 1 / row_sum
    for start in pto.range(0, n_cols, BLOCK):
        there = (n_rows, minimum(BLOCK, n_cols - start))
        block = pto.load(x, (0, start), shape=(ROWS, BLOCK), valid=there)
        pto.store(out, pto.exp(block - row_max) * share, (0, start), valid=there)


# ---- the workload ----

def softmax_workload(x: np.ndarray, y: np.ndarray) -> Workload:
    """Return softmax of the rows of `x`, a task for each 16 of them; the last task may have fewer."""
    X, Y = Tensor(x), Tensor(y)
    n_rows, cols = x.shape
    softmax = whole_rows(cols)

    @workload
    def softmax_rows():
        for t in P(ceildiv(n_rows, ROWS)):
            if cols <= MOST_COLS:     # a number known now, so Python decides which tasks there are
                softmax[t](x=X[t * ROWS:].clip(ROWS, cols), out=Y[t * ROWS:].clip(ROWS, cols))
            else:
                softmax_in_blocks[t](x=X[t * ROWS:].clip(ROWS, cols), out=Y[t * ROWS:].clip(ROWS, cols))

    return softmax_rows()


def check(rows: int, cols: int, rng: np.random.Generator) -> bool:
    """Run one shape, print a line, and tell whether it agrees with the reference."""
    x = rng.standard_normal((rows, cols), dtype=np.float32) * 10
    y = np.full_like(x, np.nan)
    program = softmax_workload(x, y).compile().run()
    error = float(np.abs(y - reference(x)).max())
    right = error <= TOLERANCE      # not so for NaN
    how = "whole rows" if cols <= MOST_COLS else f"blocks of {BLOCK} columns"
    print(f"[{rows}, {cols}], {how}: {program.stats.task_count} tasks, max |error| {error:.1e}: "
          f"{'agrees with NumPy' if right else f'FAILED, more than {TOLERANCE:.0e}'}")
    return right


def main() -> int:
    """Check a short and a long row length, or the one that is given."""
    parser = argparse.ArgumentParser(description="Softmax of the rows of a matrix.")
    parser.add_argument("--rows", type=int, default=100, help="default %(default)s")
    parser.add_argument("--cols", type=int, help="by default 1000 and 10000, one after the other")
    options = parser.parse_args()
    if options.rows < 1 or (options.cols is not None and options.cols < 1):
        parser.error("--rows and --cols are at least 1")
    rng = np.random.default_rng(0)
    shapes = [(options.rows, cols) for cols in ((1000, 10000) if options.cols is None else (options.cols,))]
    return 0 if all([check(rows, cols, rng) for rows, cols in shapes]) else 1


if __name__ == "__main__":
    sys.exit(main())
