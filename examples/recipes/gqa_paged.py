"""One decoding step of grouped-query attention (GQA) over a paged cache in bf16.

A group of G query heads shares one head of keys and values, so they are the rows of one tile. Pages lie anywhere in the cache; a request's
row of `table` lists its pages, and requests may share full ones. Each request's new key and value go into its last page, which is its own:
`Injective` promises that, the race check relies on the promise, and every run is held to it.

    python examples/recipes/gqa_paged.py
"""

import ml_dtypes
import numpy as np

from pto_wsp import DenseDyn, DispatchPolicy, DType, In, Injective, InOut, Out, P, Pools, Ragged, Tensor, Tile, kernel, pto, workload

F32, BF16 = DType.F32, DType.BF16
H, G, D, PAGE, SCALE = 2, 4, 32, 16, 32 ** -0.5           # heads of keys and values, query heads of each, numbers of a head, page size


def draw(lens, shared=0, seed=0):
    """Return the arrays of one step; `lens` count the new token, and the first `shared` pages are those of request 0."""
    rng, lens, B = np.random.default_rng(seed), np.array(lens, np.int32), len(lens)
    counts = -(-lens // PAGE)
    pages = iter(rng.permutation(counts.sum()))
    table = np.full((B, counts.max()), -1, np.int32)
    for row, n in zip(table, counts, strict=True):
        row[:n] = [next(pages) for _ in range(n)]
        common = min(shared, n - 1, counts[0] - 1)                          # never a last page, which is written
        row[:common] = table[0, :common]
    cache, one = (counts.sum(), H, PAGE, D), (B, H, 1, D)
    shapes = {"K": cache, "V": cache, "Q": (B, H, G, D), "new_k": one, "new_v": one}
    return {name: rng.standard_normal(shape, np.float32).astype(ml_dtypes.bfloat16) for name, shape in shapes.items()} | {
        "lens": lens, "requests": B, "counts": counts, "table": table, "last": table[range(B), counts - 1],
        "Y": np.full((B, H, G, D), np.nan, np.float32)}


def expected(lens, counts, table, K, V, Q, new_k, new_v, Y, **_):
    """Return the output in float64, from arrays as they are before the step."""
    wanted = np.zeros(Y.shape)
    for b, n in enumerate(lens):
        for h in range(H):
            k, v = (cache[table[b, :counts[b]], h].reshape(-1, D)[:n].astype(np.float64) for cache in (K, V))
            k[-1], v[-1] = new_k[b, h, 0], new_v[b, h, 0]
            score = Q[b, h].astype(np.float64) @ k.T * SCALE
            weight = np.exp(score - score.max(axis=1, keepdims=True))
            wanted[b, h] = weight @ v / weight.sum(axis=1, keepdims=True)
    return {"Y": wanted}


@kernel
def append(k: In[Tile[1, "D", BF16]], v: In[Tile[1, "D", BF16]], k_row: Out[Tile[1, "D", BF16]], v_row: Out[Tile[1, "D", BF16]]):
    pto.store(k_row, k)
    pto.store(v_row, v)


@kernel
def begin(acc: Out[Tile["G", "D", F32]], top: Out[Tile["G", 1, F32]], total: Out[Tile["G", 1, F32]]):
    pto.store(acc, 0)
    pto.store(top, -np.inf)
    pto.store(total, 0)


@kernel
def meet(q: In[Tile["G", "D", BF16]], k: In[Tile["N", "D", BF16]], v: In[Tile["N", "D", BF16]],
         acc: InOut[Tile["G", "D", F32]], top: InOut[Tile["G", 1, F32]], total: InOut[Tile["G", 1, F32]]):
    there = pto.iota((1, k.shape[0])) < k.valid[0]                          # the last page is not full
    score = np.where(there, q @ k.T * SCALE, -np.inf)                       # a product of bf16 is f32
    highest = np.maximum(top, score.max(axis=1, keepdims=True))
    shrink, weight = np.exp(top - highest), np.exp(score - highest)
    pto.store(acc, acc * shrink + weight @ v.astype(F32))
    pto.store(total, total * shrink + weight.sum(axis=1, keepdims=True))
    pto.store(top, highest)


@kernel
def finish(acc: In[Tile["G", "D", F32]], total: In[Tile["G", 1, F32]], out: Out[Tile["G", "D", F32]]):
    pto.store(out, acc / total)


FIRST = draw([70, 1, 16, 200, 33], shared=3)
lens, table, K, V, Q, new_k, new_v, Y = (Tensor(FIRST[name]) for name in ("lens", "table", "K", "V", "Q", "new_k", "new_v", "Y"))
last = Injective(FIRST["last"])
requests = DenseDyn(FIRST["requests"])
pages = Ragged(requests, Tensor(FIRST["counts"], name="counts"))


@workload
def decode():
    for b, h in P(requests, H):
        new = last[b], h, (lens[b] - 1) % PAGE
        append[b, h](new_k[b, h], new_v[b, h], K[new], V[new])
    for b, h in P(requests, H):
        acc, top, total = (Tensor.empty((G, width), F32) for width in (D, 1, 1))
        begin[b, h](acc, top, total)
        for j in P.seq(pages[b]):
            held = table[b, j], h, slice(0, (lens[b] - j * PAGE).min(PAGE))
            meet[b, h, j](Q[b, h], K[held].clip(PAGE, D), V[held].clip(PAGE, D), acc, top, total)
        finish[b, h](acc, total, Y[b, h])


scheduled = decode().dispatch(DispatchPolicy.affinity(lambda t: t.h)).task_graph(pools=Pools.by_exec_unit())    # a head's pages stay near


if __name__ == "__main__":
    program = scheduled.compile(arch="ascend_910b")
    for data in FIRST, draw([300, 17, 48], shared=1, seed=1):
        wanted = expected(**data)["Y"]                                      # before the run, which writes into K and V
        program.run(**data)
        np.testing.assert_allclose(data["Y"], wanted, atol=2e-5)
        print(f"{data['lens'].tolist()}: {program.stats.task_count} tasks, {program.stats.total_cycles:,} cycles")
