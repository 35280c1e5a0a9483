import numpy as np

from pto_wsp import DType, InOut, Tensor, Tile, kernel, pto, workload


@kernel
def double(x: InOut[Tile[16, 16, DType.F32]]):
    pto.store(x, x * 2)


def mistake():
    X = Tensor(np.zeros((16, 2, 1, 3, 1, 16), np.float32), name="X")

    @workload
    def steps():
        double[0](x=X[:, 0, 0, 1, 0])

    steps().compile(target="ascend_npu")

# error[N101]: `X[:, 0, 0, 1, 0]` has too many dimensions for the device runtime
#   --> positions_of_a_leading_dimension.py:16:9
#      |
#   16 |         double[0](x=X[:, 0, 0, 1, 0])
#      |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: at most 5, or one position of each of the first 2 of them
#    = found:    6: [16, 2, 1, 3, 1, 16]
#    = help:     wrap the array with its leading dimensions as one: Tensor(array.reshape(-1, ...))
