"""An array is bound whose bytes stand in the other order, as one read from a file does."""

import numpy as np

from pto_wsp import DType, InOut, Tensor, Tile, kernel, pto, workload


@kernel
def twice(x: InOut[Tile[2, 4, DType.F32]]) -> None:
    pto.store(x, x * 2)


X = Tensor(np.zeros((2, 4), np.float32))


@workload
def program() -> None:
    twice(X)


def mistake() -> None:
    program().compile(target="interp").run(X=np.zeros((2, 4), ">f4"))


# error[R113]: tensor `X` is bound to an array of the other byte order
#   --> other_byte_order.py:22:5
#      |
#   22 |     program().compile(target="interp").run(X=np.zeros((2, 4), ">f4"))
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: f32
#    = found:    >f4
#    = help:     array.astype(np.float32) makes a copy in this machine's order
