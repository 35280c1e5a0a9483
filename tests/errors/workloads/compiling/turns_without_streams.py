"""Streams take turns, and there are none."""

import numpy as np

from pto_wsp import DType, Out, P, Scalar, Tensor, Tile, TimingPolicy, kernel, pto, workload


@kernel
def fill(n: Scalar[DType.I64], y: Out[Tile[1, 1, DType.I64]]) -> None:
    pto.store(y, pto.full((1, 1), n, DType.I64))


Y = Tensor(np.zeros((8, 1), np.int64), name="Y")


@workload
def program() -> None:
    for k in P(8):
        fill[k](k, Y[k])


def mistake() -> None:
    program().timing(TimingPolicy.interleaved(2)).compile(target="interp")


# error[S105]: timing.interleaved means nothing without streams or stream_by
#   --> turns_without_streams.py:23:5
#      |
#   23 |     program().timing(TimingPolicy.interleaved(2)).compile(target="interp")
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = help:     say .streams(...) or .stream_by(...) too, or leave it out
#    = note:     tasks of streams take turns, and no task is in one
