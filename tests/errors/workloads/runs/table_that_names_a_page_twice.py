"""A table that was declared Injective names a page twice; -1 is padding."""

import numpy as np

from pto_wsp import DType, In, Injective, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def fill(x: In[Tile[1, 4, DType.F32]], y: Out[Tile[1, 4, DType.F32]]) -> None:
    pto.store(y, x + 1)


X, pages = Tensor(np.zeros((4, 4), np.float32)), Tensor(np.zeros((9, 4), np.float32))
table = Injective(Tensor(np.array([[7, 3], [5, 8]])))


@workload
def program() -> None:
    for b in P(2):
        for j in P(2):
            fill[b, j](x=X[b], y=pages[table[b, j]])


def mistake() -> None:
    made = program().compile("interp").run()
    made.run(table=np.array([[7, -1], [-1, 7]]))


# error[R110]: `table` is declared Injective, and two of its elements are equal
#   --> table_that_names_a_page_twice.py:26:5
#      |
#   26 |     made.run(table=np.array([[7, -1], [-1, 7]]))
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: each number >= 0 at most once
#    = found:    table[0, 0] and table[1, 1] are both 7
#    = help:     fill entries that nobody uses with -1
