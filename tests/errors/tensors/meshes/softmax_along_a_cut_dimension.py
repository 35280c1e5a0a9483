"""A softmax runs along a dimension that no rank has whole."""

import numpy as np

from pto_wsp import Mesh, Tensor, TensorLayout, jit
from pto_wsp.tt.library import softmax


@jit
def f(a):
    return softmax(a)


def mistake() -> None:
    f.using(mesh=Mesh(x=2))(Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(1, 2, "x")))


# error[M101]: a partial tensor is added to another one
#   --> softmax_along_a_cut_dimension.py:11:12
#      |
#   11 |     return softmax(a)
#      |            ^^^^^^^^^^
#   --> softmax_along_a_cut_dimension.py:15:72: the first was made here
#      |
#   15 |     f.using(mesh=Mesh(x=2))(Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(1, 2, "x")))
#      |                                                                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   --> softmax_along_a_cut_dimension.py:11:12: the second was made here
#      |
#   11 |     return softmax(a)
#      |            ^^^^^^^^^^
#    = expected: partial sums over the same axes, or none
#    = found:    TensorLayout(R, S('x')) and TensorLayout(R, R; Partial('x', 'max'))
#    = help:     allreduce the partial one first
