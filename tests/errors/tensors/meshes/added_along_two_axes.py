"""Two tensors are added that different axes of the mesh cut."""

import numpy as np

from pto_wsp import Mesh, Tensor, TensorLayout, jit


@jit
def f(a, b):
    return a + b


def mistake() -> None:
    f.using(mesh=Mesh(x=2, y=2))(
        Tensor(np.ones((4, 4), np.float32), layout=TensorLayout.sharded(0, 2, "x")),
        Tensor(np.ones((4, 4), np.float32), layout=TensorLayout.sharded(0, 2, "y")))


# error[M101]: dimension 0 is cut along two mesh axes
#   --> added_along_two_axes.py:10:12
#      |
#   10 |     return a + b
#      |            ^^^^^
#   --> added_along_two_axes.py:15:52: the first was made here
#      |
#   15 |         Tensor(np.ones((4, 4), np.float32), layout=TensorLayout.sharded(0, 2, "x")),
#      |                                                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   --> added_along_two_axes.py:16:52: the second was made here
#      |
#   16 |         Tensor(np.ones((4, 4), np.float32), layout=TensorLayout.sharded(0, 2, "y")))
#      |                                                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: S('x') on both sides, or one side whole
#    = found:    TensorLayout(S('x'), R) and TensorLayout(S('y'), R)
#    = help:     relayout the second operand to TensorLayout(S('x'), R)
