"""Searching schedules: what is found is the least there is, whoever simulates, and nothing that was said is changed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from pto_wsp import (
    Deps,
    DispatchPolicy,
    DType,
    In,
    Out,
    P,
    PtoError,
    ReadyPolicy,
    Symbol,
    TaskWindow,
    Tensor,
    Tile,
    Tunable,
    Workload,
    auto_schedule,
    kernel,
    pto,
    workload,
)

F32 = DType.F32
X, Y = Tensor(np.ones((8, 4), np.float32), name="X"), Tensor(np.zeros((8, 4), np.float32), name="Y")


@kernel
def copy(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]):
    pto.store(y, x)


@workload
def eight():
    for b in P(8):
        copy[b](x=X[b:b + 1], y=Y[b:b + 1])


@workload
def halves(rows: int = Tunable(1, 2, 4, 3)):  # type: ignore[assignment]
    """Eight rows, `rows` at a time: three do not fit."""
    if 8 % rows:
        raise ValueError("three rows")

    @kernel
    def scale(x: In[Tile[rows, 4, F32]], y: Out[Tile[rows, 4, F32]]):
        pto.store(y, x * 3)

    for b in P.seq(8 // rows):
        scale[b](x=X[b * rows:(b + 1) * rows], y=Y[b * rows:(b + 1) * rows])


@pytest.fixture(scope="module")
def pools() -> Iterator[dict[str, Executor]]:
    with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        yield {"threads": threads, "processes": processes}


@pytest.mark.slow
def test_a_small_space_is_tried_completely_and_the_least_is_found() -> None:
    # a copy loads and stores 4 elements: 8 cycles; eight of them on 4 executors take two turns
    found = auto_schedule(eight().task_graph(deps=Deps.hybrid(), window=TaskWindow(64), ready=ReadyPolicy.fifo()), budget=10_000)
    assert (found.default_cycles, found.cycles, found.lower_bound, found.gap, found.speedup) == (64, 16, 16, 0.0, 4.0)
    assert found.cycles == min(trial.cycles for trial in found.trials if trial.cycles is not None)
    assert found.workload.compile().run().stats.total_cycles == 16
    assert found.workload.schedule == found.schedule


@pytest.mark.slow
def test_a_budget_is_kept_and_a_seed_repeats_itself() -> None:
    first, again, other = (auto_schedule(eight(), budget=40, seed=seed) for seed in (7, 7, 8))
    assert len(first.trials) == 40 and len({repr(trial.schedule) for trial in first.trials}) == 40
    assert first.trials == again.trials and first.trials != other.trials
    assert first.trials[0].schedule == eight().schedule and first.trials[0].cycles == first.default_cycles == 64


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_executors_change_nothing(pools: dict[str, Executor], kind: str) -> None:
    alone, shared = (auto_schedule(eight(), budget=30, seed=3, executor=executor) for executor in (None, pools[kind]))
    assert str(alone) == str(shared) and alone.trials == shared.trials


def test_what_the_schedule_says_stays() -> None:
    given = eight().dispatch(DispatchPolicy.round_robin(2)).task_graph(window=TaskWindow(3))
    found = auto_schedule(given, budget=30)
    assert all(trial.schedule.dispatch == given.schedule.dispatch and trial.schedule.window == given.schedule.window
               for trial in found.trials)
    assert found.cycles == 32      # two executors, four tasks each


def test_beside_a_calendar_nothing_is_asked_that_it_decides() -> None:
    given = eight().calendar(lambda t: (t.b % 2, t.b))
    found = auto_schedule(given, arch="ascend_910b", budget=30)
    assert len(found.trials) == 6 and {trial.refused for trial in found.trials} == {""}      # two kinds of edges, three windows
    assert {trial.schedule.calendar for trial in found.trials} == {given.schedule.calendar}


def test_of_equals_the_one_that_says_least_is_taken() -> None:
    found = auto_schedule(eight().dispatch(DispatchPolicy.round_robin(8)), budget=200)
    assert found.schedule == eight().dispatch(DispatchPolicy.round_robin(8)).schedule and found.cycles == found.default_cycles == 8


def test_a_tunable_left_out_is_its_first_value() -> None:
    assert halves() == halves(rows=1) == halves(1) == halves(Tunable(1, 4)) and halves(2) != halves()
    assert repr(Tunable(1, 2)) == "Tunable(1, 2)" and Tunable(1, 2).default == 1


@pytest.mark.slow
def test_tunables_are_searched_with_the_schedule() -> None:
    def tuned(rows: int = Tunable(1, 2, 4)) -> Workload:  # type: ignore[assignment]
        return halves(rows).dispatch(DispatchPolicy.round_robin(4)).task_graph(
            deps=Deps.infer_bytes_overlap(), window=TaskWindow(64), ready=ReadyPolicy.fifo())

    found = auto_schedule(tuned, budget=1000)
    by_hand = {rows: tuned(rows).compile().run().stats.total_cycles for rows in (1, 2, 4)}
    # load, multiply, store: 12 cycles a row; eight rows over four executors, two tasks of four rows leave two idle
    assert by_hand == {1: 24, 2: 24, 4: 48}
    assert found.cycles == 24 and found.tunables == {"rows": 1}
    assert {trial.tunables["rows"]: trial.cycles for trial in found.trials if trial.schedule == tuned().schedule} == by_hand


@pytest.mark.slow
def test_values_that_do_not_fit_are_refused_and_the_rest_is_searched() -> None:
    def tuned(rows: int = Tunable(2, 64)) -> Workload:  # type: ignore[assignment]
        @workload
        def whole() -> None:
            copies[rows](x=X[0:rows], y=Y[0:rows])

        @kernel
        def copies(x: In[Tile[rows, 4, F32]], y: Out[Tile[rows, 4, F32]]):
            pto.store(y, x)
        return whole()

    found = auto_schedule(tuned, budget=400)
    refused = [trial for trial in found.trials if trial.cycles is None and trial.tunables == {"rows": 64}]
    assert found.tunables == {"rows": 2} and refused and "outside" in refused[0].refused
    assert "refused" in str(found)


def test_the_usual_values_have_to_work() -> None:
    with pytest.raises(PtoError, match="T301"):
        auto_schedule(lambda rows=Tunable(9): _too_many(rows))


def _too_many(rows: int) -> Workload:
    @workload
    def outside() -> None:
        for b in P(rows):
            copy[b](x=X[b:b + 1], y=Y[b:b + 1])
    return outside()


@pytest.mark.slow
def test_symbols_are_bound_as_for_a_run() -> None:
    n = Symbol("n")

    @workload
    def some() -> None:
        for b in P(n):
            copy[b](x=X[b:b + 1], y=Y[b:b + 1])

    assert auto_schedule(some(), budget=300, bindings={"n": 4}).cycles == 8
    with pytest.raises(PtoError, match="W101") as refused:
        auto_schedule(some(), budget=3)
    assert refused.value.help == "give it to the search: auto_schedule(..., bindings={'n': ...})"


def test_no_tasks_take_no_cycles() -> None:
    @workload
    def nothing() -> None:
        for b in P(0):
            copy[b](x=X[b:b + 1], y=Y[b:b + 1])

    found = auto_schedule(nothing(), budget=5)
    assert (found.cycles, found.default_cycles, found.gap, found.speedup) == (0, 0, 0.0, 1.0)


def test_the_table_reads_well() -> None:
    lines = str(auto_schedule(eight(), budget=20, seed=1)).splitlines()
    assert "cycles, 64 before" in lines[1] and lines[2].startswith("20 tried, seed 1")
    assert lines[3].split() == ["cycles", "above", "bound", "schedule"]
    cycles = [int(line.split()[0]) for line in lines[4:14] if line.split()[0].isdigit()]
    assert cycles == sorted(cycles) and len(cycles) > 1


def test_a_bar_shows_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    auto_schedule(eight(), budget=3, progress=True)
    shown = capsys.readouterr()
    assert "cycles" in shown.err and not shown.out
    auto_schedule(eight(), budget=3, progress=False)
    assert capsys.readouterr().err == ""


def test_numpys_whole_numbers_will_do() -> None:
    assert len(auto_schedule(eight(), budget=np.int64(3), seed=np.uint8(1)).trials) == 3  # type: ignore[arg-type]


def test_an_executor_that_was_shut_down_is_named() -> None:
    closed = ThreadPoolExecutor(1)
    closed.shutdown()
    with pytest.raises(PtoError, match="S111") as refused:
        auto_schedule(eight(), budget=3, executor=closed)
    assert "ThreadPoolExecutor" in (refused.value.found or "")


@pytest.mark.slow
@pytest.mark.parametrize(("say", "code"), [
    (lambda: auto_schedule(eight(), budget=0), "S111"),
    (lambda: auto_schedule(eight(), budget=True), "S111"),
    (lambda: auto_schedule(eight(), seed="1"), "S111"),  # type: ignore[arg-type]
    (lambda: auto_schedule(eight(), executor=ThreadPoolExecutor), "S111"),  # type: ignore[arg-type]
    (lambda: auto_schedule(3), "S111"),  # type: ignore[arg-type]
    (lambda: auto_schedule(lambda: eight()), "S111"),
    (lambda: auto_schedule(lambda rows=Tunable(1): rows), "S111"),
    (lambda: auto_schedule(eight(), arch="nowhere"), "C115"),
    (lambda: auto_schedule(eight(), bindings=["n"]), "S111"),  # type: ignore[arg-type]
    (lambda: auto_schedule(eight(), bindings={3: 4}), "S111"),  # type: ignore[dict-item]
    (lambda: auto_schedule(eight(), bindings=0), "S111"),  # type: ignore[arg-type]
    (lambda: auto_schedule(eight(), overheads="yes"), "S111"),  # type: ignore[arg-type]
    (lambda: auto_schedule(eight(), progress=1), "S111"),  # type: ignore[arg-type]
    (lambda: Tunable(), "S110"),
    (lambda: Tunable(1, 1), "S110"),
    (lambda: Tunable([1, 2]), "S110"),
], ids=range(16))
def test_what_cannot_be_searched_is_refused(say: object, code: str) -> None:
    with pytest.raises(PtoError, match=code):
        say()  # type: ignore[operator]
