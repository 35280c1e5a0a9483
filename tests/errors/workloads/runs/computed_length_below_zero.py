"""A task computes how often a loop runs, and computes less than nothing."""

import numpy as np

from pto_wsp import DType, In, Out, P, Scalar, Tensor, Tile, kernel, pto, workload


@kernel
def count(n: Scalar[DType.I32], found: Out[Tile[1, 1, DType.I32]]) -> None:
    pto.store(found, pto.full((1, 1), n, DType.I32))


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))
found = Tensor(np.zeros((1, 1), np.int32))


@workload
def program() -> None:
    count(n=-3, found=found)
    for b in P(found[0, 0]):
        scale[b](x=X[b], y=Y[b])


def mistake() -> None:
    program().compile(target="interp").run()


# error[R104]: a loop's extent is negative: `found[0, 0]`
#   --> computed_length_below_zero.py:25:14
#      |
#   25 |     for b in P(found[0, 0]):
#      |              ^^^^^^^^^^^^^^
#    = expected: >= 0
#    = found:    found[0, 0] = -3
#    = help:     lengths are >= 0
#    = note:     1 task made before it had run, and what it wrote stays
