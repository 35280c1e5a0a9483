"""A place is asked for along a dimension that no rank has whole."""

import numpy as np

from pto_wsp import Mesh, Tensor, TensorLayout, jit


@jit
def f(a):
    return np.argmax(a, axis=-1)


def mistake() -> None:
    f.using(mesh=Mesh(x=2))(Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(1, 2, "x")))


# error[M101]: `rowargmax` along dimension 1, which is cut
#   --> argmax_along_a_cut_dimension.py:10:12
#      |
#   10 |     return np.argmax(a, axis=-1)
#      |            ^^^^^^^^^^^^^^^^^^^^^
#   --> argmax_along_a_cut_dimension.py:14:72: made here
#      |
#   14 |     f.using(mesh=Mesh(x=2))(Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(1, 2, "x")))
#      |                                                                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a dimension that every rank holds whole
#    = found:    TensorLayout(R, S('x'))
#    = help:     relayout to TensorLayout(R, R) first
