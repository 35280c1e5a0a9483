"""Place the nodes of a graph in layers, and lead its edges between them.

A node lies below all that it waits for (longest path); edges that lead back, to an earlier node in program order, are left out for that.
An edge that passes layers has a place in each of them, so that no edge runs behind a node. Nodes of a layer are in the order of their
neighbours' mean places (Sugiyama, Tagawa, Toda: Methods for visual understanding of hierarchical system structures, 1981).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from pto_wsp.values import dataclass

Point = tuple[int, int]

_SWEEPS = 6
_BEND = 14      # width of the place of an edge in a layer that it passes
_MOST_BENDS = 3000


@dataclass(frozen=True, slots=True)
class PlacedGraph:
    """The middle of each node, the points of each edge from its source to its target, and the size of the picture."""

    nodes: tuple[Point, ...]
    ways: tuple[tuple[Point, ...], ...]
    width: int
    height: int


def placed(widths: Sequence[int], edges: Sequence[tuple[int, int]], height: int, gap: int, down: int,
           bends: Sequence[int] = ()) -> PlacedGraph:
    """Return the places of nodes with these widths. `height`: of a node; `gap`, `down`: between nodes of a layer, and between layers.

    `bends`: the width that each edge takes where it passes a layer, for what is written there.

    An edge to its own node or back has no points but its ends.
    """
    n = len(widths)
    forward = [source < target for source, target in edges]
    layer = [0] * n
    for source, target in sorted(edge for edge, is_forward in zip(edges, forward, strict=True) if is_forward):
        layer[target] = max(layer[target], layer[source] + 1)
    for node in range(n):      # once more in order: the sources of a node are all placed by now
        mine = [layer[source] + 1 for source, target in edges if source < target == node] if n <= 64 else []
        layer[node] = max([layer[node], *mine])
    size, level = list(widths), list(layer)
    chains: list[list[int]] = []
    for number, ((source, target), is_forward) in enumerate(zip(edges, forward, strict=True)):
        chain = [source]
        for between in range(layer[source] + 1, layer[target]) if is_forward and len(size) < n + _MOST_BENDS else ():
            chain.append(len(size))
            size.append(bends[number] if bends else _BEND)
            level.append(between)
        chains.append([*chain, target])
    x = _places(size, level, [pair for chain, is_forward in zip(chains, forward, strict=True) if is_forward
                              for pair in pairwise(chain)], gap)
    left = min((x[k] - size[k] / 2 for k in range(len(size))), default=0)
    at = [(round(x[k] - left) + gap, level[k] * (height + down) + height // 2 + gap) for k in range(len(size))]
    width = max((at[k][0] + size[k] // 2 for k in range(len(size))), default=0) + gap
    return PlacedGraph(tuple(at[:n]), tuple(tuple(at[k] for k in chain) for chain in chains), width,
                  (max(level, default=0) + 1) * (height + down) - down + 2 * gap)


def _places(size: Sequence[int], level: Sequence[int], pairs: Sequence[tuple[int, int]], gap: int) -> list[float]:
    """Return the middle of each node on its layer."""
    rows: list[list[int]] = [[] for _ in range(max(level, default=-1) + 1)]
    for node, at in enumerate(level):
        rows[at].append(node)
    above: dict[int, list[int]] = {}
    below: dict[int, list[int]] = {}
    for source, target in pairs:
        above.setdefault(target, []).append(source)
        below.setdefault(source, []).append(target)
    x = [0.0] * len(size)
    for row in rows:
        _spread(row, [float(k) for k in range(len(row))], size, x, gap)
    for sweep in range(_SWEEPS):
        near: Mapping[int, list[int]] = above if sweep % 2 == 0 else below
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wished = {node: sum(x[other] for other in near[node]) / len(near[node]) if node in near else x[node] for node in row}
            row.sort(key=lambda node: wished[node])
            _spread(row, [wished[node] for node in row], size, x, gap)
    return x


def _spread(row: Sequence[int], wished: Sequence[float], size: Sequence[int], x: list[float], gap: int) -> None:
    """Put the nodes of a layer near the places that they wish for, in this order and without overlap."""
    groups: list[tuple[float, float, list[int]]] = []      # middle, width, members: what touches moves as one
    for node, wish in zip(row, wished, strict=True):
        groups.append((wish, float(size[node] + gap), [node]))
        while len(groups) > 1 and groups[-1][0] - groups[-1][1] / 2 < groups[-2][0] + groups[-2][1] / 2:
            (left, width, first), (right, more, second) = groups[-2:]
            middle = (left * len(first) + right * len(second)) / (len(first) + len(second))
            groups[-2:] = [(middle, width + more, first + second)]
    for middle, width, members in groups:
        begin = middle - width / 2
        for node in members:
            x[node] = begin + (size[node] + gap) / 2
            begin += size[node] + gap
