"""A bound is read from an array that another tensor's tasks write."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def measure(x: In[Tile[1, 4, DType.I32]], n: Out[Tile[1, 4, DType.I32]]) -> None:
    pto.store(n, x + 1)


X, lens, counts = (Tensor(np.zeros((2, 4), np.int32)) for _ in range(3))


@workload
def program() -> None:
    for b in P(lens[0, 0]):
        measure[b](x=X[b], n=counts[b])


def mistake() -> None:
    array = np.ones((2, 4), np.int32)
    program().compile(target="interp").run(lens=array, counts=array)


# error[W104]: `lens` is read as a scalar and shares memory with `counts`, which tasks write
#   --> scalars_share_memory.py:24:5
#      |
#   24 |     program().compile(target="interp").run(lens=array, counts=array)
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = help:     bind arrays that do not overlap, or read the scalar from `counts`: it is waited for then
