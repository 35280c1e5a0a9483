"""A workload over ranks is compiled for a chip."""

import numpy as np

from pto_wsp import Mesh, P, Tensor, TensorLayout, copy, workload

rows = TensorLayout.sharded(0, 2, "x")
X, Y = Tensor(np.zeros((4, 8), np.float32), layout=rows), Tensor(np.zeros((4, 8), np.float32), layout=rows)


@workload
def shifted() -> None:
    for r in P(Mesh(x=2)):
        copy(X.on(r), Y.on((r + 1) % 2))


def mistake() -> None:
    shifted().compile(target="ascend_npu")


# error[M102]: target ascend_npu does not take a mesh
#   --> package_for_a_mesh.py:14:9
#      |
#   14 |         copy(X.on(r), Y.on((r + 1) % 2))
#      |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: cpu_sim or interp
#    = found:    Mesh(x=2)
#    = help:     run it with cpu_sim, over MPI with compile(comm=...); or compile what one rank does by itself
#    = note:     a package is for one chip: what is known of the runtime gives no store into another chip's memory
