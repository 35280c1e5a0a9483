"""A key asks for a kernel that the workload does not have."""

import numpy as np

from pto_wsp import DType, Out, P, ReadyPolicy, Scalar, Tensor, Tile, kernel, pto, workload


@kernel
def fill(n: Scalar[DType.I64], y: Out[Tile[1, 1, DType.I64]]) -> None:
    pto.store(y, pto.full((1, 1), n, DType.I64))


Y = Tensor(np.zeros((8, 1), np.int64), name="Y")


@workload
def program() -> None:
    for k in P(8):
        fill[k](k, Y[k])


def mistake() -> None:
    program().task_graph(ready=ReadyPolicy.priority(lambda t: t.kernel == "filled")).compile(target="interp")


# error[S103]: the schedule's key names the kernel `filled`, which the workload does not have
#   --> key_of_no_kernel.py:19:9
#      |
#   19 |         fill[k](k, Y[k])
#      |         ^^^^^^^^^^^^^^^^
#    = expected: fill
#    = found:    filled
