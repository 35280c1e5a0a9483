"""A product of i8: rows of activations are quantised as they come, weights beforehand, both by groups along the sum.

Each group of GROUP terms has a scale of its own: one for each row of activations and one for each column of weights. The product of a
group is exact in i32; only the sum of scaled groups is in f32. The number of tokens is a size of the run.

    python examples/recipes/quantised_gemm.py
"""

import numpy as np

from pto_wsp import DenseDyn, DType, In, Out, P, Tensor, Tile, ceildiv, kernel, pto, workload

F32, I8 = DType.F32, DType.I8
K, N, GROUP = 256, 96, 64
ROWS, COLS = 16, 48               # of a task's result: a factor of both kernels, which are made for whatever they are given


def draw(tokens, seed=0):
    """Return activations with outliers, and weights quantised by group."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((tokens, K), np.float32)
    x[::3, ::50] *= 40                                                      # rows whose groups differ in size
    w = rng.standard_normal((K // GROUP, GROUP, N), np.float32)
    w_scale = np.abs(w).max(axis=1) / 127
    return {"tokens": tokens, "x": x, "w": np.rint(w / w_scale[:, None]).astype(np.int8).reshape(K, N), "w_scale": w_scale,
            "xq": np.zeros((tokens, K), np.int8), "x_scale": np.zeros((tokens, K // GROUP), np.float32),
            "y": np.full((tokens, N), np.nan, np.float32)}


def expected(tokens, x, w, w_scale, **_):
    """Return the quantised activations and the result, groups summed in float64."""
    groups = x.reshape(tokens, K // GROUP, GROUP)
    x_scale = (np.maximum(np.abs(groups).max(axis=2), np.float32(1e-8)) / np.float32(127))
    xq = np.rint(groups / x_scale[:, :, None]).astype(np.int8)
    sums = np.einsum("tgk,gkn->tgn", xq.astype(np.int64), w.reshape(K // GROUP, GROUP, N).astype(np.int64))
    return {"xq": xq.reshape(tokens, K), "y": (sums * x_scale.astype(np.float64)[:, :, None] * w_scale).sum(axis=1)}


@kernel
def quantise(x: In[Tile["M", "K", F32]], xq: Out[Tile["M", "K", I8]], scale: Out[Tile["M", 1, F32]]):
    step = np.maximum(np.abs(x).max(axis=1, keepdims=True), 1e-8) / 127
    pto.store(scale, step)
    pto.store(xq, pto.quantize(x, step))


@kernel
def product(x: In[Tile["M", "K", I8]], x_scale: In[Tile["M", "G", F32]], w: In[Tile["K", "N", I8]], w_scale: In[Tile["G", "N", F32]],
            y: Out[Tile["M", "N", F32]]):
    total, groups = 0.0, x_scale.shape[1]
    length = x.shape[1] // groups
    for g in range(groups):                                                 # Python's loop: unrolled
        terms = slice(g * length, (g + 1) * length)
        total = total + (x[:, terms] @ w[terms]).astype(F32) * x_scale[:, g] * w_scale[g]
    pto.store(y, total)


FIRST = draw(400)
x, w, w_scale, xq, x_scale, y = (Tensor(FIRST[name]) for name in ("x", "w", "w_scale", "xq", "x_scale", "y"))
tokens = DenseDyn(FIRST["tokens"])


def block(rows, i):
    """Return block i of the tokens that there are; the last one may be short."""
    return rows[:tokens][i * ROWS:].clip(ROWS, rows.shape[1])


@workload
def linear():
    for i in P(ceildiv(tokens, ROWS)):
        for g in P(K // GROUP):
            mine = slice(g * GROUP, (g + 1) * GROUP)
            quantise[i, g](block(x[:, mine], i), block(xq[:, mine], i), block(x_scale[:, g:g + 1], i))
    for i in P(ceildiv(tokens, ROWS)):
        for j in P(N // COLS):
            mine = slice(j * COLS, (j + 1) * COLS)
            product[i, j](block(xq, i), block(x_scale, i), w[:, mine], w_scale[:, mine], block(y[:, mine], i))


# edges from data: a block's product begins when its own rows are quantised
scheduled = linear().task_graph()


if __name__ == "__main__":
    program = scheduled.compile(arch="ascend_910b")
    for data in FIRST, draw(7, seed=1):
        program.run(**data)
        wanted = expected(**data)
        assert np.array_equal(data["xq"], wanted["xq"])
        np.testing.assert_allclose(data["y"], wanted["y"], rtol=1e-5, atol=1e-4)
        print(f"{data['tokens']} tokens: {program.stats.task_count} tasks, {program.stats.total_cycles:,} cycles")
