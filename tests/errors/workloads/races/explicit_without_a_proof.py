"""Deps.explicit() of tasks that write where a table says, which promises nothing."""

import numpy as np

from pto_wsp import Deps, DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def fill(x: In[Tile[1, 4, DType.F32]], y: Out[Tile[1, 4, DType.F32]]) -> None:
    pto.store(y, x + 1)


X, pages = Tensor(np.zeros((4, 4), np.float32)), Tensor(np.zeros((9, 4), np.float32))
table = Tensor(np.array([7, 3, 5, 8]))


@workload
def program() -> None:
    for b in P(4):
        fill[b](x=X[b], y=pages[table[b]])


def mistake() -> None:
    program().task_graph(deps=Deps.explicit()).compile("interp")


# error[W203]: Deps.explicit() needs a proof that tasks without an order between them touch different elements of `pages`
#   --> explicit_without_a_proof.py:20:27
#      |
#   20 |         fill[b](x=X[b], y=pages[table[b]])
#      |                           ^^^^^^^^^^^^^^^
#    = found:    it depends on what is in `table`
#    = help:     Deps.hybrid() adds an edge wherever data needs one
