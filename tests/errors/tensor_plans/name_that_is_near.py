import numpy as np

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


@jit
def rmsnorm_linear(x: Tensor["t", 512, F32], g: Tensor[512, F32], w: Tensor[512, 384, F32], eps: float = 1e-6):
    normed = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * g
    return normed @ w


def mistake():
    rmsnorm_linear.plan(arch="ascend_910b").but(groups={"all": ("nomed", "out")})


# error[J302]: groups['all'] = nomed, out matches nothing: the function has no computed value `nomed`
#   --> name_that_is_near.py:15:5
#      |
#   15 |     rmsnorm_linear.plan(arch="ascend_910b").but(groups={"all": ("nomed", "out")})
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: one of its computed values: normed.mul, normed.mean, normed.add, normed.sqrt, normed.div, normed, out
#    = help:     did you mean normed?
