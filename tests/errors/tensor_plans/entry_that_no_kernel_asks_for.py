import numpy as np

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


@jit
def rmsnorm_linear(x: Tensor["t", 512, F32], g: Tensor[512, F32], w: Tensor[512, 384, F32], eps: float = 1e-6):
    normed = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * g
    return normed @ w


def mistake():
    rmsnorm_linear.plan(arch="ascend_910b").but(tiles={"normed": {1: 128}})


# error[J302]: tiles['normed'][1] = 128 changes nothing
#   --> entry_that_no_kernel_asks_for.py:15:5
#      |
#   15 |     rmsnorm_linear.plan(arch="ascend_910b").but(tiles={"normed": {1: 128}})
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: an axis that is there: t of normed, t of out, 1 of out
#    = found:    no kernel asks for `tiles` there
#    = help:     print(plan) shows what each kernel has; this is for the extent of a task's tile along an axis
