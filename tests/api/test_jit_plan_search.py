"""`auto_schedule` of a function on tensors: the plan it returns is never slower in simulated time, and computes the same."""

import numpy as np
import pytest

from pto_wsp import DType, Tensor, auto_schedule, jit
from pto_wsp.api.plan_search import simulated_cycles
from pto_wsp.errors import AutoScheduleError

F32 = DType.F32


@jit
def product(x: Tensor["t", 64, F32], w: Tensor[64, 96, F32]):
    return x @ w


def arrays() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    return rng.standard_normal((40, 64), np.float32), rng.standard_normal((64, 96), np.float32)


@pytest.mark.slow
def test_a_found_plan_is_never_slower_than_the_default() -> None:
    x, w = arrays()
    usual = product.plan(x, w, arch="ascend_910b")
    found = auto_schedule(product, x, w, arch="ascend_910b", budget=6)
    assert simulated_cycles(product, (x, w), found) < simulated_cycles(product, (x, w), usual)
    np.testing.assert_allclose(product(x, w, plan=found), x @ w, rtol=1e-4, atol=1e-4)


def test_a_budget_of_one_returns_the_default_plan() -> None:
    x, w = arrays()
    assert auto_schedule(product, x, w, arch="ascend_910b", budget=1) == product.plan(x, w, arch="ascend_910b")


def test_arguments_that_are_no_arrays_are_refused() -> None:
    with pytest.raises(AutoScheduleError, match="takes the arrays of a call"):
        auto_schedule(product, 3, 4)
    with pytest.raises(AutoScheduleError, match="takes its arrays"):
        auto_schedule(product, *arrays(), bindings={})
