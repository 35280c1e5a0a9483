"""Edges between tasks, resolved through joins: against a walk over the record in plain Python."""

from __future__ import annotations

import random
from types import SimpleNamespace

import numpy as np
import pytest

from pto_wsp.run.record import EdgeReason, RecordColumns
from pto_wsp.timing.edges import Edge, Edges


def record(nodes: list[tuple[int, dict[int, tuple[int, int]]]], first_node: int = 0) -> RecordColumns:
    """Columns of nodes (kind, {source: (why, arg)}); what reports need of them."""
    kinds = np.array([kind for kind, _ in nodes], np.uint8)
    tasks = np.flatnonzero(kinds == 0)
    node_task = np.full(len(nodes), -1)
    node_task[tasks] = np.arange(len(tasks))
    rows = [(source, *said) for _, sources in nodes for source, said in sorted(sources.items())]
    source, why, arg = np.array(rows, np.int64).reshape(-1, 3).T
    begin = np.concatenate(([0], np.cumsum([len(sources) for _, sources in nodes]))).astype(np.int64)
    columns: RecordColumns = SimpleNamespace(  # type: ignore[assignment]
        n_tasks=len(tasks), first_node=first_node, node_kind=kinds, node_task=node_task, pred_begin=begin, edge_src=source,
        edge_why=why.astype(np.uint16), edge_arg=arg.astype(np.int32), task_node=tasks + first_node, mark_node=np.zeros(0, np.int64))
    return columns


def random_record(seed: int) -> list[tuple[int, dict[int, tuple[int, int]]]]:
    """Tasks and joins; joins have no reasons of their own."""
    draw = random.Random(seed)
    nodes: list[tuple[int, dict[int, tuple[int, int]]]] = []
    for at in range(draw.randrange(1, 40)):
        sources = draw.sample(range(at), min(at, draw.randrange(5)))
        is_join = draw.random() < 0.4 and bool(sources)
        data = (draw.choice((1, 2, 9)), draw.randrange(9))
        said = {source: (0, -1) if is_join else (8, -1) if nodes[source][0] else data for source in sources}
        nodes.append((int(is_join), said))
    return nodes


def walked(nodes: list[tuple[int, dict[int, tuple[int, int]]]]) -> list[tuple[int, int, int, int]]:
    """(source, target, bits, arg) of every edge between tasks, joins followed one by one."""
    number = {node: k for k, node in enumerate(at for at, (kind, _) in enumerate(nodes) if kind == 0)}

    def stands_for(node: int) -> set[int]:
        return {node} if nodes[node][0] == 0 else set().union(*(stands_for(source) for source in nodes[node][1]))

    found = []
    for node, (kind, sources) in enumerate(nodes):
        said: dict[int, tuple[int, int]] = {}
        for source, (why, arg) in sources.items() if kind == 0 else ():
            for task in stands_for(source):
                bits, had = said.get(task, (0, -1))
                said[task] = bits | why, max(had, arg)
        found += [(number[task], number[node], *said[task]) for task in sorted(said)]
    return found


@pytest.mark.parametrize("seed", range(30))
def test_edges_are_those_that_a_walk_finds(seed: int) -> None:
    nodes = random_record(seed)
    edges, expected = Edges(record(nodes)), walked(nodes)
    assert [(e.source, e.target, e.bits, e.arg) for e in edges] == expected
    assert len(edges) == len(expected) <= edges.at_most and edges == [Edge(*row) for row in expected]
    assert [edges[k].arg for k in range(-len(expected), len(expected))] == [row[3] for row in expected] * 2
    for task in range(sum(kind == 0 for kind, _ in nodes)):
        assert [(e.source, e.bits) for e in edges.into([task])] == [(s, b) for s, t, b, _ in expected if t == task]
        assert [(e.target, e.arg) for e in edges.out_of(task)] == [(t, a) for s, t, _, a in expected if s == task]


def test_edges_from_tasks_that_a_record_has_dropped_are_left_out() -> None:
    nodes: list[tuple[int, dict[int, tuple[int, int]]]] = [(0, {4: (1, 0)}), (1, {3: (0, -1), 10: (0, -1)}), (0, {9: (1, 0), 11: (8, -1)})]
    assert list(Edges(record(nodes, first_node=10))) == [Edge(0, 1, 8)]


@pytest.mark.slow
def test_a_join_of_many_before_many_is_resolved_for_those_that_are_asked_about() -> None:
    n = 100_000
    ones, waiting = [(0, {})] * n, [(0, {n: (8, -1)})] * n
    edges = Edges(record([*ones, (1, {k: (0, -1) for k in range(n)}), *waiting]))     # type: ignore[list-item]
    assert edges.at_most == len(edges) == 2 * n and [str(barrier) for barrier in edges.barriers] == [f"barrier 1: {n} before, {n} after"]
    assert edges[n - 1:n + 1] == (Edge(n - 1, -1, 0), Edge(-1, n, 8))
    table = edges.into([n])
    assert len(table) == n and set(table.bits.tolist()) == {8} and table.source.tolist() == list(range(n))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("most", [0, 2, 6])
def test_barriers_stand_for_the_edges_that_a_walk_finds(seed: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pto_wsp.timing.edges.MOST_RESOLVED", most)
    nodes = random_record(seed)
    edges = Edges(record(nodes))
    listed = list(edges)
    assert len(edges) == len(listed) <= edges.at_most and [edges[k] for k in range(len(listed))] == listed
    into: dict[int, dict[int, int]] = {}
    for edge in listed:
        into.setdefault(edge.target, {})[edge.source] = edge.bits

    def stands_for(number: int, bits: int) -> set[tuple[int, int]]:
        return {(number, bits)} if number >= 0 else {found for source in into[number] for found in stands_for(source, bits)}

    found: dict[tuple[int, int], int] = {}
    for edge in listed:
        for source, bits in stands_for(edge.source, edge.bits) if edge.target >= 0 else ():
            found[source, edge.target] = found.get((source, edge.target), 0) | bits
    assert found == {(source, target): bits for source, target, bits, _ in walked(nodes)}
    for barrier in edges.barriers:
        assert barrier.before.tolist() == sorted(into[barrier.number], key=lambda n: position(nodes, n, edges))
        assert barrier.after.tolist() == [edge.target for edge in listed if edge.source == barrier.number]
    if most == 0:
        assert edges.n_barriers == sum(kind and any(node in sources for _, sources in nodes) for node, (kind, _) in enumerate(nodes))


def position(nodes: list[tuple[int, dict[int, tuple[int, int]]]], number: int, edges: Edges) -> int:
    """Return the node of a task or barrier."""
    return int(np.flatnonzero(edges.numbers == number)[0] if number < 0 else np.flatnonzero([kind == 0 for kind, _ in nodes])[number])


def test_edges_say_why_in_words() -> None:
    assert Edge(0, 1, 1 | 4 | 16).reasons == ("RAW", "WAW", "after") and Edge(0, 1, 2 | 8).reasons == ("WAR", "order")
    words = ("RAW", "WAR", "WAW", "order", "after", "channel", "event", "read", "stream")
    assert Edge(0, 1, sum(EdgeReason)).reasons == words
