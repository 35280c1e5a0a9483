"""Costs add up to more cycles than 64 bits hold."""

import numpy as np

from pto_wsp import DType, Out, P, Scalar, Tensor, Tile, TracePolicy, kernel, pto, workload


@kernel
def fill(n: Scalar[DType.I64], y: Out[Tile[1, 1, DType.I64]]) -> None:
    pto.store(y, pto.full((1, 1), n, DType.I64))


Y = Tensor(np.zeros((8, 1), np.int64), name="Y")


@workload
def program() -> None:
    for k in P(8):
        fill[k](k, Y[k])


def mistake() -> object:
    return program().task_graph(trace=TracePolicy.cycles(lambda t: (t.k == 0).where(1 << 62, 1 << 61))).compile(target="interp").run().stats


# error[R111]: simulated cycles do not fit 64 bits at task fill[k=2]
#   --> cycles_past_64_bits.py:19:9
#      |
#   19 |         fill[k](k, Y[k])
#      |         ^^^^^^^^^^^^^^^^
#    = expected: sums below 9223372036854775808
#    = help:     give costs in a larger unit
