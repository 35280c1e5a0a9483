import numpy as np

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


@jit
def rmsnorm_linear(x: Tensor["t", 512, F32], g: Tensor[512, F32], w: Tensor[512, 384, F32], eps: float = 1e-6):
    normed = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * g
    return normed @ w


def mistake():
    rmsnorm_linear.plan(arch="ascend_910b").but(inner={"normed": {"m": 16}})


# error[J302]: inner['normed']['m'] = 16 changes nothing
#   --> entry_that_no_kernel_asks_for.py:15:5
#      |
#   15 |     rmsnorm_linear.plan(arch="ascend_910b").but(inner={"normed": {"m": 16}})
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: an axis that is there: w:0 of out
#    = found:    no kernel asks for `inner` there
#    = help:     print(plan) shows what each kernel has; this is for the steps of a product inside a core: m, n, k, and which operand stays
