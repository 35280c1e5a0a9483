"""Rank plans of functions by cost and by wall time: `python -m tests.benchmarks.plans`.

Each function has eight plans that differ in their tiles. The cost is what the plan says for `host_cpu` with one core; the time is the
least of several runs on one thread. The rank correlation (Spearman) of the two says how far a choice by cost is a choice by wall time;
`chosen` is the default plan. A first run compiles; a second one, on a quiet core, only measures.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pto_wsp import PtoError, builtin_arch, jit
from pto_wsp.schedule.tiling import TilePlan
from tests.benchmarks.page import put_between, stamp

N_PLANS, ROUNDS = 8, 9
HOST = builtin_arch("host_cpu").with_cores(cube=1, vector=1)
Array = npt.NDArray[Any]


@jit
def softmax(x):
    weight = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return weight / np.sum(weight, axis=-1, keepdims=True)


@jit
def rmsnorm_linear(x, g, w):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6) * g @ w


@jit
def matmul(a, b):
    return a @ b


@jit
def swiglu(x, up, down):
    gate, lift = np.split(x @ up, 2, axis=-1)
    return gate / (1 + np.exp(-gate)) * lift @ down


@dataclass(frozen=True)
class Case:
    """A function, the shapes of its arguments, and tiles to combine: of (group, axis), the extents."""

    function: Any
    shapes: tuple[tuple[int, ...], ...]
    tiles: Mapping[tuple[str, int], tuple[int, ...]]

    def arrays(self) -> tuple[Array, ...]:
        """Return the arguments, of size 1."""
        rng = np.random.default_rng(0)
        return tuple(rng.standard_normal(shape, np.float32) / math.sqrt(shape[-2 if k else -1] if len(shape) > 1 else 1)
                     for k, shape in enumerate(self.shapes))


CASES = {
    "softmax": Case(softmax, ((2048, 1024),), {("out", 0): (1, 2, 4, 16, 64, 256, 1024, 2048)}),
    "rmsnorm_linear": Case(rmsnorm_linear, ((512, 512), (512,), (512, 384)), {("out", 0): (4, 32, 128, 512), ("out", 1): (48, 384)}),
    "matmul": Case(matmul, ((512, 512), (512, 512)), {("out", 0): (1, 8, 64, 512), ("out", 1): (16, 512)}),
    "swiglu": Case(swiglu, ((256, 256), (256, 1024), (512, 256)), {("out", 0): (2, 16, 64, 256), ("out", 1): (32, 256)}),
}


def plans_of(case: Case) -> list[TilePlan]:
    """Return the default plan and, with it or without, `N_PLANS` plans by hand."""
    default = case.function.plan(*case.arrays(), arch=HOST)
    found = {default.digest: default}
    for sizes in itertools.product(*case.tiles.values()):
        tiles: dict[str, dict[int, int]] = {}
        for (group, axis), size in zip(case.tiles, sizes, strict=True):
            tiles.setdefault(group, {})[axis] = size
        try:
            plan = default.but(tiles=tiles)
        except PtoError as problem:
            print(f"  {case.function.__name__} {tiles}: {problem.code}", file=sys.stderr)
            continue
        found.setdefault(plan.digest, plan)
    return list(found.values())[:N_PLANS + 1]


def cost_of(plan: TilePlan) -> int:
    """Return the cycles of all groups."""
    return sum(cost.cycles for cost in plan.costs)


def seconds_of(case: Case, plans: Sequence[TilePlan], rounds: int) -> list[float]:
    """Return the least seconds of a run with each plan, taken in turns."""
    names, arrays = case.function.parameter_names, case.arrays()
    programs = [case.function.lower(plan, **dict(zip(names, arrays, strict=True))).compile(threads=1) for plan in plans]
    least = [math.inf] * len(programs)
    for _ in range(rounds + 1):
        for k, program in enumerate(programs):
            start = time.process_time()
            program.run()
            least[k] = min(least[k], time.process_time() - start)
    return least


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Return Spearman's rank correlation; equal values share the mean of their ranks.

    >>> rank_correlation([1, 2, 3, 4], [10, 20, 40, 30])
    0.8
    """
    def ranks(values: Sequence[float]) -> Array:
        array = np.asarray(values, np.float64)
        return np.array([(array < value).sum() + ((array == value).sum() - 1) / 2 for value in array])

    first, second = ranks(one), ranks(other)
    first, second = first - first.mean(), second - second.mean()
    return round(float((first * second).sum() / math.sqrt((first * first).sum() * (second * second).sum())), 3)


def main() -> int:
    """Print a table a function, and what the ranks have in common."""
    parser = argparse.ArgumentParser(description="Costs of plans on host_cpu beside their wall time.")
    parser.add_argument("--only", choices=CASES, nargs="*", default=list(CASES), help="which functions")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="runs whose least time counts (default %(default)s)")
    parser.add_argument("--plans", action="store_true", help="show every plan")
    parser.add_argument("--page", type=Path, help="put the table between its marks in this page")
    options = parser.parse_args()
    rows = ["| function | plans | rank correlation | chosen / fastest | slowest / fastest |", "| --- | --- | --- | --- | --- |"]
    print(*rows, sep="\n")
    for name in options.only:
        plans = plans_of(CASES[name])
        seconds, costs = seconds_of(CASES[name], plans, options.rounds), [cost_of(plan) for plan in plans]
        rows.append(f"| {name} | {len(plans)} | {rank_correlation(costs, seconds):.2f} | {seconds[0] / min(seconds):.2f} | "
                    f"{max(seconds) / min(seconds):.2f} |")
        print(rows[-1])
        if options.plans:
            for plan, cost, second in zip(plans, costs, seconds, strict=True):
                print(f"    {cost:12,} cycles {second * 1e3:8.3f} ms  {plan.code or 'default'}  "
                      f"{' '.join(f'{one.name}:{one.n_tasks}' for one in plan.costs)}")
    if options.page is not None:
        put_between(options.page, "plans", f"{stamp()}: `python -m tests.benchmarks.plans`\n\n" + "\n".join(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
