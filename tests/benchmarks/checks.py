"""How long the static checks take: `python -m tests.benchmarks.checks [--page FILE]`.

Each workload is traced and lowered, then checked several times in this process; the least time counts. What the checks must say of it is
asserted first.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from pto_wsp import Dense, DType, In, Out, P, Tensor, Tile, Workload, kernel, pto, workload
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.check.verdict import Verdict
from pto_wsp.ir.plan_walk import submits
from pto_wsp.passes.context import Context
from pto_wsp.passes.lower import lower
from pto_wsp.passes.passes import PASSES
from pto_wsp.passes.pipeline import run_passes
from pto_wsp.targets.planning import check_plan
from tests.benchmarks.page import put_between, stamp

F32 = DType.F32
REQUESTS, HEADS, BLOCKS, PAGE, WIDTH = 32, 32, 513, 16, 64


def paged_attention(repeats: int = 1) -> Workload:
    """Return the scores of 32 requests, 32 heads and 513 pages each, found through a table: 525,312 tasks for each repeat."""
    table = Tensor(np.zeros((REQUESTS, BLOCKS), np.int64), name="table")
    keys, query = Tensor(shape=(4096, PAGE, WIDTH), dtype=F32, name="K"), Tensor(shape=(REQUESTS, HEADS, WIDTH), dtype=F32, name="Q")
    scores = Tensor(shape=(repeats, REQUESTS, HEADS, BLOCKS, PAGE), dtype=F32, name="S")

    @kernel
    def score(q: In[Tile[1, WIDTH, F32]], k: In[Tile[PAGE, WIDTH, F32]], s: Out[Tile[1, PAGE, F32]]):
        pto.store(s, q @ k.T)

    @workload
    def paged():
        for r in range(repeats):
            for b, h, j in P(Dense[REQUESTS](), Dense[HEADS](), Dense[BLOCKS]()):
                score[b, h, j](q=query[b, h], k=keys[table[b, j]], s=scores[r, b, h, j])

    return paged()


def straight_line(n: int = 2000) -> Workload:
    """Return n calls one after the other on neighbouring rows: every pair is ordered."""
    x = Tensor(shape=(n + 1, WIDTH), dtype=F32, name="X")

    @kernel
    def copy(a: In[Tile[1, WIDTH, F32]], b: Out[Tile[1, WIDTH, F32]]):
        pto.store(b, a * 2)

    @workload
    def unrolled():
        for k in range(n):
            copy[k](x[k], x[k + 1])

    return unrolled()


WORKLOADS: dict[str, Callable[[], Workload]] = {
    "paged attention, 525,312 tasks in one nest": paged_attention,
    "the same ten times, one behind the other": lambda: paged_attention(10),
    "2,000 calls written one behind the other": straight_line,
}


def measure(make: Callable[[], Workload], repeats: int) -> tuple[float, float, int]:
    """Return the least and the median time of the checks in ms, and the number of task sites.

    Raises: AssertionError where a race is not proved absent.
    """
    lowered = lower(make().node)
    arch = builtin_arch("unit")
    plan = run_passes(lowered, Context(make().schedule, arch), PASSES)
    findings = check_plan(lowered, plan, {}, frozenset(), arch)
    races = [finding for finding in findings if finding.check.startswith("races")]
    assert races and all(finding.verdict is Verdict.PROVED for finding in races), races
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        check_plan(lowered, plan, {}, frozenset(), arch)
        times.append((time.perf_counter() - started) * 1e3)
    return min(times), statistics.median(times), len(submits(plan))


def markdown(rows: dict[str, tuple[float, float, int]]) -> str:
    """Return the rows as a table."""
    lines = [f"{stamp()}: `python -m tests.benchmarks.checks`", "", "| workload | task sites | ms | median |", "| --- | --- | --- | --- |"]
    lines += [f"| {name} | {sites} | {least:.1f} | {median:.1f} |" for name, (least, median, sites) in rows.items()]
    return "\n".join(lines)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure how long the static checks take.")
    parser.add_argument("--repeats", type=int, default=9, help="runs of the checks a workload")
    parser.add_argument("--page", type=Path, help="put the table between its marks in this page")
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error("--repeats is at least 1")
    table = markdown({name: measure(make, options.repeats) for name, make in WORKLOADS.items()})
    print(table)
    if options.page is not None:
        put_between(options.page, "checks", table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
