# ruff: noqa: F821
"""A method is called as torch's, which means something else."""

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32]):
        return x.max(dim=1)
    f.trace()


# error[J203]: `max`: torch's max along `dim` is a pair of values and places
#   --> axis_of_torch.py:12:16
#      |
#   12 |         return x.max(dim=1)
#      |                ^^^^^^^^^^^^
#    = expected: axis=1, for the values
#    = found:    dim=1
#    = help:     torch.max(x, dim=1) gives the pair
