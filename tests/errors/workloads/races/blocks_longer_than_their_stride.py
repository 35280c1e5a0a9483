"""Blocks of four rows at three times an entry of a table: the blocks of entries k and k + 1 overlap."""

import numpy as np

from pto_wsp import DType, In, Injective, Out, P, Scalar, Tensor, Tile, kernel, pto, workload


@kernel
def store_block(x: In[Tile[4, 8, DType.F32]], slot: Scalar[DType.I32], cache: Out[Tensor]) -> None:
    pto.store(cache, x, (slot * 3, 0))


X, CACHE = Tensor(np.zeros((8, 4, 8), np.float32)), Tensor(np.zeros((64, 8), np.float32))
SLOTS = Injective(Tensor(np.arange(8, dtype=np.int32)))


@workload
def program() -> None:
    for j in P(8):
        store_block[j](x=X[j], slot=SLOTS[j], cache=CACHE)


def mistake() -> None:
    program().compile("interp")


# error[W201]: tasks without an order between them write the same elements of `CACHE`
#   --> blocks_longer_than_their_stride.py:20:53
#      |
#   20 |         store_block[j](x=X[j], slot=SLOTS[j], cache=CACHE)
#      |                                                     ^^^^^
#    = expected: iterations of `j` touch different elements, or only read
#    = found:    CACHE[0:64, 0:8] is written where j = 0, and again where j = 1
#    = help:     P.seq(...) runs the iterations of `j` in order; or give `CACHE` one more dimension, a place for each `j`
#    = note:     parts that kernels touch may be the same: it depends on what is in `SLOTS`
