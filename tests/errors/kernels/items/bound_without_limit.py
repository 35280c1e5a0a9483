"""The bound of a loop is an item without a limit."""

from pto_wsp import DType, In, Out, Scalar, Tensor, Tile, pto


def mistake(x: In[Tile[3, 4, DType.I32]], t: In[Tensor], n: Scalar[DType.I32], out: Out[Tile[3, 4, DType.I32]]):
    total = pto.alloc((3, 4), DType.I32, init=0)
    for _ in pto.range(pto.item(x, 0, 0) + 1):
        total += x
    pto.store(out, total)


# error[K114]: `pto.range`: the number of iterations comes from data and has no limit
#   --> bound_without_limit.py:8:14
#     |
#   8 |     for _ in pto.range(pto.item(x, 0, 0) + 1):
#     |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: bounds with a limit, which cycles are counted by
#    = found:    0 .. item_0 + 1
#    = help:     say the most that it can be: n.min(64), n.min(table.shape[1]); and the least of a start: n.max(0)
