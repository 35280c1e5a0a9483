"""Which forms a plan has, and where; a target that refuses one says so at the line that has it first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import (
    Channel,
    Dense,
    DType,
    In,
    Out,
    P,
    Sparse,
    Tensor,
    Tile,
    combine,
    consume,
    kernel,
    pto,
    send,
    slot_set_u64,
    slot_u64,
    workload,
)
from pto_wsp.check.forms import form_errors, forms_of
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.ir.rewrite import canonical
from pto_wsp.passes.lower import lower
from pto_wsp.schedule.capability import FORMS

I32 = DType.I32
X, Y, COUNTS = (Tensor(np.ones((4, 8), np.int32), name=name) for name in ("X", "Y", "counts"))
ROUTING = Sparse(Dense[4](),
                 Tensor(np.array([0, 1, 1, 2, 3], np.int32), name="indptr"),
                 Tensor(np.array([1, 0, 2], np.int32), name="indices"))


@kernel
def succ(x: In[Tile[1, 8, I32]], y: Out[Tile[1, 8, I32]]) -> None:
    """Count on."""
    pto.store(y, x + 1)


def plan_of(body: Callable[[], Any]) -> TaskPlan:
    """Return the plan of a workload with that body."""
    return lower(canonical(workload(body)().node).workload)


def plain() -> None:
    for b in P(4):
        succ[b](X[b], Y[b])


def chosen() -> None:
    for b in P(4):
        with P.when(b > 1):
            succ[b](X[b], Y[b])


def bounded() -> None:
    for b in P(COUNTS[0, 1]):
        succ[b](X[b], Y[b])


def computed() -> None:
    succ(X[0], COUNTS[0])
    succ(X[COUNTS[0, 0]], Y[0])


def walked() -> None:
    for e in P.sel(ROUTING[1]):
        succ[e](X[e], Y[e])


def slotted() -> None:
    slot_set_u64(1, 2)
    succ(X[slot_u64(1)], Y[0])


def sided() -> None:
    @workload
    def side() -> None:
        succ(X[0], Y[0])

    @workload
    def other() -> None:
        succ(X[1], Y[1])

    combine(side(), other())


def piped() -> None:
    tokens = Channel("tokens", 2)
    with P.pipe():
        @workload
        def give() -> None:
            for b in P.seq(4):
                send(tokens, succ[b](X[b], Y[b]))

        @workload
        def take() -> None:
            with consume(tokens) as b:
                succ[b](Y[b], COUNTS[b])

        give()
        take()


@pytest.mark.parametrize(("body", "forms"), [
    (plain, set()), (chosen, {"choice"}), (bounded, {"walk.ragged", "read.given"}), (computed, {"read.computed"}),
    (walked, {"walk.sparse", "read.given"}), (slotted, {"slot"}), (sided, {"combine"}), (piped, {"pipeline"}),
])
def test_forms_are_found(body: Callable[[], Any], forms: set[str]) -> None:
    found = list(forms_of(plan_of(body)))
    assert {form for form, _ in found} == forms <= set(FORMS)
    assert all(span.line for _, span in found)


@pytest.mark.parametrize("body", [chosen, bounded, computed, walked, slotted, sided])
def test_forms_that_the_device_has_are_no_error(body: Callable[[], Any]) -> None:
    assert form_errors(plan_of(body), "ascend_npu") == ()


def test_every_target_but_the_device_takes_every_form() -> None:
    assert all(form_errors(plan_of(piped), target) == () for target in ("interp", "cpu_sim", "pto"))
