# ruff: noqa: F821
"""The label comes behind the tensor."""

from pto_wsp import DType, Tensor, jit, tt

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32]):
        tt.print(x, "x")
        return x * 2.0
    f.trace()


# error[J208]: `tt.print` takes one value, perhaps behind a label
#   --> print_label_last.py:12:9
#      |
#   12 |         tt.print(x, "x")
#      |         ^^^^^^^^^^^^^^^^
#    = expected: tt.print(x) or tt.print("label", x)
#    = found:    2 arguments
