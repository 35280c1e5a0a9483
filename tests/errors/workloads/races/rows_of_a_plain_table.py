"""Tasks scatter rows to the entries of a table that nobody has promised to be different."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scatter_rows(x: In[Tile[4, 8, DType.F32]], slots: In[Tile[1, 4, DType.I32]], cache: Out[Tensor]) -> None:
    pto.scatter(cache, slots.T, x)


X, CACHE = Tensor(np.zeros((8, 4, 8), np.float32)), Tensor(np.zeros((64, 8), np.float32))
TABLE = Tensor(np.arange(32, dtype=np.int32))


@workload
def program() -> None:
    for j in P(8):
        scatter_rows[j](x=X[j], slots=TABLE[4 * j:4 * j + 4], cache=CACHE)


def mistake() -> None:
    program().compile("interp")


# error[W201]: tasks without an order between them write the same elements of `CACHE`
#   --> rows_of_a_plain_table.py:20:69
#      |
#   20 |         scatter_rows[j](x=X[j], slots=TABLE[4 * j:4 * j + 4], cache=CACHE)
#      |                                                                     ^^^^^
#    = expected: iterations of `j` touch different elements, or only read
#    = found:    CACHE[0:64, 0:8] is written where j = 0, and again where j = 1
#    = help:     Injective(TABLE) promises that no two entries are equal, which each run checks; or P.seq(...)
#    = note:     parts that kernels touch may be the same: it depends on what is in `TABLE`
