"""The twelve works in this language, beside the peers that are installed: `python -m tests.benchmarks.workloads --help`.

Each peer has a process of its own and they take turns, so that what disturbs the machine disturbs all. A result is checked against
NumPy before it is timed: a wrong one is a row with an error and without a time. Limits of the machine are measured in the same turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.page import put_between, stamp
from tests.benchmarks.peers.catalogue import OURS, PEERS, TENSORS
from tests.benchmarks.worker import LIMIT
from tests.benchmarks.works.catalogue import WORKS, draw

TORCH = ("torchc", "torch")     # torch.compile, or eager code where both call the same library
PAUSE_S = 0.01   # after a turn, until the threads of the peer have gone to sleep
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Worker:
    """A peer's process."""

    def __init__(self, peer: str, threads: int, log: Path, clock: str) -> None:
        self.peer = peer
        self.log = log
        environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(threads))}
        cores = sorted(os.sched_getaffinity(0))[:threads]
        with log.open("w") as errors:
            self.process = subprocess.Popen([sys.executable, "-m", "tests.benchmarks.worker", peer, str(threads), clock], text=True,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment,
                                            cwd=Path(__file__).resolve().parents[2],
                                            preexec_fn=lambda: os.sched_setaffinity(0, cores))

    def ask(self, **order: object) -> dict[str, Any]:
        """Return the answer to an order; a process that ended answers with what it said last."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(order) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            last = self.log.read_text().strip().splitlines()[-1:]
            return {"failure": " ".join(["the process ended", *last])}
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def workers(peers: Sequence[str], threads: int, folder: Path, clock: str = "wall") -> Iterator[list[Worker]]:
    """Start a process a peer; end them after."""
    with ExitStack() as stack:
        started = []
        for peer in peers:
            worker = Worker(peer, threads, folder / f"{peer}.log", clock)
            stack.enter_context(worker.process)   # closes its pipes, at which it ends, and waits
            started.append(worker)
        yield started


def measure(key: str, everyone: Sequence[Worker], rounds: int, folder: Path, *, small: bool) -> list[dict[str, Any]]:
    """Return the rows of one work, the fastest peer first."""
    work = WORKS[key]
    given = draw(work, small=small)
    amount = work.amount(work.small if small else work.full)
    place = folder / key
    (place / "inputs").mkdir(parents=True)
    for name, array in given.items():
        np.save(place / "inputs" / f"{name}.npy", array)
    np.save(place / "expected.npy", work.expected(given))
    rows, racing = [], []
    for worker in everyone:
        answer = worker.ask(do="prepare", work=key, folder=str(place), amount=amount)
        if "failure" in answer:
            rows.append(_row(key, worker.peer, failure=answer["failure"]))
        elif "error" in answer and not answer["error"] <= work.tolerance:
            rows.append(_row(key, worker.peer, error=answer["error"], failure=f"wrong result: error {answer['error']:.1e}"))
        elif "error" in answer:
            racing.append((worker, answer, []))
    times: dict[str, list[float]] = {worker.peer: [] for worker, _, _ in racing}
    for _ in range(rounds):
        for worker, _, _ in racing:
            times[worker.peer] += worker.ask(do="time").get("ms", [])
            time.sleep(PAUSE_S)
    limit_ms = min(times.pop(LIMIT))
    for worker, answer, _ in racing:
        taken = times.get(worker.peer)
        if taken:
            rows.append(_row(key, worker.peer, ms=min(taken), median_ms=statistics.median(taken), first_ms=answer["first_ms"],
                             limit=work.bound.value, limit_ms=limit_ms, limit_fraction=limit_ms / min(taken), error=answer["error"]))
    for worker in everyone:
        worker.ask(do="drop")
    for path in sorted(place.rglob("*.npy")):
        path.unlink()
    return sorted(rows, key=lambda row: (row["ms"] is None, row["ms"]))


def _row(key: str, peer: str, **known: object) -> dict[str, Any]:
    return {"work": key, "peer": peer, "ms": None, "limit_fraction": None, "error": None, **known}


def show(rows: Sequence[dict[str, Any]]) -> None:
    """Print the rows of one work."""
    for row in rows:
        if row["ms"] is None:
            print(f"{row['work']:<10}{row['peer']:<9}{row['failure']}")
        else:
            print(f"{row['work']:<10}{row['peer']:<9}{row['ms']:>9.3f} ms (median {row['median_ms']:.3f}){row['limit_fraction']:>7.0%} "
                  f"of {row['limit']:<6} error {row['error']:.1e}", flush=True)


def markdown(rows: Sequence[dict[str, Any]], command: str) -> str:
    """Return a table for documentation: our time, the best peer's, the share of the limit; how long functions on tensors take, in ms and
    as a multiple of the kernels' time; and what torch.compile takes, as a multiple of the time of these functions."""
    lines = [f"{stamp()}: `{command}`", "",
             "| work | ms | of the limit | best peer | ms | times as fast | tensors | of kernels | torch, of tensors |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for key in dict.fromkeys(row["work"] for row in rows):
        timed = [row for row in rows if row["work"] == key and row["ms"] is not None]
        mine = next((row for row in timed if row["peer"] == OURS), None)
        best = min((row for row in timed if row["peer"] not in (OURS, TENSORS)), key=lambda row: float(row["ms"]), default=None)
        ours = "| - | - " if mine is None else f"| {mine['ms']:.3g} | {mine['limit_fraction']:.0%} of {mine['limit']} "
        theirs = "| - | - " if best is None else f"| {best['peer']} | {best['ms']:.3g} "
        ratio = "-" if mine is None or best is None else f"{best['ms'] / mine['ms']:.2f}"
        tensors = next((float(row["ms"]) for row in timed if row["peer"] == TENSORS), None)
        torch = next((row for name in TORCH for row in timed if row["peer"] == name), None)
        whole = "-" if tensors is None else f"{tensors:.3g}"
        of_kernels = "-" if tensors is None or mine is None else f"{tensors / mine['ms']:.2f}"
        of_torch = "-" if tensors is None or torch is None else f"{torch['ms'] / tensors:.2f}"
        lines.append(f"| {WORKS[key].says} {ours}{theirs}| {ratio} | {whole} | {of_kernels} | {of_torch} |")
    return "\n".join(lines)


def main() -> int:
    """Measure and print; exit with 1 when a result of ours was wrong or missing."""
    installed = [name for name, peer in PEERS.items() if peer.installed]
    parser = argparse.ArgumentParser(description="Measure the works beside the peers that are installed.")
    parser.add_argument("--works", default=",".join(WORKS), help=f"some of {', '.join(WORKS)}")
    parser.add_argument("--peers", default=",".join(installed), help=f"some of {', '.join(PEERS)}; ours always runs")
    parser.add_argument("--threads", type=int, default=min(2, len(os.sched_getaffinity(0))))
    parser.add_argument("--clock", choices=["wall", "processor"], default="wall",
                        help="processor: the time of one thread, which others on the machine disturb less; with --threads 1")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, help="write the rows there")
    parser.add_argument("--markdown", action="store_true", help="print a table for documentation at the end")
    parser.add_argument("--page", type=Path, help="put that table between its marks in this page")
    parser.add_argument("--small", action="store_true", help="little data: shows that everything runs")
    options = parser.parse_args()
    works, peers = ([name for name in given.split(",") if name] for given in (options.works, options.peers))
    for what, names, known in (("work", works, [*WORKS]), ("peer", peers, [*PEERS, OURS])):
        for name in names:
            if name not in known:
                parser.error(f"no {what} {name!r}; there are {', '.join(known)}")
    missing = [name for name in peers if name != OURS and not PEERS[name].installed]
    if missing:
        print(f"not installed: {', '.join(missing)}")
    if options.threads < 1 or options.rounds < 1:
        parser.error("--threads and --rounds are at least 1")
    if options.clock == "processor" and options.threads != 1:
        parser.error("--clock processor counts what all threads do, waiting too: --threads 1")
    print(f"{stamp()}; {options.threads} threads")
    rows: list[dict[str, Any]] = []
    running = [LIMIT, OURS, *(name for name in peers if name != OURS and name not in missing)]
    with (tempfile.TemporaryDirectory(prefix="workloads-") as folder,
          workers(running, options.threads, Path(folder), options.clock) as everyone):
        for key in works:
            found = measure(key, everyone, options.rounds, Path(folder), small=options.small)
            show(found)
            rows += found
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    table = markdown(rows, f"python -m tests.benchmarks.workloads --peers {','.join(peers)} --threads {options.threads}"
                     + (" --clock processor" if options.clock == "processor" else ""))
    if options.markdown:
        print(table)
    if options.page is not None:
        put_between(options.page, "workloads", table)
    return int(any(row["peer"] == OURS and row["ms"] is None for row in rows))


if __name__ == "__main__":
    sys.exit(main())
