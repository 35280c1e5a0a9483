"""An argument has a layout, and no mesh is known."""

import numpy as np

from pto_wsp import Tensor, TensorLayout, jit


@jit
def f(a):
    return a + 1


def mistake() -> None:
    f(Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(0, 2, "y")))


# error[M102]: `f`: argument `a` has a layout, and no mesh is known
#   --> layout_without_a_mesh.py:14:5
#      |
#   14 |     f(Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(0, 2, "y")))
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a mesh
#    = help:     f.using(mesh=Mesh(y=2))(...) runs the function over the ranks of a mesh
