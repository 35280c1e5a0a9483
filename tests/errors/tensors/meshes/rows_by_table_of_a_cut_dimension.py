"""A table picks rows that lie on any rank."""

import numpy as np

from pto_wsp import Mesh, Tensor, TensorLayout, jit


@jit
def f(a):
    return a[np.array([1, 0])]


def mistake() -> None:
    f.using(mesh=Mesh(x=2))(Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(0, 2, "x")))


# error[M101]: dimension 0 is indexed, and it is cut
#   --> rows_by_table_of_a_cut_dimension.py:10:12
#      |
#   10 |     return a[np.array([1, 0])]
#      |            ^^^^^^^^^^^^^^^^^^^
#   --> rows_by_table_of_a_cut_dimension.py:14:72: made here
#      |
#   14 |     f.using(mesh=Mesh(x=2))(Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(0, 2, "x")))
#      |                                                                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a dimension that every rank holds whole
#    = found:    TensorLayout(S('x'), R)
#    = help:     index a rank's part, A.on(r)[...], or relayout to TensorLayout(R, R) first
