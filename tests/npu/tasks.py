"""Kernels of small tasks, for tests of what orders tasks."""

from __future__ import annotations

from pto_wsp import DType, In, InOut, Out, Tile, kernel, pto

F32 = DType.F32


@kernel
def move(x: In[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]]) -> None:
    """Double a tile."""
    pto.store(y, x * 2)


@kernel
def grow(x: InOut[Tile[4, 8, F32]]) -> None:
    """Add one in place."""
    pto.store(x, x + 1)


@kernel
def mix(a: In[Tile[16, 16, F32]], y: Out[Tile[16, 16, F32]]) -> None:
    """A product, then a sum: two tasks on the device."""
    pto.store(y, pto.matmul(a, a) + 1)
