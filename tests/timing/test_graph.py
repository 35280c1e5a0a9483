"""The graph of a run: which edges, on which elements, at which lines, by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pto_wsp import Deps, DType, In, InOut, Out, P, Program, Tensor, Tile, kernel, pto, workload
from pto_wsp.errors import ArgumentKindError
from pto_wsp.timing.edges import Edge

F32 = DType.F32
X, Y, Z = (Tensor(np.ones((3, 4, 8), np.float32)) for _ in range(3))
LINE = Path(__file__).read_text().splitlines().index("def chains() -> None:") + 1     # counted from 1


@kernel
def double(x: In[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]]) -> None:
    pto.store(y, x * 2.0)


@kernel
def add(x: In[Tile[2, 8, F32]], y: InOut[Tile[2, 8, F32]]) -> None:
    pto.store(y, x + y)


@workload
def chains() -> None:
    for b in P.seq(3):
        t = Tensor.empty((4, 8), F32)
        double[b](X[b], t)
        double[b](t, Y[b])
        add[b](Y[b, 1:3], Z[0, b:b + 2])


@pytest.fixture(scope="module", params=["cpu_sim", "interp"])
def program(request: pytest.FixtureRequest) -> Program:
    return chains().task_graph(deps=Deps.infer_bytes_overlap()).compile(target=request.param).run()


def test_an_edge_names_tasks_elements_and_lines(program: Program) -> None:
    at = [f"test_graph.py:{LINE + k}" for k in range(6)]
    assert str(program.graph) == "\n".join((
        "9 tasks, 8 edges",
        f"0 double[b=0] → 1 double[b=0]  RAW on t[0:4, 0:8]  ({at[3]} → {at[4]})",
        f"1 double[b=0] → 2 add[b=0]  RAW on Y[0, 1:3, 0:8]  ({at[4]} → {at[5]})",
        f"3 double[b=1] → 4 double[b=1]  RAW on t[0:4, 0:8]  ({at[3]} → {at[4]})",
        f"2 add[b=0] → 5 add[b=1]  RAW, WAR, WAW on Z[0, 1, 0:8]  ({at[5]})",
        f"4 double[b=1] → 5 add[b=1]  RAW on Y[1, 1:3, 0:8]  ({at[4]} → {at[5]})",
        f"6 double[b=2] → 7 double[b=2]  RAW on t[0:4, 0:8]  ({at[3]} → {at[4]})",
        f"5 add[b=1] → 8 add[b=2]  RAW, WAR, WAW on Z[0, 2, 0:8]  ({at[5]})",
        f"7 double[b=2] → 8 add[b=2]  RAW on Y[2, 1:3, 0:8]  ({at[4]} → {at[5]})"))


def test_a_task_is_named_by_number_by_name_and_by_kernel_and_indices(program: Program) -> None:
    graph = program.graph
    expected = [Edge(5, 8, 7), Edge(7, 8, 1)]
    for name in (8, -1, "add[b=2]", ("add", (2,)), ("add", [2]), ("add", 2), np.int64(8)):
        assert graph.edges_into(name) == expected     # type: ignore[arg-type]
    assert graph.edges_out_of(1) == [Edge(1, 2, 1)] and graph.edges_out_of(8) == []
    assert (repr(graph.edges_into(0)), len(graph.edges_into(8)), graph.edges_into(8)[0]) == ("no edges", 2, Edge(5, 8, 7))


def test_why_is_the_edge_between_two_tasks_or_a_shortest_chain(program: Program) -> None:
    graph = program.graph
    assert graph.why(5, 8) == [Edge(5, 8, 7)]
    assert graph.why(0, 8) == [Edge(0, 1, 1), Edge(1, 2, 1), Edge(2, 5, 7), Edge(5, 8, 7)]
    assert graph.why(8, 5) == graph.why(0, 3) == graph.why(2, 2) == []


def test_conflicts_tell_the_parameters(program: Program) -> None:
    graph = program.graph
    first, second = (graph.conflicts(edge) for edge in graph.edges_into(8))
    assert [(c.reasons, c.source, c.target) for c in first] == [(("RAW", "WAR", "WAW"), "y", "y")]
    assert [(c.reasons, c.elements, c.source, c.target) for c in second] == [(("RAW",), "Y[2, 1:3, 0:8]", "y", "x")]


def test_elements_are_forgotten_once_the_record_holds_another_run() -> None:
    @workload
    def one(n: int) -> None:
        for b in P.seq(n):
            add[b](Y[b, 1:3], Z[0, 0:2])
    from_before = one(2).task_graph(deps=Deps.infer_bytes_overlap()).compile().run()
    graph = from_before.graph
    other = Tensor(np.ones((3, 4, 8), np.float32))
    from_before.run(Z=other.data)
    assert str(graph).splitlines()[1].split("  ")[1] == "RAW, WAR, WAW on Z"
    assert "on Z[0, 0:2, 0:8]" in str(from_before.graph)


@pytest.mark.parametrize("name, said", [
    (9, "there is no task 9"), (-10, "there is no task -10"), ("add", "3 tasks are 'add'"), ("double[b=0]", "2 tasks are"),
    ("addd[b=0]", "there is no task 'addd"), (("add", (7,)), "there is no task"), (True, "this names no task"), (1.5, "this names no task"),
])
def test_what_names_no_task_is_refused(program: Program, name: object, said: str) -> None:
    with pytest.raises(ArgumentKindError, match=said):
        program.graph.edges_into(name)     # type: ignore[arg-type]


@pytest.mark.parametrize("backwards", [False, True])
def test_what_is_read_and_then_written_is_named_in_arrays_of_any_direction(backwards: bool) -> None:
    data = [np.zeros((3, 4, 8), np.float32)[::-1 if backwards else 1] for _ in range(3)]
    one, other, third = (Tensor(array, name=name) for array, name in zip(data, "ABC", strict=True))

    @workload
    def main() -> None:
        double(one[0], other[2])
        double(other[2], third[0])
        double(third[1], other[2])
    graph = main().task_graph(deps=Deps.infer_bytes_overlap()).compile(target="interp").run().graph
    assert [graph.reason(edge) for edge in graph.edges] == ["RAW on B[2, 0:4, 0:8]", "WAW on B[2, 0:4, 0:8]", "WAR on B[2, 0:4, 0:8]"]
    assert [[c.reasons for c in graph.conflicts(edge)] for edge in graph.edges] == [[("RAW",)], [("WAW",)], [("WAR",)]]
