"""Build the dataflow graph of a kernel and assign each statement to a core and to a part.

A part is a piece of the kernel that runs on one core (cube or vector). `Statements` indexes producers and users of values, `Flow` assigns a
core to every statement and yields the ordering edges, `groups_of` and `first_circle` find strongly connected components, and `levels_of`
numbers the parts: levels alternate between the two cores, and a lower level runs first.

Loads, and cheap elementwise work on loaded values, belong to no core: each part recomputes such a value if its core can, so that fewer
values cross between cores. Each part reads the items that its scalars name.
A transposition between a value and a product belongs to the product, which reads its operand transposed.

A value made inside loops crosses once per iteration. `turns_of` numbers the iterations without gaps, with the inner trip count taken at its
maximum:

    for i in range(0, n, 16):
        for j in range(0, i, 4):     →      iteration (i // 16) * (n // 4) + j // 4, of (n // 16) * (n // 4)
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from pto_wsp.errors import MixedKernelError, unreachable
from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel_walk import Body, bodies_of, result_of, uses_of
from pto_wsp.ir.scalar import Op, print_scalar
from pto_wsp.npu.isa.tile_program import ParamAccess
from pto_wsp.npu.plan.facts import NonzeroParts
from pto_wsp.npu.plan.products import is_product
from pto_wsp.ops.entries.movement import transpose
from pto_wsp.ops.entry import Unit
from pto_wsp.ops.spec import Convert, Elementwise, Expand, Iota
from pto_wsp.ops.table import find
from pto_wsp.passes.kernel.context import unit_of
from pto_wsp.source import UNKNOWN, Span
from pto_wsp.values import dataclass

_AGAIN_DEPTH = 3                              # a part recomputes a value through at most this many operations
_AGAIN_BYTES = 4                              # ... whose operands have at most this many times the bytes of the result

Container: TypeAlias = k.For | k.If
Moving: TypeAlias = k.Load | k.Store | k.Gather | k.Scatter


@dataclass(frozen=True, slots=True)
class Leaf:
    """A statement without a body, with its enclosing loops and branches, outermost first."""

    stmt: k.Stmt
    path: tuple[Container, ...]
    at: int                               # position in program order

    @property
    def loops(self) -> tuple[k.For, ...]:
        """Return the loops around the statement, outermost first."""
        return tuple(step for step in self.path if isinstance(step, k.For))

    @property
    def span(self) -> Span:
        """Return the user's source position of the statement."""
        return UNKNOWN if isinstance(self.stmt, k.Rows | k.Columns) else self.stmt.span


