"""Block-sparse causal attention: each block of queries meets the blocks of keys that a pattern lists, and no others.

The pattern is a `Sparse` matrix, a row for each block of queries, so what is skipped makes no task. It is data: here a few first blocks,
a window before the diagonal, and the blocks whose mean key fits the mean query best, of requests of different lengths.

    python examples/recipes/sparse_attention.py
"""

import numpy as np

from pto_wsp import DenseDyn, DType, In, InOut, Out, P, Scalar, Sparse, Tensor, Tile, kernel, pto, workload

F32, I32 = DType.F32, DType.I32
H, D, BLOCK = 2, 32, 16           # heads, numbers of a head, queries and keys of a block
FIRSTS, WINDOW, BEST = 1, 2, 2    # blocks of keys that every query meets: the first, the last, the best of the rest
SCALE = D ** -0.5


def draw(lens, seed=0):
    """Return requests of `lens` tokens, each in blocks of its own, and the pattern in CSR form."""
    rng = np.random.default_rng(seed)
    lens = np.array(lens, np.int32)
    n_blocks = -(-lens // BLOCK)
    first = np.cumsum(n_blocks) - n_blocks                                  # of a request, among all blocks
    Q, K, V = (rng.standard_normal((H, n_blocks.sum() * BLOCK, D), np.float32) for _ in range(3))
    mean_q, mean_k = (a.reshape(H, -1, BLOCK, D).mean(axis=(0, 2)) for a in (Q, K))
    rows, fits = [], mean_q @ mean_k.T
    for start, n in zip(first, n_blocks, strict=True):
        for i in range(n):
            near = {*range(min(FIRSTS, i + 1)), *range(max(0, i - WINDOW + 1), i + 1)}
            rest = [j for j in np.argsort(-fits[start + i, start:start + i]) if j not in near][:BEST]
            rows.append([start + j for j in sorted(near | set(rest))])
    ends = np.repeat(first * BLOCK + lens, n_blocks)                        # of each block's request
    return {"blocks": len(rows), "indptr": np.cumsum([0, *map(len, rows)]), "indices": np.concatenate(rows), "ends": ends.astype(np.int32),
            "Q": Q, "K": K, "V": V, "Y": np.full(Q.shape, np.nan, np.float32)}


def expected(indptr, indices, ends, Q, K, V, Y, **_):
    """Return the output in float64, as attention with a mask; rows behind the end of a request are not written."""
    wanted, at = Y.astype(np.float64), np.arange(BLOCK)
    for i in range(len(indptr) - 1):
        keys = (indices[indptr[i]:indptr[i + 1], None] * BLOCK + at).ravel()
        rows = i * BLOCK + at[:min(BLOCK, ends[i] - i * BLOCK)]
        for h in range(H):
            score = np.where(keys <= rows[:, None], Q[h, rows].astype(np.float64) @ K[h, keys].T * SCALE, -np.inf)
            weight = np.exp(score - score.max(axis=1, keepdims=True))
            wanted[h, rows] = weight @ V[h, keys] / weight.sum(axis=1, keepdims=True)
    return {"Y": wanted}


@kernel
def begin(acc: Out[Tile["N", "D", F32]], top: Out[Tile["N", 1, F32]], total: Out[Tile["N", 1, F32]]):
    pto.store(acc, 0)
    pto.store(top, -1e30)
    pto.store(total, 0)


@kernel
def meet(q: In[Tile["N", "D", F32]], k: In[Tile["M", "D", F32]], v: In[Tile["M", "D", F32]], ahead: Scalar[I32],
         acc: InOut[Tile["N", "D", F32]], top: InOut[Tile["N", 1, F32]], total: InOut[Tile["N", 1, F32]]):
    """`ahead`: how far the first query stands behind the first key."""
    seen = pto.iota((1, k.shape[0])) <= pto.iota((q.shape[0], 1), axis=0) + ahead
    score = np.where(seen, q @ k.T * SCALE, -np.inf)
    highest = np.maximum(top, score.max(axis=1, keepdims=True))
    shrink, weight = np.exp(top - highest), np.exp(score - highest)
    pto.store(acc, acc * shrink + weight @ v)
    pto.store(total, total * shrink + weight.sum(axis=1, keepdims=True))
    pto.store(top, highest)


@kernel
def finish(acc: In[Tile["N", "D", F32]], total: In[Tile["N", 1, F32]], out: Out[Tile["N", "D", F32]]):
    pto.store(out, acc / total)


FIRST = draw([100, 1, 50, 170])
ends, Q, K, V, Y = (Tensor(FIRST[name]) for name in ("ends", "Q", "K", "V", "Y"))
blocks = DenseDyn(FIRST["blocks"])
pattern = Sparse(blocks, Tensor(FIRST["indptr"], name="indptr"), Tensor(FIRST["indices"], name="indices"))


@workload
def attention():
    for h, i in P(H, blocks):
        here = slice(i * BLOCK, ends[i].min((i + 1) * BLOCK))
        acc, top, total = (Tensor.empty((BLOCK, width), F32) for width in (D, 1, 1))
        begin[h, i](acc, top, total)
        for j in P.sel.seq(pattern[i]):
            keys = slice(j * BLOCK, (j + 1) * BLOCK)
            meet[h, i, j](Q[h, here].clip(BLOCK, D), K[h, keys], V[h, keys], (i - j) * BLOCK, acc, top, total)
        finish[h, i](acc, total, Y[h, here].clip(BLOCK, D))


scheduled = attention().task_graph()


if __name__ == "__main__":
    program = scheduled.compile(arch="ascend_910b")
    for data in FIRST, draw([16, 300], seed=1):
        program.run(**data)
        np.testing.assert_allclose(data["Y"], expected(**data)["Y"], atol=2e-5)
        n = data["blocks"]
        print(f"{len(data['indices'])} of {n * n} pairs of blocks: {program.stats.task_count} tasks, {program.stats.total_cycles:,} cycles")
