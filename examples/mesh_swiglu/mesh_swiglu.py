"""SwiGLU over the ranks of a mesh: columns of the two first matrices, rows of the last one, and one allreduce.

    y = (silu(x @ gate) * (x @ up)) @ down

Each rank has some hidden units: its columns of gate and up, and its rows of down. The last product is then a term of a sum over the ranks.

    python examples/mesh_swiglu/mesh_swiglu.py
    mpirun -n 2 python -m mpi4py examples/mesh_swiglu/mesh_swiglu.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from pto_wsp import Deps, DType, In, Mesh, Out, P, Tensor, TensorLayout, Tile, Workload, allreduce, kernel, pto, workload

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from over_ranks import Arrays, Example, main

TOKENS, ROWS, WIDTH, HIDDEN = 64, 16, 32, 96      # ROWS: tokens of a task
F32 = DType.F32
COLUMNS, CUT, WHOLE = TensorLayout.sharded(1, 2, "x"), TensorLayout.sharded(0, 2, "x"), TensorLayout.replicated(2)


def draw(rng: np.random.Generator, n: int) -> Arrays:
    """Return x [tokens, width] and the weights; n times as many hidden units."""
    hidden = HIDDEN * n
    weights = {name: rng.standard_normal((WIDTH, hidden), dtype=np.float32) / np.float32(np.sqrt(WIDTH)) for name in ("gate", "up")}
    return {"x": rng.standard_normal((TOKENS, WIDTH), dtype=np.float32), **weights,
            "down": rng.standard_normal((hidden, WIDTH), dtype=np.float32) / np.float32(np.sqrt(hidden))}


def reference(given: Arrays) -> Arrays:
    """Return SwiGLU in float64."""
    x, gate, up, down = (given[name].astype(np.float64) for name in ("x", "gate", "up", "down"))
    opened = x @ gate
    return {"y": (opened / (1 + np.exp(-opened)) * (x @ up)) @ down}


def layer(mesh: Mesh, given: Arrays, results: Arrays) -> Workload:
    """Return the layer: each rank's term of the last product, 16 tokens a task, and the sum."""
    X, Y = Tensor(given["x"], layout=WHOLE), Tensor(results["y"], layout=WHOLE)
    Gate, Up, Down = (Tensor(given[name], layout=layout) for name, layout in (("gate", COLUMNS), ("up", COLUMNS), ("down", CUT)))
    units = len(given["down"]) // mesh.size

    @kernel
    def swiglu(x: In[Tile[ROWS, WIDTH, F32]], gate: In[Tile[WIDTH, units, F32]], up: In[Tile[WIDTH, units, F32]],
               down: In[Tile[units, WIDTH, F32]], y: Out[Tile[ROWS, WIDTH, F32]]):
        opened = x @ gate
        pto.store(y, (opened * pto.sigmoid(opened) * (x @ up)) @ down)

    @workload
    def swiglu_over_ranks():
        Terms = Tensor.empty((TOKENS, WIDTH), F32, layout=TensorLayout.partial_of(2, "x"))
        for r in P(mesh):
            for t in P(TOKENS // ROWS):
                rows = slice(t * ROWS, (t + 1) * ROWS)
                swiglu[r, t](X.on(r)[rows], Gate.on(r), Up.on(r), Down.on(r), Terms.on(r)[rows])
        allreduce(Terms, out=Y)

    return swiglu_over_ranks().task_graph(deps=Deps.infer_bytes_overlap())


EXAMPLE = Example(draw, layer, reference, cut={"y": None}, fits={"the hidden units": HIDDEN})

if __name__ == "__main__":
    sys.exit(main(EXAMPLE, __doc__))
