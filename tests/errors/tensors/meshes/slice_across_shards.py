"""A slice is not aligned with the shards."""

import numpy as np

from pto_wsp import Mesh, Tensor, TensorLayout, jit


@jit
def f(a):
    return a[1:3] + 1


def mistake() -> None:
    f.using(mesh=Mesh(x=2))(Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(0, 2, "x")))


# error[M101]: dimension 0 is cut, and the slice 1:3 is not aligned with its shards
#   --> slice_across_shards.py:10:12
#      |
#   10 |     return a[1:3] + 1
#      |            ^^^^^^^^^^
#   --> slice_across_shards.py:14:72: made here
#      |
#   14 |     f.using(mesh=Mesh(x=2))(Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(0, 2, "x")))
#      |                                                                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: shards of 1 rows from row 0 on, as the slice's own layout has them
#    = found:    shards of 2 rows
#    = help:     slice a rank's part, A.on(r)[...], or relayout to TensorLayout(R, R) first