@dataclass(slots=True)
class Statements:
    """The leaf statements of a kernel, with their producers and users. `shared`: pairs of memory parameters that may alias."""

    kernel: k.Kernel
    access: Mapping[str, ParamAccess]
    shared: frozenset[tuple[str, str]]
    leaves: tuple[Leaf, ...] = field(init=False)
    makers: dict[int, Leaf] = field(init=False)          # by value
    users: dict[int, list[Leaf]] = field(init=False)     # by value
    accumulators: frozenset[int] = field(init=False)     # buffers to which products are added in place
    stored: frozenset[str] = field(init=False)           # parameters whose memory may change while the kernel runs
    items: frozenset[int] = field(init=False)            # by `id()`: items beside products, and the loads that they are elements of

    def __post_init__(self) -> None:
        self.leaves = tuple(_leaves(self.kernel.body))
        self.makers = {result.id: leaf for leaf in self.leaves if (result := result_of(leaf.stmt)) is not None}
        self.users = {}
        for leaf in self.leaves:
            for value in uses_of(leaf.stmt):
                self.users.setdefault(value.id, []).append(leaf)
        self.accumulators = frozenset(leaf.stmt.buffer.id for leaf in self.leaves if isinstance(leaf.stmt, k.Accumulate))
        written = {leaf.stmt.param for leaf in self.leaves if isinstance(leaf.stmt, k.Store | k.Scatter)}
        self.stored = frozenset(name for name in self.access if any(self.overlap(name, other) for other in written))
        items = [leaf.stmt for leaf in self.leaves if isinstance(leaf.stmt, k.Item)]
        if items and unit_of(self.kernel) is not Unit.CUBE:
            items = []
        self.items = frozenset(id(stmt) for item in items for stmt in (item, self.makers[item.value.id].stmt))

    def value_of(self, leaf: Leaf) -> k.Value:
        """Return the value that a leaf defines."""
        value = result_of(leaf.stmt)
        return unreachable("value of a statement without one") if value is None else value

    def overlap(self, one: str, other: str) -> bool:
        """Return whether two memory parameters may alias."""
        return one == other or (one, other) in self.shared

    def is_transpose(self, leaf: Leaf) -> bool:
        """Return whether a leaf is a transposition, which the cube core does as part of a load."""
        return isinstance(leaf.stmt, k.Compute) and leaf.stmt.op == transpose.name

    def is_product(self, leaf: Leaf) -> bool:
        """Return whether the leaf's value lives in the cube core's accumulator."""
        return is_product(leaf.stmt) or (isinstance(leaf.stmt, k.Read) and leaf.stmt.buffer.id in self.accumulators)

    def is_free(self, leaf: Leaf, unit: Unit, depth: int = 0) -> bool:
        """Return whether a part on core `unit` recomputes the leaf's value instead of receiving the value from another part."""
        match leaf.stmt:
            case k.Load(param=param):
                return param not in self.stored and (unit is Unit.VECTOR or self._cube_loads(leaf.stmt))
            case k.Compute(result, op, operands) if unit is Unit.VECTOR and leaf.stmt.guard is None and depth < _AGAIN_DEPTH:
                values = [operand for operand in operands if isinstance(operand, k.Value)]
                quick = isinstance(find(op), Elementwise | Convert | Expand | Iota)
                small = sum(value.type.size_bytes for value in values) <= _AGAIN_BYTES * result.type.size_bytes
                return quick and small and all(self.is_free(self.makers[value.id], unit, depth + 1) for value in values)
            case _:
                return False

    def on_cube(self, load: Leaf) -> bool:
        """Return whether the cube core loads the operand that a product takes from this load."""
        return self.is_free(load, Unit.CUBE) or self.is_multiplied_alone(load)

    def is_multiplied_alone(self, load: Leaf) -> bool:
        """Return whether products are the only users of a load, directly or through transpositions."""
        assert isinstance(load.stmt, k.Load)

        def multiplied(value: k.Value) -> bool:
            return all(is_product(user.stmt) or isinstance(user.stmt, k.Accumulate)
                       or (self.is_transpose(user) and multiplied(self.value_of(user))) for user in self.users.get(value.id, ()))

        return self._cube_loads(load.stmt) and multiplied(load.stmt.result)

    def _cube_loads(self, load: k.Load) -> bool:
        """Return whether the cube core supports a load: unit stride along one axis, and zero fill outside the valid part."""
        access = self.access[load.param]
        return (access.unit_cols or access.unit_rows) and load.fill == 0


def _leaves(body: Body, path: tuple[Container, ...] = (), first: int = 0) -> Iterator[Leaf]:
    at = first
    for stmt in body:
        if isinstance(stmt, k.For | k.If):
            for inner in bodies_of(stmt):
                for leaf in _leaves(inner, (*path, stmt), at):
                    at = leaf.at + 1
                    yield leaf
        else:
            yield Leaf(stmt, path, at)
            at += 1


# -- iteration numbers of values made in loops -----------------------------------------------------


@dataclass(frozen=True, slots=True)
class IterationNumber:
    """The number of the current iteration of a loop nest, and an upper bound of the iteration count.

    `count` has no loop variables, so that memory can be allocated before the loops. `count` may be negative if there is one loop. `passed`:
    for a single loop, the distance of its variable from the start, and its step.
    """

    index: s.Scalar
    count: s.Scalar
    passed: tuple[s.Scalar, s.Scalar] | None = None

    def row(self, rows: int) -> s.Scalar:
        """Return the first row of the current iteration's block of `rows` rows."""
        if self.passed is not None and self.passed[1] == s.Const(rows):
            return self.passed[0]
        return s.mul(self.index, s.Const(rows))


