"""How fast the simulator is, and what memory it takes: `python -m tests.benchmarks.simulator [--markdown] [--page FILE]`.

Task streams come from generated orchestrators; no kernel runs. What each simulation must find (tasks, makespan) is known by hand and
asserted before its time counts. Times are the least of several; peak memory is that of a process of its own.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pto_wsp import (
    Dense,
    DenseDyn,
    DispatchPolicy,
    DType,
    InOut,
    P,
    Program,
    TaskWindow,
    Tensor,
    Tile,
    TracePolicy,
    WindowMode,
    Workload,
    kernel,
    workload,
)
from pto_wsp.artifact.build import load_runtime
from pto_wsp.run.native import Engine, raw_bindings
from pto_wsp.run.simulator import MAX_RECORDED_TASKS, Recorder, SimResult, check_status, finish_sim, new_sim
from tests.benchmarks.checks import BLOCKS, HEADS, REQUESTS, paged_attention
from tests.benchmarks.page import put_between, stamp

ROOT = Path(__file__).resolve().parents[2]
COST = 10                   # cycles a task, said by the schedule
WORKERS = 4
CHAINS = 64
WINDOW = 8192
PAGED_WINDOW = 128


@dataclass(frozen=True)
class Stream:
    """A task stream: what makes it of a number of tasks, and its makespan by hand."""

    make: Callable[[int, int], Workload]
    makespan: Callable[[int], int]


@kernel
def touch(x: InOut[Tile[1, 1, DType.F32]]):
    x[:] = x + 1


def _scheduled(tasks: Workload, window: int) -> Workload:
    return (tasks.dispatch(DispatchPolicy.round_robin(WORKERS))
            .task_graph(window=TaskWindow(window, "tasks", WindowMode.STALL), trace=TracePolicy.cycles(lambda t: COST)))


def independent(n: int, window: int) -> Workload:
    """Return n tasks, each on an element of its own."""
    x = Tensor(np.zeros((n, 1, 1), np.float32), name="X")      # never touched, so it takes no memory

    @workload
    def scattered():
        for i in P(DenseDyn(n)):
            touch[i](x[i])

    return _scheduled(scattered(), window)


def chains(n: int, window: int) -> Workload:
    """Return 64 chains side by side, n tasks in all, submitted a task of each in turn."""
    x = Tensor(np.zeros((CHAINS, 1, 1), np.float32), name="X")

    @workload
    def side_by_side():
        for _ in P.seq(DenseDyn(n // CHAINS)):
            for c in P(Dense[CHAINS]()):
                touch[c](x[c])

    return _scheduled(side_by_side(), window)


def one_chain(n: int, window: int) -> Workload:
    """Return n tasks, each after the one before."""
    x = Tensor(np.zeros((1, 1, 1), np.float32), name="X")

    @workload
    def chain():
        for _ in P.seq(DenseDyn(n)):
            touch(x[0])

    return _scheduled(chain(), window)


# Round robin over 4 executors deals each of the 64 chains to one of them, so they are never idle but in the one chain.
STREAMS = {
    "independent": Stream(independent, lambda n: n // WORKERS * COST),
    "64 chains": Stream(chains, lambda n: n // WORKERS * COST),
    "one chain": Stream(one_chain, lambda n: n * COST),
}


def recorded(program: Program, max_tasks: int, sim: object = None) -> Recorder:
    """Return the record of a program's stream; of more than `max_tasks` tasks, `sim` is fed all and the record keeps the last."""
    engine = program.compiled.runner
    assert isinstance(engine, Engine)
    ffi, lib = engine.runtime.ffi, engine.runtime.lib
    recorder = Recorder(engine.runtime, program.plan.rules, infer=program.plan.infer, max_tasks=max_tasks)
    bound = raw_bindings(engine.runtime, program.plan, program.bind())
    options = ffi.new("pto_run_options *", {"orchestrate": engine.artifact.table.orchestrate, "bindings": bound[0],
                                            "sim": ffi.NULL if sim is None else sim})
    check_status(lib.pto_run(ffi.NULL, recorder.raw, options, ffi.new("pto_execute_result *")), "making the stream")
    return recorder


def simulate(program: Program, max_tasks: int = MAX_RECORDED_TASKS) -> SimResult:
    """Make the stream of a program and simulate it, in pieces of so many tasks; no kernel runs."""
    runtime, rules = load_runtime(), program.plan.rules
    sim = new_sim(runtime, rules, keep_trace=False)
    recorder = recorded(program, max_tasks, sim)
    if recorder.raw_columns().first_node > 0:      # it has been fed piece by piece
        return finish_sim(runtime, sim)
    return recorder.simulate(rules, keep_trace=False)


def check(found: SimResult, tasks: int, makespan: int) -> None:
    """Raise AssertionError for a simulation that is not what is known by hand."""
    assert (found.n_tasks, found.total_cycles) == (tasks, makespan), (found.n_tasks, found.total_cycles, tasks, makespan)


def rate(stream: Stream, n: int, repeats: int) -> tuple[float, float]:
    """Return millions of tasks a second: of the simulator on a record that is there, and of making the stream and simulating it."""
    program = stream.make(n, WINDOW).compile()
    check(simulate(program), n, stream.makespan(n))
    recorder = recorded(program, 0)
    alone = _least(lambda: recorder.simulate(program.plan.rules, keep_trace=False), repeats)
    return n / alone / 1e6, n / _least(lambda: simulate(program), repeats) / 1e6


