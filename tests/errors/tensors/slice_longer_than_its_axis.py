# ruff: noqa: F821
"""A part as long as a symbol is written into a tensor that may be shorter."""

from pto_wsp import DType, Tensor, jit, tt

F32 = DType.F32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 8, F32]):
        padded = tt.zeros((256, 8))
        padded[:x.shape[0]] = x
        return padded
    f.trace()


# error[J201]: `padded[...] =`: min(t, 256) and t are not provably equal
#   --> slice_longer_than_its_axis.py:13:9
#      |
#   13 |         padded[:x.shape[0]] = x
#      |         ^^^^^^^^^^^^^^^^^^^
#    = expected: equal extents, or a written 1
#    = found:    <padded: Tensor[min(t, 256), 8, f32]> and <x: Tensor[t, 8, f32]>
#    = help:     promise that the slice lies inside, which each call checks: tt.assume(x.shape[0] <= 256)
