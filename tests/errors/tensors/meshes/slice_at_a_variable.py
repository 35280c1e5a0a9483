"""A loop slices a dimension that is cut."""

import numpy as np

from pto_wsp import Mesh, Tensor, TensorLayout, jit, tt


@jit
def f(a):
    out = tt.zeros(a.shape)
    for i in tt.loop(0, 4, 2):
        out[i:i + 2] = a[i:i + 2] * 2
    return out


def mistake() -> None:
    f.using(mesh=Mesh(x=2))(Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(0, 2, "x")))


# error[M101]: dimension 0 is indexed, and it is cut
#   --> slice_at_a_variable.py:12:24
#      |
#   12 |         out[i:i + 2] = a[i:i + 2] * 2
#      |                        ^^^^^^^^^^^^^^
#   --> slice_at_a_variable.py:17:72: made here
#      |
#   17 |     f.using(mesh=Mesh(x=2))(Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(0, 2, "x")))
#      |                                                                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a dimension that every rank holds whole
#    = found:    TensorLayout(S('x'), R)
#    = help:     index a rank's part, A.on(r)[...], or relayout to TensorLayout(R, R) first
