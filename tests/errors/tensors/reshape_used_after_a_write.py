# ruff: noqa: F821
"""A reshape is used after its tensor was written."""

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32]):
        acc = x * 1
        flat = acc.reshape(-1)
        acc[0] = 1.0
        return flat * 2
    f.trace()


# error[J106]: a reshape of `acc` is used after `acc` was written
#   --> reshape_used_after_a_write.py:15:16
#      |
#   15 |         return flat * 2
#      |                ^^^^^^^^
#   --> reshape_used_after_a_write.py:13:16: taken
#      |
#   13 |         flat = acc.reshape(-1)
#      |                ^^^^^^^^^^^^^^^
#    = expected: a reshape that is taken after the write
#    = help:     take it again where it is used
