import numpy as np

from pto_wsp import DType, InOut, P, Tensor, Tile, kernel, pto, workload

F32 = DType.F32


@kernel
def double(x: InOut[Tile[16, 16, F32]]):
    pto.store(x, x * 2)


def mistake():
    X = Tensor(np.zeros((2, 16, 16), np.float32), name="X")

    @workload
    def steps():
        for b in P(2):
            double[b](x=X[b])

    steps().compile(target="ascend_npu", options={"block_dim": 48})

# error[C110]: block_dim is more than the cube cores of arch `ascend_910b`
#   --> blocks_of_a_launch.py:21:5
#      |
#   21 |     steps().compile(target="ascend_npu", options={"block_dim": 48})
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: at most 24
#    = found:    48
#    = help:     ask for fewer, or give the arch more: arch.with_cores(cube=48)
