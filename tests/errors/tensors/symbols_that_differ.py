# ruff: noqa: F821
"""Two symbols are not provably equal."""

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32], y: Tensor["n", 64, F32]):
        return x + y
    f.trace()


# error[J201]: `add`: t and n are not provably equal
#   --> symbols_that_differ.py:12:16
#      |
#   12 |         return x + y
#      |                ^^^^^
#    = expected: equal extents, or a written 1
#    = found:    <x: Tensor[t, 64, f32]> and <y: Tensor[n, 64, f32]>
#    = help:     promise it, which each call checks: tt.assume(x.shape[0] == y.shape[0])
