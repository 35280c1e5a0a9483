"""What homes and priorities are worth on host threads: `python -m tests.benchmarks.placement [--works stencil] [--seconds 3]`.

Each workload runs plainly and under schedules that say something to host threads, in turns, on two threads. Results are checked against
NumPy first. A figure is the time of the plain program over that of the other: above 1 the schedule helps. The time that the fastest tenth
of the runs stays within counts. With others on the machine, one thread often waits for a core; `chrt -f 1 python -m …` keeps them away.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pto_wsp import DispatchPolicy, DType, In, InOut, Out, P, Program, ReadyPolicy, Scalar, Tensor, Tile, Workload, kernel, pto, workload
from tests.benchmarks.page import put_between, stamp

F32 = DType.F32
ROWS, COLS = 64, 128            # a tile of 32 KiB
STEPS = 16
THREADS = 2
QUICKEST = 0.1                  # the part of the runs whose time counts


@dataclass(frozen=True)
class Work:
    """A workload: what it is scheduled as, by name, the plain one first; what it computes in, and what NumPy makes of that."""

    schedules: Mapping[str, Workload]
    data: np.ndarray[Any, Any]
    reference: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]


@kernel
def relax(x: InOut[Tile[ROWS, COLS, F32]]):
    x[:] = x * 0.5 + 1.0


@kernel
def mean(left: In[Tile[ROWS, COLS, F32]], here: In[Tile[ROWS, COLS, F32]], right: In[Tile[ROWS, COLS, F32]],
         out: Out[Tile[ROWS, COLS, F32]]):
    pto.store(out, left * 0.25 + here * 0.5 + right * 0.25)


@kernel
def repeat(n: Scalar[DType.I64], x: InOut[Tile[8, 256, F32]]):
    for _ in pto.range(n):
        x[:] = x * 0.5 + 1.0


def _tiles(*dims: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(1).standard_normal(dims).astype(np.float32)


def _homes(w: Workload, n: int) -> dict[str, Workload]:
    """Return a workload with loop i over n tiles, plainly and with homes: near ones together, one here and one there, all in one."""
    policies = {"halves": DispatchPolicy.affinity(lambda t: t.i // (n // 2), 2), "odd and even": DispatchPolicy.affinity("i", 2),
                "all in one": DispatchPolicy.affinity(lambda t: t.i * 0, 2)}
    return {"plain": w, **{name: w.dispatch(policy) for name, policy in policies.items()}}


def relaxed(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return what STEPS steps of `relax` make of x."""
    for _ in range(STEPS):
        x = x * np.float32(0.5) + np.float32(1)
    return x


def phases(n: int) -> Work:
    """Each step touches n tiles, and waits for all of the step before."""
    data = _tiles(n, ROWS, COLS)
    x = Tensor(data, name="X")

    @workload
    def tasks():
        for s in P.seq(STEPS):
            for i in P(n):
                relax[s, i](x[i])
    return Work(_homes(tasks(), n), data, relaxed)


def chains(n: int) -> Work:
    """The same, but tiles wait only for themselves: n chains, submitted step by step."""
    work = phases(n)
    return replace(work, schedules=_homes(work.schedules["plain"].task_graph(), n))


