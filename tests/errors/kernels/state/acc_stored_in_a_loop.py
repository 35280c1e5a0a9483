"""A loop of the kernel stores in every iteration."""

from pto_wsp import Acc, DType, In, Tile, pto


def mistake(x: In[Tile[4, 8, DType.F32]], y: Acc[Tile[4, 8, DType.F32]]) -> None:
    for _ in pto.range(4):
        pto.store(y, x)


# error[K106]: Acc parameter `y` is stored in a loop
#   --> acc_stored_in_a_loop.py:8:9
#     |
#   8 |         pto.store(y, x)
#     |         ^^^^^^^^^^^^^^^
#    = expected: one store a task
#    = found:    a loop at acc_stored_in_a_loop.py:7
#    = help:     sum up in a buffer, acc = pto.alloc(shape, dtype, init=0) and acc += value in the loop, and store it once behind the loop
