# ruff: noqa: F821
"""A method is decorated."""

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(self: object, x: Tensor["t", 64, F32]):
        return x * 2.0
    f.trace()


# error[J101]: `f` is a method
#   --> method_of_a_class.py:11:11
#      |
#   11 |     def f(self: object, x: Tensor["t", 64, F32]):
#      |           ^^^^
#    = expected: a plain function
#    = help:     pass what it needs of `self` as parameters: a NamedTuple or a dataclass of arrays
