"""`Deps.explicit()`: structure alone orders tasks, which is enough where the race check has proved it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pto_wsp import Deps, DispatchPolicy, DType, In, Injective, InOut, P, Scalar, Tensor, Tile, Workload, combine, kernel, pto, workload
from pto_wsp.errors import BindingError, UnprovedOrderError
from tests.laws.generated_workloads import run_in_order_of

I64 = DType.I64
TABLE = np.array([[4, 0], [2, 7], [1, 3]])


@kernel
def mix(x: In[Tile[1, 4, I64]], n: Scalar[I64], y: InOut[Tile[1, 4, I64]]) -> None:
    """No two of these commute."""
    pto.store(y, y * 3 + x + n)


def arrays() -> tuple[Tensor, Tensor, Tensor]:
    """Return rows to read, rows to change, and pages."""
    X = np.random.default_rng(3).integers(-9, 9, (8, 4))
    return Tensor(X, name="X"), Tensor(np.zeros((8, 4), np.int64), name="Y"), Tensor(np.zeros((8, 4), np.int64), name="pages")


def chains(X: Tensor, Y: Tensor, pages: Tensor, table: Tensor) -> Workload:
    """Return rows that are independent, of steps that are not, and pages by a table."""
    @workload
    def rows() -> None:
        for b in P(8):
            for t in P.seq(3):
                mix[b, t](X[b], t, Y[b])
            mix[b](X[7 - b], b, Y[b])

    @workload
    def paged() -> None:
        for b in P(3):
            for j in P(2):
                mix[b, j](X[b], j, pages[table[b, j]])
                mix[b, j](X[j], b, pages[table[b, j]])
    return combine(rows(), paged())


def expected_of(X: Tensor) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return what is in rows and pages when the tasks have run in program order."""
    x: np.ndarray[Any, Any] = X.data  # type: ignore[assignment]
    rows, pages = np.zeros((8, 4), np.int64), np.zeros((8, 4), np.int64)
    for b in range(8):
        for t in range(3):
            rows[b] = rows[b] * 3 + x[b] + t
        rows[b] = rows[b] * 3 + x[7 - b] + b
    for b in range(3):
        for j in range(2):
            pages[TABLE[b, j]] = (pages[TABLE[b, j]] * 3 + x[b] + j) * 3 + x[j] + b
    return rows, pages


@pytest.mark.parametrize("target", ["interp", "cpu_sim"])
def test_structure_alone_leaves_what_program_order_leaves(target: str) -> None:
    X, Y, pages = arrays()
    made = chains(X, Y, pages, Injective(Tensor(TABLE, name="table"))).dispatch(DispatchPolicy.round_robin(3))
    program = made.task_graph(deps=Deps.explicit()).compile(target)
    for seed in range(6):
        Y.data[...], pages.data[...] = 0, 0  # type: ignore[index]
        if seed:
            run_in_order_of(program, seed)
        else:
            program.run()
            assert {reason for edge in program.graph.edges for reason in edge.reasons} == {"order"}
        for found, expected in zip((Y.data, pages.data), expected_of(X), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_without_the_contract_it_is_refused_and_hybrid_is_not() -> None:
    made = chains(*arrays(), Tensor(TABLE, name="table"))
    with pytest.raises(UnprovedOrderError, match=r"of `pages`") as refused:
        made.task_graph(deps=Deps.explicit()).compile("interp", strict=False)
    assert refused.value.found == "it depends on what is in `table`"
    made.task_graph(deps=Deps.hybrid()).compile("interp").run()


def test_strides_that_overlap_are_refused_when_bound() -> None:
    X, Y, pages = arrays()
    made = chains(X, Y, pages, Injective(Tensor(TABLE, name="table"))).task_graph(deps=Deps.explicit()).compile("interp")
    band = np.lib.stride_tricks.as_strided(np.zeros(64, np.int64), (8, 4), (16, 8))
    with pytest.raises(BindingError, match="elements that share memory"):
        made.run(Y=band)
    made.run(Y=np.zeros((16, 4), np.int64)[::2])
