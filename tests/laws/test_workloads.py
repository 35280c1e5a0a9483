"""Generated workloads: cpu_sim, interp, every legal order, thread count and schedule leave the same bits.

Edges are held against a brute-force search of conflicts between elements, the task stream in C against the one in Python, and the
simulator against its bounds. Taking one rule for edges out of the library must make these tests fail.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from pto_wsp import Deps, DispatchPolicy, Program, TaskWindow, Workload
from pto_wsp.artifact import build
from pto_wsp.ir.plan_walk import submits
from pto_wsp.resources import csrc_dir
from pto_wsp.run.interpreter import stream_of
from pto_wsp.run.native import slots_of
from pto_wsp.run.orchestrator import TaskInstance
from tests.laws.generated_workloads import Bench, Call, For, Spot, Together, WorkloadRecipe, check_orders, threads_of, workload_recipes
from tests.tolerances import Array, assert_identical

RAW, WAR, WAW, ORDER = 1, 2, 4, 8

pytestmark = pytest.mark.usefixtures("races_allowed")     # conflicts of all kinds are what is drawn, whatever the loops promise


def schedules(traced: Workload) -> Iterator[tuple[str, Workload]]:
    """Yield the workload under schedules that differ in every directive that is enforced."""
    yield "default", traced
    yield "overlap", traced.task_graph(deps=Deps.infer_bytes_overlap())
    yield "round robin, window 1", traced.dispatch(DispatchPolicy.round_robin(3)).task_graph(window=TaskWindow(1))
    yield "by key, window 5", traced.dispatch(DispatchPolicy.dispatch_by(lambda t: t.params[0] * 7 + 1, 2)).task_graph(
        deps=Deps.hybrid(), window=TaskWindow(5))
    yield "hash", traced.dispatch(DispatchPolicy.hash(lambda t: t.params[0], 4))


def expected_of(bench: Bench, traced: Workload) -> Array:
    """Return what NumPy in program order leaves."""
    return bench.run(traced.compile(target="interp"))


# ---- (a), (b): the same bits ----

def check_results(recipe: WorkloadRecipe, *, all_schedules: bool) -> None:
    """Raise AssertionError unless every way to run the workload leaves what program order leaves."""
    bench = Bench(recipe)
    traced = bench.trace()
    expected = expected_of(bench, traced)
    for name, scheduled in schedules(traced):
        if not all_schedules and name not in ("default", "overlap"):
            continue
        program = scheduled.compile()
        for threads in (1, 2, 3, 4):
            with threads_of(program, threads):
                assert_identical(bench.run(program), expected, (name, threads, recipe))
        check_orders(bench, program, expected)


def check_against_hand(recipe: WorkloadRecipe) -> None:
    """Raise AssertionError unless both targets leave what the recipe says, worked out without a plan."""
    bench = Bench(recipe)
    traced = bench.trace()
    expected = bench.by_hand()
    for target in ("interp", "cpu_sim"):
        assert_identical(bench.run(traced.compile(target=target)), expected, (target, recipe))
    assert Workload.from_json(traced.to_json()) == traced and traced == bench.trace()


@pytest.mark.slow
@given(workload_recipes(control=True))
@settings(max_examples=6)
def test_both_targets_leave_what_is_worked_out_by_hand_for_many(recipe: WorkloadRecipe) -> None:
    check_against_hand(recipe)


@pytest.mark.slow
@given(workload_recipes(control=True))
@settings(max_examples=4)
def test_results_do_not_depend_on_any_schedule(recipe: WorkloadRecipe) -> None:
    check_results(recipe, all_schedules=True)


DENSE_CONFLICTS = WorkloadRecipe(
    (For(3, False, (Call("put", (2, 3), Spot("whole", 0, 0, (2,), (0,)), Spot("whole", 4, 4, (1,), (0,))),
                    For("ragged", True, (Call("mix", (4, 4), Spot("whole", 3, 3, (1, 1), (0, 0)), Spot("part", 0, 0, (1, 0), (2, 1))),
                                         Call("part", (1, 6), Spot("part", 5, 2, (1, 0), (0, 1)), Spot("whole", 5, 5, (0, 1), (1, 0)),
                                              after=1))))),
     Together("combine", ((Call("mix", (3, 2), Spot("whole", 4, 4, (), ()), Spot("whole", 4, 4, (), (), T=False)),),
                          (Call("put", (2, 3), Spot("whole", 5, 5, (), ()), Spot("whole", 5, 4, (), ())),))),
     Call("mix", (3, 2), Spot("whole", 4, 5, (), ()), Spot("whole", 6, 4, (), (), T=True), after=2)),
    (2, 0, 3), 7)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", [name for name, _ in schedules(Bench(DENSE_CONFLICTS).trace())])
def test_every_schedule_leaves_what_program_order_leaves(name: str) -> None:
    bench = Bench(DENSE_CONFLICTS)
    traced = bench.trace()
    program = dict(schedules(traced))[name].compile()
    expected = expected_of(bench, traced)
    assert_identical(bench.run(program), expected)
    check_orders(bench, program, expected, seeds=10)


# ---- (c): two enumerations of one stream ----

def check_streams(recipe: WorkloadRecipe, scheduled: Any) -> None:
    """Raise AssertionError unless C and Python make the same tasks, with all that they carry, and the same edges."""
    bench = Bench(recipe)
    traced = bench.trace()
    program, oracle = scheduled(traced).compile(), scheduled(traced).compile(target="interp")
    bench.run(program)
    bench.run(oracle)
    found, expected = program.compiled.runner.recorder.columns(), oracle.compiled.runner.recorder.columns()
    for name in ("n_tasks", "first_task", "first_node", "total_tasks"):
        assert getattr(found, name) == getattr(expected, name), name
    for name in ("task_kernel", "task_site", "task_worker", "task_cost", "index_begin", "index"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), (name, recipe)
    assert program.graph.edges == oracle.graph.edges   # joins resolved: C leaves out those that nobody waits for
    tasks = [node for node in stream_of(program.plan, program.bind()) if isinstance(node, TaskInstance)]
    assert len(tasks) == found.n_tasks
    for k, task in enumerate(tasks):
        assert carried(program, k) == declared(program, task), (k, recipe)


def carried(program: Program, k: int) -> tuple[Any, ...]:
    """Return what task k of the record carries."""
    engine = program.compiled.runner
    raw = engine.runtime.ffi.new("pto_columns *")
    engine.runtime.lib.pto_record_columns(engine.recorder.raw, raw)
    bases = {g: min(a.__array_interface__["data"][0] for a, h in _grouped(program) if h == g) for _, g in _grouped(program)}
    args = [raw.args[i] for i in range(raw.arg_begin[k], raw.arg_begin[k + 1])]
    address = engine.runtime.ffi.cast
    return (raw.task_kernel[k], raw.task_site[k], raw.task_worker[k], raw.task_cost[k],
            tuple(raw.index[i] for i in range(raw.index_begin[k], raw.index_begin[k + 1])),
            tuple(raw.scalars[i] for i in range(raw.scalar_begin[k], raw.scalar_begin[k + 1])),
            tuple((a.buffer, int(address("intptr_t", a.data)) - bases[a.buffer], tuple(a.extent), tuple(a.stride), a.flags & 3,
                   a.elem_bytes) for a in args))


def declared(program: Program, task: TaskInstance) -> tuple[Any, ...]:
    """Return what the Python enumeration says of the same task."""
    kernel = program.plan.kernels[task.submit.kernel].kernel
    grouped = _grouped(program)
    bases = {g: min(a.__array_interface__["data"][0] for a, h in grouped if h == g) for _, g in grouped}
    args = []
    for view, param in zip(task.views, kernel.memory_params, strict=True):
        array, group = grouped[view.slot]
        offset = array.__array_interface__["data"][0] - bases[group] + view.offset * array.itemsize
        args.append((group, offset, view.extent, view.stride, param.role.reads + 2 * param.role.writes, array.itemsize))
    scalars = slots_of(task.scalars, [param.dtype.is_float for param in kernel.scalar_params])
    return (task.submit.kernel, task.submit.site, task.worker, task.cost, task.index, tuple(scalars), tuple(args))


def _grouped(program: Program) -> list[tuple[Array, int]]:
    bindings = program.bind()
    return list(zip(bindings.arrays, bindings.groups, strict=True))


@pytest.mark.slow
@given(workload_recipes(control=True))
@settings(max_examples=2)
def test_streams_agree_under_every_schedule(recipe: WorkloadRecipe) -> None:
    for name in ("default", "overlap", "round robin, window 1", "by key, window 5", "hash"):
        check_streams(recipe, lambda traced, name=name: dict(schedules(traced))[name])


# ---- (d): edges are the conflicts ----

def elements(program: Program, task: TaskInstance) -> tuple[frozenset[int], frozenset[int]]:
    """Return the addresses that a task reads and those that it writes."""
    kernel = program.plan.kernels[task.submit.kernel].kernel
    arrays = program.bind().arrays
    reads: set[int] = set()
    writes: set[int] = set()
    for view, param in zip(task.views, kernel.memory_params, strict=True):
        array = arrays[view.slot]
        rows, cols = np.indices(view.extent)
        places = view.offset + rows * view.stride[0] + cols * view.stride[1]
        found = set((array.__array_interface__["data"][0] + places * array.itemsize).ravel().tolist())
        reads |= found if param.role.reads else set()
        writes |= found if param.role.writes else set()
    return frozenset(reads), frozenset(writes)


def closure(edges: Array) -> Array:
    """Return which tasks come before which, over any number of edges; `edges[i, j]` with i < j."""
    reach = edges.copy()
    for j in range(len(reach)):
        for i in np.flatnonzero(edges[:, j]):
            reach[:, j] |= reach[:, i]
    return reach


def check_edges(recipe: WorkloadRecipe) -> None:
    """Raise AssertionError unless inferred edges are true conflicts, and order exactly what conflicts order."""
    bench = Bench(recipe)
    program = bench.trace().task_graph(deps=Deps.infer_bytes_overlap()).compile()
    bench.run(program)
    tasks = [node for node in stream_of(program.plan, program.bind()) if isinstance(node, TaskInstance)]
    touched = [elements(program, task) for task in tasks]
    conflicts = np.zeros((len(tasks), len(tasks)), bool)
    kinds: dict[tuple[int, int], int] = {}
    for j, (reads, writes) in enumerate(touched):
        for i, (read_before, written_before) in enumerate(touched[:j]):
            kinds[i, j] = RAW * bool(reads & written_before) | WAR * bool(writes & read_before) | WAW * bool(writes & written_before)
            conflicts[i, j] = kinds[i, j] != 0
    found = np.zeros_like(conflicts)
    for edge in program.graph.edges:
        assert edge.source < edge.target
        inferred = edge.bits & (RAW | WAR | WAW)
        assert inferred & ~kinds[edge.source, edge.target] == 0, (edge, recipe)
        assert edge.bits & ORDER == 0
        found[edge.source, edge.target] = inferred != 0
    assert np.array_equal(closure(found), closure(conflicts)), recipe


@pytest.mark.slow
@given(workload_recipes(control=True))
@settings(max_examples=3)
def test_inferred_edges_are_the_conflicts(recipe: WorkloadRecipe) -> None:
    check_edges(recipe)


@pytest.mark.slow
@given(workload_recipes())
@settings(max_examples=8)
def test_inferred_edges_are_the_conflicts_in_many_workloads(recipe: WorkloadRecipe) -> None:
    check_edges(recipe)


def test_a_handle_behind_its_loop_is_all_of_its_tasks() -> None:
    spot = Spot("whole", 0, 0, (3,), (0,))
    recipe = WorkloadRecipe((For(3, False, (Call("put", (1, 1), spot, Spot("whole", 0, 5, (3,), (0,))),)),
                             Call("put", (1, 1), Spot("whole", 13, 13, (), ()), Spot("whole", 12, 12, (), ()), after=1)), (), 0)
    program = Bench(recipe).trace().task_graph(deps=Deps.infer_bytes_overlap()).compile().run()
    assert [(e.source, e.target, e.reasons) for e in program.graph.edges] == [(i, 3, ("after",)) for i in range(3)]


# ---- (e): simulated time ----

@pytest.mark.slow
@given(workload_recipes(control=True))
@settings(max_examples=6)
def test_simulated_time_keeps_its_bounds_in_many_workloads(recipe: WorkloadRecipe) -> None:
    check_time(recipe)


def check_time(recipe: WorkloadRecipe) -> None:
    """Raise AssertionError unless time lies between its bounds, and is the same on both targets and any number of threads."""
    bench = Bench(recipe)
    traced = bench.trace().dispatch(DispatchPolicy.round_robin(3))
    program = traced.compile()
    bench.run(program)
    stats = program.stats
    assert stats.lower_bound <= stats.total_cycles <= stats.work
    assert stats.work == sum(e.busy for e in stats.executors)
    times = {("cpu_sim", 1): stats.total_cycles}
    for threads in (2, 4):
        with threads_of(program, threads):
            bench.run(program)
            times["cpu_sim", threads] = program.stats.total_cycles
    oracle = traced.compile(target="interp")
    bench.run(oracle)
    times["interp", 1] = oracle.stats.total_cycles
    assert len(set(times.values())) == 1, (times, recipe)
    for window, expected in ((1, stats.work), (max(1, stats.task_count), stats.total_cycles)):
        bounded = traced.task_graph(deps=Deps.hybrid(), window=TaskWindow(window)).compile(target="interp")
        bench.run(bounded)
        assert bounded.stats.total_cycles == expected, (window, recipe)
        assert bounded.stats.window.high_water <= window


# ---- (f): dropping any one rule for edges fails a test above ----

@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the sources of a runtime library that leaves out the rule that PTO_FORGET names."""
    folder = tmp_path_factory.mktemp("forgetful")
    sources = folder / "csrc"
    shutil.copytree(csrc_dir(), sources)
    deps = sources / "src" / "record" / "deps.c"
    text = deps.read_text()
    weaker = text.replace("if (!pto_edges_add(q->edges,", "if (why != 0 && !pto_edges_add(q->edges,")
    for rule, bits in (("RAW", "q->why_read"), ("WAR", "PTO_EDGE_WAR"), ("WAW", "PTO_EDGE_WAW")):
        assert weaker.count(f"why |= {bits};") == 1 and "why != 0 &&" in weaker
        weaker = weaker.replace(f"why |= {bits};", f'why |= strcmp(getenv("PTO_FORGET"), "{rule}") == 0 ? 0 : {bits};')
    deps.write_text(f"#include <stdlib.h>\n#include <string.h>\n{weaker}")
    return folder


