# ruff: noqa: F821
"""A slice between elements of a table is ordered, and has no bound."""

from pto_wsp import DType, Monotone, Tensor, jit, tt

F32, I32 = DType.F32, DType.I32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", F32], starts: Monotone[Tensor["b", I32]]):
        out = tt.zeros((starts.shape[0] - 1, 3))
        for b in tt.each(starts.shape[0] - 1):
            out[b] = tt.topk(x[starts[b]:starts[b + 1]], 3)[0]
        return out
    f.trace()


# error[J205]: `topk` needs the whole axis at once, and min(max(starts[b + 1], 0), t) - min(max(starts[b], 0), t) has no bound
#   --> topk_of_a_slice_without_a_bound.py:14:22
#      |
#   14 |             out[b] = tt.topk(x[starts[b]:starts[b + 1]], 3)[0]
#      |                      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a number, or a symbol with a promised bound
#    = found:    <x: Tensor[min(max(starts[b + 1], 0), t) - min(max(starts[b], 0), t), f32]>
#    = help:     tt.assume(x.shape[0] <= 4096): each call checks it
