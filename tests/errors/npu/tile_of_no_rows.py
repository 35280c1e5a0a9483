import numpy as np

from pto_wsp import DType, Out, Tensor, Tile, kernel, pto, workload

F32 = DType.F32


@kernel
def nothing(y: Out[Tile[16, 16, F32]]):
    empty = pto.alloc((0, 16), F32, init=0)
    pto.store(y, pto.colsum(empty))


def mistake():
    Y = Tensor(np.zeros((16, 16), np.float32), name="Y")

    @workload
    def steps():
        nothing[0](y=Y)

    steps().compile(target="ascend_npu")

# error[T207]: `pto.alloc`: not the shape of a tile
#   --> tile_of_no_rows.py:10:13
#      |
#   10 |     empty = pto.alloc((0, 16), F32, init=0)
#      |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: (rows, cols): two whole numbers >= 1, known when the kernel is traced
#    = found:    (0, 16)
#    = help:     take a shape that a caller chooses from a Constexpr[int] parameter
