# ruff: noqa: F821
"""A value is used behind the loop that makes it."""

from pto_wsp import DType, Tensor, jit, tt

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32]):
        for i in tt.loop(x.shape[0]):
            row = x[i] * 2
        return row
    f.trace()


# error[K104]: `row` is made inside a loop and used behind it
#   --> value_of_a_loop.py:11:5
#      |
#   11 |     def f(x: Tensor["t", 64, F32]):
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   --> value_of_a_loop.py:13:19: made
#      |
#   13 |             row = x[i] * 2
#      |                   ^^^^^^^^
#    = help:     keep it in state made before the loop: held = tt.zeros(shape), then held[:] = ... in it
