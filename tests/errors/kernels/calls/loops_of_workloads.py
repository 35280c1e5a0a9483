"""A kernel loops with the workload's word."""

from pto_wsp import DType, InOut, P, Tile


def mistake(x: InOut[Tile[4, 8, DType.F32]]) -> None:
    for _ in P.seq(3):
        x += 1


# error[K105]: a loop `P(...)` outside a workload
#   --> loops_of_workloads.py:7:14
#     |
#   7 |     for _ in P.seq(3):
#     |              ^^^^^^^^
#    = help:     in a kernel it is pto.range(n), in a workload P.seq(n), in a function on tensors tt.loop(n)
