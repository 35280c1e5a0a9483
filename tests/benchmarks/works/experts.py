"""A mixture of experts: every token through its two experts' SwiGLU, few tokens or many for an expert.

Which tokens an expert gets is data. Routing is part of the run: tokens are put in the order of their experts, each expert takes its
own in blocks, and each token adds up what its two experts say.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pto_wsp import DType, In, Kernel, Out, P, Tensor, Tile, Workload, ceildiv, kernel, pto, workload
from tests.benchmarks.works.work import Array, Arrays, Bound, Sizes, Work, output, relative_error

F32 = DType.F32
CHOICES = 2
ROWS, COLS = 256, 128      # a task's block of an expert's tokens, and of the columns that it computes


def gate_kernel(width: int) -> Kernel:
    """Return a block of silu(x W1) * (x W3)."""

    @kernel
    def gate(x: In[Tile[ROWS, width, F32]], w1: In[Tensor], w3: In[Tensor], out: Out[Tile[ROWS, COLS, F32]]):
        rows = pto.load(x)
        up = rows @ pto.load(w1, (0, 0), shape=(width, COLS))
        pto.store(out, pto.silu(up) * (rows @ pto.load(w3, (0, 0), shape=(width, COLS))))

    return gate


def down_kernel(hidden: int) -> Kernel:
    """Return a block of h W2."""

    @kernel
    def down(h: In[Tile[ROWS, hidden, F32]], w2: In[Tensor], out: Out[Tile[ROWS, COLS, F32]]):
        pto.store(out, h @ pto.load(w2, (0, 0), shape=(hidden, COLS)))

    return down


def experts_workload(x: Array, starts: Array, counts: Array, w1: Array, w3: Array, w2: Array, h: Array, out: Array) -> Workload:
    """Return SwiGLU of rows in the order of their experts; `starts`, `counts`: which rows an expert has."""
    X, H, Y, W1, W3, W2 = (Tensor(a) for a in (x, h, out, w1, w3, w2))
    first, n_rows = Tensor(starts), Tensor(counts)
    n_experts, width, hidden = w1.shape
    gate, down = gate_kernel(width), down_kernel(hidden)

    @workload
    def experts():
        for e in P(n_experts):
            mine = slice(first[e], first[e] + n_rows[e])
            for j in P(hidden // COLS):
                cols = slice(j * COLS, (j + 1) * COLS)
                for i in P(ceildiv(n_rows[e], ROWS)):
                    gate[e, j, i](x=X[mine][i * ROWS:].clip(ROWS, width), w1=W1[e, :, cols], w3=W3[e, :, cols],
                                  out=H[mine, cols][i * ROWS:].clip(ROWS, COLS))
            for j in P(width // COLS):
                cols = slice(j * COLS, (j + 1) * COLS)
                for i in P(ceildiv(n_rows[e], ROWS)):
                    down[e, j, i](h=H[mine][i * ROWS:].clip(ROWS, hidden), w2=W2[e, :, cols],
                                  out=Y[mine, cols][i * ROWS:].clip(ROWS, COLS))

    return experts()


def prepare_experts(given: Arrays, threads: int) -> tuple[Callable[[], object], Array]:
    """Return our run, routing included, and where its result is."""
    x, ids, shares = given["x"], given["ids"], given["shares"]
    n_tokens, width = x.shape
    n_experts, _, hidden = given["w1"].shape
    routed, results = output((n_tokens * CHOICES, width)), output((n_tokens * CHOICES, width))
    h, out = output((n_tokens * CHOICES, hidden)), output(x.shape)
    starts, counts = np.zeros(n_experts, np.int64), np.zeros(n_experts, np.int64)
    in_order = np.empty_like(results)
    program = experts_workload(routed, starts, counts, given["w1"], given["w3"], given["w2"], h, results).compile(threads=threads)

    def run() -> None:
        order = np.argsort(ids.ravel(), kind="stable")
        counts[:] = np.bincount(ids.ravel(), minlength=n_experts)
        starts[:] = np.cumsum(counts) - counts
        np.take(x, order // CHOICES, axis=0, out=routed)
        program.run()
        in_order[order] = results
        np.einsum("tcw,tc->tw", in_order.reshape(n_tokens, CHOICES, width), shares, out=out)

    return run, out


def experts_inputs(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    """Return tokens, the two experts of each (the first expert gets most), their shares, and the experts' weights."""
    n_experts, n_tokens, width, hidden = (int(sizes[name]) for name in ("experts", "tokens", "width", "hidden"))
    likely = 0.7 ** np.arange(n_experts)
    likely /= likely.sum()
    ids = np.stack([rng.choice(n_experts, CHOICES, replace=False, p=likely) for _ in range(n_tokens)])
    shares = rng.random((n_tokens, CHOICES), dtype=np.float32)
    shares /= shares.sum(axis=1, keepdims=True)

    def normal(*shape: int) -> Array:
        return rng.standard_normal(shape, dtype=np.float32)

    return {"ids": ids, "shares": shares, "x": normal(n_tokens, width), "w1": normal(n_experts, width, hidden) * np.float32(0.04),
            "w3": normal(n_experts, width, hidden) * np.float32(0.04), "w2": normal(n_experts, hidden, width) * np.float32(0.03)}


def experts_expected(given: Arrays) -> Array:
    """Return the mixture in float64, token by token of each expert."""
    x, w1, w3, w2 = (given[name].astype(np.float64) for name in ("x", "w1", "w3", "w2"))
    out = np.zeros_like(x)
    for e in range(w1.shape[0]):
        tokens, choices = np.nonzero(given["ids"] == e)
        up = x[tokens] @ w1[e]
        down = (up / (1 + np.exp(-up)) * (x[tokens] @ w3[e])) @ w2[e]
        out[tokens] += given["shares"][tokens, choices][:, None] * down
    return out


def _operations(sizes: Sizes) -> int:
    return 3 * 2 * CHOICES * int(sizes["tokens"]) * int(sizes["width"]) * int(sizes["hidden"])


WORKS = (
    Work("moe", "SwiGLU of 256 tokens, 2 of 8 experts each, 512 -> 1024 -> 512, f32", Bound.FMA,
         {"tokens": 256, "experts": 8, "width": 512, "hidden": 1024}, {"tokens": 40, "experts": 5, "width": 128, "hidden": 256},
         experts_inputs, experts_expected, prepare_experts, _operations, relative_error, 1e-5),
)
