"""Writes behind reads: the check finds every edge that is not named, whatever decides which are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pto_wsp import Deps, DType, In, Out, P, Tensor, Tile, Workload, kernel, pto, workload
from pto_wsp.check.verdict import Verdict
from pto_wsp.errors import InternalError
from pto_wsp.npu.check.writes import check_writes
from pto_wsp.npu.plan.waits import RememberedReads, overwrites, remembered_reads
from tests.npu.generated_workloads import Source, workload_of
from tests.npu.submits import npu_plan
from tests.npu.test_orchestration import CASES, in_place, nested, overwrite, ragged, reshapes


@pytest.mark.parametrize("case", [*CASES.values(), ragged, reshapes])
def test_what_is_emitted_names_what_it_must(case: Callable[[], Workload]) -> None:
    assert all(finding.verdict is Verdict.PROVED and finding.error is None for finding in check_writes(npu_plan(case())))


def test_findings_say_how() -> None:
    said = {finding.check: finding.detail for finding in check_writes(npu_plan(in_place()))}
    assert said == {"writes behind reads of X": "the reads are remembered, and named to the runtime",
                    "writes behind reads of Y": "none that the data of the tasks does not order"}


def test_a_read_that_is_not_remembered_is_found() -> None:
    plan = npu_plan(overwrite())
    known = remembered_reads(plan)
    assert known.reads
    for site in known.reads:
        without = {other: found for other, found in known.reads.items() if other != site}
        with pytest.raises(InternalError, match="does not wait for a read"):
            check_writes(plan, replace(known, reads=without))


def test_a_write_that_waits_for_nobody_is_found() -> None:
    plan = npu_plan(overwrite())
    with pytest.raises(InternalError, match="does not wait for a read"):
        check_writes(plan, replace(remembered_reads(plan), writes={}))


@pytest.mark.parametrize("case", [overwrite, nested, ragged])
def test_a_write_that_is_given_as_an_output_alone_is_found(case: Callable[[], Workload]) -> None:
    """The runtime looks for no earlier writer of an OUT: each of these workloads writes somewhere again."""
    plan = npu_plan(case())
    assert overwrites(plan)
    with pytest.raises(InternalError, match="does not wait for a write"):
        check_writes(plan, looked_up=frozenset())


def test_findings_say_what_is_written_again() -> None:
    said = {finding.check: finding.detail for finding in check_writes(npu_plan(overwrite()))}
    assert said["writes behind writes of Y"] == "given as INOUT, for which the runtime looks for them"


@kernel
def move(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    """Double a tile."""
    pto.store(y, x * 2)


@pytest.mark.parametrize(("index", "needed"), [
    ("X[(b + 7) % 8]", True), ("X[(b + 6) % 8]", True), ("X[b + 1]", False), ("X[0]", False), ("X[7 - b]", False), ("X[n[b]]", False),
    ("X[b]", False)])
def test_reads_are_remembered_wherever_that_is_needed(index: str, needed: bool) -> None:
    """A loop reads X[b], and then writes a part of X: some orders come by the data of other turns, which is not looked through."""
    X, Y = (Tensor(np.ones((16, 4, 8), np.float32), name=name) for name in "XY")
    n = Tensor(np.ones(8, np.int64), name="n")

    @workload
    def case() -> None:
        for b in P.seq(8):
            move[b](X[b], Y[b])
            move[b](Y[b], eval(index, {"X": X, "b": b, "n": n}))
    plan = npu_plan(case().task_graph(deps=Deps.infer_bytes_overlap()))
    check_writes(plan)
    assert bool(remembered_reads(plan).tensors) == (index != "X[b]")
    if needed:
        with pytest.raises(InternalError):
            check_writes(plan, RememberedReads())
    else:
        check_writes(plan, RememberedReads())


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(12), pytest.param(range(12, 120), marks=pytest.mark.slow)], ids=["few", "many"])
def test_generated_workloads_order_all_their_writes(seeds: range, tmp_path: Path) -> None:
    """Loops of both kinds, sides, branches and handles, without order from structure: data, and what is told, orders every two writes.

    Where nothing is given as INOUT, most of them lack an edge.
    """
    lacking = 0
    for seed in seeds:
        plan = npu_plan(workload_of(Source(seed, dynamic=seed % 2 == 1), tmp_path, structure=False))
        check_writes(plan)
        try:
            check_writes(plan, looked_up=frozenset())
        except InternalError:
            lacking += 1
    assert lacking > len(seeds) // 3
