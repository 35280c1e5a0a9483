"""A kernel for the NPU prints."""

import numpy as np

from pto_wsp import DType, In, Out, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 16, DType.F32]], y: Out[Tile[16, 16, DType.F32]]) -> None:
    twice = x * 2
    pto.print("twice", twice)
    pto.store(y, twice)


X, Y = Tensor(np.zeros((16, 16), np.float32)), Tensor(np.zeros((16, 16), np.float32))


@workload
def program() -> None:
    scale(x=X, y=Y)


def mistake() -> None:
    program().compile(target="ascend_npu")


# error[N103]: kernel `scale`: a vector core has nowhere to print to
#   --> print_on_the_device.py:11:5
#      |
#   11 |     pto.print("twice", twice)
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: kernels without `pto.print`
#    = found:    `pto.print` for ascend_910b
#    = help:     take it out, or look at the value with target="cpu_sim"
