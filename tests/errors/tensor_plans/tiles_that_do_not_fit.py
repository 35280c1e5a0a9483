import numpy as np

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


@jit
def rmsnorm_linear(x: Tensor["t", 512, F32], g: Tensor[512, F32], w: Tensor[512, 384, F32], eps: float = 1e-6):
    normed = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * g
    return normed @ w


def mistake():
    rmsnorm_linear.plan(arch="ascend_910b").but(tiles={"out": {"t": 512, 1: 384}})


# error[J304]: group `out`: these tiles do not fit
#   --> tiles_that_do_not_fit.py:15:5
#      |
#   15 |     rmsnorm_linear.plan(arch="ascend_910b").but(tiles={"out": {"t": 512, 1: 384}})
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   --> tiles_that_do_not_fit.py:11:12: the group computes this
#      |
#   11 |     return normed @ w
#      |            ^^^^^^^^^^
#    = expected: the largest that fits, with the others as they are: t=64, 1=64
#    = found:    t=512 1=384 w:0=16 needs 786,432 of 131,072 bytes of L0C
#    = help:     take a smaller extent, or let the compiler choose
#    = note:     tiles that live in L0C then:
#    = note:          786,432  out [512, 384] f32
