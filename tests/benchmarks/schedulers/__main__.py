"""ns for each empty task, beside the task runtimes that are installed: `python -m tests.benchmarks.schedulers [--peers openmp,tbb]`.

Four graphs of 65,536 tasks: independent ones, a chain, a wavefront, a random graph with two predecessors a task. Each runtime is a
program of its own, compiled on the spot; they take turns. Each runs its tasks with a body that checks the order before it times them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pto_wsp.artifact.build import load_runtime
from pto_wsp.resources import csrc_dir
from tests.benchmarks.page import put_between, stamp

HERE = Path(__file__).parent
OURS = "pto_wsp"
GRAPHS = {"independent": "independent", "chain": "chain", "wavefront": "wavefront", "random": "random graph"}
GOALS = {"independent": 40, "chain": 10, "wavefront": 15, "random": 60}
Times = dict[tuple[str, str], float]   # ns a task by graph and phase


@dataclass(frozen=True)
class Peer:
    """A runtime: the file that uses it, and what the compiler has to be told."""

    file: str
    compiler: str
    flags: tuple[str, ...] = ()


PEERS: Mapping[str, Peer] = {
    "openmp": Peer("with_openmp.c", "cc", ("-fopenmp",)),
    "tbb": Peer("with_tbb.cpp", "c++", ("-std=c++17", "-ltbb")),
    "taskflow": Peer("with_taskflow.cpp", "c++", ("-std=c++20", "-pthread")),
}


def build(name: str, folder: Path, side: int) -> Path | None:
    """Return the program of a runtime for side x side tasks, or None where the compiler does not find it."""
    program = folder / name
    if name == OURS:
        library = load_runtime().path
        flags = (f"-I{csrc_dir() / 'include'}", f"-L{library}", "-lpto_runtime", f"-Wl,-rpath,{library}", "-pthread")
        peer = Peer("ours.c", "cc", flags)
    else:
        peer = PEERS[name]
    done = subprocess.run([peer.compiler, "-O3", "-march=native", f"-DSIDE={side}", "-o", str(program), str(HERE / peer.file),
                           *peer.flags], text=True, capture_output=True)
    if done.returncode != 0 and name == OURS:
        raise SystemExit(done.stderr)
    return program if done.returncode == 0 else None


def turn(program: Path, threads: int, times: Times) -> None:
    """Run a program once and keep the least of its times and those before.

    Raises: SystemExit when it found tasks run in a wrong order, or not once.
    """
    cores = sorted(os.sched_getaffinity(0))[:threads]
    done = subprocess.run([str(program), str(threads)], text=True, capture_output=True, preexec_fn=lambda: os.sched_setaffinity(0, cores))
    if done.returncode != 0:
        raise SystemExit(f"{program.name}: {done.stderr or done.returncode}")
    for line in done.stdout.splitlines():
        graph, phase, ns = line.split()
        times[graph, phase] = min(float(ns), times.get((graph, phase), float("inf")))


def measure(programs: Mapping[str, Path], threads: Sequence[int], rounds: int) -> list[dict[str, Any]]:
    """Return a row for each runtime, number of threads and graph."""
    rows = []
    for n in threads:
        times: dict[str, Times] = {name: {} for name in programs}
        for _ in range(rounds):
            for name, program in programs.items():
                turn(program, n, times[name])
        for name, taken in times.items():
            for graph in GRAPHS:
                rows.append({"peer": name, "threads": n, "graph": graph, **{phase: ns for (g, phase), ns in taken.items() if g == graph}})
    return rows


def best(rows: Sequence[Mapping[str, Any]], mine: Mapping[str, Any], phase: str) -> tuple[str, float] | None:
    """Return which peer is fastest at what a row of ours is about, and its time."""
    found = [(row[phase], row["peer"]) for row in rows
             if row["peer"] != OURS and row["graph"] == mine["graph"] and row["threads"] == mine["threads"] and phase in row]
    return (min(found)[1], min(found)[0]) if found else None


def table(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return the cells of the table: our times, and how many times as long the best peer takes."""
    cells = [["graph", "threads", "build", "inferred", "run", "goal", "best peer's run", "times as fast", "build and first run",
              "best peer's", "times as fast"]]
    for mine in (row for row in rows if row["peer"] == OURS):
        line = [GRAPHS[mine["graph"]], str(mine["threads"]), *(f"{mine[phase]:.1f}" for phase in ("build", "inferred", "run")),
                str(GOALS[mine["graph"]])]
        for phase in ("run", "all"):
            peer = best(rows, mine, phase)
            line += [f"{mine[phase]:.1f}"] if phase == "all" else []
            line += ["-", "-"] if peer is None else [f"{peer[1]:.1f} ({peer[0]})", f"{peer[1] / mine[phase]:.1f}"]
        cells.append(line)
    return cells


def show(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print every figure, then the comparison."""
    for row in rows:
        taken = "".join(f"  {phase} {row[phase]:.1f}" for phase in ("build", "inferred", "run", "all") if phase in row)
        print(f"{row['threads']} threads  {row['peer']:<9}{row['graph']:<12}{taken}")
    cells = table(rows)
    widths = [max(len(line[k]) for line in cells) for k in range(len(cells[0]))]
    print("\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells))


def markdown(rows: Sequence[Mapping[str, Any]], command: str) -> str:
    """Return the comparison as a table for documentation."""
    head, *body = table(rows)
    return "\n".join([f"{stamp()}: `{command}`; ns a task", "", f"| {' | '.join(head)} |", "| --- " * len(head) + "|",
                      *(f"| {' | '.join(line)} |" for line in body)])


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure what an empty task costs.")
    parser.add_argument("--peers", default=",".join(PEERS), help=f"some of {', '.join(PEERS)}; ours always runs")
    parser.add_argument("--threads", default="1,2", help="numbers of threads")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each program")
    parser.add_argument("--json", type=Path, help="write the rows there")
    parser.add_argument("--markdown", action="store_true", help="print a table for documentation")
    parser.add_argument("--page", type=Path, help="put that table between its marks in this page")
    parser.add_argument("--small", action="store_true", help="few tasks: shows that everything runs")
    options = parser.parse_args()
    side = 32 if options.small else 256
    names = [name for name in options.peers.split(",") if name]
    for name in names:
        if name not in PEERS:
            parser.error(f"no peer {name!r}; there are {', '.join(PEERS)}")
    threads = [int(n) for n in options.threads.split(",") if n.isdecimal() and int(n) > 0]
    if options.rounds < 1 or not threads:
        parser.error("--rounds and --threads are at least 1")
    with tempfile.TemporaryDirectory(prefix="schedulers-") as folder:
        programs = {name: program for name in (OURS, *names) if (program := build(name, Path(folder), side)) is not None}
        missing = [name for name in names if name not in programs]
        if missing:
            print(f"not installed: {', '.join(missing)}")
        print(f"{stamp()}; {side * side:,} tasks, ns a task")
        rows = measure(programs, threads, options.rounds)
    text = markdown(rows, "python -m tests.benchmarks.schedulers")
    print(text) if options.markdown else show(rows)
    if options.page is not None:
        put_between(options.page, "schedulers", text)
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
