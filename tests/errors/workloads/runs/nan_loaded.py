"""A tensor that is bound holds a NaN, and the run checks for it."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def logs(x: In[Tile[2, 4, DType.F32]], y: Out[Tile[2, 4, DType.F32]]) -> None:
    pto.store(y, pto.log(x))


def mistake() -> None:
    x = np.ones((3, 2, 4), np.float32)
    x[1, 0, 2] = float("nan")
    X, Y = Tensor(x), Tensor(np.zeros_like(x))

    @workload
    def main() -> None:
        for b in P(3):
            logs[b](x=X[b], y=Y[b])
    main().compile(target="interp", check_finite=True).run()


# error[R105]: task logs[b=1]: `load x` brought nan at row 0, column 2
#   --> nan_loaded.py:10:18
#      |
#   10 |     pto.store(y, pto.log(x))
#      |                  ^^^^^^^^^^
#    = expected: no NaN in what is loaded
#    = found:    nan
#    = note:     the task was made at nan_loaded.py:21:13
