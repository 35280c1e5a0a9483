# ruff: noqa: F821
"""The other side of nothing."""

from pto_wsp import DType, Tensor, jit, tt

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32]):
        out = tt.zeros((64,))
        with tt.otherwise():
            out += x[0]
        return out
    f.trace()


# error[J110]: `tt.otherwise()` does not stand directly after a `with tt.when(...)`
#   --> otherwise_alone.py:13:9
#      |
#   13 |         with tt.otherwise():
#      |         ^^^^^^^^^^^^^^^^^^^^
#    = help:     nothing may come between the two sides; a second condition is nested: with tt.otherwise(): with tt.when(c): ...
