"""A scratch tensor of a symbol's size is made in a body."""

from pto_wsp import DType, P, Symbol, Tensor, workload

t = Symbol("t")


@workload
def program() -> None:
    for _ in P(4):
        Tensor.empty((t, 8), DType.F32)


def mistake() -> None:
    program()


# error[D101]: a Tensor.empty made in a body has a shape of numbers
#   --> symbol_in_a_body.py:11:9
#      |
#   11 |         Tensor.empty((t, 8), DType.F32)
#      |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = found:    (Symbol(t), 8)
#    = help:     make it in front of the body, or as large as it may get, and cut it: Tensor.empty((64, 8), F32)[:n]
