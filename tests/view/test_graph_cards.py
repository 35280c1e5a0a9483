"""Task graphs as pictures and files: folded at calls, a node a task, DOT, networkx."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from pto_wsp import DType, In, InOut, Out, P, Program, PtoError, Tensor, Tile, kernel, pto, workload
from pto_wsp.timing import graph_fold
from pto_wsp.timing.graph_export import dot_of_tasks
from pto_wsp.timing.graph_fold import FoldedEdge
from pto_wsp.view.card import GraphPart, TablePart
from pto_wsp.view.html import html_of
from pto_wsp.view.layers import placed
from tests.view.test_cards import part_of, text_of

F32 = DType.F32
X, Y = (Tensor(np.ones((2, 120, 16), np.float32)) for _ in range(2))


@kernel
def make(x: In[Tile[1, 16, F32]], y: Out[Tile[1, 16, F32]]) -> None:
    pto.store(y, x * 2.0)


@kernel
def add(x: In[Tile[1, 16, F32]], y: InOut[Tile[1, 16, F32]]) -> None:
    pto.store(y, x + y)


@workload
def steps(n: int = 5) -> None:
    for b in P(2):
        make[b](X[b, 0:1], Y[b, 0:1])
        for t in P.seq(n):
            add[b, t](X[b, t:t + 1], Y[b, 0:1])


@workload
def rounds() -> None:
    for _ in P.seq(4):
        for j in P(40):
            make[j](X[0, j:j + 1], Y[0, j:j + 1])


@pytest.fixture(scope="module")
def program() -> Program:
    return steps().compile(target="interp").run()


def test_a_graph_folds_to_its_calls(program: Program) -> None:
    folded = program.graph.folded()
    assert [(call.kernel, call.name, call.tasks) for call in folded.calls] == [("make", "make", 2), ("add", "add", 10)]
    assert sum(edge.count for edge in folded.edges) == len(program.graph.edges)
    assert FoldedEdge(1, 1, ("RAW", "WAR", "WAW", "order"), 8) in folded.edges and folded.is_counted


def test_calls_of_one_kernel_are_told_apart_by_their_lines() -> None:
    @workload
    def twice() -> None:
        for b in P(2):
            make[b](X[b, 0:1], Y[b, 0:1])
            make[b](Y[b, 0:1], X[b, 1:2])

    names = [call.name for call in twice().compile(target="interp").run().graph.folded().calls]
    assert len(set(names)) == 2 and all(re.fullmatch(r"make:\d+", name) for name in names)


def test_a_long_record_is_folded_edge_by_edge(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_fold, "MOST_COUNTED", 0)
    folded = program.graph.folded()
    assert not folded.is_counted and {(edge.source, edge.target) for edge in folded.edges} == {(0, 1), (1, 1)}
    joined = rounds().compile(target="interp").run().graph.folded()
    assert {(edge.source, edge.target) for edge in joined.edges} == {(0, 0)}      # joins stand for the calls before them


def test_joins_of_many_tasks_are_one_node() -> None:
    program = rounds().compile(target="interp").run()
    part = part_of(program.graph.card, GraphPart)
    assert [node.label for node in part.nodes if node.kernel is None] == ["barrier 1", "barrier 2", "barrier 3"] and len(part.nodes) == 163
    assert program.graph.folded().calls[-1].name == "barrier"


def test_below_200_tasks_every_task_is_drawn_below_what_it_waits_for(program: Program) -> None:
    part = part_of(program.graph.card, GraphPart)
    assert len(part.nodes) == 12 and len(part.links) == len(program.graph.edges)
    for link in part.links:
        source, target = part.nodes[link.source], part.nodes[link.target]
        assert source.y < target.y and link.points[0] == (source.x, source.y) and link.points[-1] == (target.x, target.y)
    boxes = [(node.y, node.x - node.width / 2, node.x + node.width / 2) for node in part.nodes]
    assert all(a[0] != b[0] or a[2] <= b[1] or b[2] <= a[1] for k, a in enumerate(boxes) for b in boxes[:k])


def test_a_task_is_labelled_by_its_indices_also_where_they_are_read_from_data() -> None:
    chosen = Tensor(np.array([[1, 0], [0, 1]]), name="chosen")

    @workload
    def routed() -> None:
        for b in P(2):
            for c in P.seq(2):
                add[b, chosen[b, c], 7](X[b, 0:1], Y[b, 0:1])

    picture = part_of(routed().compile(target="interp").run().graph.card, GraphPart)
    assert sorted(node.label for node in picture.nodes) == ["0, 0, 7, 1", "0, 1, 7, 0", "1, 0, 7, 0", "1, 1, 7, 1"]


def test_the_names_of_tasks_show_themselves_and_only_the_first_of_many() -> None:
    one, none, many = (steps(n).compile(target="interp").run().graph.tasks for n in (1, 0, 30))
    assert repr(none) == "('make[b=0]', 'make[b=1]')"
    assert repr(one) == repr(tuple(one)) and len(one) == 4
    assert repr(many) == repr(tuple(many[:20]))[:-1] + ", … 42 more)"


def test_larger_graphs_are_drawn_at_calls_with_counts_and_reasons() -> None:
    program = steps(120).compile(target="interp").run()
    card = program.graph.card
    part = part_of(card, GraphPart)
    assert [(node.label, node.count) for node in part.nodes] == [("make", "× 2"), ("add", "× 240")]
    assert ("add", "add", "RAW, WAR, WAW, order", "238") in part_of(card, TablePart).rows
    assert [link.is_back for link in part.links if link.source == link.target] == [True]
    html = html_of(card)
    assert "RAW, WAR, WAW, order 238" in text_of(html) and len(html) < 20_000
    assert "add × 240" in str(card).replace("  ", " ")


def test_layers_leave_room_for_edges_that_pass_them() -> None:
    where = placed([20, 20, 20], [(0, 1), (1, 2), (0, 2)], height=10, gap=4, down=10)
    assert [y for _, y in where.nodes] == [9, 29, 49]
    (passing,) = [way for way in where.ways if len(way) == 3]
    assert passing[1][1] == 29 and abs(passing[1][0] - where.nodes[1][0]) >= 17


# -- files -------------------------------------------------------------------------------------------------------------
def test_dot_names_tasks_and_reasons(program: Program, tmp_path: Path) -> None:
    text = str(program.graph.to_dot())
    assert text.startswith("digraph tasks {") and text.count(" -> ") == len(program.graph.edges)
    assert '  t0 [label="make[b=0]"];' in text and '  t0 -> t1 [label="RAW, WAW' in text
    assert program.graph.to_dot(tmp_path / "g.dot", folded=True) == tmp_path / "g.dot"
    assert '  c1 -> c1 [label="RAW, WAR, WAW, order × 8"];' in (tmp_path / "g.dot").read_text()


def test_names_end_no_string_of_dot(program: Program) -> None:
    text = dot_of_tasks(['a"b\\', "c\nd"], program.graph.edges)
    assert '[label="a\\"b\\\\"]' in text and '[label="c\\nd"]' in text


def test_networkx_has_tasks_and_edges(program: Program) -> None:
    networkx = pytest.importorskip("networkx")
    graph = program.graph.to_networkx()
    assert graph.nodes[2] == {"name": "add[b=0, t=1]", "kernel": "add"} and graph.number_of_edges() == len(program.graph.edges)
    assert graph.edges[0, 1]["reasons"].startswith("RAW, WAW") and networkx.is_directed_acyclic_graph(graph)
    calls = program.graph.to_networkx(folded=True)
    assert calls.nodes["add"]["tasks"] == 10 and calls.edges["add", "add", "RAW, WAR, WAW, order"]["count"] == 8


def test_without_networkx_the_error_says_how_to_get_it(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(PtoError, match="networkx is not installed") as raised:
        program.graph.to_networkx()
    assert raised.value.code == "C120" and raised.value.help == "pip install networkx, or use to_dot() or columns()"
    with pytest.raises(PtoError) as refused:
        program.graph.to_dot("/no/such/folder/x.dot")
    assert refused.value.code == "C108"
