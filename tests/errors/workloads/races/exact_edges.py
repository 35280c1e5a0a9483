"""Edges between equal regions alone, which would miss those that overlap in part."""

import numpy as np

from pto_wsp import Deps, DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((16, 8), np.float32)), Tensor(np.zeros((16, 8), np.float32))


@workload
def program() -> None:
    for b in P(4):
        scale[b](x=X[4 * b:4 * b + 4], y=Y[4 * b:4 * b + 4])


def mistake() -> None:
    program().task_graph(deps=Deps.infer_tensor_map_exact()).compile("cpu_sim")


# error[S101]: target cpu_sim does not enforce task_graph.deps.exact
#   --> exact_edges.py:23:5
#      |
#   23 |     program().task_graph(deps=Deps.infer_tensor_map_exact()).compile("cpu_sim")
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: one of task_graph.deps.overlap, task_graph.deps.explicit, task_graph.deps.hybrid
#    = found:    Deps(kind='exact')
#    = help:     drop it, or compile(..., strict=False) to have it recorded and not enforced
#    = note:     equal regions alone give no edge where two overlap in part; overlap gives the same where none do
