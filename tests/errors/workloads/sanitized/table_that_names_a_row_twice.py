"""Two iterations of a free loop write the row that a table names twice."""

import numpy as np

from pto_wsp import Dense, DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[1, 8, DType.F32]], y: Out[Tile[1, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 8), np.float32), name="X"), Tensor(np.zeros((4, 8), np.float32), name="Y")
table = Tensor(np.array([2, 0, 2, 1]), name="table")
batch = Dense[4]()


@workload
def program() -> None:
    for b in P(batch):
        scale[b](x=X[b], y=Y[table[b]])


def mistake() -> None:
    program().compile(sanitize=True).replay(5)


# error[R201]: nothing orders the tasks scale[b=0] and scale[b=2], and they both write Y[2, 0:8]
#   --> table_that_names_a_row_twice.py:21:28
#      |
#   21 |         scale[b](x=X[b], y=Y[table[b]])
#      |                            ^^^^^^^^^^^
#    = expected: an order between them in the workload, or elements of their own
#    = found:    different iterations of the loop over `b` at table_that_names_a_row_twice.py:20:14
#    = help:     loop over `b` with P.seq, or index what is written by `b`
#    = note:     scale[b=0] was made at table_that_names_a_row_twice.py:21:9
#    = note:     scale[b=2] was made at table_that_names_a_row_twice.py:21:9
#    = note:     seed 0x5: program.replay(0x5) repeats the order of this run
