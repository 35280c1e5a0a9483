"""Sizes are data: extents of axes in arithmetic follow what each run binds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import (
    Dense,
    DenseDyn,
    DType,
    In,
    Out,
    P,
    PtoError,
    Ragged,
    Scalar,
    Sparse,
    Symbol,
    Tensor,
    Tile,
    Workload,
    ceildiv,
    kernel,
    maximum,
    minimum,
    pto,
    workload,
)

F32, I64 = DType.F32, DType.I64
TARGETS = ["interp", "cpu_sim"]
COUNTS = [0, 1, 7, 31, 32, 33, 40]


@kernel
def twice(x: In[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]]) -> None:
    pto.store(y, x * 2)


@kernel
def put(n: Scalar[I64], y: Out[Tile[1, 1, I64]]) -> None:
    pto.store(y, pto.full((1, 1), n, I64))


def arrays() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    return np.arange(320, dtype=np.float32).reshape(40, 8) + 1, np.full((40, 8), -1, np.float32)


def block(i: Any, X: Tensor, Y: Tensor, rows: Any) -> None:
    twice[i](X[i * 4:rows].clip(4, 8), Y[i * 4:rows].clip(4, 8))


def holds(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], n: int, factor: int = 2) -> bool:
    """Tell whether the first `n` rows are computed and the others untouched."""
    return bool((y[:n] == factor * x[:n]).all() and (y[n:] == -1).all())


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("of", [lambda rows: ceildiv(rows, 4), lambda rows: ceildiv(rows.size, 4), lambda rows: (rows + 3) // 4,
                                lambda rows: (3 + rows.size) // 4, lambda rows: maximum(0, ceildiv(minimum(rows, 40), 4))],
                         ids=["ceildiv", "size", "operators", "reversed", "minimum"])
def test_the_extent_of_an_axis_is_a_number_of_the_run(of: Callable[[Any], object], target: str) -> None:
    x, y = arrays()
    X, Y, rows = Tensor(x), Tensor(y), DenseDyn(40)

    @workload
    def w() -> None:
        for i in P(of(rows)):
            block(i, X, Y, rows)
    program = w().compile(target=target)
    program.run()
    assert holds(x, y, 40)
    for n in COUNTS:
        y[...] = -1
        program.run(rows=n)
        assert holds(x, y, n)


@pytest.mark.parametrize("target", ["ascend_npu", "pto"])
def test_packages_take_the_extent_of_an_axis(target: str) -> None:
    x, y = arrays()
    X, Y, rows = Tensor(x), Tensor(y), DenseDyn(40)

    @workload
    def w() -> None:
        for i in P(ceildiv(rows, 4)):
            block(i, X, Y, rows)
    program = w().compile(target=target)
    assert [symbol.name for symbol in program.plan.symbols] == ["rows"]


def test_fixed_axes_count_with_numbers() -> None:
    rows = Dense[21]()
    assert (rows.size, ceildiv(rows, 4), rows // 4, 3 * rows, rows % 4, rows / 2, rows > 4) == (21, 6, 5, 63, 1, 10.5, True)
    assert (rows + rows, 4 - rows, rows - Dense[1]()) == (42, -17, 20)


@pytest.mark.parametrize("target", TARGETS)
def test_rows_of_axes_have_a_size(target: str) -> None:
    two, n = Dense[2](), Symbol("n")
    tokens = Ragged(two, np.array([5, 2]))
    routing = Sparse(two, np.array([0, 3, 4]), np.array([1, 2, 3, 0]))
    Y = Tensor(np.zeros((6, 1), np.int64))
    named = DenseDyn(n)

    @workload
    def w() -> None:
        for b in P(two):
            put[b](tokens[b].size * 10, Y[b:b + 1])
            put[b](routing[b].size + tokens[b] // 2, Y[b + 2:b + 3])
        put(named * 2, Y[4:5])
        put(named, Y[5:6])
    w().compile(target=target).run(n=9)
    assert Y.data is not None and Y.data[:, 0].tolist() == [50, 20, 3 + 2, 1 + 1, 18, 9]


def test_the_name_of_an_axis_is_known_where_no_loop_runs_over_it() -> None:
    x, y = arrays()
    X, Y, rows = Tensor(x), Tensor(y), DenseDyn(40)

    @workload
    def w() -> None:
        for i in P(rows.size // 4):
            block(i, X, Y, 40)
    made = w()
    assert "rows // 4" in str(made) and Workload.from_json(made.to_json()) == made
    with pytest.raises(PtoError) as caught:
        made.compile(target="interp").run(row=4)
    assert "rows" in str(caught.value.help)


def test_an_axis_is_no_index() -> None:
    X, rows = Tensor(np.zeros((4, 8), np.float32)), DenseDyn(4)
    for axis in (rows, Dense[2]()):
        with pytest.raises(PtoError, match="an axis is no index") as caught:
            X[axis]
        assert caught.value.code == "T302"


