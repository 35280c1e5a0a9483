"""The native engine under a window: the memory of tensors made in bodies follows it, and the numbers stay the same."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import Dense, DType, In, Out, P, TaskWindow, Tensor, Tile, WindowMode, kernel, pto, workload

I64 = DType.I64
N = 3000
ROW_BYTES = 8 * 8


@kernel
def scale(x: In[Tile[1, 8, I64]], o: Out[Tile[1, 8, I64]]) -> None:
    pto.store(o, x * 3)


@kernel
def add(x: In[Tile[1, 8, I64]], o: Out[Tile[1, 8, I64]]) -> None:
    pto.store(o, x + 1)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("window, rows", [
    (TaskWindow(8, "tasks", WindowMode.STALL), 5),               # two tasks a row: those of 7/2 rows before, rounded up, and this
    (TaskWindow(512, "tasks", WindowMode.STALL), 257),
    (TaskWindow(4096, "tasks", WindowMode.STALL), 2049),
])
def test_memory_of_intermediates_follows_the_window(window: TaskWindow, rows: int) -> None:
    x, y = (Tensor(np.zeros((N, 8), np.int64), name=name) for name in "XY")

    @workload
    def both() -> None:
        for i in P(Dense[N]()):
            between = Tensor.empty((1, 8), I64)
            scale[i](x=x[i], o=between[0])
            add[i](x=between[0], o=y[i])

    program = both().task_graph(window=window).compile(threads=2)
    for shift in range(2):                                       # the second run has the record of the first
        x.data[:] = np.arange(N * 8).reshape(N, 8) + shift
        y.data[:] = 0
        program.run()
        np.testing.assert_array_equal(y.data, x.data * 3 + 1)
        assert program.stats.intermediate_bytes == rows * ROW_BYTES