def stencil(n: int) -> Work:
    """Each step makes a tile of it and its two neighbours; tasks wait for those."""
    data = np.zeros((2, n + 2, ROWS, COLS), np.float32)
    data[0] = data[1] = _tiles(n + 2, ROWS, COLS)
    x = Tensor(data, name="X")

    @workload
    def tasks():
        for s in P.seq(STEPS):
            for i in P(n):
                mean[s, i](x[s % 2, i], x[s % 2, i + 1], x[s % 2, i + 2], x[(s + 1) % 2, i + 1])

    def reference(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        x = x.copy()
        quarter, half = np.float32(0.25), np.float32(0.5)
        for s in range(STEPS):
            of, to = x[s % 2], x[(s + 1) % 2]
            to[1:-1] = of[:-2] * quarter + of[1:-1] * half + of[2:] * quarter
        return x
    return Work(_homes(tasks().task_graph(), n), data, reference)


def unbalanced(n: int) -> Work:
    """n short tasks and, submitted last, a chain of n / 2: whoever begins with the chain is done first."""
    data = _tiles(4 * (n + 1), 8, 256)       # a gap between tiles, so that threads do not prefetch each other's
    x = Tensor(data, name="X")
    each = 20

    @workload
    def tasks():
        for k in P(n):
            repeat[k](each, x[4 * k])
        for k in P.seq(n // 2):
            repeat[n + k](each, x[4 * n])

    def reference(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        x = x.copy()
        for _ in range(each):
            x[:4 * n:4] = x[:4 * n:4] * np.float32(0.5) + np.float32(1)
        for _ in range(each * (n // 2)):
            x[4 * n] = x[4 * n] * np.float32(0.5) + np.float32(1)
        return x
    w = tasks().task_graph()
    return Work({"plain": w, "the chain first": w.task_graph(ready=ReadyPolicy.priority(lambda t: t.params[0]))}, data, reference)


def uneven(n: int) -> Work:
    """n - 1 short tasks and, submitted last, one that takes as long as all of them."""
    data = _tiles(4 * n, 8, 256)
    x = Tensor(data, name="X")

    @workload
    def tasks():
        for i in P(n):
            repeat[i]((i == n - 1).where(20 * (n - 1), 20), x[4 * i])

    def reference(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        x = x.copy()
        for i in range(n):
            for _ in range(20 * (n - 1) if i == n - 1 else 20):
                x[4 * i] = x[4 * i] * np.float32(0.5) + np.float32(1)
        return x
    w = tasks().task_graph()
    return Work({"plain": w, "the longest first": w.task_graph(ready=ReadyPolicy.priority("i"))}, data, reference)


WORKS: Mapping[str, tuple[Callable[[int], Work], tuple[int, ...]]] = {
    "phases": (phases, (16, 64, 256)), "chains": (chains, (64,)), "stencil": (stencil, (16, 64, 128)),
    "unbalanced": (unbalanced, (200,)), "uneven": (uneven, (31,))}
SMALL = {"phases": 2, "chains": 2, "stencil": 2, "unbalanced": 4, "uneven": 3}


def check(work: Work, program: Program, start: np.ndarray[Any, Any], name: str) -> None:
    """Run once.

    Raises: SystemExit when the result is not NumPy's.
    """
    work.data[:] = start
    program.run()
    if not np.allclose(work.data, work.reference(start), rtol=1e-5, atol=1e-6):
        raise SystemExit(f"{name}: the result is not NumPy's")


def quickest(seconds: list[float]) -> float:
    """Return the time that the quickest tenth stays within."""
    return sorted(seconds)[int(len(seconds) * QUICKEST)]


def measure(work: Work, name: str, seconds: float) -> dict[str, tuple[float, float]]:
    """Return by schedule the time of a task in us, and how many times as fast as the plain one it is."""
    programs = {label: w.compile(threads=THREADS) for label, w in work.schedules.items()}
    start = work.data.copy()
    for label, program in programs.items():
        check(work, program, start, f"{name}, {label}")
    times: dict[str, list[float]] = {label: [] for label in programs}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or not times["plain"]:
        for label, program in programs.items():
            begin = time.perf_counter()
            program.run()
            times[label].append(time.perf_counter() - begin)
    n_tasks, plain = programs["plain"].stats.task_count, quickest(times["plain"])
    return {label: (quickest(taken) / n_tasks * 1e6, plain / quickest(taken)) for label, taken in times.items()}


def row(name: str, n: int, found: Mapping[str, tuple[float, float]]) -> str:
    """Return a line of the table."""
    ratios = ", ".join(f"{label} {ratio:.2f}" for label, (_, ratio) in found.items() if label != "plain")
    return f"| {name} | {n} | {found['plain'][0]:.2f} | {ratios} |"


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure what homes and priorities are worth on host threads.")
    parser.add_argument("--works", default=",".join(WORKS), help=f"some of {', '.join(WORKS)}")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each workload and size")
    parser.add_argument("--page", type=Path, help="put that table between its marks in this page")
    parser.add_argument("--small", action="store_true", help="few tasks: shows that everything runs")
    options = parser.parse_args()
    names = options.works.split(",")
    if not set(names) <= set(WORKS):
        parser.error(f"--works are some of {', '.join(WORKS)}")
    rows = []
    for name in names:
        make, sizes = WORKS[name]
        for n in (SMALL[name],) if options.small else sizes:
            rows.append(row(name, n, measure(make(n), name, 0 if options.small else options.seconds)))
    text = "\n".join([f"{stamp()}: `python -m tests.benchmarks.placement`, {THREADS} threads", "",
                      "| workload | n | us a task, plain | times as fast with |", "| --- " * 4 + "|", *rows])
    print(text)
    if options.page is not None:
        put_between(options.page, "placement", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
