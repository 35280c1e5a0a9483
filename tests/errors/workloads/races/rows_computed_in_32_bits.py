"""Tasks scatter pages whose rows are computed in 32 bits: two entries may wrap to one row."""

import numpy as np

from pto_wsp import DType, In, Injective, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scatter_page(x: In[Tile[4, 8, DType.F32]], page: In[Tile[1, 1, DType.I32]], cache: Out[Tensor]) -> None:
    pto.scatter(cache, page * 4 + pto.iota((4, 1), axis=0), x)


X, CACHE = Tensor(np.zeros((8, 4, 8), np.float32)), Tensor(np.zeros((64, 8), np.float32))
PAGES = Injective(Tensor(np.arange(8, dtype=np.int32)))


@workload
def program() -> None:
    for j in P(8):
        scatter_page[j](x=X[j], page=PAGES[j:j + 1], cache=CACHE)


def mistake() -> None:
    program().compile("interp")


# error[W201]: tasks without an order between them write the same elements of `CACHE`
#   --> rows_computed_in_32_bits.py:20:60
#      |
#   20 |         scatter_page[j](x=X[j], page=PAGES[j:j + 1], cache=CACHE)
#      |                                                            ^^^^^
#    = expected: iterations of `j` touch different elements, or only read
#    = found:    CACHE[0:64, 0:8] is written where j = 0, and again where j = 1
#    = help:     P.seq(...) runs the iterations of `j` in order; or give `CACHE` one more dimension, a place for each `j`
#    = note:     parts that kernels touch may be the same: it depends on what is in `PAGES`, and rows of 32 bits wrap: cast the index to I64
