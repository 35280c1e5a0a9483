# ruff: noqa: F821
"""A function on tensors is called in a workload, where a task was meant; it has been called before."""

import numpy as np

from pto_wsp import DType, Tensor, jit, workload

X = Tensor(np.ones((2, 8), np.float32))


@jit(target="interp")
def doubled(x: Tensor["t", 8, DType.F32]):
    return x * 2


@workload
def twice():
    doubled(X)


def mistake() -> None:
    doubled(X)
    twice()


# error[J105]: `doubled` is called in a workload
#   --> called_in_a_workload.py:18:5
#      |
#   18 |     doubled(X)
#      |     ^^^^^^^^^^
#    = expected: a workload of its own
#    = help:     doubled.lower(plan, x=X, out=Y) is one, on these Tensors: a >> b runs both
