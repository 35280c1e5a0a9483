"""A workload with a ragged walk, loops and branches in its kernel; apart from the tests, so that its lines stay where they are."""

from __future__ import annotations

import numpy as np

from pto_wsp import DenseDyn, DType, In, Out, P, Ragged, Scalar, Symbol, Tensor, Tile, Workload, kernel, pto, workload
from tests.tolerances import Array

F32, I32 = DType.F32, DType.I32


def scaled(lens: Array) -> Workload:
    """Return a workload with a ragged walk, views of all kinds, a symbol and a scalar."""
    x, y, steering = Tensor(np.zeros((3, 4, 32), np.float32)), Tensor(np.zeros((3, 4, 32), np.float32)), Tensor(lens)
    rate = Symbol("rate")

    @kernel
    def scale(x: In[Tile[2, 32, F32]], s: Scalar[F32], n: Scalar[I32], y: Out[Tile[2, 32, F32]]) -> None:
        total = pto.alloc((2, 1), F32, init=1.0)
        for _ in pto.range(n):
            total += pto.rowsum(x)
        with pto.when(n > 2):
            total[:] = total * 0.5
        pto.store(y, x / total * s)

    @workload
    def rows() -> None:
        batch = DenseDyn(3)
        pieces = Ragged(batch, steering)
        for b in P(batch):
            for i in P(pieces[b]):
                scale[b, i](x=x[b, i * 2:(i + 1) * 2], s=rate, n=i + 1, y=y[b, i * 2:].clip(2, 32))

    return rows()