@pytest.mark.slow      # builds the library again
@pytest.mark.parametrize("rule", ["RAW", "WAR", "WAW"])
def test_without_one_kind_of_edge_some_order_shows(rule: str, forgetful: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "csrc_dir", lambda: forgetful / "csrc")
    monkeypatch.setenv("PTO_WSP_CACHE_DIR", str(forgetful / "cache"))    # built once for the three
    monkeypatch.setenv("PTO_FORGET", rule)
    bench = Bench(DENSE_CONFLICTS)
    traced = bench.trace()
    program = traced.task_graph(deps=Deps.infer_bytes_overlap()).compile()
    assert program.compiled.runner.runtime.path.is_relative_to(forgetful)
    expected = bench.run(program)       # alone and in program order nothing can go wrong
    with pytest.raises(AssertionError, match="elements differ"):
        check_orders(bench, program, expected, seeds=30)


def test_the_recipe_of_that_test_has_every_kind_of_edge() -> None:
    bench = Bench(DENSE_CONFLICTS)
    program = bench.trace().task_graph(deps=Deps.infer_bytes_overlap()).compile()
    bench.run(program)
    assert {reason for edge in program.graph.edges for reason in edge.reasons} == {"RAW", "WAR", "WAW", "after"}
    assert len(submits(program.plan)) == 6


@pytest.mark.slow
def test_parts_put_together_in_a_loop_keep_its_variable() -> None:
    def side(row: int, factor: int) -> tuple[Any, ...]:
        there = Spot("whole", row, 0, (2, 0), (0, 3))
        return (For(2, False, (Call("put", (1, 1), there, there), Call("mix", (1, 1), there, there))),) * factor
    recipe = WorkloadRecipe((For(3, False, (Together("combine", (side(0, 1), (Together("sequential", (side(1, 2), side(6, 1))),))),)),),
                            (1, 1, 1), 3)
    check_results(recipe, all_schedules=False)
    check_streams(recipe, lambda traced: traced)
