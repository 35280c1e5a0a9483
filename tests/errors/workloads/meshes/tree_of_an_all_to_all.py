"""An all_to_all by tree: there is none."""

import numpy as np

from pto_wsp import DType, In, Mesh, Out, P, Tensor, TensorLayout, Tile, all_to_all, kernel, pto, workload

mesh = Mesh(x=2)
X = Tensor(np.ones((4, 8), np.float32), name="X", layout=TensorLayout.sharded(0, 2, "x"))


@kernel
def scale(x: In[Tile[2, 8, DType.F32]], y: Out[Tile[2, 8, DType.F32]]):
    pto.store(y, x * 2)


@workload
def made():
    for _ in P(mesh):
        pass
    all_to_all(X, 1, algorithm="tree")


def mistake() -> None:
    made().compile("interp")


# error[M104]: all_to_all has no tree
#   --> tree_of_an_all_to_all.py:20:5
#      |
#   20 |     all_to_all(X, 1, algorithm="tree")
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: ring or direct
#    = found:    tree
