"""The card of a task graph: folded at the workload's calls, or below 200 tasks a node a task, drawn in layers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pto_wsp.timing.edges import DATA_REASONS
from pto_wsp.timing.graph import RunGraph
from pto_wsp.timing.graph_export import MOST_UNFOLDED
from pto_wsp.timing.graph_fold import FoldedCall, FoldedEdge, FoldedGraph
from pto_wsp.view.card import Card, GraphLink, GraphNode, GraphPart, LegendEntry, TablePart
from pto_wsp.view.colours import legend_of
from pto_wsp.view.layers import placed
from pto_wsp.wording import shortened

_ROWS, _MOST_CALLS, _MOST_LINKS = 12, 40, 120
_MOST_TASK_EDGES = 1200
_MOST_RECORDED = 1 << 22       # edges of a record that are counted within the time of a view
_CALL, _TASK = 42, 20          # heights of nodes
_LETTER = 7                    # width of a character of a label, about
_NESTED = re.compile(r"\[[^\[\]]*\]|\([^()]*\)")


def graph_card(graph: RunGraph) -> Card:
    """Return the card of a task graph: a picture, and a row for each pair of calls with edges, and why they are ordered."""
    n = len(graph.tasks)
    foot = "graph.edges_into(task), .edges_out_of(task), .why(a, b) explain · .columns(), .to_dot(path), .to_networkx() hand it on"
    if len(graph.edges.columns.edge_src) > _MOST_RECORDED:
        return Card(title="Task graph", subtitle=f"{n:,} tasks", foot=foot,
                    sentence=f"At most {graph.edges.at_most:,} edges: too many to fold in a cell; graph.folded() counts them.")
    folded = graph.folded()
    n_edges = sum(edge.count for edge in folded.edges)
    if not folded.edges:
        return Card(title="Task graph", subtitle=f"{n:,} tasks, 0 edges", sentence="No task waits for another.", foot=foot)
    entries = _entries(folded.calls)
    unfolds = n < MOST_UNFOLDED and folded.is_counted and n_edges <= _MOST_TASK_EDGES
    picture = _tasks_part(graph, entries) if unfolds else _calls_part(folded, entries)
    names = [call.name for call in folded.calls]
    rows = tuple((names[edge.source], names[edge.target], ", ".join(edge.reasons), f"{edge.count:,}") for edge in folded.edges[:_ROWS])
    table = TablePart(title="Edges between calls", head=("from", "to", "why", "edges"), rows=rows, right=(3,),
                      more=max(0, len(folded.edges) - _ROWS))
    counted = f"{n_edges:,} edges" if folded.is_counted else f"{n_edges:,} edges of the record, which stand for at most " \
        f"{graph.edges.at_most:,}"
    return Card(title="Task graph", subtitle=f"{n:,} tasks, {counted}", parts=(picture, table), foot=foot)


def _entries(calls: Sequence[FoldedCall]) -> dict[str, LegendEntry]:
    kernels = tuple(dict.fromkeys(call.kernel for call in calls if call.kernel))
    return dict(zip(kernels, legend_of(kernels), strict=True))


# -- calls -------------------------------------------------------------------------------------------------------------
def _calls_part(folded: FoldedGraph, entries: dict[str, LegendEntry]) -> GraphPart:
    calls = folded.calls[:_MOST_CALLS]
    merged: dict[tuple[int, int], list[FoldedEdge]] = {}
    for edge in folded.edges:
        if edge.source < len(calls) and edge.target < len(calls):
            merged.setdefault((edge.source, edge.target), []).append(edge)
    pairs = list(merged)[:_MOST_LINKS]
    labels = [shortened(call.name, 30) for call in calls]
    widths = [max(110, _LETTER * len(label) + 44) for label in labels]
    empty = [_link(pair, [(edge.reasons, edge.count) for edge in merged[pair]], ()) for pair in pairs]
    where = placed(widths, pairs, _CALL, 36, 52, [6 * len(link.reasons + link.count) + 12 for link in empty])
    nodes = tuple(GraphNode(kernel=entries.get(call.kernel), label=label, count=f"× {call.tasks:,}", x=x, y=y, width=width)
                  for call, label, width, (x, y) in zip(calls, labels, widths, where.nodes, strict=True))
    links = tuple(link.model_copy(update={"points": points}) for link, points in zip(empty, where.ways, strict=True))
    loops = any(link.source >= link.target for link in links)
    return GraphPart(width=where.width + 190 * loops, height=where.height, node_height=_CALL, nodes=nodes, links=links,
                     more=len(folded.calls) - len(calls))


def _link(pair: tuple[int, int], kinds: Sequence[tuple[tuple[str, ...], int]], points: Sequence[tuple[int, int]]) -> GraphLink:
    """Return the edges between two calls: all reasons, the most frequent first, and how many there are."""
    counts: dict[str, int] = {}
    for reasons, count in kinds:
        for reason in reasons:
            counts[reason] = counts.get(reason, 0) + count
    words = sorted(counts, key=lambda reason: (reason not in DATA_REASONS, -counts[reason]))
    return GraphLink(source=pair[0], target=pair[1], reasons=", ".join(words), count=f"{sum(count for _, count in kinds):,}",
                     points=tuple(points), is_back=pair[0] >= pair[1], data=any(reason in DATA_REASONS for reason in words))


# -- tasks -------------------------------------------------------------------------------------------------------------
def _tasks_part(graph: RunGraph, entries: dict[str, LegendEntry]) -> GraphPart:
    """Return every task as a node with its indices; a barrier is a node without a kernel."""
    names, kernels = list(graph.tasks), graph.kernels
    rows = list(graph.edges)
    n, n_barriers = len(names), graph.edges.n_barriers
    at = {-1 - k: n + k for k in range(n_barriers)} | {k: k for k in range(n)}
    order = _in_order(n + n_barriers, [(at[row.source], at[row.target]) for row in rows])
    place = {node: k for k, node in enumerate(order)}
    labels = [_task_label(name) for name in names] + [f"barrier {k + 1}" for k in range(n_barriers)]
    pairs = [(place[at[row.source]], place[at[row.target]]) for row in rows]
    widths = [max(26, 6 * len(labels[node]) + 24) for node in order]
    where = placed(widths, pairs, _TASK, 8, 26)
    nodes = tuple(GraphNode(kernel=entries.get(kernels[node]) if node < n else None, label=labels[node], x=x, y=y, width=width)
                  for node, width, (x, y) in zip(order, widths, where.nodes, strict=True))
    links = tuple(GraphLink(source=source, target=target, reasons=", ".join(row.reasons), points=points,
                            data=bool(DATA_REASONS & set(row.reasons)))
                  for row, (source, target), points in zip(rows, pairs, where.ways, strict=True))
    return GraphPart(width=where.width, height=where.height, node_height=_TASK, nodes=nodes, links=links,
                     legend=tuple(entries.values()))


def _task_label(name: str) -> str:
    """Return the indices of a task's name: `0, 3` of `mix[b=0, t=3]`, `0, 7` of `mix[b=0, chosen[b, c]=7]`."""
    inside = name.partition("[")[2].rpartition("]")[0]
    while (outer := _NESTED.sub("", inside)) != inside:      # what an index is read from has commas of its own
        inside = outer
    return shortened(", ".join(part.rpartition("=")[2] for part in inside.split(", ")), 18) if inside else ""


def _in_order(n: int, pairs: Sequence[tuple[int, int]]) -> list[int]:
    """Return the nodes with sources before targets: tasks are submitted so, and barriers lie between."""
    waits = [0] * n
    after: list[list[int]] = [[] for _ in range(n)]
    for source, target in pairs:
        waits[target] += 1
        after[source].append(target)
    free, order = [node for node in range(n) if not waits[node]], []
    while free:
        node = free.pop(0)
        order.append(node)
        for target in after[node]:
            waits[target] -= 1
            if not waits[target]:
                free.append(target)
    return order + sorted(set(range(n)) - set(order))
