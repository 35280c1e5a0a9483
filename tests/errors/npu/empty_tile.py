import numpy as np

from pto_wsp import DType, InOut, P, Tensor, Tile, kernel, pto, workload

F32 = DType.F32


@kernel
def double(x: InOut[Tile[16, 16, F32]]):
    pto.store(x, x * 2)


def mistake():
    X = Tensor(np.zeros((2, 0, 16), np.float32), name="X")

    @workload
    def steps():
        for b in P(2):
            double[b](x=X[b].clip(16, 16))

    steps().compile(target="ascend_npu")

# error[N101]: kernel `double` is given no elements
#   --> empty_tile.py:19:13
#      |
#   19 |             double[b](x=X[b].clip(16, 16))
#      |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: at least one row and one column, as every tile has
#    = found:    `X[b].clip(16, 16)`, which is [0, 16]
#    = help:     leave the task out, or declare the extents that there will be when it runs
