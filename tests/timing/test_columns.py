"""Tasks, edges and executors as columns: each equal to what the same object says one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pto_wsp import Deps, DType, In, InOut, Out, P, Program, Tensor, Tile, ceildiv, kernel, pto, workload
from pto_wsp.view.timeline import coverage

F32 = DType.F32
X, Y = (Tensor(np.ones((3, 4, 8), np.float32)) for _ in range(2))


@kernel
def double(x: In[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]]) -> None:
    pto.store(y, x * 2.0)


@kernel
def add(x: In[Tile[2, 8, F32]], y: InOut[Tile[2, 8, F32]]) -> None:
    pto.store(y, x + y)


@workload
def mixed() -> None:
    for b in P.seq(3):
        double[b](X[b], Y[b], label="100 % of b")
        for end in P(2):
            add[ceildiv(b, 2), end % 2, 7](X[b, 1:3], Y[b, 2 * end:2 * end + 2])


@pytest.fixture(scope="module", params=["cpu_sim", "interp"])
def program(request: pytest.FixtureRequest) -> Program:
    return mixed().task_graph(deps=Deps.infer_bytes_overlap()).compile(target=request.param).run()


def test_names_made_together_are_those_made_one_by_one(program: Program) -> None:
    names = program.trace.names
    assert list(names) == [names[task] for task in range(len(names))]
    assert names[0] == "double[b=0] (100 % of b)"
    assert "% 2=1, 7" in names[2]


def test_columns_of_a_trace_are_its_events(program: Program) -> None:
    trace = program.trace
    columns = trace.columns()
    assert {len(column) for column in columns.values()} == {9}
    for event in trace:
        assert [int(columns[name][event.task]) for name in ("task", "executor", "start", "end", "ready")] == \
            [event.task, event.executor, event.start, event.end, event.ready]
    assert columns["kernel"].tolist() == ["double", "add", "add"] * 3
    assert columns["label"].tolist() == ["100 % of b", "", ""] * 3
    np.testing.assert_array_equal(columns["b"], np.repeat([0.0, 1.0, 2.0], 3))
    np.testing.assert_array_equal(columns["index_2"], [np.nan, 7, 7] * 3)
    assert columns["b"].dtype == np.int64, "each task has this index"
    assert columns["delayed_by"].tolist() == list(trace.causes.held if trace.causes else ())


def test_an_index_does_not_hide_a_column() -> None:
    @workload
    def clashing() -> None:
        for start in P(2):
            double[start](X[start], Y[start])

    columns = clashing().compile().run().trace.columns()
    assert columns["start_index"].tolist() == [0, 1] and columns["start"].tolist() != [0, 1]


def test_columns_of_a_graph_are_its_edges(program: Program) -> None:
    columns = program.graph.columns()
    assert list(zip(*(columns[name].tolist() for name in ("source", "target", "reasons")), strict=True)) == \
        [(edge.source, edge.target, ", ".join(edge.reasons)) for edge in program.graph.edges]
    assert "RAW, WAW" in columns["reasons"].tolist()


def test_columns_of_stats_are_its_executors(program: Program) -> None:
    columns, stats = program.stats.columns(), program.stats
    for number, executor in enumerate(stats.executors):
        assert {name: int(column[number]) for name, column in columns.items()} == {
            "executor": number, "pool": executor.pool, "busy": executor.busy, "waiting": executor.waiting, "late": executor.late,
            "idle": executor.idle, "tasks": executor.tasks}


def test_a_run_without_tasks_has_empty_columns() -> None:
    @workload
    def nothing() -> None:
        for b in P(0):
            double[b](X[b], Y[b])

    done = nothing().compile().run()
    for columns in (done.trace.columns(), done.graph.columns()):
        assert columns and all(len(column) == 0 for column in columns.values())


TASKS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20), st.integers(0, 2)), max_size=12)


@given(TASKS, st.integers(1, 50), st.integers(1, 30))
def test_coverage_is_the_time_of_tasks_in_each_column(tasks: list[tuple[int, int, int]], span: int, width: int) -> None:
    edges = np.linspace(0, span, width + 1)
    start, length, kernel_of = np.array(tasks, np.int64).reshape(-1, 3).T
    expected = np.zeros((3, width))
    for begin, cycles, number in tasks:
        expected[number] += np.clip(np.minimum(begin + cycles, edges[1:]) - np.maximum(begin, edges[:-1]), 0, None)
    np.testing.assert_allclose(coverage(start, start + length, kernel_of, 3, edges), expected, atol=1e-9)
