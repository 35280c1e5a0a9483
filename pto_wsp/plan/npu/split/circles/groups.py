"""Statements of which each needs the others, over the turns of a loop or through a buffer: they are of one core and one part.

Where a group takes both cores, or a product takes its own result, no part can hold it: that is a circle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pto_wsp.ops.entry import Unit
from pto_wsp.plan.npu.split.cores.flow import Edge, Flow
from pto_wsp.plan.npu.split.cores.statements import Leaf
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Group:
    """Leaves of one core that must be in one part."""

    members: tuple[Leaf, ...]
    unit: Unit


def groups_of(flow: Flow, edges: Sequence[Edge]) -> tuple[Group, ...]:
    """Return the strongly connected groups of a flow without circles, each after all that it depends on."""
    return tuple(Group(members, flow.unit(members[0])) for members in _connected(flow, edges))


@dataclass(frozen=True, slots=True)
class Circle:
    """A group that no part can hold. `turns`: those of it that need each other over the turns of a loop; none where a buffer ties them."""

    members: tuple[Leaf, ...]
    turns: tuple[Leaf, ...]


def first_circle(flow: Flow) -> Circle | None:
    """Return a group that no part can hold, in program order; None where parts hold all."""
    edges = tuple(flow.edges())
    chains = {(id(edge.first.stmt), id(edge.then.stmt)) for edge in edges if edge.chained}

    def held(members: Sequence[Leaf]) -> bool:
        inside = {id(leaf.stmt) for leaf in members}
        return len({flow.unit(leaf) for leaf in members}) == 1 and not any(one in inside and other in inside for one, other in chains)

    members = next((group for group in _connected(flow, edges) if not held(group)), None)
    if members is None:
        return None
    inside = {id(leaf.stmt) for leaf in members}
    over_turns = _connected(flow, [edge for edge in edges if not edge.ties])
    return Circle(members, next((group for group in over_turns if id(group[0].stmt) in inside and not held(group)), ()))


def _connected(flow: Flow, edges: Sequence[Edge]) -> tuple[tuple[Leaf, ...], ...]:
    nodes = flow.nodes()
    before: dict[int, list[Leaf]] = {id(leaf.stmt): [] for leaf in nodes}
    for edge in edges:
        before[id(edge.then.stmt)].append(edge.first)
    return tuple(tuple(sorted(group, key=lambda leaf: leaf.at)) for group in _components(nodes, before))


def _components(nodes: Sequence[Leaf], before: Mapping[int, Sequence[Leaf]]) -> list[list[Leaf]]:
    """Return the strongly connected components, each behind those it depends on.

    Source: Tarjan, Depth-first search and linear graph algorithms, 1972, with a stack of its own in place of recursion.
    """
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[Leaf] = []
    held: set[int] = set()
    found: list[list[Leaf]] = []
    for root in nodes:
        if id(root.stmt) in order:
            continue
        calls = [(root, iter(before[id(root.stmt)]))]
        order[id(root.stmt)] = low[id(root.stmt)] = len(order)
        stack.append(root)
        held.add(id(root.stmt))
        while calls:
            leaf, rest = calls[-1]
            key = id(leaf.stmt)
            nearest = next(rest, None)
            if nearest is not None:
                other = id(nearest.stmt)
                if other not in order:
                    order[other] = low[other] = len(order)
                    stack.append(nearest)
                    held.add(other)
                    calls.append((nearest, iter(before[other])))
                elif other in held:
                    low[key] = min(low[key], order[other])
                continue
            calls.pop()
            if calls:
                parent = id(calls[-1][0].stmt)
                low[parent] = min(low[parent], low[key])
            if low[key] == order[key]:
                at = next(n for n, one in enumerate(stack) if one is leaf)
                found.append(stack[at:])
                held -= {id(one.stmt) for one in stack[at:]}
                del stack[at:]
    return found
