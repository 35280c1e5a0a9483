"""A collective stands in a loop over the ranks."""

import numpy as np

from pto_wsp import DType, In, Mesh, Out, P, Tensor, TensorLayout, Tile, allreduce, kernel, pto, workload


@kernel
def scale(x: In[Tile[2, 8, DType.F32]], y: Out[Tile[2, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


mesh = Mesh(x=4)
rows = TensorLayout.sharded(0, 2, "x")
X = Tensor(np.zeros((8, 8), np.float32), layout=rows)
Y = Tensor(np.zeros((8, 8), np.float32), layout=rows)


@workload
def program() -> None:
    held = Tensor.empty((8, 8), DType.F32, layout=TensorLayout.partial_of(2, "x"))
    for _ in P(mesh):
        allreduce(held)


def mistake() -> None:
    program()


# error[M104]: allreduce in a loop over the ranks
#   --> collective_in_a_loop_over_ranks.py:23:9
#      |
#   23 |         allreduce(held)
#      |         ^^^^^^^^^^^^^^^
#    = help:     write it outside of the loop: all ranks take part at once
