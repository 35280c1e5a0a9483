"""One path through the body stores twice."""

from pto_wsp import Acc, DType, In, Scalar, Tile, pto


def mistake(x: In[Tile[4, 8, DType.F32]], n: Scalar[DType.I32], y: Acc[Tile[4, 8, DType.F32]]) -> None:
    with pto.when(n > 0):
        pto.store(y, x)
    pto.store(y, x * 2)


# error[K106]: Acc parameter `y` is stored twice
#   --> acc_stored_on_a_side_and_behind.py:9:5
#     |
#   9 |     pto.store(y, x * 2)
#     |     ^^^^^^^^^^^^^^^^^^^
#   --> acc_stored_on_a_side_and_behind.py:8:9: stored here
#     |
#   8 |         pto.store(y, x)
#     |         ^^^^^^^^^^^^^^^
#    = expected: one store a task, of all that it adds
#    = help:     combine the values first, and store once: pto.store(y, a + b)
