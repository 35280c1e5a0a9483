"""One decoding step of multi-head latent attention (MLA): all heads of a request share one latent cache.

A cached token is a latent vector of L numbers and a rotated key of R numbers. The query of each head is brought into the space of latents,
so a block of the cache is read once for all heads. Partial results of blocks are independent of each other; they are merged in order.

    python examples/recipes/mla_decode.py
"""

import numpy as np

from pto_wsp import DenseDyn, DType, In, InOut, Out, P, Tensor, Tile, ceildiv, kernel, pto, workload

F32 = DType.F32
H, D, L, R = 8, 16, 64, 16        # heads, numbers of a head, of a latent, of a rotated key
BLOCK = 32                        # cache rows of a task
SCALE = (D + R) ** -0.5


def draw(lens, seed=0):
    """Return the arrays of one step for requests with `lens` cached tokens each."""
    rng, lens, B, N = np.random.default_rng(seed), np.array(lens, np.int32), len(lens), sum(lens)
    shapes = {"latent": (N, L), "rope": (N, R), "q": (B, H, 1, D), "q_rope": (B, H, R), "up_k": (H, D, L), "up_v": (H, L, D)}
    return {name: rng.standard_normal(shape, np.float32) / 2 for name, shape in shapes.items()} | {
        "lens": lens, "starts": (np.cumsum(lens) - lens).astype(np.int32), "requests": B, "out": np.full((B, H, 1, D), np.nan, np.float32)}


def expected(lens, starts, latent, rope, q, q_rope, up_k, up_v, out, **_):
    """Return the output in float64."""
    wanted = np.zeros(out.shape)
    for b, (start, n) in enumerate(zip(starts, lens, strict=True)):
        c, k = (a[start:start + n].astype(np.float64) for a in (latent, rope))
        for h in range(H if n else 0):
            score = (q[b, h] @ (c @ up_k[h].T).T + q_rope[b, h] @ k.T) * SCALE
            weight = np.exp(score - score.max())
            wanted[b, h] = weight @ (c @ up_v[h]) / weight.sum()
    return {"out": wanted}


@kernel
def absorb(q: In[Tile[1, "D", F32]], up: In[Tile["D", "L", F32]], q_latent: Out[Tile[1, "L", F32]]):
    pto.store(q_latent, q @ up)


@kernel
def begin(acc: Out[Tile["H", "L", F32]], top: Out[Tile["H", 1, F32]], total: Out[Tile["H", 1, F32]]):
    pto.store(acc, 0)
    pto.store(top, -np.inf)
    pto.store(total, 0)


@kernel
def partial(q: In[Tile["H", "L", F32]], q_rope: In[Tile["H", "R", F32]], latent: In[Tile["N", "L", F32]], rope: In[Tile["N", "R", F32]],
            acc: Out[Tile["H", "L", F32]], top: Out[Tile["H", 1, F32]], total: Out[Tile["H", 1, F32]]):
    there = pto.iota((1, latent.shape[0])) < latent.valid[0]                # the last block is short
    score = np.where(there, (q @ latent.T + q_rope @ rope.T) * SCALE, -np.inf)
    highest = score.max(axis=1, keepdims=True)
    weight = np.exp(score - highest)
    pto.store(acc, weight @ latent)
    pto.store(top, highest)
    pto.store(total, weight.sum(axis=1, keepdims=True))


@kernel
def merge(acc2: In[Tile["H", "L", F32]], top2: In[Tile["H", 1, F32]], total2: In[Tile["H", 1, F32]],
          acc: InOut[Tile["H", "L", F32]], top: InOut[Tile["H", 1, F32]], total: InOut[Tile["H", 1, F32]]):
    highest = np.maximum(top, top2)
    old, new = np.exp(top - highest), np.exp(top2 - highest)
    pto.store(acc, acc * old + acc2 * new)
    pto.store(total, total * old + total2 * new)
    pto.store(top, highest)


@kernel
def finish(acc: In[Tile[1, "L", F32]], total: In[Tile[1, 1, F32]], up: In[Tile["L", "D", F32]], out: Out[Tile[1, "D", F32]]):
    pto.store(out, (acc / np.where(total > 0, total, 1)) @ up)              # a request without tokens gives 0


FIRST = draw([70, 0, 200, 33, 128, 1])
lens, starts, latent, rope, q, q_rope, up_k, up_v, out = (Tensor(FIRST[name]) for name in (
    "lens", "starts", "latent", "rope", "q", "q_rope", "up_k", "up_v", "out"))
requests = DenseDyn(FIRST["requests"])


@workload
def decode():
    for b in P(requests):
        q_latent, acc, top, total = (Tensor.empty((H, width), F32) for width in (L, L, 1, 1))
        for h in P(H):
            absorb[b, h](q[b, h], up_k[h], q_latent[h:h + 1])
        begin[b](acc, top, total)
        mine = slice(starts[b], starts[b] + lens[b])
        for j in P.seq(ceildiv(lens[b], BLOCK)):
            acc2, top2, total2 = (Tensor.empty((H, width), F32) for width in (L, 1, 1))
            partial[b, j](q_latent, q_rope[b], latent[mine][j * BLOCK:].clip(BLOCK, L), rope[mine][j * BLOCK:].clip(BLOCK, R),
                          acc2, top2, total2)
            merge[b, j](acc2, top2, total2, acc, top, total)
        for h in P(H):
            finish[b, h](acc[h:h + 1], total[h:h + 1], up_v[h], out[b, h])


scheduled = decode().task_graph()           # edges from data: blocks side by side, merges in order


if __name__ == "__main__":
    program = scheduled.compile(arch="ascend_910b")
    for data in FIRST, draw([5, 300, 64], seed=1):
        program.run(**data)
        np.testing.assert_allclose(data["out"], expected(**data)["out"], atol=2e-5)
        print(f"{data['lens'].tolist()}: {program.stats.task_count} tasks, {program.stats.total_cycles:,} cycles")
