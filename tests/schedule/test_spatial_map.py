"""Tasks at places of a grid of cores: where they run, when what they need arrives, what is refused."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from pto_wsp import (
    Arch,
    Deps,
    DispatchPolicy,
    DType,
    In,
    InOut,
    Mesh,
    Out,
    P,
    Pools,
    PtoError,
    ReadyPolicy,
    Schedule,
    Tensor,
    TensorLayout,
    Tile,
    TracePolicy,
    Workload,
    auto_schedule,
    builtin_arch,
    kernel,
    pto,
    workload,
)
from pto_wsp.errors import ArchError, KeyTraceError, ScheduleConflictError
from tests.tolerances import Array

F32 = DType.F32
DATA = Deps.infer_bytes_overlap()


@kernel
def grow(x: In[Tile[1, 8, F32]], y: Out[Tile[1, 8, F32]]) -> None:
    pto.store(y, x + 1)


@kernel
def add(x: In[Tile[1, 8, F32]], y: InOut[Tile[1, 8, F32]]) -> None:
    pto.store(y, x + y)


def chains(n: int, steps: int) -> Workload:
    """Return n chains of tasks, i the chain and j the step; a task takes 10 cycles."""
    X = Tensor(np.zeros((n, steps + 1, 8), np.float32), name="X")

    @workload
    def stepped() -> None:
        for i in P(n):
            for j in P.seq(steps):
                grow[i, j](X[i, j:j + 1], X[i, j + 1:j + 2])

    return stepped().task_graph(deps=DATA, trace=TracePolicy.cycles(lambda t: 10))


def far(cycles: int) -> Arch:
    return builtin_arch("unit").with_hops(cycles)


# Two chains of three steps, 7 cycles a hop. On one core 60. Steps along a row: core 0 ends at 10 and 20, core 1 begins at 17, 27 and
# ends at 27, 37, core 2 begins at 34, 44. Chains on rows of their own: 10 + 7 + 10 + 7 + 10. A column and back: 10, a hop, 10, a hop, 10.
# Round by number: task k on core k, chain 1 begins on core 3 and steps (1, 0), (1, 1), (1, 2).
@pytest.mark.sampled(4)
@pytest.mark.parametrize("target", ["interp", "cpu_sim"])
@pytest.mark.parametrize(("grid", "place", "cycles"), [
    ((1, 1), lambda t: (0, 0), 60), ((1, 3), lambda t: (0, t.j), 54), ((2, 3), lambda t: (t.i, t.j), 44), ((2, 3), None, 44),
    ((2, 1), lambda t: (t.j % 2, 0), 54), ((3, 3), lambda t: (2 * (t.j % 2), 2 * (t.j % 2)), 10 + 28 + 10 + 28 + 20),
    ((4, 1), lambda t: (t.i, 0), 30)])
def test_times_by_hand(target: str, grid: tuple[int, int], place: Callable[..., tuple[int, int]] | None, cycles: int) -> None:
    assert chains(2, 3).spatial_map(grid, place).compile(target=target, arch=far(7)).run().stats.total_cycles == cycles


def test_a_core_is_named_and_a_wait_explained() -> None:
    program = chains(1, 2).spatial_map((2, 2), lambda t: (t.j, t.j)).compile(target="interp", arch=far(5)).run()
    assert program.trace.executor.tolist() == [0, 3]
    assert "ended at 10, known to it at 20" in str(program.explain(1))
    assert program.stats.critical_path == program.critical_path.cycles == 30 == program.stats.total_cycles      # two steps of 5 between
    step = program.critical_path[1]
    assert step.reason.startswith("RAW on X[") and step.reason.endswith("(32 bytes over 2 steps)"), step
    assert "(32 bytes over 2 steps)" in str(program.graph) and "(32 bytes over 2 steps)" in str(program.explain(1))
    (edge,) = program.graph.edges
    assert (program.graph.steps(edge), program.graph.size_bytes(edge)) == (2, 32)
    alone = chains(1, 2).compile(target="interp", arch=far(5)).run()
    assert alone.graph.steps(alone.graph.edges[0]) == 0 and "step" not in str(alone.graph) and alone.critical_path.cycles == 20


def drawn(rng: random.Random) -> tuple[Workload, Array]:
    """Return tasks that read and add to rows at random."""
    rows = np.ones((6, 8), np.float32)
    X = Tensor(rows, name="X")
    pairs = [rng.sample(range(6), 2) for _ in range(rng.randrange(1, 16))]

    @workload
    def mixed() -> None:
        for number, (source, target) in enumerate(pairs):
            add[number](X[source:source + 1], X[target:target + 1])

    return mixed(), rows


@pytest.mark.parametrize("seed", range(12))
def test_an_edge_arrives_by_distance_and_results_stay(seed: int) -> None:
    rng = random.Random(seed)
    w, rows = drawn(rng)
    before = rows.copy()
    w.compile(target="interp").run()
    expected, rows[:] = rows.copy(), before
    grid, hops, costs = (rng.randrange(1, 4), rng.randrange(1, 4)), rng.randrange(0, 9), rng.randrange(1, 9)
    a, b = rng.randrange(1, 5), rng.randrange(1, 5)
    mapped = w.task_graph(deps=DATA, trace=TracePolicy.cycles(lambda t: t.params[0] % 3 + costs)).spatial_map(
        grid, lambda t: (t.params[0] * a % grid[0], t.params[0] // b % grid[1]))
    program = mapped.compile(target="interp", arch=far(hops)).run()
    assert np.array_equal(rows, expected)
    place = [(k * a % grid[0], k // b % grid[1]) for k in range(len(program.trace))]
    assert program.trace.executor.tolist() == [row * grid[1] + column for row, column in place]
    ready = [0] * len(place)
    for edge in program.graph.edges:
        steps = sum(abs(x - y) for x, y in zip(place[edge.source], place[edge.target], strict=True))
        ready[edge.target] = max(ready[edge.target], int(program.trace.end[edge.source]) + steps * hops)
    assert program.trace.ready.tolist() == ready
    longest = [0] * len(place)
    for edge in program.graph.edges:       # sorted by target: what leads to a source comes before
        steps = sum(abs(x - y) for x, y in zip(place[edge.source], place[edge.target], strict=True))
        cost = int(program.trace.end[edge.source] - program.trace.start[edge.source])
        longest[edge.target] = max(longest[edge.target], longest[edge.source] + cost + steps * hops)
    ends = [at + int(cost) for at, cost in zip(longest, program.trace.end - program.trace.start, strict=True)]
    assert program.stats.critical_path == program.critical_path.cycles == max(ends)
    busy: dict[int, int] = {}
    for task in np.lexsort((program.trace.ready, program.trace.start)):      # a core is idle only while nothing is ready for it
        core = int(program.trace.executor[task])
        assert program.trace.start[task] == max(ready[task], busy.get(core, 0))
        busy[core] = int(program.trace.end[task])


def test_a_run_is_timed_again_on_another_grid() -> None:
    program = chains(2, 3).compile(target="interp", arch=far(7)).run()
    for grid, place, cycles in (((1, 3), lambda t: (0, t.j), 54), ((2, 3), lambda t: (t.i, t.j), 44)):
        assert program.simulate(chains(2, 3).spatial_map(grid, place)).total_cycles == cycles


def test_a_search_keeps_the_places() -> None:
    found = auto_schedule(chains(2, 3).spatial_map((1, 3), lambda t: (0, t.j)), arch=far(7), budget=30)
    assert found.schedule.spatial_map is not None and found.schedule.dispatch is None and found.cycles <= 54


def test_a_map_goes_through_json_and_code() -> None:
    made = chains(2, 3).spatial_map((2, 3), lambda t: (t.i % 2, t.j % 3)).schedule
    assert Schedule.model_validate_json(made.model_dump_json()) == made
    assert ".spatial_map((2, 3), lambda t: (t.i % 2, t.j % 3))" in made.code


def test_a_place_beyond_the_grid_ends_the_run() -> None:
    with pytest.raises(PtoError, match="spatial_map column"):
        chains(2, 3).spatial_map((1, 2), lambda t: (0, t.j)).compile(target="interp").run()


def test_an_arch_that_does_not_say_how_far_cores_are_apart() -> None:
    mapped = chains(2, 3).spatial_map((1, 3), lambda t: (0, t.j))
    with pytest.raises(ArchError, match="hop_cycles"):
        mapped.compile(target="interp", arch="ascend_910b")
    mapped.compile(target="interp", arch=builtin_arch("ascend_910b").with_hops(4))
    with pytest.raises(ArchError, match="more cores"):
        mapped.spatial_map((99, 99)).compile(target="interp", arch="ascend_910b")


@pytest.mark.parametrize("other", [
    lambda w: w.dispatch(DispatchPolicy.round_robin(2)), lambda w: w.calendar(lambda t: (0, t.j)),
    lambda w: w.task_graph(ready=ReadyPolicy.work_steal()), lambda w: w.task_graph(pools=Pools.by_exec_unit()),
    lambda w: w.task_graph(pools=Pools.custom(lambda t: t.j))])
def test_what_contradicts_places_is_refused(other: Callable[[Workload], Workload]) -> None:
    with pytest.raises(ScheduleConflictError, match="spatial_map"):
        other(chains(2, 3).spatial_map((2, 2)))


def test_a_map_over_ranks_is_refused() -> None:
    A = Tensor(np.zeros((2, 8), np.float32), layout=TensorLayout.sharded(0, 2, "x"))

    @workload
    def of_ranks() -> None:
        for r in P(Mesh(x=2)):
            add[r](A.on(r), A.on(r))

    with pytest.raises(ScheduleConflictError, match="a spatial map and a mesh"):
        of_ranks().spatial_map((1, 2)).compile(target="interp")


@pytest.mark.parametrize("place", [lambda t: t.i, lambda t: (t.i, t.j, 0), lambda t: ("a", 0)])
def test_a_place_is_two_whole_numbers(place: Callable[..., object]) -> None:
    with pytest.raises(KeyTraceError):
        chains(2, 3).spatial_map((2, 2), place)
