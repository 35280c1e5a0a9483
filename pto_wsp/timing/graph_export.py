"""Write task graphs as DOT for Graphviz, and give them to networkx."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pto_wsp.errors import CommandError, MissingLibraryError
from pto_wsp.source import here
from pto_wsp.timing.arguments import file_path
from pto_wsp.timing.edges import Edge, Edges
from pto_wsp.timing.graph_fold import FoldedGraph

MOST_UNFOLDED = 200      # tasks from which on a graph is folded, unless asked for otherwise


def dot_of_calls(folded: FoldedGraph) -> str:
    """Return a folded graph as DOT."""
    nodes = [(f"c{k}", f"{call.name}\n× {call.tasks:,}" if call.kernel else f"{call.tasks:,} barriers", not call.kernel)
             for k, call in enumerate(folded.calls)]
    edges = [(f"c{edge.source}", f"c{edge.target}", f"{', '.join(edge.reasons)} × {edge.count:,}") for edge in folded.edges]
    return "\n".join(_dot(nodes, edges))


def dot_of_tasks(names: Sequence[str], edges: Edges) -> str:
    """Return all tasks and edges as DOT."""
    barriers = [(f"b{k + 1}", f"barrier {k + 1}", True) for k in range(edges.n_barriers)]
    rows = [(_node(edge.source), _node(edge.target), ", ".join(edge.reasons)) for edge in edges]
    return "\n".join(_dot([*((f"t{k}", name, False) for k, name in enumerate(names)), *barriers], rows))


def _node(number: int) -> str:
    return f"t{number}" if number >= 0 else f"b{-number}"


def _dot(nodes: Sequence[tuple[str, str, bool]], edges: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    yield "digraph tasks {"
    yield '  node [shape=box, fontname="sans-serif"]; edge [fontname="sans-serif", fontsize=10];'
    for node, label, is_barrier in nodes:
        yield f"  {node} [label={_quoted(label)}{', shape=diamond' if is_barrier else ''}];"
    for source, target, label in edges:
        style = "" if any(word in label for word in ("RAW", "WAR", "WAW")) else ", style=dashed"
        yield f"  {source} -> {target} [label={_quoted(label)}{style}];"
    yield "}\n"


def _quoted(text: str) -> str:
    """Return text as a string of DOT: a backslash would begin an escape."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\n").replace("\x00", "") + '"'


def write_dot(text: str, given: object) -> Path:
    """Write DOT to a file and return its path.

    Raises: T205 for a value that is no path, C108 if the file cannot be written.
    """
    path = file_path("to_dot", given, "graph.dot")
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise CommandError("the graph cannot be written there", here(), found=str(problem)) from None
    return path


def networkx_of_calls(folded: FoldedGraph) -> Any:
    """Return a folded graph as a networkx.MultiDiGraph.

    Raises: C120 where networkx is not installed.
    """
    graph = _networkx().MultiDiGraph()
    for call in folded.calls:
        graph.add_node(call.name, kernel=call.kernel, line=call.line, tasks=call.tasks)
    names = [call.name for call in folded.calls]
    graph.add_edges_from((names[edge.source], names[edge.target], ", ".join(edge.reasons),
                          {"reasons": ", ".join(edge.reasons), "count": edge.count}) for edge in folded.edges)
    return graph


def networkx_of_tasks(names: Sequence[str], kernels: Sequence[str], edges: Edges) -> Any:
    """Return all tasks and edges as a networkx.DiGraph; nodes are numbers of tasks, barriers negative ones.

    Raises: C120 where networkx is not installed.
    """
    graph = _networkx().DiGraph()
    graph.add_nodes_from((task, {"name": name, "kernel": kernel}) for task, (name, kernel) in enumerate(zip(names, kernels, strict=True)))
    graph.add_nodes_from((-1 - k, {"name": f"barrier {k + 1}", "kernel": ""}) for k in range(edges.n_barriers))
    words: dict[int, str] = {}
    for table in edges.tables():
        for source, target, bits in zip(table.source.tolist(), table.target.tolist(), table.bits.tolist(), strict=True):
            if bits not in words:
                words[bits] = ", ".join(Edge(0, 0, bits).reasons)
            graph.add_edge(source, target, reasons=words[bits])
    return graph


def _networkx() -> Any:
    try:
        import networkx  # type: ignore[import-untyped,unused-ignore]   # an optional library
    except ImportError:
        raise MissingLibraryError("networkx is not installed", here(), help="pip install networkx, or use to_dot() or columns()") from None
    return networkx
