"""A mixture of experts: each token goes to its best experts, and each expert computes the rows that data has for it.

    python examples/tensors/moe.py
"""

import sys

import numpy as np
from compare import compare

from pto_wsp import DType, Tensor, jit, tt
from pto_wsp.tt.library import silu, softmax

F32 = DType.F32
DIM, HIDDEN, EXPERTS = 64, 48, 8


@jit
def moe(x: Tensor["t", DIM, F32], router: Tensor[DIM, EXPERTS, F32], up: Tensor[EXPERTS, DIM, 2 * HIDDEN, F32],
        down: Tensor[EXPERTS, HIDDEN, DIM, F32], top: int = 2):
    tokens, experts = x.shape[0], router.shape[1]
    score, expert = tt.topk(x @ router, top)
    share, pairs = softmax(score), tt.rows_of(expert, experts)
    each = tt.empty((tokens * top, x.shape[1]))
    for e in tt.each(experts):
        mine = pairs[e]
        gate, lift = np.split(x[mine // top] @ up[e], 2, axis=-1)
        each[mine] = silu(gate) * lift @ down[e]              # no two experts have a place in common: proved
    return np.sum(each.reshape(tokens, top, -1) * share[..., None], axis=1)


FUNCTIONS = {moe: {"tiles": {"out": {"t": 16}}}}      # with the entries of the tuned plan


def draw(t=37, seed=0):
    """Return the arguments by name."""
    rng = np.random.default_rng(seed)
    shapes = {"x": (t, DIM), "router": (DIM, EXPERTS), "up": (EXPERTS, DIM, 2 * HIDDEN), "down": (EXPERTS, HIDDEN, DIM)}
    return {name: rng.standard_normal(shape, np.float32) / (1 if name == "x" else 8) for name, shape in shapes.items()}


def expected(x, router, up, down, top=2):
    """Return the result in float64: every expert computes every token, and what a token did not choose counts 0."""
    x, up, down = x.astype(np.float64), up.astype(np.float64), down.astype(np.float64)
    score = x @ router
    chosen = score >= np.sort(score, axis=1)[:, -top][:, None]
    share = np.where(chosen, np.exp(score), 0)
    both = np.einsum("tk,ekh->teh", x, up)
    hidden = both[..., :HIDDEN] / (1 + np.exp(-both[..., :HIDDEN])) * both[..., HIDDEN:]
    return np.einsum("te,teh,ehk->tk", share / share.sum(1, keepdims=True), hidden, down)


if __name__ == "__main__":
    sys.exit(compare(FUNCTIONS, draw, expected))
