"""Tiles bounded by a symbol, as packages: rows behind the bound are untouched on the emulated device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import P, Symbol, Tensor, Workload, ceildiv, minimum, workload
from tests.npu.dynamic.cases import move, run_package, whole_numbers

T = Symbol("t")
SPELLINGS: dict[str, Callable[[Any, Any], Any]] = {
    "minimum": lambda x, i: x[i * 8:].clip(minimum(8, T - i * 8), 16),
    "columns as they are": lambda x, i: x[i * 8:].clip(minimum(8, T - i * 8), None),
    "bounded, then cut": lambda x, i: x.clip(T, 16)[i * 8:].clip(8, 16),
}


def moved(view: Callable[[Any, Any], Any], blocks: Any) -> Workload:
    X, Y = Tensor(whole_numbers(20, 16), name="X"), Tensor(np.full((20, 16), -7, np.float32), name="Y")

    @workload
    def case() -> None:
        for i in P(blocks):
            move[i](view(X, i), view(Y, i))
    return case()


@pytest.mark.slow
@pytest.mark.parametrize("spelling, t", [pytest.param(spelling, t, marks=() if (spelling, t) == ("minimum", 9) else pytest.mark.slow)
                                         for spelling in SPELLINGS for t in (0, 1, 8, 9, 20)])
def test_rows_behind_a_symbol_are_untouched(spelling: str, t: int) -> None:
    run_package(moved(SPELLINGS[spelling], ceildiv(T, 8)), t=t)


@pytest.mark.parametrize("t", [pytest.param(0, marks=pytest.mark.slow), 9, pytest.param(17, marks=pytest.mark.slow)])
def test_blocks_behind_the_bound_are_empty(t: int) -> None:
    run_package(moved(SPELLINGS["minimum"], 3), t=t)
