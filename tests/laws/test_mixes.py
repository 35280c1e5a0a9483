"""Workloads in which features meet leave what NumPy leaves: on both targets, in any order, under any schedule, sanitized, and read back."""

from __future__ import annotations

import random

import pytest

from pto_wsp import Deps, DispatchPolicy, Program, ReadyPolicy, TaskWindow, Workload, parse
from tests.laws.generated_mixes import PARTS, Mix
from tests.laws.generated_workloads import threads_of

# Places of a ring by hand are numbers that tokens bring: the order is left to the run, and watched for where it is sanitized.
pytestmark = pytest.mark.filterwarnings("ignore:.*nothing proves that they do not race:UserWarning")

SCHEDULES = (
    lambda w: w,
    lambda w: w.dispatch(DispatchPolicy.round_robin(3)).streams(2),
    lambda w: w.dispatch(DispatchPolicy.work_steal(4)).task_graph(deps=Deps.infer_bytes_overlap()),
    lambda w: w.task_graph(window=(TaskWindow(3), TaskWindow(64, "edges"), TaskWindow(2, "ready"))),
    lambda w: w.dispatch(DispatchPolicy.affinity(lambda t: t.params[0] % 3, 3)).task_graph(
        deps=Deps.hybrid(), ready=ReadyPolicy.priority(lambda t: t.params[0] % 2)),
    lambda w: w.stream_by(lambda t: t.params[0] % 2),
)


def replayed(mix: Mix, program: Program, order: int) -> None:
    """Raise AssertionError unless a run in an order leaves what NumPy leaves."""
    with mix.fresh():
        if order:
            program.replay(order, **mix.symbols)
        else:
            program.run(**mix.symbols)


def figures(program: Program) -> tuple[int, int]:
    return program.stats.total_cycles, len(program.graph.edges)


def check(seed: int, *, native: bool) -> None:
    """Raise AssertionError unless a drawn workload means what NumPy says, whatever runs it."""
    mix, draw = Mix(seed), random.Random(seed)
    traced = mix.trace()
    assert Workload.from_json(traced.to_json()) == traced == parse(str(traced.ir)), mix
    scheduled = draw.choice(SCHEDULES)(traced)
    program = scheduled.compile("interp")
    for order in (0, 3, 4):
        replayed(mix, program, order)
    if native:
        compiled = scheduled.compile("cpu_sim")
        for threads, order in ((1, 0), (2, 0), (3, 5)):
            with threads_of(compiled, threads):
                replayed(mix, compiled, order)
        sanitized = scheduled.compile("cpu_sim", sanitize=True)
        replayed(mix, sanitized, 0)
        assert figures(program) == figures(compiled) == figures(sanitized), mix


@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(1000, 1025), marks=pytest.mark.slow)], ids=str)
def test_features_that_meet_mean_what_numpy_says_in_any_order(seeds: range) -> None:
    for seed in seeds:
        check(seed, native=False)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [4, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2000, 2008))])
def test_native_runs_agree(seed: int) -> None:
    check(seed, native=True)


def test_every_statement_is_drawn() -> None:
    names = {part.name.split()[0] for seed in range(40) for part, _ in Mix(seed).parts}
    assert names == {part.__name__ for part in PARTS}
