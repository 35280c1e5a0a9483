"""A scratch tensor of a body is as large as a slot says."""

from pto_wsp import DType, P, Tensor, slot_set_u64, slot_u64, workload


@workload
def program() -> None:
    for b in P.seq(4):
        slot_set_u64(0, b)
        Tensor.empty((slot_u64(0), 8), DType.F32)


def mistake() -> None:
    program()


# error[D101]: this is no extent of a tensor
#   --> size_of_a_slot.py:10:9
#      |
#   10 |         Tensor.empty((slot_u64(0), 8), DType.F32)
#      |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a whole number, a Symbol, the size of an axis, a loop variable, an element of a tensor, or arithmetic on them
#    = found:    Symbolic(slot_u64(0))
