# ruff: noqa: F821
"""A stretch of a table has no element, of which an extreme is asked for."""

import numpy as np

from pto_wsp import DType, Monotone, Tensor, jit, tt

F32, I32 = DType.F32, DType.I32


@jit
def peaks(x: Tensor["t", 8, F32], starts: Monotone[Tensor["n", I32]]):
    out = tt.empty((starts.shape[0] - 1, 8))
    for b in tt.each(starts.shape[0] - 1):
        out[b] = np.max(x[starts[b]:starts[b + 1]], axis=0)
    return out


def mistake() -> None:
    peaks.using(target="interp")(np.zeros((5, 8), np.float32), np.array([0, 3, 3, 5], np.int32))


# error[R101]: task out[b=1] failed: elements are missing
#   --> bag_of_nothing.py:15:18
#      |
#   15 |         out[b] = np.max(x[starts[b]:starts[b + 1]], axis=0)
#      |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: for an extreme, at least one element along the axis; for a topk, k
#    = found:    1 too few
#    = note:     the task was made at bag_of_nothing.py:15:18
