# ruff: noqa: F821
"""A loop carries a value in a Python variable."""

from pto_wsp import DType, Tensor, jit, tt

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32]):
        acc = x * 0
        for _ in tt.loop(4):
            acc = acc + x
        return acc
    f.trace()


# error[K109]: `acc` is read in a loop and then assigned to
#   --> carried_value.py:14:13
#      |
#   14 |             acc = acc + x
#      |             ^^^
#    = found:    a body that is traced once: `acc` is read as it was before the loop, in every iteration
#    = help:     write it in place: acc += ..., or acc[:] = ..., of state made before the loop by tt.zeros