def _least(run: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return min(times)


def paged(repeats: int) -> tuple[float, float, float]:
    """Return the seconds that 525,312 tasks of paged attention take with a window of 128: plan and checks, simulation, both."""
    tasks = REQUESTS * HEADS * BLOCKS

    def planned() -> Program:
        window = TaskWindow(PAGED_WINDOW, "tasks", WindowMode.STALL)
        program: Program = _with_data(paged_attention().task_graph(window=window)).compile()
        return program

    program = planned()
    found = simulate(program)
    # a task: a query of 64, a page of 16 x 64, which is turned and multiplied, 16 scores; one executor, never idle
    check(found, tasks, tasks * (64 + 3 * 16 * 64 + 16))
    assert found.windows[0].high_water == PAGED_WINDOW
    plan, run = _least(planned, repeats), _least(lambda: simulate(program), repeats)
    return plan, run, plan + run


def _with_data(given: Workload) -> Workload:
    """Give the tensors of a workload memory: nothing is in it, no kernel runs."""
    for tensor in given.tensors:
        if tensor.data is None:
            tensor.data = np.empty(tensor.ref.shape, tensor.ref.dtype.np)
    return given


# ---- memory: a process each ----

def in_child(name: str, n: int, window: int, max_tasks: int) -> tuple[float, float]:
    """Return the seconds and the peak memory in MB that a process of its own takes to make and simulate a stream."""
    done = subprocess.run([sys.executable, "-m", "tests.benchmarks.simulator", "--child", name, str(n), str(window), str(max_tasks)],
                          cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    seconds, peak = done.stdout.split()
    return float(seconds), float(peak)


def child(name: str, n: int, window: int, max_tasks: int) -> None:
    """Simulate once and print seconds and peak memory."""
    stream = STREAMS[name]
    program = stream.make(n, window).compile()
    started = time.perf_counter()
    check(simulate(program, max_tasks), n, stream.makespan(n))
    seconds = time.perf_counter() - started
    print(seconds, peak_mb())


def peak_mb() -> float:
    """Return the most memory that this process has held; getrusage would count what its parent held when it was started."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return next(int(line.split()[1]) / 1024 for line in status.read_text().splitlines() if line.startswith("VmHWM"))


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rate: int = 960_000                                      # a multiple of 64
    memory: int = 960_000
    windows: tuple[int, ...] = (128, 1024, 8192, 65536)
    growth: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)


def markdown(sizes: Sizes, repeats: int) -> str:
    """Measure, and return the tables."""
    lines = [f"{stamp()}: `python -m tests.benchmarks.simulator`", "",
             f"| {sizes.rate:,} tasks | simulated, million tasks/s | made and simulated |", "| --- | --- | --- |"]
    for name, stream in STREAMS.items():
        alone, both = rate(stream, sizes.rate, repeats)
        lines.append(f"| {name} | {alone:.1f} | {both:.1f} |")
    lines += ["", f"| window, {sizes.memory:,} tasks in pieces of 4096 | seconds | peak MB |", "| --- | --- | --- |"]
    lines.append("| none: a process that simulates 1000 tasks | | {:.0f} |".format(in_child("independent", 1000, 128, 4096)[1]))
    for window in sizes.windows:
        seconds, peak = in_child("independent", sizes.memory, window, 4096)
        lines.append(f"| {window:,} | {seconds:.2f} | {peak:.0f} |")
    lines += ["", f"| tasks, window {WINDOW} | seconds | ns a task | peak MB |", "| --- | --- | --- | --- |"]
    for n in sizes.growth:
        seconds, peak = in_child("independent", n, WINDOW, MAX_RECORDED_TASKS)
        lines.append(f"| {n:,} | {seconds:.4f} | {seconds / n * 1e9:.0f} | {peak:.0f} |")
    plan, run, both = paged(repeats)
    lines += ["", f"| paged attention, {REQUESTS * HEADS * BLOCKS:,} tasks, window {PAGED_WINDOW} | seconds |", "| --- | --- |",
              f"| plan, check, compile from the cache | {plan:.3f} |", f"| make the tasks and simulate | {run:.3f} |",
              f"| together (goal: 2) | {both:.3f} |"]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure the simulator: tasks a second, memory, growth.")
    parser.add_argument("--repeats", type=int, default=5, help="simulations of which the fastest counts")
    parser.add_argument("--markdown", action="store_true", help="print the tables as they stand in the page (they always do)")
    parser.add_argument("--page", type=Path, help="put the tables between their marks in this page")
    parser.add_argument("--note", default="", help="a line under the tables, of what else the machine did")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child is not None:
        child(options.child[0], *map(int, options.child[1:]))
        return 0
    if options.repeats < 1:
        parser.error("--repeats is at least 1")
    tables = markdown(Sizes(), options.repeats) + (f"\n\n{options.note}" if options.note else "")
    print(tables)
    if options.page is not None:
        put_between(options.page, "simulator", tables)
    return 0


if __name__ == "__main__":
    sys.exit(main())
