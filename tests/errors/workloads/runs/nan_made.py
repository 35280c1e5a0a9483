"""An operation makes a NaN out of numbers, and the run checks for it."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def logs(x: In[Tile[2, 4, DType.F32]], y: Out[Tile[2, 4, DType.F32]]) -> None:
    pto.store(y, pto.log(x))


def mistake() -> None:
    x = np.ones((3, 2, 4), np.float32)
    x[1, 0, 2] = -1.0
    X, Y = Tensor(x), Tensor(np.zeros_like(x))

    @workload
    def main() -> None:
        for b in P(3):
            logs[b](x=X[b], y=Y[b])
    main().compile(target="interp", check_finite=True).run()


# error[R105]: task logs[b=1]: `log` gave nan at row 0, column 2
#   --> nan_made.py:10:18
#      |
#   10 |     pto.store(y, pto.log(x))
#      |                  ^^^^^^^^^^
#    = expected: a finite number, from numbers that are
#    = found:    nan, from -1
#    = help:     print what it was made from: pto.print("x", x), in a @jit tt.print("x", x)
#    = note:     the task was made at nan_made.py:21:13
