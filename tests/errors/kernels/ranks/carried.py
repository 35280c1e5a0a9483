"""A tile of rank 3 that a loop reads and assigns."""

from __future__ import annotations

from pto_wsp import DType, In, Out, Tile, pto

F32 = DType.F32


def mistake(x: In[Tile[4, 16, 64, F32]], y: Out[Tile[4, 16, 64, F32]]) -> None:
    s = x * 0
    for _ in pto.range(4):
        s = s + x
    pto.store(y, s)


# error[K109]: `s` is read in a loop and then assigned to
#   --> carried.py:13:9
#      |
#   13 |         s = s + x
#      |         ^
#    = found:    a body that is traced once: `s` is read as it was before the loop, in every iteration
#    = help:     keep it in a buffer, made before the loop: held = pto.alloc((4, 16, 64), DType.F32); held[:] = s; then held[:] = ... in it
