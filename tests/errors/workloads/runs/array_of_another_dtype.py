"""The array is not of the dtype that the Tensor says."""

import numpy as np

from pto_wsp import DType, Tensor


def mistake() -> None:
    Tensor(data=np.zeros((4, 4)), shape=(4, 4), dtype=DType.F32)


# error[D101]: the array's dtype is not what the Tensor says
#   --> array_of_another_dtype.py:9:5
#     |
#   9 |     Tensor(data=np.zeros((4, 4)), shape=(4, 4), dtype=DType.F32)
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: f32, as dtype= says
#    = found:    f64 array
#    = help:     array.astype(np.float32), or dtype=DType.F64
