"""Streams longer than a record keeps, of everything that waits: channels, reads of what tasks write, tensors made in bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pto_wsp import (
    Channel,
    Deps,
    DType,
    In,
    InOut,
    Out,
    P,
    Program,
    Scalar,
    TaskWindow,
    Tensor,
    Tile,
    WindowMode,
    consume,
    kernel,
    pto,
    send,
    workload,
)
from pto_wsp.run.native import Engine

I64 = DType.I64
N = 20


@kernel
def more(x: In[Tile[1, 4, I64]], n: Scalar[I64], o: Out[Tile[1, 4, I64]]) -> None:
    pto.store(o, x * 3 + n)


@kernel
def clear(total: Out[Tile[1, 1, I64]]) -> None:
    pto.store(total, pto.full((1, 1), 0, I64))


@kernel
def count(x: In[Tile[1, 4, I64]], total: InOut[Tile[1, 1, I64]]) -> None:
    """Add one for a row with an odd number in it."""
    pto.store(total, total + pto.rowmax(pto.mod(x, 2)))


def program_of(deps: Deps, window: int) -> tuple[Program, tuple[np.ndarray[Any, Any], ...]]:
    """Rows go through a tensor of their own and a channel and are counted; as many rows as were counted are then worked on again."""
    X, Y, Z, total = (Tensor(np.zeros(shape, np.int64), name=name) for name, shape in
                      (("X", (N, 4)), ("Y", (N, 4)), ("Z", (N, 4)), ("total", (1, 1))))
    X.data[:] = np.where(np.arange(N)[:, None] % 3, 2 * np.arange(4 * N).reshape(N, 4) + np.arange(N)[:, None] + 1, 7)
    rows = Channel("rows", 2)

    @workload
    def give() -> None:
        for k in P.seq(N):
            piece = Tensor.empty((1, 4), I64)
            more[k](X[k], k, piece)
            send(rows, more[k](piece, 1, Y[k]))

    @workload
    def take() -> None:
        with consume(rows) as k:
            count[k](Y[k], total)

    @workload
    def both() -> None:
        clear(total)
        with P.pipe():
            give()
            take()
        for i in P.seq(total[0, 0]):
            more[i](Y[i], 7, Z[i])

    schedule = both().task_graph(deps=deps, window=TaskWindow(window, "tasks", WindowMode.STALL))
    return schedule.compile(threads=2), (X.data, Y.data, Z.data, total.data)


@pytest.mark.slow
@pytest.mark.parametrize("deps", [Deps.infer_bytes_overlap(), Deps.hybrid()], ids=["overlap", "hybrid"])
@pytest.mark.parametrize("window", [1, 6])
@pytest.mark.parametrize("max_tasks", [1, 3, 50, 1000])
def test_in_parts_they_give_the_same_numbers_and_cycles(max_tasks: int, window: int, deps: Deps) -> None:
    whole, expected = program_of(deps, window)
    parts, found = program_of(deps, window)
    engine = parts.compiled.runner
    assert isinstance(engine, Engine)
    object.__setattr__(parts.compiled, "runner", Engine(engine.artifact, parts.plan, 2, max_tasks=max_tasks))
    for _ in range(2):
        whole.run()
        parts.run()
    x, y, z, total = found
    n_odd = int((y % 2).any(axis=1).sum())
    assert (y == (x * 3 + np.arange(N)[:, None]) * 3 + 1).all() and 0 < n_odd == total[0, 0]
    assert (z[:n_odd] == y[:n_odd] * 3 + 7).all() and not z[n_odd:].any()
    assert all((one == other).all() for one, other in zip(found, expected, strict=True))
    for name in ("task_count", "total_cycles", "work", "executors", "window", "stalls"):
        assert getattr(parts.stats, name) == getattr(whole.stats, name), name
    assert parts.stats.critical_path <= whole.stats.critical_path      # edges from what had long completed may be forgotten
    assert {stall.reason for stall in whole.stats.stalls} >= {"CHANNEL_EMPTY_WAIT", "DATA_READ_WAIT"}
