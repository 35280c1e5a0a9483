"""An arch does not say how fast its units are."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


def mistake() -> None:
    X, Y = Tensor(np.zeros((2, 16, 128), np.float32)), Tensor(np.zeros((2, 16, 128), np.float32))

    @workload
    def main() -> None:
        for b in P(2):
            scale[b](x=X[b], y=Y[b])
    main().compile(target="interp", arch="ascend_950")


# error[C115]: arch `ascend_950` gives no cost of kernels: it does not say how fast `MTE2` is
#   --> arch_without_speed.py:20:5
#      |
#   20 |     main().compile(target="interp", arch="ascend_950")
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: units[MTE2].bytes_per_cycle
#    = found:    None: its sources give no number
#    = help:     give what you know: arch.with_unit('MTE2', bytes_per_cycle=64.0), or leave arch out for unit cycles
