# ruff: noqa: F821
"""A condition opens no body: the statements below would run without it."""

from pto_wsp import DType, Tensor, jit, tt

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32]):
        tt.when(x.shape[0] > 2)
        return x * 2
    f.trace()


# error[K103]: `tt.when(t > 2)` stands without a `with`
#   --> when_without_with.py:12:9
#      |
#   12 |         tt.when(x.shape[0] > 2)
#      |         ^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: with tt.when(t > 2): ...
#    = found:    a statement of its own
