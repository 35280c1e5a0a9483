"""A dimension is reversed that is cut."""

import numpy as np

from pto_wsp import Mesh, Tensor, TensorLayout, jit


@jit
def f(a):
    return a[::-1] + 1


def mistake() -> None:
    f.using(mesh=Mesh(x=2))(Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(0, 2, "x")))


# error[M101]: a reversal along dimension 0, which is cut
#   --> reversed_cut_dimension.py:10:12
#      |
#   10 |     return a[::-1] + 1
#      |            ^^^^^^^^^^^
#   --> reversed_cut_dimension.py:14:72: made here
#      |
#   14 |     f.using(mesh=Mesh(x=2))(Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(0, 2, "x")))
#      |                                                                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a dimension that every rank holds whole
#    = found:    TensorLayout(S('x'), R)
#    = help:     relayout to TensorLayout(R, R) first
