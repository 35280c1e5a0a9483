"""Ring attention: the sequence is cut over the ranks, and keys and values go round them while each attends to what it holds.

Each rank has its queries, and two places for keys and values: while it attends to one block, the next one arrives in the other place. A
running maximum keeps the exponentials in range, so no rank sees all scores, nor holds all keys.

    python examples/mesh_ring_attention/mesh_ring_attention.py
    mpirun -n 2 python -m mpi4py examples/mesh_ring_attention/mesh_ring_attention.py
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np

from pto_wsp import Deps, DType, In, InOut, Mesh, Out, P, Tensor, TensorLayout, Tile, Workload, copy, kernel, pto, workload

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from over_ranks import Arrays, Example, main

TOKENS, HEADS, DIM = 64, 2, 16
SCALE = 1 / math.sqrt(DIM)
F32 = DType.F32
ROWS = TensorLayout.sharded(0, 2, "x")


def draw(rng: np.random.Generator, n: int) -> Arrays:
    """Return q, k and v, [tokens, heads * DIM]; n times as many tokens."""
    return {name: rng.standard_normal((TOKENS * n, HEADS * DIM), dtype=np.float32) for name in "qkv"}


def reference(given: Arrays) -> Arrays:
    """Return attention in float64."""
    q, k, v = (given[name].astype(np.float64).reshape(-1, HEADS, DIM).transpose(1, 0, 2) for name in "qkv")
    score = q @ k.transpose(0, 2, 1) * SCALE
    weight = np.exp(score - score.max(axis=2, keepdims=True))
    return {"y": (weight @ v / weight.sum(axis=2, keepdims=True)).transpose(1, 0, 2).reshape(-1, HEADS * DIM)}


def layer(mesh: Mesh, given: Arrays, results: Arrays) -> Workload:
    """Return attention; in step s, rank r attends to the keys of rank r - s."""
    n, tokens, width = mesh.size, len(given["q"]), HEADS * DIM
    block = tokens // n
    Q, K, V, Y = (Tensor(array, layout=ROWS) for array in (given["q"], given["k"], given["v"], results["y"]))

    @kernel
    def begin(acc: Out[Tile[block, DIM, F32]], row_max: Out[Tile[block, 1, F32]], row_sum: Out[Tile[block, 1, F32]]):
        pto.store(acc, pto.zeros((block, DIM), F32))
        pto.store(row_max, pto.full((block, 1), -math.inf, F32))
        pto.store(row_sum, pto.zeros((block, 1), F32))

    @kernel
    def meet(q: In[Tile[block, DIM, F32]], k: In[Tile[block, DIM, F32]], v: In[Tile[block, DIM, F32]], acc: InOut[Tile[block, DIM, F32]],
             row_max: InOut[Tile[block, 1, F32]], row_sum: InOut[Tile[block, 1, F32]]):
        """Take in a block of keys; what was summed so far is scaled down to the new maximum."""
        score = (q * SCALE) @ k.T
        new_max = pto.maximum(row_max, pto.rowmax(score))
        shrink, weight = pto.exp(row_max - new_max), pto.exp(score - new_max)
        pto.store(acc, acc * shrink + weight @ v)
        pto.store(row_sum, row_sum * shrink + pto.rowsum(weight))
        pto.store(row_max, new_max)

    @kernel
    def finish(acc: In[Tile[block, DIM, F32]], row_sum: In[Tile[block, 1, F32]], y: Out[Tile[block, DIM, F32]]):
        pto.store(y, acc / row_sum)

    @workload
    def ring_attention():
        Held = [Tensor.empty((2, tokens, width), F32, layout=TensorLayout.sharded(1, 3, "x"), name=name) for name in ("keys", "values")]
        Acc = Tensor.empty((tokens, width), F32, layout=ROWS)
        Max, Sum = (Tensor.empty((tokens, HEADS), F32, layout=ROWS) for _ in range(2))
        for r in P(mesh):
            for held, given in zip(Held, (K, V), strict=True):
                copy(given.on(r), held.on(r)[0])
            for h in P(HEADS):
                begin[r, h](Acc.on(r)[:, h * DIM:(h + 1) * DIM], Max.on(r)[:, h:h + 1], Sum.on(r)[:, h:h + 1])
        for s in P.seq(n):
            with P.when(s < n - 1):
                for r in P(mesh):
                    for held in Held:
                        copy(held.on(r)[s % 2], held.on((r + 1) % n)[(s + 1) % 2])
            for r in P(mesh):
                for h in P(HEADS):
                    own = slice(h * DIM, (h + 1) * DIM)
                    meet[s, r, h](Q.on(r)[:, own], *(held.on(r)[s % 2, :, own] for held in Held), Acc.on(r)[:, own], Max.on(r)[:, h:h + 1],
                                  Sum.on(r)[:, h:h + 1])
        for r in P(mesh):
            for h in P(HEADS):
                own = slice(h * DIM, (h + 1) * DIM)
                finish[r, h](Acc.on(r)[:, own], Sum.on(r)[:, h:h + 1], Y.on(r)[:, own])

    return ring_attention().task_graph(deps=Deps.infer_bytes_overlap())


EXAMPLE = Example(draw, layer, reference, cut={"y": 0}, fits={"the tokens": TOKENS})

if __name__ == "__main__":
    sys.exit(main(EXAMPLE, __doc__))