_Range = tuple[s.Scalar, s.Scalar]


def iteration_number(loops: Sequence[k.For], what: str) -> IterationNumber:
    """Return the iteration number and count of a loop nest, outermost loop first; `what` names the value made there, for the error.

    Raises: N102 at a loop whose trip count is unbounded before the outer loops run.
    """
    index: s.Scalar = s.Const(0)
    count: s.Scalar = s.Const(1)
    ranges: dict[s.Var, _Range] = {}
    for loop in loops:
        start, stop, step = (_range(bound, ranges) for bound in (loop.start, loop.stop, loop.step))
        if start is None or stop is None or step is None:
            raise MixedKernelError(f"how often this loop runs is not known before the loops around it do, and it makes {what} for the "
                                   "other core", loop.span, expected="bounds that grow with the outer loop's variable, or stay",
                                   found=f"range({', '.join(print_scalar(b) for b in (loop.start, loop.stop, loop.step))})",
                                   help="loop to a bound that is known, and skip iterations with pto.when")
        longest = s.ceil_div(s.sub(stop[1], start[0]), step[0])
        if len(loops) > 1:
            longest = s.maximum(longest, s.Const(0))
        index = s.add(s.mul(index, longest), s.binary(Op.FLOORDIV, s.sub(loop.var, loop.start), loop.step))
        count = s.mul(count, longest)
        ranges[loop.var] = start[0], s.maximum(start[0], s.sub(stop[1], s.Const(1)))
    passed = (s.sub(loops[0].var, loops[0].start), loops[0].step) if len(loops) == 1 else None
    return IterationNumber(index, count, passed)


def _range(node: s.Scalar, ranges: Mapping[s.Var, _Range]) -> _Range | None:
    """Return the least and greatest value of a scalar in terms of symbols known before any loop; None if they are unknown."""
    if not any(isinstance(leaf, s.Var | s.ItemRef) for leaf in s.leaves(node)):
        return node, node
    match node:
        case s.Var():
            return ranges.get(node)
        case s.Binary(op, lhs, rhs):
            left, right = _range(lhs, ranges), _range(rhs, ranges)
            return None if left is None or right is None else _combined(op, left, right)
        case s.Unary(Op.NEG, value):
            inner = _range(value, ranges)
            return None if inner is None else (s.unary(Op.NEG, inner[1]), s.unary(Op.NEG, inner[0]))
        case s.Select(_, then, other):
            one, two = _range(then, ranges), _range(other, ranges)
            return None if one is None or two is None else (s.minimum(one[0], two[0]), s.maximum(one[1], two[1]))
        case _:
            return None


def _combined(op: Op, left: _Range, right: _Range) -> _Range | None:
    positive = isinstance(right[0], s.Const) and right[0] == right[1] and right[0].value > 0
    match op:
        case Op.ADD | Op.MIN | Op.MAX:
            return s.binary(op, left[0], right[0]), s.binary(op, left[1], right[1])
        case Op.SUB:
            return s.sub(left[0], right[1]), s.sub(left[1], right[0])
        case Op.MUL | Op.FLOORDIV if positive:
            return s.binary(op, left[0], right[0]), s.binary(op, left[1], right[0])
        case Op.MUL if isinstance(left[0], s.Const) and left[0] == left[1] and left[0].value > 0:
            return s.mul(left[0], right[0]), s.mul(left[0], right[1])
        case _:
            return None


# -- cores and edges -------------------------------------------------------------------------------


FROM_ACCUMULATOR = (DType.F32, DType.I32)     # dtypes that the cube core stores without conversion


@dataclass(frozen=True, slots=True)
class Arc:
    """A constraint that `first` runs in no later part than `then`.

    `chained`: a product's result is an operand of another product, which a later task must load. `ties`: the constraint exists only to keep
    a buffer in one part; no loop iteration needs it.
    """

    first: Leaf
    then: Leaf
    chained: bool = False
    ties: bool = False


