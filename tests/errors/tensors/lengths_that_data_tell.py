# ruff: noqa: E501, F821
"""A stretch of a table's length is added to another of as many elements, which nothing shows."""

from pto_wsp import DType, Monotone, Tensor, jit, tt

F32, I32 = DType.F32, DType.I32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 8, F32], bias: Tensor["n", 8, F32], starts: Monotone[Tensor["b", I32]]):
        out = tt.zeros(x.shape)
        for b in tt.each(starts.shape[0] - 1):
            rows = slice(starts[b], starts[b + 1])
            out[rows] = x[rows] + bias[:starts[b + 1] - starts[b]]
        return out
    f.trace()


# error[J201]: `add`: min(max(starts[b + 1], 0), t) - min(max(starts[b], 0), t) and min(max(starts[b + 1] - starts[b], 0), n) are not provably equal
#   --> lengths_that_data_tell.py:15:25
#      |
#   15 |             out[rows] = x[rows] + bias[:starts[b + 1] - starts[b]]
#      |                         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: equal extents, or a written 1
#    = found:    <x: Tensor[min(max(starts[b + 1], 0), t) - min(max(starts[b], 0), t), 8, f32]> and <bias: Tensor[min(max(starts[b + 1] - starts[b], 0), n), 8, f32]>
#    = help:     extents from data are equal where one slice cuts both: rows = slice(lo, hi), x[rows] and y[rows]
