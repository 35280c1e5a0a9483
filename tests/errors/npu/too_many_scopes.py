"""Loops in loops, each with a tensor of its own, nest deeper than the scopes of the runtime."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((16, 128), np.float32)), Tensor(np.zeros((16, 128), np.float32))


def halves(source: Tensor, depth: int) -> None:
    for i in P.seq(1):
        made = Tensor.empty((16, 128), DType.F32)
        scale[i](x=source, y=made)
        if depth > 1:
            halves(made, depth - 1)
        else:
            scale[i](x=made, y=Y)


@workload
def program() -> None:
    halves(X, 64)


def mistake() -> None:
    program().compile(target="ascend_npu")


# error[N101]: tensors that the runtime allocates lie in too many scopes
#   --> too_many_scopes.py:19:9
#      |
#   19 |         scale[i](x=source, y=made)
#      |         ^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: at most 64 scopes, that around all tasks among them
#    = found:    65
#    = help:     make some of the tensors outside of the innermost loops
