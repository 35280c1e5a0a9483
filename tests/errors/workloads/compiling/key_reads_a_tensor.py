"""A key reads an element of a tensor."""

import numpy as np

from pto_wsp import DType, Out, P, Scalar, Tensor, Tile, kernel, pto, workload


@kernel
def fill(n: Scalar[DType.I64], y: Out[Tile[1, 1, DType.I64]]) -> None:
    pto.store(y, pto.full((1, 1), n, DType.I64))


Y = Tensor(np.zeros((8, 1), np.int64), name="Y")


@workload
def program() -> None:
    for k in P(8):
        fill[k](k, Y[k])


def mistake() -> None:
    program().stream_by(lambda t: Y[t.k, 0])


# error[S103]: the key of stream_by depends on more than the task
#   --> key_reads_a_tensor.py:23:5
#      |
#   23 |     program().stream_by(lambda t: Y[t.k, 0])
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: loop variables by name (t.b), bracket indices (t.params[0]), t.kernel == "name" and Symbols
#    = found:    Y[k, 0]
#    = help:     tasks may write it meanwhile: give the number in brackets, kernel[n], and take t.params, or bind a Symbol
