"""A scratch tensor of a body has a size without an upper bound."""

from pto_wsp import DType, Out, P, Symbol, Tensor, Tile, kernel, pto, workload

n = Symbol("n")


@kernel
def zero(y: Out[Tile[8, 16, DType.F32]]) -> None:
    pto.store(y, pto.zeros((8, 16), DType.F32))


@workload
def program() -> None:
    for b in P(2):
        rows = Tensor.empty((n, 16), DType.F32)
        zero[b](rows.clip(8, 16))


def mistake() -> None:
    program().compile(target="ascend_npu")


# error[N106]: target ascend_npu does not take a workload with fresh.sized
#   --> size_of_an_iteration.py:16:16
#      |
#   16 |         rows = Tensor.empty((n, 16), DType.F32)
#      |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = found:    Tensor.empty in such a body, of a size without an upper bound, which only a run knows
#    = help:     say how large it may get, Tensor.empty((minimum(64, n), 8), F32); or compile for cpu_sim or interp, which take it
#    = note:     a package states the sizes of its tensors
