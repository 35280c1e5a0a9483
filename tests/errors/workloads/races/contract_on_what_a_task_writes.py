"""A table with a contract is written by a task."""

import numpy as np

from pto_wsp import DType, In, Injective, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def renumber(x: In[Tile[1, 4, DType.I32]], y: Out[Tile[1, 4, DType.I32]]) -> None:
    pto.store(y, x + 1)


old = Tensor(np.zeros((4, 4), np.int32))
table = Injective(Tensor(np.arange(16, dtype=np.int32).reshape(4, 4)))


@workload
def program() -> None:
    for b in P(4):
        renumber[b](x=old[b], y=table[b])


def mistake() -> None:
    program().compile("interp")


# error[W202]: `table` is declared Injective, and a task writes it
#   --> contract_on_what_a_task_writes.py:20:33
#      |
#   20 |         renumber[b](x=old[b], y=table[b])
#      |                                 ^^^^^^^^
#    = help:     a contract is checked when an array is bound, before any task runs: declare it on what tasks only read
