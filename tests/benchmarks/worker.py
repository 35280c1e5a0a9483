"""One peer in a process of its own, told what to do by lines of JSON: `python -m tests.benchmarks.worker PEER THREADS CLOCK`.

prepare: loads a work's inputs, runs it once and answers with its error. time: answers with the ms of several runs. drop: forgets
the work. Peers keep pools of threads; in processes of their own, idle between their turns, they do not disturb each other.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from tests.benchmarks.limits import prepare as prepare_limit
from tests.benchmarks.peers.catalogue import prepare
from tests.benchmarks.works.catalogue import WORKS
from tests.benchmarks.works.work import Array, aligned

LIMIT = "limit"
TURN_S, MOST_RUNS = 0.05, 100

CLOCKS: Mapping[str, Callable[[], float]] = {"wall": time.perf_counter, "processor": time.process_time}


def load(folder: Path) -> dict[str, Array]:
    """Return the arrays that the parent saved, each at the start of a cache line."""
    return {path.stem: aligned(np.load(path)) for path in sorted(folder.glob("*.npy"))}


def prepare_work(peer: str, key: str, folder: Path, amount: int, threads: int,
                 clock: Callable[[], float]) -> tuple[dict[str, object], Callable[[], float] | None]:
    """Return what to answer, and what measures one run in ms where the peer offers the work."""
    if peer == LIMIT:
        return {"error": 0.0}, prepare_limit(WORKS[key], amount, threads, clock)
    work = WORKS[key]
    found = prepare(peer, key, load(folder / "inputs"), threads)
    if found is None:
        return {"skipped": True}, None
    run, result = found
    started = time.perf_counter()
    run()
    first_ms = (time.perf_counter() - started) * 1e3
    error = work.error(result(), np.load(folder / "expected.npy"))

    def measure() -> float:
        begun = clock()
        run()
        return (clock() - begun) * 1e3

    return {"error": error, "first_ms": first_ms}, measure


def turn(measure: Callable[[], float]) -> list[float]:
    """Return the ms of some runs, after one that is not counted."""
    measure()
    taken: list[float] = []
    started = time.perf_counter()
    while not taken or (time.perf_counter() - started < TURN_S and len(taken) < MOST_RUNS):
        taken.append(measure())
    return taken


def main() -> int:
    """Answer until the input ends."""
    peer, threads, clock = sys.argv[1], int(sys.argv[2]), CLOCKS[sys.argv[3]]
    # Answers have their own channel: what a library prints goes with the errors.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    measure: Callable[[], float] | None = None
    for line in sys.stdin:
        order = json.loads(line)
        answer: dict[str, object] = {}
        try:
            if order["do"] == "prepare":
                answer, measure = prepare_work(peer, order["work"], Path(order["folder"]), order["amount"], threads, clock)
            elif order["do"] == "time" and measure is not None:
                answer = {"ms": turn(measure)}
            elif order["do"] == "drop":
                measure = None
        except Exception as problem:   # of a library that is not ours: the row says so, the others go on
            traceback.print_exc()
            answer = {"failure": f"{type(problem).__name__}: {problem}".splitlines()[0][:200]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
