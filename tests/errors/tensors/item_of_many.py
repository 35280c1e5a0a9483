# ruff: noqa: F821
"""One element is taken of a tensor that has many."""

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 8, F32]):
        return x * x.item()
    f.trace()


# error[J202]: `item` takes one element
#   --> item_of_many.py:12:20
#      |
#   12 |         return x * x.item()
#      |                    ^^^^^^^^
#    = expected: 2 whole numbers
#    = found:    [] of <x: Tensor[t, 8, f32]>
#    = help:     x[i, j] takes an element; np.sum, np.max and kin make one number of many
