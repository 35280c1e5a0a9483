"""Flash attention, full and causal: no matrix of all scores exists, only the scores of one block of queries with one of keys.

For each block of queries, blocks of keys come one after the other. A running maximum keeps the exponentials in range; where a block
brings a larger one, what was summed so far is scaled down to it. Causal attention leaves out the blocks of keys behind the queries
and masks only the block on the diagonal, so it does half the work.

    python examples/flash_attention/flash_attention.py
    python examples/flash_attention/flash_attention.py --heads 8 --tokens 1000
"""

from __future__ import annotations

import argparse
import math
import sys

import numpy as np

from pto_wsp import Constexpr, Dense, DType, In, Out, P, Scalar, Tensor, Tile, Workload, ceildiv, kernel, minimum, pto, workload

HEAD_DIM, BLOCK = 64, 64      # of a head; queries, and keys, of a block
SCALE = 1 / math.sqrt(HEAD_DIM)
TOLERANCE = 1e-5              # of f32 against a float64 reference; outputs are averages of values of size 1
F32, I32 = DType.F32, DType.I32


# ---- the reference ----

def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool) -> np.ndarray:
    """Return attention of [heads, tokens, HEAD_DIM] in float64."""
    score = q.astype(np.float64) @ k.transpose(0, 2, 1) * SCALE
    if causal:
        score[:, ~np.tri(q.shape[1], dtype=bool)] = -np.inf
    weight = np.exp(score - score.max(axis=2, keepdims=True))
    return weight @ v / weight.sum(axis=2, keepdims=True)


# ---- the kernel: one block of queries against all keys, or against those up to each query ----

@kernel
def attend(q: In[Tile[BLOCK, HEAD_DIM, F32]], keys: In[Tensor], values: In[Tensor], first: Scalar[I32], causal: Constexpr[bool],
           out: Out[Tile[BLOCK, HEAD_DIM, F32]]):
    """`keys`, `values`: [tokens, HEAD_DIM]; `first`: which token row 0 of `q` is, a multiple of BLOCK."""
    acc = pto.alloc((BLOCK, HEAD_DIM), F32, init=0)
    row_max = pto.alloc((BLOCK, 1), F32, init=-math.inf)
    row_sum = pto.alloc((BLOCK, 1), F32, init=0)
    scaled = q * SCALE
    row, column = pto.iota((BLOCK, 1), I32, axis=0), pto.iota((1, BLOCK), I32, axis=1)

    def meet(start, seen) -> None:      # Python: traced wherever it is called
        """Take in one block of keys; `seen` masks those that count, None when all do."""
        there = (minimum(BLOCK, keys.shape[0] - start), None)
        k = pto.load(keys, (start, 0), shape=(BLOCK, HEAD_DIM), valid=there)
        v = pto.load(values, (start, 0), shape=(BLOCK, HEAD_DIM), valid=there)
        score = scaled @ k.T
        if seen is not None:
            score = pto.where(seen, score, -math.inf)
        new_max = pto.maximum(row_max, pto.rowmax(score))
        shrink = pto.exp(row_max - new_max)
        weight = pto.exp(score - new_max)
        acc[:] = acc * shrink + weight @ v
        row_sum[:] = row_sum * shrink + pto.rowsum(weight)
        row_max[:] = new_max

    if causal:
        for start in pto.range(0, first, BLOCK):
            meet(start, None)
        meet(first, column <= row)
    else:
        for start in pto.range(0, keys.shape[0], BLOCK):
            meet(start, column < keys.shape[0] - start)
    pto.store(out, acc / row_sum)


# ---- the workload ----

def attention_workload(q: np.ndarray, k: np.ndarray, v: np.ndarray, out: np.ndarray, causal: bool) -> Workload:
    """Return attention of arrays [heads, tokens, HEAD_DIM]: a task for each head and block of queries."""
    Q, K, V, Y = (Tensor(a) for a in (q, k, v, out))
    n_heads, n_tokens, _ = q.shape
    heads = Dense[n_heads]()

    @workload
    def attention():
        for h in P(heads):
            for i in P(ceildiv(n_tokens, BLOCK)):
                attend[h, i](q=Q[h, i * BLOCK:].clip(BLOCK, HEAD_DIM), keys=K[h], values=V[h], first=i * BLOCK, causal=causal,
                             out=Y[h, i * BLOCK:].clip(BLOCK, HEAD_DIM))

    return attention()


def main() -> int:
    """Run full and causal attention on random inputs and compare with NumPy."""
    parser = argparse.ArgumentParser(description="Flash attention, full and causal.")
    parser.add_argument("--heads", type=int, default=2, help="default %(default)s")
    parser.add_argument("--tokens", type=int, default=300, help="default %(default)s: the last block is short")
    options = parser.parse_args()
    if options.heads < 1 or options.tokens < 1:
        parser.error("--heads and --tokens are at least 1")
    rng = np.random.default_rng(0)
    shape = (options.heads, options.tokens, HEAD_DIM)
    q, k, v = (rng.standard_normal(shape, dtype=np.float32) for _ in range(3))
    right = True
    for causal in (False, True):
        out = np.full(shape, np.nan, np.float32)
        program = attention_workload(q, k, v, out, causal).compile().run()
        error = float(np.abs(out - reference(q, k, v, causal)).max())
        right &= error <= TOLERANCE      # not so for NaN
        print(f"{'causal' if causal else 'full'} attention of {list(shape)}: {program.stats.task_count} tasks, "
              f"{program.stats.total_cycles:,} simulated cycles, max |error| {error:.1e}: "
              f"{'agrees with NumPy' if error <= TOLERANCE else f'FAILED, more than {TOLERANCE:.0e}'}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
