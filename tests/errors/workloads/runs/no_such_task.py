"""A task is to be explained that the run did not have."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def copy(x: In[Tile[1, 8, DType.F32]], y: Out[Tile[1, 8, DType.F32]]) -> None:
    pto.store(y, x)


def mistake() -> None:
    X, Y = Tensor(np.zeros((4, 8), np.float32)), Tensor(np.zeros((4, 8), np.float32))

    @workload
    def main() -> None:
        for b in P(4):
            copy[b](X[b], Y[b])
    main().compile(target="interp").run().explain("copy[b=4]")


# error[R112]: there is no task 'copy[b=4]'
#   --> no_such_task.py:20:5
#      |
#   20 |     main().compile(target="interp").run().explain("copy[b=4]")
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a task of the run: copy[b=0], copy[b=1], copy[b=2], copy[b=3]
