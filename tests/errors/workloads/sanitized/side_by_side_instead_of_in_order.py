"""A workload that reads what another one writes stands next to it, not behind it."""

import numpy as np

from pto_wsp import Dense, DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[1, 8, DType.F32]], y: Out[Tile[1, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y, Z = (Tensor(np.zeros((4, 8), np.float32), name=name) for name in "XYZ")
table = Tensor(np.array([2, 0, 3, 1]), name="table")
batch = Dense[4]()


@workload
def first() -> None:
    for b in P(batch):
        scale[b](x=X[b], y=Y[table[b]])


@workload
def second() -> None:
    for b in P(batch):
        scale[b](x=Y[table[b]], y=Z[b])


def mistake() -> None:
    (first() | second()).compile(sanitize=True).replay(5)


# error[R201]: nothing orders the tasks scale[b=0] and scale[b=0], and they use Y[2, 0:8]: the first writes it, the second reads it
#   --> side_by_side_instead_of_in_order.py:27:20
#      |
#   27 |         scale[b](x=Y[table[b]], y=Z[b])
#      |                    ^^^^^^^^^^^
#    = expected: an order between them in the workload, or elements of their own
#    = found:    two sides of combine, or of `|`
#    = help:     put the one after the other: `>>` or sequential(...)
#    = note:     scale[b=0] was made at side_by_side_instead_of_in_order.py:21:9
#    = note:     scale[b=0] was made at side_by_side_instead_of_in_order.py:27:9
#    = note:     4 pairs of tasks are without an order in this run
#    = note:     seed 0x5: program.replay(0x5) repeats the order of this run
