"""A key hashes text: each process has another number for it."""

import numpy as np

from pto_wsp import DispatchPolicy, DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@workload
def program() -> None:
    for b in P(4):
        scale[b](x=X[b], y=Y[b])


def mistake() -> None:
    program().dispatch(DispatchPolicy.affinity(lambda t: hash("decode") + t.b, 2))


# error[S103]: the key of affinity calls hash(), which answers otherwise in each process
#   --> key_by_hash.py:23:24
#      |
#   23 |     program().dispatch(DispatchPolicy.affinity(lambda t: hash("decode") + t.b, 2))
#      |                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a key that is the same in each process
#    = help:     DispatchPolicy.hash(key, n) hashes the number that a key gives; number names yourself
