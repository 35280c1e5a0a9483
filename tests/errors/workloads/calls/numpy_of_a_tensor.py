"""NumPy's exp of a workload's tensor, where a kernel was meant."""

import numpy as np

from pto_wsp import P, Tensor, workload

X = Tensor(np.ones((2, 8), np.float32), name="X")


@workload
def exponentials():
    for b in P(2):
        np.exp(X[b])


def mistake() -> None:
    exponentials()


# error[T206]: tensors are computed on in kernels, tile by tile
#   --> numpy_of_a_tensor.py:13:9
#      |
#   13 |         np.exp(X[b])
#      |         ^^^^^^^^^^^^
#    = found:    np.exp on `X[b]`
#    = help:     bind the tensor to a kernel's parameter; for arrays at once use NumPy on np.asarray(tensor)
