# ruff: noqa: F821
"""A function keeps scores of a stretch of rows, as many as a table says, in memory of a package."""

import numpy as np

from pto_wsp import DType, Monotone, Tensor, jit, tt

F32, I32 = DType.F32, DType.I32


@jit
def attend(x: Tensor[256, 64, F32], starts: Monotone[Tensor["n", I32]]):
    out = tt.zeros(x.shape)
    for b in tt.each(starts.shape[0] - 1):
        rows = slice(starts[b], starts[b + 1])
        score = x[rows] @ x[rows].T
        out[rows] = np.tanh(score) @ x[rows]
    return out


def mistake() -> None:
    data = {"x": np.zeros((256, 64), np.float32), "starts": np.array([0, 3, 5], np.int32)}
    plan = attend.plan(**data, arch="ascend_910b", target="ascend_npu")
    attend.lower(plan, **data).compile("ascend_npu", arch="ascend_910b")


# error[N106]: this value has a size that only data tell, without an upper bound, and a package states its sizes
#   --> size_that_data_tell.py:17:21
#      |
#   17 |         out[rows] = np.tanh(score) @ x[rows]
#      |                     ^^^^^^^^^^^^^^
#    = expected: extents of numbers, of symbols, or with an upper bound
#    = help:     bound the slices that it is made of, x[lo:np.minimum(hi, lo + 64)]; cpu_sim and interp take any
