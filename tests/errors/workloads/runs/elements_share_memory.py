"""An array that a task writes and that has several elements at one address."""

import numpy as np

from pto_wsp import DType, InOut, Tensor, Tile, kernel, pto, workload


@kernel
def add(y: InOut[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, y + 1)


Y = Tensor(np.lib.stride_tricks.as_strided(np.zeros(64, np.float32), (4, 8), (8, 4)), name="Y")


@workload
def program() -> None:
    add(Y)


def mistake() -> None:
    program().compile("cpu_sim").run()


# error[R113]: `Y`, which tasks write, has elements that share memory
#   --> elements_share_memory.py:22:5
#      |
#   22 |     program().compile("cpu_sim").run()
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: strides of which each steps over what lies inside it
#    = found:    shape (4, 8), strides (8, 4)
#    = help:     bind an array of its own: array.copy()
