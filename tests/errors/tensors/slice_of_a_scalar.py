# ruff: noqa: F821
"""A cache is written from where a Scalar says, and nothing says that the rows end inside."""

from pto_wsp import DType, InOut, Scalar, Tensor, jit, tt

F32, I32 = DType.F32, DType.I32


def mistake() -> None:
    @jit
    def append(k: Tensor["c", F32], cache: InOut[Tensor[64, F32]], at: Scalar[I32]):
        tt.assume(at >= 0)
        cache[at:at + k.shape[0]] = k
    append.trace()


# error[J201]: `cache[...] =`: max(min(at, 64), min(at + c, 64)) - min(at, 64) and c are not provably equal
#   --> slice_of_a_scalar.py:13:9
#      |
#   13 |         cache[at:at + k.shape[0]] = k
#      |         ^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: equal extents, or a written 1
#    = found:    <cache: Tensor[max(min(at, 64), min(at + c, 64)) - min(at, 64), f32]> and <k: Tensor[c, f32]>
#    = help:     promise that the slice lies inside, which each call checks: tt.assume(at <= 64), tt.assume(at + k.shape[0] <= 64)
