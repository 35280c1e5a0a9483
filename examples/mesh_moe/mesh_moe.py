"""A mixture of experts over the ranks of a mesh: rows go to the ranks of their experts, and what the experts give comes back.

Each rank has some tokens and some experts. The host chooses two experts for each token; from the choices come tables that all ranks have.
A rank copies its rows in the order of their experts, an all_to_all of ragged blocks brings them there, and another one, of the counts
turned round, takes the results back. A row goes through the same tasks on any number of ranks, and so its bits are the same.

    python examples/mesh_moe/mesh_moe.py
    mpirun -n 2 python -m mpi4py examples/mesh_moe/mesh_moe.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from pto_wsp import (
    Deps,
    DType,
    In,
    Mesh,
    Out,
    P,
    Scalar,
    Tensor,
    TensorLayout,
    Tile,
    Workload,
    all_to_all,
    ceildiv,
    copy,
    kernel,
    minimum,
    pto,
    workload,
)

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from over_ranks import Arrays, Example, main

TOKENS, EXPERTS, CHOICES, BLOCK, WIDTH, HIDDEN = 32, 8, 2, 4, 16, 32      # BLOCK: rows of a task
F32 = DType.F32
ROWS, WHOLE = TensorLayout.sharded(0, 2, "x"), TensorLayout.replicated(2)


def draw(rng: np.random.Generator, n: int) -> Arrays:
    """Return x [tokens, width], experts' weights, and each token's experts and shares; n times as many tokens. Some experts lead."""
    scores = rng.standard_normal((TOKENS * n, EXPERTS)) + 2 * 0.6 ** np.arange(EXPERTS)
    chosen = np.argsort(-scores, axis=1)[:, :CHOICES]
    weight = np.exp(np.take_along_axis(scores, chosen, 1))
    return {"x": rng.standard_normal((TOKENS * n, WIDTH), dtype=np.float32), "chosen": chosen,
            "shares": (weight / weight.sum(axis=1, keepdims=True)).astype(np.float32),
            "up": rng.standard_normal((EXPERTS, WIDTH, HIDDEN), dtype=np.float32) / np.float32(np.sqrt(WIDTH)),
            "down": rng.standard_normal((EXPERTS, HIDDEN, WIDTH), dtype=np.float32) / np.float32(np.sqrt(HIDDEN))}


def reference(given: Arrays) -> Arrays:
    """Return the layer in float64."""
    x, up, down = (given[name].astype(np.float64) for name in ("x", "up", "down"))
    hidden = np.maximum(np.einsum("tw,tcwh->tch", x, up[given["chosen"]]), 0)
    return {"y": np.einsum("tch,tchw,tc->tw", hidden, down[given["chosen"]], given["shares"])}


def tables(chosen: np.ndarray, n: int) -> tuple[np.ndarray, ...]:
    """Return what all ranks know: `order`, the token of each row that a rank sends; `place`, the row of each token's choices; `sizes` and
    `starts` [rank, expert], how many rows of a rank an expert gets, and where they begin among all that arrive; `counts` [rank, rank]."""
    of_rank = chosen.reshape(n, -1)
    rows = np.argsort(of_rank, axis=1, kind="stable")
    sizes = np.stack([np.bincount(row, minlength=EXPERTS) for row in of_rank])
    blocks = sizes.reshape(n, n, -1)                     # [source, target, expert of the target]
    counts = blocks.sum(axis=2)
    starts = (np.cumsum(counts, axis=0) - counts)[:, :, None] + np.cumsum(blocks, axis=2) - blocks
    made = (rows.ravel() // CHOICES, np.argsort(rows, axis=1).reshape(-1, CHOICES), sizes, starts.reshape(n, EXPERTS), counts)
    return tuple(np.ascontiguousarray(table, np.int32) for table in made)


@kernel
def expert(x: In[Tile[BLOCK, WIDTH, F32]], up: In[Tile[WIDTH, HIDDEN, F32]], down: In[Tile[HIDDEN, WIDTH, F32]],
           y: Out[Tile[BLOCK, WIDTH, F32]]):
    """At most BLOCK rows through one expert."""
    pto.store(y, pto.relu(x @ up) @ down)


@kernel
def combine(first: In[Tile[1, WIDTH, F32]], second: In[Tile[1, WIDTH, F32]], a: Scalar[F32], b: Scalar[F32], y: Out[Tile[1, WIDTH, F32]]):
    pto.store(y, first * a + second * b)


def layer(mesh: Mesh, given: Arrays, results: Arrays) -> Workload:
    """Return the layer: rows in order, there, the experts, back, and each token's sum."""
    n, own = mesh.size, len(given["x"]) // mesh.size     # own: tokens of a rank
    sent = own * CHOICES
    order, place, sizes, starts, counts = tables(given["chosen"], n)
    capacity = int(counts.sum(axis=0).max())
    X, Y = (Tensor(array, layout=ROWS) for array in (given["x"], results["y"]))
    Up, Down = (Tensor(given[name], layout=TensorLayout.sharded(0, 3, "x")) for name in ("up", "down"))
    Order = Tensor(order, layout=TensorLayout.replicated(1))
    Place, Sizes, Starts, There, Back, Shares = (Tensor(table, layout=WHOLE) for table in (
        place, sizes, starts, counts, np.ascontiguousarray(counts.T), given["shares"]))

    @workload
    def moe_over_ranks():
        Sorted = Tensor.empty((n * sent, WIDTH), F32, layout=ROWS)
        for r in P(mesh):
            for i in P(sent):
                copy(X.on(r)[Order[r * sent + i]:][:1], Sorted.on(r)[i:i + 1])
        rows = all_to_all(Sorted, There, capacity=capacity)
        Done = Tensor.empty((n * capacity, WIDTH), F32, layout=ROWS)
        for r in P(mesh):
            for q in P(n):
                for k in P(EXPERTS // n):
                    start, size = (table[q, r * (EXPERTS // n) + k] for table in (Starts, Sizes))
                    for b in P(ceildiv(size, BLOCK)):
                        some = slice(start + b * BLOCK, start + minimum((b + 1) * BLOCK, size))
                        expert[r, q, k, b](rows.on(r)[some].clip(BLOCK, WIDTH), Up.on(r)[k], Down.on(r)[k],
                                           Done.on(r)[some].clip(BLOCK, WIDTH))
        back = all_to_all(Done, Back, capacity=sent)
        for r in P(mesh):
            for t in P(own):
                one, two = (back.on(r)[Place[r * own + t, c]:][:1] for c in range(CHOICES))
                combine[r, t](one, two, Shares[r * own + t, 0], Shares[r * own + t, 1], Y.on(r)[t:t + 1])

    return moe_over_ranks().task_graph(deps=Deps.infer_bytes_overlap())


EXAMPLE = Example(draw, layer, reference, cut={"y": 0}, exact=("y",), fits={"the experts": EXPERTS, "the tokens": TOKENS})

if __name__ == "__main__":
    sys.exit(main(EXAMPLE, __doc__))
