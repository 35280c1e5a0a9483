"""A pipeline over the ranks of a mesh: each rank has some layers, and micro-batches go from rank to rank.

    y = relu(... relu(relu(x @ w[0]) @ w[1]) ...)

Rank 0 takes the rows of a micro-batch from the rank that has them, the last rank gives the results back. A rank has two places for
activations, so it works on one micro-batch while the next one arrives. The layers are the same on any number of ranks, and so are the bits.

    python examples/mesh_pipeline/mesh_pipeline.py
    mpirun -n 2 python -m mpi4py examples/mesh_pipeline/mesh_pipeline.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from pto_wsp import Deps, DType, In, InOut, Mesh, P, Tensor, TensorLayout, Tile, Workload, copy, kernel, pto, workload

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from over_ranks import Arrays, Example, main

LAYERS, BATCHES, ROWS, WIDTH = 4, 8, 8, 32      # ROWS: of a micro-batch
F32 = DType.F32


def draw(rng: np.random.Generator, n: int) -> Arrays:
    """Return x [rows, width] and the layers' weights [layers, width, width]; n times as many layers."""
    w = rng.standard_normal((LAYERS * n, WIDTH, WIDTH), dtype=np.float32) * np.float32(np.sqrt(2 / WIDTH))
    return {"x": rng.standard_normal((BATCHES * ROWS, WIDTH), dtype=np.float32), "w": w}


def reference(given: Arrays) -> Arrays:
    """Return the last layer's rows in float64."""
    y = given["x"].astype(np.float64)
    for w in given["w"]:
        y = np.maximum(y @ w, 0)
    return {"y": y}


@kernel
def dense(w: In[Tile[WIDTH, WIDTH, F32]], h: InOut[Tile[ROWS, WIDTH, F32]]):
    """One layer of one micro-batch, in place."""
    pto.store(h, pto.relu(h @ w))


def layer(mesh: Mesh, given: Arrays, results: Arrays) -> Workload:
    """Return the pipeline: micro-batch by micro-batch, rank by rank; ranks work side by side where no data says otherwise."""
    n, each = mesh.size, BATCHES // mesh.size      # micro-batches of which a rank has the rows
    X, Y = (Tensor(array, layout=TensorLayout.sharded(0, 2, "x")) for array in (given["x"], results["y"]))
    W = Tensor(given["w"], layout=TensorLayout.sharded(0, 3, "x"))

    @workload
    def pipeline():
        H = Tensor.empty((n, 2, ROWS, WIDTH), F32, layout=TensorLayout.sharded(0, 4, "x"), name="activations")
        for m in P.seq(BATCHES):
            rows = slice(m % each * ROWS, (m % each + 1) * ROWS)
            for r in P.seq(mesh):
                with P.when(r == 0):
                    copy(X.on(m // each)[rows], H.on(r)[0, m % 2])
                for i in P.seq(len(given["w"]) // n):
                    dense[m, r, i](W.on(r)[i], H.on(r)[0, m % 2])
                with P.when(r < n - 1):
                    copy(H.on(r)[0, m % 2], H.on((r + 1) % n)[0, m % 2])
                with P.when(r == n - 1):
                    copy(H.on(r)[0, m % 2], Y.on(m // each)[rows])

    return pipeline().task_graph(deps=Deps.infer_bytes_overlap())


EXAMPLE = Example(draw, layer, reference, cut={"y": 0}, exact=("y",), fits={"the layers": LAYERS, "the micro-batches": BATCHES})

if __name__ == "__main__":
    sys.exit(main(EXAMPLE, __doc__))
