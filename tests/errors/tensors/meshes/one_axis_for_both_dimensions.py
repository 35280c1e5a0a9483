"""A sum would be cut along one axis in both dimensions."""

import numpy as np

from pto_wsp import Mesh, Tensor, TensorLayout, jit


@jit
def f(a, b):
    return a + b


def mistake() -> None:
    f.using(mesh=Mesh(x=2))(
        Tensor(np.ones((4, 4), np.float32), layout=TensorLayout.sharded(0, 2, "x")),
        Tensor(np.ones((4, 4), np.float32), layout=TensorLayout.sharded(1, 2, "x")))


# error[M101]: the result would use mesh axis 'x' twice
#   --> one_axis_for_both_dimensions.py:10:12
#      |
#   10 |     return a + b
#      |            ^^^^^
#   --> one_axis_for_both_dimensions.py:15:52: the first was made here
#      |
#   15 |         Tensor(np.ones((4, 4), np.float32), layout=TensorLayout.sharded(0, 2, "x")),
#      |                                                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   --> one_axis_for_both_dimensions.py:16:52: the second was made here
#      |
#   16 |         Tensor(np.ones((4, 4), np.float32), layout=TensorLayout.sharded(1, 2, "x")))
#      |                                                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: operands that are cut along different axes
#    = found:    TensorLayout(S('x'), R) and TensorLayout(R, S('x'))
#    = help:     relayout the second operand to TensorLayout(R, R)