@dataclass(slots=True)
class Flow:
    """The core of each live leaf, by `id()` of its statement, and the edges between those leaves."""

    of: Statements
    given: NonzeroParts = field(init=False)
    units: dict[int, Unit] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.given = NonzeroParts(self.of.kernel, self.of.access)
        self._find_nodes()

    def nodes(self) -> tuple[Leaf, ...]:
        """Return the leaves that belong to exactly one part, in program order."""
        return tuple(leaf for leaf in self.of.leaves if id(leaf.stmt) in self.units)

    def unit(self, leaf: Leaf) -> Unit:
        """Return the core of a node."""
        return self.units[id(leaf.stmt)]

    def needed(self, leaf: Leaf, unit: Unit) -> Iterator[tuple[k.Value, Leaf, bool]]:
        """Yield each value that a leaf reads on core `unit`, its producer, and whether the part recomputes the value.

        If a product reads a transposed operand, the transposition counts as recomputed.
        """
        for value in uses_of(leaf.stmt):
            maker = self.of.makers[value.id]
            yield value, maker, self.of.is_free(maker, unit) or (unit is Unit.CUBE and self.of.is_transpose(maker))

    def sources(self, leaf: Leaf, unit: Unit) -> Iterator[tuple[k.Value, Leaf]]:
        """Yield the values of other nodes that a leaf needs on core `unit`, looking through all values that the part recomputes."""
        for value, maker, again in self.needed(leaf, unit):
            if again:
                yield from self.sources(maker, unit)
            else:
                yield value, maker

    def edges(self) -> Iterator[Arc]:
        """Yield the ordering edges between nodes: through values, buffers, memory, and prints, which keep program order."""
        yield from self._value_edges()
        yield from self._buffer_edges()
        yield from self._memory_edges()
        prints = [leaf for leaf in self.nodes() if isinstance(leaf.stmt, k.Print)]
        yield from (Arc(one, other) for one, other in itertools.pairwise(prints))

    # -- assignment of cores

    def _find_nodes(self) -> None:
        """Assign a core to every statement with an effect, then to the producers of their operands, transitively."""
        pending = [leaf for leaf in self.of.leaves if result_of(leaf.stmt) is None and id(leaf.stmt) not in self.of.items]
        while pending:
            leaf = pending.pop()
            if id(leaf.stmt) in self.units:
                continue
            unit = self._unit_of(leaf)
            self.units[id(leaf.stmt)] = unit
            pending += [maker for _, maker in self.sources(leaf, unit)]
        for leaf in self.of.leaves:      # drop buffers whose every read and write is dead
            if isinstance(leaf.stmt, k.Alloc) and not any(
                    isinstance(other.stmt, k.Read | k.Write | k.Accumulate) and other.stmt.buffer.id == leaf.stmt.buffer.id
                    and id(other.stmt) in self.units for other in self.of.leaves):
                del self.units[id(leaf.stmt)]

    def _unit_of(self, leaf: Leaf) -> Unit:
        match leaf.stmt:
            case k.Compute(op=op):
                return find(op).unit
            case k.Accumulate():
                return Unit.CUBE
            case k.Alloc(buffer) | k.Read(_, buffer) | k.Write(buffer):
                return Unit.CUBE if buffer.id in self.of.accumulators else Unit.VECTOR
            case k.Load():
                return Unit.CUBE if self.of.is_multiplied_alone(leaf) else Unit.VECTOR
            case k.Store(param=param):
                alone = all(self._on_cube(other) for other in self.of.leaves
                            if isinstance(other.stmt, Moving) and self.of.overlap(other.stmt.param, param))
                return Unit.CUBE if alone else Unit.VECTOR
            case _:
                return Unit.VECTOR

    def _on_cube(self, leaf: Leaf) -> bool:
        """Return whether the cube core can do this load or store."""
        match leaf.stmt:
            case k.Load():
                return self.of.is_multiplied_alone(leaf)
            case k.Store(param, value):
                maker = self.of.makers[value.id]
                fits = value.type.dtype in FROM_ACCUMULATOR and self.of.access[param].unit_cols
                return fits and self.of.is_product(maker) and self.given.covers(leaf.stmt)
            case _:
                return False

    # -- ordering edges

    def _value_edges(self) -> Iterator[Arc]:
        for leaf in self.nodes():
            unit = self.unit(leaf)
            multiplies = is_product(leaf.stmt) or isinstance(leaf.stmt, k.Accumulate)
            for _, maker in self.sources(leaf, unit):
                yield Arc(maker, leaf, unit is Unit.CUBE and multiplies and self.unit(maker) is Unit.CUBE and self.of.is_product(maker))

    def _buffer_edges(self) -> Iterator[Arc]:
        first: dict[int, Leaf] = {}
        last: dict[int, Leaf] = {}
        for leaf in self.nodes():
            if isinstance(leaf.stmt, k.Alloc | k.Read | k.Write | k.Accumulate):
                before = last.get(leaf.stmt.buffer.id)
                if before is not None:
                    outside = first[leaf.stmt.buffer.id].loops
                    carried = any(loop is other for loop in leaf.loops[len(outside):] for other in before.loops)
                    yield Arc(before, leaf)
                    yield Arc(leaf, before, ties=not carried)
                first.setdefault(leaf.stmt.buffer.id, leaf)
                last[leaf.stmt.buffer.id] = leaf

    def _memory_edges(self) -> Iterator[Arc]:
        touching = [(leaf, leaf.stmt) for leaf in self.nodes() if isinstance(leaf.stmt, Moving)]
        for at, (leaf, stmt) in enumerate(touching):
            for before, other in touching[:at]:
                writes = isinstance(stmt, k.Store | k.Scatter) or isinstance(other, k.Store | k.Scatter)
                if writes and self.of.overlap(stmt.param, other.param):
                    yield Arc(before, leaf)
                    if set(map(id, leaf.loops)) & set(map(id, before.loops)):
                        yield Arc(leaf, before)


