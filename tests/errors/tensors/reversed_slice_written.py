# ruff: noqa: F821
"""A slice with a negative step is written."""

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32]):
        y = x * 2.0
        y[:, ::-1][:, 0] = 1.0
        return y
    f.trace()


# error[J102]: a slice with a negative step is only read
#   --> reversed_slice_written.py:13:9
#      |
#   13 |         y[:, ::-1][:, 0] = 1.0
#      |         ^^^^^^^^^^^^^^^^
#    = expected: a step >= 1
#    = found:    <y: Tensor[t, 64, f32]>
#    = help:     write np.flip(value, axis) to the slice with a positive step
