"""Measure what a warm call of a jit function costs over a run of its program: `python -m tests.benchmarks.jit_calls`.

Medians of 1,000 calls. `run` is `Program.run` of the same artifact on arrays that are bound already; `fresh` brings arrays at new places
with each call, so that tasks are made anew, in both.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np

from pto_wsp import DType, Program, Tensor, jit

F32 = DType.F32
N_CALLS = 1000


@jit
def rmsnorm(x: Tensor["t", 64, F32], g: Tensor[64, F32], eps: float = 1e-6):      # noqa: F821, UP037
    """A short function: what a call costs is seen beside what it computes."""
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * g


def median_us(call: Callable[[], object], n_calls: int = N_CALLS) -> float:
    """Return the median time of a call in microseconds."""
    taken: list[float] = []
    for _ in range(n_calls):
        started = time.perf_counter()
        call()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken) * 1e6


def rows(n_calls: int = N_CALLS) -> Iterator[tuple[str, float, float]]:
    """Yield (what, microseconds of a call, microseconds of a run)."""
    x, g = np.random.default_rng(1).random((77, 64), np.float32), np.ones(64, np.float32)
    out = np.empty_like(rmsnorm(x, g))
    program: Program = rmsnorm.compiled[0].program
    yield "NumPy", median_us(lambda: rmsnorm(x, g), n_calls), median_us(lambda: program.run(x=x, g=g, out=out, t=77), n_calls)
    kept: list[object] = []
    yield ("NumPy, fresh", median_us(lambda: kept.append(rmsnorm(x, g)), n_calls),
           median_us(lambda: program.run(x=x, g=g, out=np.empty((77, 64), np.float32), t=77), n_calls))
    try:
        import torch
    except ImportError:
        return
    tx, tg, tout = torch.from_numpy(x), torch.from_numpy(g), torch.empty(77, 64)
    yield "torch", median_us(lambda: rmsnorm(tx, tg), n_calls), median_us(lambda: program.run(x=tx, g=tg, out=tout, t=77), n_calls)


def main() -> int:
    """Print a line a row; return 1 where a call costs more than 30 microseconds over a run."""
    worst = 0.0
    for name, call, run in rows():
        worst = max(worst, call - run)
        print(f"{name:14} call {call:7.1f} us   run {run:7.1f} us   over {call - run:+6.1f} us")
    return int(worst > 30)


if __name__ == "__main__":
    sys.exit(main())
