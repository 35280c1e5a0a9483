"""False order: hints for loops and handles that order what is apart."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pto_wsp import DType, In, InOut, Out, P, Tensor, Tile, kernel, pto, slot_set_u64, slot_u64, workload
from pto_wsp.check.races.check import false_order
from pto_wsp.check.verdict import Verdict
from pto_wsp.passes.lower import lower

F32 = DType.F32


@kernel
def put(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]) -> None:
    pto.store(y, x * 2)


@kernel
def add(x: In[Tile[1, 4, F32]], y: InOut[Tile[1, 4, F32]]) -> None:
    pto.store(y, y + x)


X, Y, Z = (Tensor(np.zeros((16, 4), np.float32), name=name) for name in "XYZ")


def hints(body: Callable[[], None]) -> list[str]:
    """Return the hints without the places that they name."""
    found = false_order(lower(workload(body)().node))
    assert all(finding.verdict is Verdict.LINT and finding.error is None for finding in found)
    return [finding.detail.split(":")[0].split(" at ")[0] for finding in found]


def test_an_ordered_loop_over_rows_of_their_own() -> None:
    def body() -> None:
        for i in P.seq(8):
            put(X[i], Y[i])
    assert hints(body) == ["P.seq over i"]


def test_an_ordered_loop_that_adds_up_or_runs_once_is_right() -> None:
    def body() -> None:
        for i in P.seq(8):
            add(X[i], Y[0])
        for i in P.seq(7):
            put(Z[i], Z[i + 1])
        for i in P.seq(1):
            put(X[i], Y[i])
    assert hints(body) == []


def test_of_two_nested_ones_each_is_judged_for_itself() -> None:
    def body() -> None:
        for b in P.seq(4):
            for t in P.seq(4):
                add(X[t], Y[b])
    assert hints(body) == ["P.seq over b"]


def test_what_hands_a_slot_on_is_ordered_for_that() -> None:
    def body() -> None:
        slot_set_u64(0, 0)
        for i in P.seq(4):
            put(X[slot_u64(0)], Y[i])
            slot_set_u64(0, slot_u64(0) + 1)
    assert hints(body) == []


def test_an_after_between_tasks_that_share_nothing() -> None:
    def body() -> None:
        for i in P(4):
            first = put(X[i], Y[i])
            second = put(X[i], Z[2 * i], after=[first])
            put(Y[i], Z[2 * i + 1], after=[first, second])
    assert hints(body) == ["after=", "after="]


def test_hints_are_shown_and_recorded_and_stop_nobody() -> None:
    @workload
    def loop() -> None:
        for i in P.seq(8):
            put[i](X[i], Y[i])
    program = loop().compile("cpu_sim")
    (line,) = [line for line in program.checks if line.startswith("lint")]
    assert line.startswith("lint: false order (P.seq over i at test_false_order.py:")
    assert [check.verdict for check in program.manifest.checks if check.check == "false order"] == ["lint"]  # type: ignore[attr-defined]