# -- groups, circles and components ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Group:
    """Leaves of one core that must be in one part."""

    members: tuple[Leaf, ...]
    unit: Unit


def groups_of(flow: Flow, edges: Sequence[Arc]) -> tuple[Group, ...]:
    """Return the strongly connected groups of an acyclic flow in topological order."""
    return tuple(Group(members, flow.unit(members[0])) for members in _connected(flow, edges))


@dataclass(frozen=True, slots=True)
class Circle:
    """A strongly connected group that no single part can run.

    `across_iterations`: the members that depend on each other across loop iterations; empty if only a shared buffer ties them.
    """

    members: tuple[Leaf, ...]
    across_iterations: tuple[Leaf, ...]


def first_circle(flow: Flow) -> Circle | None:
    """Return the first group, in program order, that no single part can run; None if parts can run all groups.

    A part cannot run a group that needs both cores, or a product that takes another product's result.
    """
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


def _connected(flow: Flow, edges: Sequence[Arc]) -> tuple[tuple[Leaf, ...], ...]:
    nodes = flow.nodes()
    before: dict[int, list[Leaf]] = {id(leaf.stmt): [] for leaf in nodes}
    for edge in edges:
        before[id(edge.then.stmt)].append(edge.first)
    return tuple(tuple(sorted(group, key=lambda leaf: leaf.at)) for group in _components(nodes, before))


def _components(nodes: Sequence[Leaf], before: Mapping[int, Sequence[Leaf]]) -> list[list[Leaf]]:
    """Return the strongly connected components in topological order.

    Source: Tarjan, Depth-first search and linear graph algorithms, 1972, with an explicit stack in place of recursion.
    """
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[Leaf] = []
    on_stack: set[int] = set()
    components: list[list[Leaf]] = []
    for root in nodes:
        if id(root.stmt) in order:
            continue
        calls = [(root, iter(before[id(root.stmt)]))]
        order[id(root.stmt)] = low[id(root.stmt)] = len(order)
        stack.append(root)
        on_stack.add(id(root.stmt))
        while calls:
            leaf, rest = calls[-1]
            key = id(leaf.stmt)
            nearest = next(rest, None)
            if nearest is not None:
                other = id(nearest.stmt)
                if other not in order:
                    order[other] = low[other] = len(order)
                    stack.append(nearest)
                    on_stack.add(other)
                    calls.append((nearest, iter(before[other])))
                elif other in on_stack:
                    low[key] = min(low[key], order[other])
                continue
            calls.pop()
            if calls:
                parent = id(calls[-1][0].stmt)
                low[parent] = min(low[parent], low[key])
            if low[key] == order[key]:
                start = next(n for n, one in enumerate(stack) if one is leaf)
                components.append(stack[start:])
                on_stack -= {id(one.stmt) for one in stack[start:]}
                del stack[start:]
    return components


