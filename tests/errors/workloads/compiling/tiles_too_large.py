"""A kernel's tiles need more on-chip memory than the arch has."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def norm(x: In[Tile[128, 256, DType.F32]], y: Out[Tile[128, 256, DType.F32]]) -> None:
    squares = x * x
    pto.store(y, x * pto.rsqrt(pto.rowmean(squares)))


def mistake() -> None:
    X, Y = Tensor(np.zeros((2, 128, 256), np.float32)), Tensor(np.zeros((2, 128, 256), np.float32))

    @workload
    def main() -> None:
        for b in P(2):
            norm[b](x=X[b], y=Y[b])
    main().compile(target="interp", arch="ascend_910b")


# error[K110]: kernel `norm` needs 262656 bytes of UB, more than ascend_910b has
#   --> tiles_too_large.py:9:1
#     |
#   9 | def norm(x: In[Tile[128, 256, DType.F32]], y: Out[Tile[128, 256, DType.F32]]) -> None:
#     | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: at most 188416 bytes at any time
#    = found:    262656 bytes at line 11
#    = help:     tiles of 1/2 of the elements fit, e.g. `x` as [64, 256] instead of [128, 256]
#    = note:     tiles that live in UB then:
#    = note:       131072  x            [128, 256] f32  line 10 to 11
#    = note:       131072  mul          [128, 256] f32  line 10 to 11
#    = note:          512  rowmean      [128, 1] f32  line 11
