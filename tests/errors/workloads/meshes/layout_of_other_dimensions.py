"""A layout says of other dimensions than its tensor has."""

import numpy as np

from pto_wsp import Tensor, TensorLayout


def mistake() -> None:
    Tensor(np.zeros((4, 4), np.float32), layout=TensorLayout.sharded(0, 3, "x"))


# error[M105]: a layout says of each dimension of its tensor whether it is cut
#   --> layout_of_other_dimensions.py:9:5
#     |
#   9 |     Tensor(np.zeros((4, 4), np.float32), layout=TensorLayout.sharded(0, 3, "x"))
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a TensorLayout of rank 2
#    = found:    TensorLayout(S('x'), R, R)
#    = help:     TensorLayout.sharded(dim=0, rank=2), TensorLayout.replicated(2)
