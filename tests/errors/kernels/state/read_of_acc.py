"""A task asks for what the tasks before it have added."""

from pto_wsp import Acc, DType, In, Tile, pto


def mistake(x: In[Tile[4, 8, DType.F32]], y: Acc[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, y * 2 + x)


# error[K106]: Acc parameter `y` is read
#   --> read_of_acc.py:7:18
#     |
#   7 |     pto.store(y, y * 2 + x)
#     |                  ^^^^^
#    = expected: one pto.store of what the task adds
#    = found:    declared at read_of_acc.py:6:43
#    = help:     the task has only its own part: sum it up in a buffer (pto.alloc), or declare y InOut and order the tasks with P.seq
