"""Which part each statement of a kernel runs in: parts run one after the other, cores in turn.

A part holds all that its core can do before it needs something of the other one. Where statements depend on each other in a circle,
over the turns of a loop, they must be of one core and one part. What rests on little is put off to the part that uses it, so that
less crosses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pto_wsp.errors import MixedKernelError
from pto_wsp.expr import kernel as k
from pto_wsp.ops.entry import Unit
from pto_wsp.plan.npu.split.cores.flow import Edge, Flow
from pto_wsp.plan.npu.split.cores.statements import Leaf, Moving
from pto_wsp.plan.npu.split.products.part_products import is_product
from pto_wsp.values import dataclass

_TURNS = 8     # how often a loop is taken to run, where values that cross are weighed


@dataclass(frozen=True, slots=True)
class Group:
    """Leaves of one core that must be in one part."""

    members: tuple[Leaf, ...]
    unit: Unit


@dataclass(frozen=True, slots=True)
class _Need:
    """A group comes after another, or in its part; `least`: by how many levels at least."""

    before: int
    after: int
    least: int


def levels_of(flow: Flow) -> Mapping[int, int]:
    """Return the level of each node, by id() of its statement: nodes of one level are one part, and lower levels run first.

    Raises: N102 for a circle that takes both cores, or a product of its own result.
    """
    edges = tuple(flow.edges())
    groups = _groups(flow, edges)
    number = {id(leaf.stmt): at for at, group in enumerate(groups) for leaf in group.members}
    needs = tuple(dict.fromkeys(
        _Need(number[id(e.first.stmt)], number[id(e.then.stmt)], 1 if e.chained or flow.unit(e.first) is not flow.unit(e.then) else 0)
        for e in edges if number[id(e.first.stmt)] != number[id(e.then.stmt)]))
    traffic = _Traffic(flow, groups, number)
    found = [_put_off(traffic, groups, needs, _levels(groups, needs, first)) for first in (Unit.CUBE, Unit.VECTOR)]
    best = min(found, key=lambda levels: len(set(levels)))
    order = {level: at for at, level in enumerate(sorted(set(best)))}
    return {id(leaf.stmt): order[best[at]] for at, group in enumerate(groups) for leaf in group.members}


def _groups(flow: Flow, edges: Sequence[Edge]) -> tuple[Group, ...]:
    """Return the strongly connected groups, each after all that it depends on."""
    nodes = flow.nodes()
    after: dict[int, list[Leaf]] = {id(leaf.stmt): [] for leaf in nodes}
    for edge in edges:
        after[id(edge.then.stmt)].append(edge.first)
    groups = tuple(tuple(sorted(group, key=lambda leaf: leaf.at)) for group in _components(nodes, after))
    chains = [(edge.first, edge.then) for edge in edges if edge.chained]
    for members in groups:
        inside = {id(leaf.stmt) for leaf in members}
        chained = any(id(first.stmt) in inside and id(then.stmt) in inside for first, then in chains)
        if chained or len({flow.unit(leaf) for leaf in members}) > 1:
            raise _circle(flow, members)
    return tuple(Group(members, flow.unit(members[0])) for members in groups)


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


def _levels(groups: Sequence[Group], needs: Sequence[_Need], first: Unit) -> list[int]:
    """Return the lowest level of each group; even levels are of the core `first`."""
    levels: list[int] = []
    earlier: list[list[_Need]] = [[] for _ in groups]
    for need in needs:
        earlier[need.after].append(need)
    for at, group in enumerate(groups):      # what a group depends on stands before it
        least = max((levels[need.before] + need.least for need in earlier[at]), default=0)
        levels.append(_of_core(least, group.unit, first, 1))
    return levels


def _of_core(level: int, unit: Unit, first: Unit, step: int) -> int:
    return level if (level % 2 == 0) == (unit is first) else level + step


class _Traffic:
    """Who gives what to whom, by number of the group."""

    def __init__(self, flow: Flow, groups: Sequence[Group], number: Mapping[int, int]) -> None:
        self.users: dict[int, set[int]] = {}                      # by id() of the statement that gives a value
        self.bytes: dict[int, int] = {}                           # of what it gives, over all turns
        self.concerned: dict[int, set[int]] = {at: set() for at in range(len(groups))}   # statements that a group is, or takes from
        self.number = number
        for at, group in enumerate(groups):
            for leaf in group.members:
                self.concerned[at].add(id(leaf.stmt))
                for value, maker in flow.sources(leaf, group.unit):
                    self.users.setdefault(id(maker.stmt), set()).add(at)
                    self.bytes[id(maker.stmt)] = value.type.size_bytes * _TURNS ** len(maker.loops)
                    self.concerned[at].add(id(maker.stmt))

    def crossing(self, levels: Sequence[int], group: int) -> int:
        """Return the bytes that cross of what a group gives and takes."""
        return sum(self.bytes[maker] for maker in self.concerned[group]
                   if any(levels[user] != levels[self.number[maker]] for user in self.users.get(maker, ())))


def _put_off(traffic: _Traffic, groups: Sequence[Group], needs: Sequence[_Need], levels: list[int]) -> list[int]:
    """Move groups to the part that uses them, from the last on, where no more crosses then than before."""
    now = levels
    later: list[list[_Need]] = [[] for _ in groups]
    for need in needs:
        later[need.before].append(need)
    for at in reversed(range(len(groups))):
        limits = [now[need.after] - need.least for need in later[at]]
        latest = min(limits, default=now[at])
        latest -= (latest - now[at]) % 2
        if latest > now[at] and latest in now:
            moved = [*now[:at], latest, *now[at + 1:]]
            if traffic.crossing(moved, at) <= traffic.crossing(now, at):
                now = moved
    return now


def _circle(flow: Flow, members: Sequence[Leaf]) -> MixedKernelError:
    """Say what goes round, at a product that takes part in it."""
    product = next(leaf for leaf in members if is_product(leaf.stmt) or isinstance(leaf.stmt, k.Accumulate))
    shares = [leaf for leaf in members if flow.unit(leaf) is Unit.VECTOR]
    vector = next((leaf for leaf in shares if isinstance(leaf.stmt, k.Compute)), shares[0] if shares else None)
    buffers = dict.fromkeys(leaf.stmt.buffer.name for leaf in members if isinstance(leaf.stmt, k.Read | k.Write | k.Accumulate))
    params = dict.fromkeys(leaf.stmt.param for leaf in members if isinstance(leaf.stmt, Moving))
    round_ = " and ".join(f"`{name}`" for name in (*buffers, *params)) or "a value"
    between = "products and vector work" if shares else "products"
    return MixedKernelError(
        f"{round_} goes round between {between} of kernel `{flow.of.kernel.name}`", product.span,
        expected="products that depend on vector work of the same turn, or of turns before the loop, and not on their own results",
        found=f"{round_} is changed by what this product gives, and this product depends on {round_}",
        help="loop in the workload, with P.seq, and keep the state in a tensor; or unroll with Python's range",
        notes=() if vector is None else (f"the vector core's share is at {vector.span}",))
