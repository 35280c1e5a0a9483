# ruff: noqa: F821, SIM105
"""A body catches the refusal of one of its statements."""

from pto_wsp import DType, Tensor, jit, tt

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 8, F32], w: Tensor[4, 8, F32]):
        out = tt.zeros(x.shape)
        try:
            out[:] = x @ w
        except Exception:
            pass
        return out
    f.trace()


# error[J201]: `matmul`: 8 and 4 are not equal
#   --> caught_in_the_body.py:14:22
#      |
#   14 |             out[:] = x @ w
#      |                      ^^^^^
#    = expected: equal extents, or a written 1
#    = found:    <x: Tensor[t, 8, f32]> @ <w: Tensor[4, 8, f32]>
#    = note:     `f` catches this error: what comes behind it would run without the refused statement
