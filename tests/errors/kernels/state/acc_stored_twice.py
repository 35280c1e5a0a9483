"""Two values are added by two stores."""

from pto_wsp import Acc, DType, In, Tile


def mistake(x: In[Tile[4, 8, DType.F32]], y: Acc[Tile[4, 8, DType.F32]]) -> None:
    y += x
    y += x * x


# error[K106]: Acc parameter `y` is stored twice
#   --> acc_stored_twice.py:8:5
#     |
#   8 |     y += x * x
#     |     ^^^^^^^^^^
#   --> acc_stored_twice.py:7:5: stored here
#     |
#   7 |     y += x
#     |     ^^^^^^
#    = expected: one store a task, of all that it adds
#    = help:     combine the values first, and store once: pto.store(y, a + b)
