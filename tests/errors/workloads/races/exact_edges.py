"""Edges between equal regions alone, which would miss those that overlap in part."""

import numpy as np

from pto_wsp import Deps, DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y, Z = (Tensor(np.zeros((16, 8), np.float32), name=name) for name in "XYZ")


@workload
def program() -> None:
    for b in P(4):
        scale[b](x=X[4 * b:4 * b + 4], y=Y[4 * b:4 * b + 4])
    for b in P(3):
        scale[b](x=Y[4 * b + 2:4 * b + 6], y=Z[4 * b:4 * b + 4])


def mistake() -> None:
    program().task_graph(deps=Deps.infer_tensor_map_exact()).compile("cpu_sim")


# error[W203]: Deps.infer_tensor_map_exact() needs a proof that any two regions of `Y` are equal or apart
#   --> exact_edges.py:19:42
#      |
#   19 |         scale[b](x=X[4 * b:4 * b + 4], y=Y[4 * b:4 * b + 4])
#      |                                          ^^^^^^^^^^^^^^^^^^
#   --> exact_edges.py:21:20: read here
#      |
#   21 |         scale[b](x=Y[4 * b + 2:4 * b + 6], y=Z[4 * b:4 * b + 4])
#      |                    ^^^^^^^^^^^^^^^^^^^^^^
#    = found:    Y[4 * b:4 * b + 4] where b = 0 and Y[4 * b + 2:4 * b + 6] where b = 0 overlap in part: they share Y[2:4, 0:8]
#    = help:     cut it into pieces of one size, or take Deps.infer_bytes_overlap(), which orders what overlaps in part
