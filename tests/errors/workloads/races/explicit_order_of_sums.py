"""Structure alone does not order tasks that accumulate."""

import numpy as np

from pto_wsp import Acc, Deps, DType, In, P, Tensor, Tile, kernel, pto, workload


@kernel
def part(x: In[Tile[4, 8, DType.F32]], y: Acc[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((16, 8), np.float32)), Tensor(np.zeros((4, 8), np.float32))


@workload
def program() -> None:
    for k in P(4):
        part[k](x=X[4 * k:4 * k + 4], y=Y)


def mistake() -> None:
    program().task_graph(deps=Deps.explicit()).compile("interp")


# error[W203]: Deps.explicit() needs a proof that tasks without an order between them touch different elements of `Y`
#   --> explicit_order_of_sums.py:19:41
#      |
#   19 |         part[k](x=X[4 * k:4 * k + 4], y=Y)
#      |                                         ^
#    = found:    they accumulate into the same elements, and only edges that follow from data run them one after the other
#    = help:     Deps.hybrid() adds an edge wherever data needs one
