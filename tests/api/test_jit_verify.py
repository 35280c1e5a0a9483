"""`verify_passes=True` holds the passes of a function on tensors to the arrays of the call; so is a user's own in place of a pass."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, PtoError, Tensor, jit, tt
from pto_wsp.api.tensors import lowering
from pto_wsp.errors import CompileOptionError, InternalError
from pto_wsp.ir import flow
from pto_wsp.passes.tensor.passes import TENSOR_PASSES
from pto_wsp.passes.tensor.simplify import simplify
from pto_wsp.run.tensor_pass_check import check_tensor_passes

F32 = DType.F32


@jit
def normed(x: Tensor["t", 16, F32]) -> Any:
    return x / np.sum(np.exp(x), axis=-1, keepdims=True)


def broken(planned: Any, context: Any) -> Any:
    """Lose the last statement's operand: the quotient is of a number."""
    function = planned.function
    items = list(function.body.items)
    last = items[-1].leaf
    items[-1] = flow.Do(replace(last, operands=(last.operands[0], last.operands[0])))
    return replace(planned, function=replace(function, body=replace(function.body, items=tuple(items))))


@pytest.mark.parametrize("target", ["cpu_sim", "interp"])
def test_passes_are_verified_on_the_arrays_of_a_call(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).standard_normal((5, 16)).astype(np.float32)
    called: list[object] = []
    check = lowering.check_tensor_passes
    monkeypatch.setattr(lowering, "check_tensor_passes", lambda *given: called.append(check(*given)))
    found = normed.using(target=target, verify_passes=True)(x)
    np.testing.assert_allclose(found, x / np.exp(x).sum(-1, keepdims=True), rtol=1e-5)
    assert len(called) == 1


@jit
def thirds(x: Tensor["t", 16, F32]) -> Any:
    return np.exp(x) / 3


def test_a_wrong_pass_is_found_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = tuple(replace(one, run=broken) if one.name == "own_results" else one for one in TENSOR_PASSES)
    monkeypatch.setattr(lowering, "check_tensor_passes", partial(check_tensor_passes, passes=passes))
    with pytest.raises(InternalError, match="own_results"):
        thirds.using(target="interp", verify_passes=True)(np.ones((5, 16), np.float32))
    with pytest.raises(CompileOptionError, match="verify_passes"):
        thirds.using(target="interp", verify_passes="yes")(np.ones((5, 16), np.float32))


def test_a_pass_of_the_users_that_changes_numbers_is_refused() -> None:
    assert normed.lower(passes={"simplify": simplify})
    with pytest.raises(PtoError, match="changes what `normed` computes") as caught:
        normed.lower(passes={"simplify": broken})
    assert caught.value.code == "C113" and not isinstance(caught.value, InternalError)


@jit(sanitize=True)
def first_half(x: Tensor["t", 16, F32]) -> Any:
    out = tt.empty(x.shape)
    for i in tt.each(x.shape[0] // 2):
        out[i] = x[i] * 2
    return out


@pytest.mark.slow
def test_what_a_watched_call_leaves_unwritten_is_nan() -> None:
    with pytest.warns(UserWarning, match="fills results with NaN first"):
        found = first_half(np.ones((5, 16), np.float32))
    assert (found[:2] == 2).all() and np.isnan(found[2:]).all()
