"""The indexer of sparse attention: how much each of 64 queries wants each of 4096 keys, from 64 heads in int8; and the best 512."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pto_wsp import DType, In, Kernel, Out, P, Tensor, Tile, Workload, kernel, pto, workload
from tests.benchmarks.works.work import Array, Arrays, Bound, Sizes, Work, missing_share, output, relative_error

F32, I8, I32 = DType.F32, DType.I8, DType.I32
KEYS = 256      # a task's block of keys


def score_kernel(n_heads: int, width: int) -> Kernel:
    """Return the scores of one query for a block of keys: relu of each head's product, weighted, added up."""

    @kernel
    def score(q: In[Tile[n_heads, width, I8]], keys: In[Tile[KEYS, width, I8]], weight: In[Tile[n_heads, 1, F32]],
              out: Out[Tile[1, KEYS, F32]]):
        products = pto.relu(pto.cast(q @ keys.T, F32))
        pto.store(out, pto.colsum(products * weight))

    return score


def best_kernel(n_keys: int, k: int) -> Kernel:
    """Return the `k` best keys of one query."""

    @kernel
    def best(scores: In[Tile[1, n_keys, F32]], keys: Out[Tile[1, k, I32]]):
        _, columns = pto.topk(scores, k)
        pto.store(keys, columns)

    return best


def index_workload(q: Array, keys: Array, weights: Array, out: Array, chosen: Array | None = None) -> Workload:
    """Return the scores, [queries, keys], and the best keys of each query where there is a place for them."""
    n_queries, n_heads, width = q.shape
    Q, K, W, Y = Tensor(q), Tensor(keys), Tensor(weights).reshape(n_queries, n_heads, 1), Tensor(out)
    score = score_kernel(n_heads, width)

    @workload
    def index():
        for j, s in P(len(keys) // KEYS, n_queries):
            mine = slice(j * KEYS, (j + 1) * KEYS)
            score[s, j](q=Q[s], keys=K[mine], weight=W[s], out=Y[s, mine])

    if chosen is None:
        return index()
    best, C = best_kernel(len(keys), chosen.shape[1]), Tensor(chosen)

    @workload
    def choose():
        for s in P(n_queries):
            best[s](scores=Y[s], keys=C[s])

    return index() >> choose()


def prepare_index(given: Arrays, threads: int) -> tuple[Callable[[], object], Array]:
    """Return our run and where its result is."""
    out = output((len(given["q"]), len(given["keys"])))
    return index_workload(given["q"], given["keys"], given["weights"], out).compile(threads=threads).run, out


def prepare_topk(given: Arrays, threads: int) -> tuple[Callable[[], object], Array]:
    """Return our run and where the chosen keys are."""
    scores = output((len(given["q"]), len(given["keys"])))
    chosen = output((len(scores), int(given["k"])), np.int32)
    program = index_workload(given["q"], given["keys"], given["weights"], scores, chosen).compile(threads=threads)
    return program.run, chosen


def index_inputs(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    """Return queries [queries, heads, width] and keys [keys, width] of bytes, the heads' weights, and how many keys are chosen."""
    q = rng.integers(-127, 128, (sizes["queries"], sizes["heads"], sizes["width"]), dtype=np.int8)
    keys = rng.integers(-127, 128, (sizes["keys"], sizes["width"]), dtype=np.int8)
    return {"q": q, "keys": keys, "weights": rng.random((sizes["queries"], sizes["heads"]), dtype=np.float32), "k": np.array(sizes["k"])}


def index_expected(given: Arrays) -> Array:
    """Return the scores in float64; products of bytes are exact in it."""
    keys = given["keys"].astype(np.float64).T
    return np.stack([weight @ np.maximum(q.astype(np.float64) @ keys, 0) for q, weight in zip(given["q"], given["weights"], strict=True)])


def topk_expected(given: Arrays) -> Array:
    """Return the columns of the largest scores of each row."""
    return np.argsort(-index_expected(given), axis=1)[:, :int(given["k"])]


def _operations(sizes: Sizes) -> int:
    return 2 * int(sizes["queries"]) * int(sizes["heads"]) * int(sizes["keys"]) * int(sizes["width"])


FULL = {"queries": 64, "heads": 64, "keys": 4096, "width": 128, "k": 512}
SMALL = {"queries": 3, "heads": 16, "keys": 512, "width": 64, "k": 32}
WORKS = (
    Work("index", "int8 indexer: 64 queries, 64 heads, 4096 keys, 128 wide", Bound.INT8, FULL, SMALL, index_inputs, index_expected,
         prepare_index, _operations, relative_error, 1e-5),
    Work("indextopk", "int8 indexer and the 512 best keys of each query", Bound.INT8, FULL, SMALL, index_inputs, topk_expected,
         prepare_topk, _operations, missing_share, 0.002),
)
