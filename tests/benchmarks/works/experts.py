"""A mixture of experts: every token through its two experts' SwiGLU, few tokens or many for an expert.

Which tokens an expert gets is data. Routing is part of the run: the host sorts the choices by their experts; tasks put tokens in that
order, each expert takes its own in blocks, and each token adds up what its two experts say.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pto_wsp import DType, In, Kernel, Out, P, Tensor, Tile, Workload, ceildiv, kernel, pto, workload
from tests.benchmarks.works.work import Array, Arrays, Bound, Sizes, Work, output, relative_error

F32, I64 = DType.F32, DType.I64
CHOICES = 2
ROWS = 256      # of an expert's tokens in a task: what is packed of the weights serves all of them
COLS = 256      # that a task computes: weights are fetched while earlier ones are multiplied, all but a task's first
TOKENS = 32     # that a task moves
GAP = 16        # numbers between rows that products read: rows a power of two apart would share few lines of a cache, and be copied


def take_kernel(width: int) -> Kernel:
    """Return some rows of x, as an index says."""

    @kernel
    def take(x: In[Tensor], which: In[Tile[TOKENS, 1, I64]], out: Out[Tile[TOKENS, width, F32]]):
        pto.store(out, pto.gather(x, which, cols=width))

    return take


def gate_kernel(width: int, cols: int) -> Kernel:
    """Return a block of silu(x W1) * (x W3)."""

    @kernel
    def gate(x: In[Tile[ROWS, width, F32]], w1: In[Tile[width, cols, F32]], w3: In[Tile[width, cols, F32]],
             out: Out[Tile[ROWS, cols, F32]]):
        pto.store(out, pto.silu(x @ w1) * (x @ w3))

    return gate


def down_kernel(hidden: int, cols: int) -> Kernel:
    """Return a block of h W2."""

    @kernel
    def down(h: In[Tile[ROWS, hidden, F32]], w2: In[Tile[hidden, cols, F32]], out: Out[Tile[ROWS, cols, F32]]):
        pto.store(out, h @ w2)

    return down


def mix_kernel(width: int) -> Kernel:
    """Return what each token's two experts say, by their shares."""

    @kernel
    def mix(y: In[Tensor], rows: In[Tile[TOKENS, CHOICES, I64]], shares: In[Tile[TOKENS, CHOICES, F32]],
            out: Out[Tile[TOKENS, width, F32]]):
        first, second = (pto.gather(y, rows[:, c:c + 1], cols=width) * shares[:, c:c + 1] for c in range(CHOICES))
        pto.store(out, first + second)

    return mix


def experts_workload(given: Arrays, which: Array, rows: Array, starts: Array, counts: Array, out: Array) -> Workload:
    """Return the mixture of each token. `which`: the token of each row in the order of experts; `rows`: the rows of each token;
    `starts`, `counts`: which rows an expert has."""
    X, SHARES, W1, W3, W2 = (Tensor(given[name]) for name in ("x", "shares", "w1", "w3", "w2"))
    WHICH, ROWS_OF, OUT = Tensor(which), Tensor(rows), Tensor(out)
    first, n_rows = Tensor(starts), Tensor(counts)
    (n_tokens, width), (n_experts, _, hidden) = X.shape, W1.shape
    gate_cols, down_cols = min(COLS, hidden), min(COLS, width)
    take, gate, down, mix = take_kernel(width), gate_kernel(width, gate_cols), down_kernel(hidden, down_cols), mix_kernel(width)
    TAKEN, H, Y = (Tensor.empty((n_tokens * CHOICES, cols), F32) for cols in (width + GAP, hidden + GAP, width))

    @workload
    def experts():
        for i in P(ceildiv(n_tokens * CHOICES, TOKENS)):
            take[i](x=X, which=WHICH[i * TOKENS:].clip(TOKENS, 1), out=TAKEN[i * TOKENS:, :width].clip(TOKENS, width))
        for e in P(n_experts):
            mine = slice(first[e], first[e] + n_rows[e])
            for j in P(hidden // gate_cols):
                cols = slice(j * gate_cols, (j + 1) * gate_cols)
                for i in P(ceildiv(n_rows[e], ROWS)):
                    gate[e, j, i](x=TAKEN[mine, :width][i * ROWS:].clip(ROWS, width), w1=W1[e, :, cols], w3=W3[e, :, cols],
                                  out=H[mine, cols][i * ROWS:].clip(ROWS, gate_cols))
            for j in P(width // down_cols):
                cols = slice(j * down_cols, (j + 1) * down_cols)
                for i in P(ceildiv(n_rows[e], ROWS)):
                    down[e, j, i](h=H[mine, :hidden][i * ROWS:].clip(ROWS, hidden), w2=W2[e, :, cols],
                                  out=Y[mine, cols][i * ROWS:].clip(ROWS, down_cols))
        for i in P(ceildiv(n_tokens, TOKENS)):
            mix[i](y=Y, rows=ROWS_OF[i * TOKENS:].clip(TOKENS, CHOICES), shares=SHARES[i * TOKENS:].clip(TOKENS, CHOICES),
                   out=OUT[i * TOKENS:].clip(TOKENS, width))

    return experts()


def prepare_experts(given: Arrays, threads: int) -> tuple[Callable[[], object], Array]:
    """Return our run, routing included, and where its result is."""
    ids, out = given["ids"], output(given["x"].shape)
    n_choices, n_experts = ids.size, len(given["w1"])
    which, rows = np.zeros((n_choices, 1), np.int64), np.zeros(ids.shape, np.int64)
    starts, counts = np.zeros(n_experts, np.int64), np.zeros(n_experts, np.int64)
    program = experts_workload(given, which, rows, starts, counts, out).compile(threads=threads)

    def run() -> None:
        order = np.argsort(ids.ravel(), kind="stable")
        counts[:] = np.bincount(ids.ravel(), minlength=n_experts)
        starts[:] = np.cumsum(counts) - counts
        which[:, 0] = order // CHOICES
        rows.ravel()[order] = np.arange(n_choices)
        program.run()

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