# -- levels ----------------------------------------------------------------------------------------


_TURNS = 8     # assumed trip count of every loop, for weighing crossing values


@dataclass(frozen=True, slots=True)
class _LevelGap:
    """Group `after` runs at least `least` levels after group `before`; 0: in the same part or a later one."""

    before: int
    after: int
    least: int


def levels_of(flow: Flow) -> Mapping[int, int]:
    """Return the level of each node of an acyclic flow, by `id()` of its statement.

    Nodes of one level form one part, and lower levels run first. Of the two assignments (cube core first, vector core first) the one with
    fewer levels is chosen.
    """
    edges = tuple(flow.edges())
    groups = groups_of(flow, edges)
    number = {id(leaf.stmt): at for at, group in enumerate(groups) for leaf in group.members}
    needs = tuple(dict.fromkeys(
        _LevelGap(number[id(e.first.stmt)], number[id(e.then.stmt)], 1 if e.chained or flow.unit(e.first) is not flow.unit(e.then) else 0)
        for e in edges if number[id(e.first.stmt)] != number[id(e.then.stmt)]))
    traffic = _Traffic(flow, groups, number)
    candidates = [_put_off(traffic, groups, needs, _levels(groups, needs, first)) for first in (Unit.CUBE, Unit.VECTOR)]
    best = min(candidates, key=lambda levels: len(set(levels)))
    rank = {level: at for at, level in enumerate(sorted(set(best)))}
    return {id(leaf.stmt): rank[best[at]] for at, group in enumerate(groups) for leaf in group.members}


def _levels(groups: Sequence[Group], needs: Sequence[_LevelGap], first: Unit) -> list[int]:
    """Return the lowest feasible level of each group; even levels belong to core `first`."""
    levels: list[int] = []
    earlier: list[list[_LevelGap]] = [[] for _ in groups]
    for need in needs:
        earlier[need.after].append(need)
    for at, group in enumerate(groups):      # groups come in topological order, so the levels of all predecessors are known
        least = max((levels[need.before] + need.least for need in earlier[at]), default=0)
        levels.append(_of_core(least, group.unit, first, 1))
    return levels


def _of_core(level: int, unit: Unit, first: Unit, step: int) -> int:
    return level if (level % 2 == 0) == (unit is first) else level + step


class _Traffic:
    """The values that groups exchange, by group number."""

    def __init__(self, flow: Flow, groups: Sequence[Group], number: Mapping[int, int]) -> None:
        self.users: dict[int, set[int]] = {}                      # by id() of the producing statement: the groups that use its value
        self.bytes: dict[int, int] = {}                           # by id() of the producing statement: bytes over all iterations
        self.concerned: dict[int, set[int]] = {at: set() for at in range(len(groups))}   # by group: its statements and their producers
        self.number = number
        for at, group in enumerate(groups):
            for leaf in group.members:
                self.concerned[at].add(id(leaf.stmt))
                for value, maker in flow.sources(leaf, group.unit):
                    self.users.setdefault(id(maker.stmt), set()).add(at)
                    self.bytes[id(maker.stmt)] = value.type.size_bytes * _TURNS ** len(maker.loops)
                    self.concerned[at].add(id(maker.stmt))

    def crossing(self, levels: Sequence[int], group: int) -> int:
        """Return the bytes that cross between levels among the values that a group produces or uses."""
        return sum(self.bytes[maker] for maker in self.concerned[group]
                   if any(levels[user] != levels[self.number[maker]] for user in self.users.get(maker, ())))


def _put_off(traffic: _Traffic, groups: Sequence[Group], needs: Sequence[_LevelGap], levels: list[int]) -> list[int]:
    """Move each group, last to first, to the level of its users if no more bytes cross than before."""
    now = levels
    later: list[list[_LevelGap]] = [[] for _ in groups]
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
