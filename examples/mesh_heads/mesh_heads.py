"""Attention by heads over the ranks of a mesh: each rank has some heads, and one allreduce adds what they say.

    y = concat over heads of softmax(q k^T) v, times `out`;   q, k, v = x @ the head's columns of wq, wk, wv

Columns of wq, wk and wv, and rows of `out`, are cut over the ranks. What the heads give has the same bits on any number of ranks; the last
product is a term of a sum over the ranks.

    python examples/mesh_heads/mesh_heads.py
    mpirun -n 2 python -m mpi4py examples/mesh_heads/mesh_heads.py
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np

from pto_wsp import Deps, DType, In, Mesh, Out, P, Tensor, TensorLayout, Tile, Workload, allreduce, kernel, pto, workload

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from over_ranks import Arrays, Example, main

TOKENS, WIDTH, HEADS, DIM = 32, 32, 4, 16      # DIM: of a head
SCALE = 1 / math.sqrt(DIM)
F32 = DType.F32
COLUMNS, ROWS, WHOLE = TensorLayout.sharded(1, 2, "x"), TensorLayout.sharded(0, 2, "x"), TensorLayout.replicated(2)


def draw(rng: np.random.Generator, n: int) -> Arrays:
    """Return x [tokens, width] and the weights; n times as many heads."""
    made = HEADS * DIM * n
    weights = {name: rng.standard_normal((WIDTH, made), dtype=np.float32) / np.float32(np.sqrt(WIDTH)) for name in ("wq", "wk", "wv")}
    return {"x": rng.standard_normal((TOKENS, WIDTH), dtype=np.float32), **weights,
            "out": rng.standard_normal((made, WIDTH), dtype=np.float32) / np.float32(np.sqrt(made))}


def reference(given: Arrays) -> Arrays:
    """Return what the heads give, and the layer, in float64."""
    x, wq, wk, wv, out = (given[name].astype(np.float64) for name in ("x", "wq", "wk", "wv", "out"))
    q, k, v = ((x @ w).reshape(TOKENS, -1, DIM).transpose(1, 0, 2) for w in (wq, wk, wv))
    score = q @ k.transpose(0, 2, 1) * SCALE
    weight = np.exp(score - score.max(axis=2, keepdims=True))
    heads = (weight @ v / weight.sum(axis=2, keepdims=True)).transpose(1, 0, 2).reshape(TOKENS, -1)
    return {"heads": heads, "y": heads @ out}


@kernel
def head(x: In[Tile[TOKENS, WIDTH, F32]], wq: In[Tile[WIDTH, DIM, F32]], wk: In[Tile[WIDTH, DIM, F32]], wv: In[Tile[WIDTH, DIM, F32]],
         heads: Out[Tile[TOKENS, DIM, F32]]):
    """One head of all tokens."""
    score = (x @ wq * SCALE) @ (x @ wk).T
    weight = pto.exp(score - pto.rowmax(score))
    pto.store(heads, weight @ (x @ wv) / pto.rowsum(weight))


def layer(mesh: Mesh, given: Arrays, results: Arrays) -> Workload:
    """Return the layer: a task for each head, one for each rank's term of the last product, and the sum."""
    X, Y = Tensor(given["x"], layout=WHOLE), Tensor(results["y"], layout=WHOLE)
    Wq, Wk, Wv, H = (Tensor(array, layout=COLUMNS) for array in (given["wq"], given["wk"], given["wv"], results["heads"]))
    W = Tensor(given["out"], layout=ROWS)
    each = given["out"].shape[0] // DIM // mesh.size

    @kernel
    def project(heads: In[Tile[TOKENS, each * DIM, F32]], w: In[Tile[each * DIM, WIDTH, F32]], y: Out[Tile[TOKENS, WIDTH, F32]]):
        """A rank's term of the last product."""
        pto.store(y, heads @ w)

    @workload
    def attention_by_heads():
        Terms = Tensor.empty((TOKENS, WIDTH), F32, layout=TensorLayout.partial_of(2, "x"))
        for r in P(mesh):
            for h in P(each):
                own = slice(h * DIM, (h + 1) * DIM)
                head[r, h](X.on(r), Wq.on(r)[:, own], Wk.on(r)[:, own], Wv.on(r)[:, own], H.on(r)[:, own])
            project[r](H.on(r), W.on(r), Terms.on(r))
        allreduce(Terms, out=Y)

    return attention_by_heads().task_graph(deps=Deps.infer_bytes_overlap())


EXAMPLE = Example(draw, layer, reference, cut={"heads": 1, "y": None}, exact=("heads",), fits={"the heads": HEADS})

if __name__ == "__main__":
    sys.exit(main(EXAMPLE, __doc__))
