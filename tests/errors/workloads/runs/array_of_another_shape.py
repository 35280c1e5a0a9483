"""The array is not of the shape that the Tensor says."""

import numpy as np

from pto_wsp import DType, Tensor


def mistake() -> None:
    Tensor(data=np.zeros((4, 4), np.float32), shape=(4, 8), dtype=DType.F32)


# error[D101]: the array's shape is not what the Tensor says
#   --> array_of_another_shape.py:9:5
#     |
#   9 |     Tensor(data=np.zeros((4, 4), np.float32), shape=(4, 8), dtype=DType.F32)
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: (4, 8), as shape= says
#    = found:    (4, 4)
