"""State the question about two accesses: do two unordered iterations exist in which both touch one element?

The question is a system of affine constraints for the solver. Loops that both accesses share have the same variables on both sides; deeper
loops have variables of their own on each side. If the accesses part at a loop, the first side is in an earlier iteration of that loop.

For accesses in two processes, an `Order` holds whatever may order them: routes of tokens that identify an iteration, and chains of counted
tokens. `tokens.py` collects both; the question then adds that no route and no chain orders the two accesses.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import field
from typing import assert_never

import numpy as np

from pto_wsp.check.affine.linear import LinExpr, System, Variable, VarKind, fresh_variable
from pto_wsp.check.affine.scalars import Application, IterationScope, Translator
from pto_wsp.check.races.accesses import Level, Line, Region, SiteAccess, Taken, region_of, token_number
from pto_wsp.ir import scalar as s
from pto_wsp.ir.flow import Consume, Loop, Process, Receive
from pto_wsp.ir.layout import Contract, TensorRef
from pto_wsp.ir.plan import PlanLoop, TaskPlan
from pto_wsp.ir.view import Cut, Pick, Step, as_declared, bounds_of
from pto_wsp.values import dataclass


# -- what may order two accesses in processes --------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, eq=False)
class Hop:
    """A token on a route: the levels around its only send statement, the payload, and the variables that receive the payload.

    `vars` is empty if the receiver drops the payload.
    """

    levels: tuple[Level, ...]
    payload: tuple[s.Scalar, ...]
    vars: tuple[s.Var, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """A path of tokens from the access on `side` to the other access. An event that orders the two is a route without hops.

    `hops`: the tokens, from the last received back to the first sent. The access comes before the first send in each iteration of the
    levels around both: `loops`, and consumers. For each such consumer, `iterations` has the hops back to the loops that distinguish its
    iterations.
    `replicas`: the route says that the two accesses are in different replicas of one process, hence in different iterations.
    """

    side: int
    hops: tuple[Hop, ...] = ()
    loops: tuple[PlanLoop, ...] = ()
    iterations: tuple[tuple[Hop, ...], ...] = ()
    replicas: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """A process between two others on a chain: the token at `position` at one end precedes token `then` at another end.

    `shift`: the credits of the next channel, added to `then`. `levels`: the levels around the first end; the outermost is taken as endless.
    """

    levels: tuple[Level, ...]
    position: s.Scalar
    then: s.Scalar
    shift: int


@dataclass(frozen=True, slots=True, eq=False)
class TokenChain:
    """A path by token numbers from the access on `side` to the other: token `first` follows the access, token `last` precedes the other.

    `shift`: the credits of the first hop (the channel's depth, for a hop against the channel's direction).
    `stretch`: any token up to `last` orders the two; otherwise only `last` itself does.
    """

    side: int
    first: s.Scalar
    shift: int
    links: tuple[Link, ...]
    last: s.Scalar
    stretch: bool


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """The only statement that sends to a channel: the levels around the statement, the payload, and the token positions at both ends.

    `sent`, `taken`: affine positions of the token at the send and at the receive; None if tokens cannot be counted.
    """

    levels: tuple[Level, ...]
    payload: tuple[s.Scalar, ...]
    sent: s.Scalar | None
    taken: s.Scalar | None


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """All routes and chains that may order two accesses in processes, and for each channel the origin of its tokens.

    `replicas`: the number of replicas if both accesses are in different replicas of one process; 0 if the processes differ.
    """

    routes: tuple[Route, ...] = ()
    chains: tuple[TokenChain, ...] = ()
    origins: Mapping[int, Origin] = field(default_factory=dict)
    replicas: int = 0


# -- the question ------------------------------------------------------------------------------------------------------
_LARGEST = 1 << 40


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two accesses without an order that share the levels before `depth`.

    `loop`: the loop at `depth` in which the first access has an earlier iteration than the second; None if the accesses are on different
    sides.
    """

    first: SiteAccess
    second: SiteAccess
    depth: int
    loop: PlanLoop | None

    @property
    def accesses(self) -> tuple[SiteAccess, SiteAccess]:
        """Both accesses, the first one first."""
        return self.first, self.second

    @property
    def accumulates(self) -> bool:
        """True if both accesses combine values with what the tensor holds, in the same way."""
        return bool(self.first.combine) and self.first.combine == self.second.combine


@dataclass(frozen=True, slots=True)
class Data:
    """Facts about a plan: the ids of the tensors that tasks write, and of the (indptr, indices) pairs whose columns are checked to rise.

    `arrays`: contents of tensors at compile time, by id; a later run may bind other arrays. `depths`, `initial`: of the plan's channels.
    `structure`: edges keep program order. `kept`: cached results about whole pipelines, shared by all pairs.
    """

    written: frozenset[int]
    rising: frozenset[tuple[int, int]]
    arrays: Mapping[int, np.ndarray]
    depths: tuple[int, ...] = ()
    structure: bool = True
    initial: tuple[int, ...] = ()
    kept: dict[Hashable, object] = field(default_factory=dict)


def data_of(plan: TaskPlan, arrays: Mapping[int, np.ndarray]) -> Data:
    """Return the facts about a plan that questions rely on."""
    written = frozenset(slot.ref.id for slot in plan.tensors if slot.writes)
    pairs = [tuple(plan.tensors[slot].ref.id for slot in axis.slots if slot is not None) for axis in plan.axes if axis.sparse]
    return Data(written, frozenset((pair[0], pair[1]) for pair in pairs if len(pair) == 2 and not written & set(pair)), arrays,
                tuple(channel.depth for channel in plan.channels), plan.structure, tuple(channel.initial for channel in plan.channels))


class Question:
    """The constraints under which a pair shares an element, and the translation of each side's expressions.

    `pinned`: use declared sizes and the initial extents of axes. `only`: compare this dimension of the tensor alone.
    `order`: add that nothing in `order` orders the pair. `in_part`: add that the two regions differ.
    Guards are added on request (`guard`), because most pairs are proved apart without guards.
    """

    def __init__(self, pair: Pair, data: Data, *, pinned: bool, only: int | None = None, order: Order | None = None,
                 in_part: bool = False) -> None:
        self.pair = pair
        self.data = data
        self.pinned = pinned
        self.only = only
        self.in_part = in_part
        self.system = System()
        self.translator = Translator(lambda tensor: tensor.id not in data.written, contract_law)
        self.bound: list[dict[s.Scalar, LinExpr]] = [{}, {}]
        self.scopes: list[IterationScope] = [self.translator.scope(bound) for bound in self.bound]
        self._ask()
        if order is not None:
            self._without(order)

    # -- expressions ---------------------------------------------------------------------------------------------------

    def number(self, node: s.Scalar, side: int) -> LinExpr:
        """Return a scalar, evaluated on one side, as a linear expression."""
        return self.scopes[side].linear(self._read(node))

    def holds(self, node: s.Scalar, side: int, holds: bool = True) -> None:
        """Add the constraint that a condition has the truth value `holds`, on one side of the pair."""
        self.system.include(self.scopes[side].condition(self._read(node), holds))

    def not_above(self, lhs: s.Scalar, rhs: s.Scalar, side: int, gap: int = 0) -> None:
        """Demand lhs + gap <= rhs on one side."""
        self.system.include(self.scopes[side].not_above(self._read(lhs), self._read(rhs), gap))

    def differ(self, ours: s.Scalar, theirs: s.Scalar) -> None:
        """Demand that `ours` on side 0 differs from `theirs` on side 1."""
        self.system.differ(self.number(ours, 0), self.number(theirs, 1))

    def _read(self, node: s.Scalar) -> s.Scalar:
        return as_declared(node) if self.pinned else node

    # -- constraints ---------------------------------------------------------------------------------------------------

    def _ask(self) -> None:
        pair = self.pair
        self._bind(pair)
        for side, access in enumerate(pair.accesses):
            for position, level in enumerate(access.levels):
                if side == 0 or position >= pair.depth:
                    self._enter(level, side)
        if pair.loop is not None:
            self.system.below(self.number(pair.loop.var, 0), self.number(pair.loop.var, 1))
        for ours, theirs in zip(pair.first.levels[pair.depth:], pair.second.levels[pair.depth:], strict=False):
            if not isinstance(ours, Loop) or ours is not theirs:
                break
            self._along_row(ours)
        regions = region_of(pair.first.view), region_of(pair.second.view)
        self._share_an_element(*regions)
        if self.in_part:
            self._differ_somewhere(*regions)

    def _bind(self, pair: Pair) -> None:
        """Create the variables of every loop and token; levels that both sides share have the same variables."""
        for side, access in enumerate(pair.accesses):
            for position, level in enumerate(access.levels):
                for var in _variables(level):
                    if side == 0 or position >= pair.depth:
                        self.bound[side][var] = fresh_variable(var.name, VarKind.FREE if isinstance(level, Loop) else VarKind.OPAQUE)
                    else:
                        self.bound[1][var] = self.bound[0][var]

    def _enter(self, level: Level, side: int, *, ends: bool = True) -> None:
        """Add the constraints that hold inside a level. `ends=False`: the loop is taken as endless (no upper bound)."""
        match level:
            case Loop(var=var, start=start, stop=stop, step=step, through=through):
                self.not_above(start, var, side)
                if ends:
                    self.not_above(var, stop, side, 1)
                by = self.number(step, side)
                if by.is_known and by.constant > 1:
                    iteration = fresh_variable(f"{var.name}'", VarKind.DEFINED)
                    self.system.equal(self.number(var, side), self.number(start, side) + iteration * by.constant)
                if through is not None and ends:
                    self.system.equal(self.number(through.var, side), self.number(through.value, side))
            case Taken():
                for branch in level.refused:
                    self.holds(branch.condition, side, False)
                if level.held is not None:
                    self.holds(level.held, side)
            case Consume():
                self.system.at_least(self.number(token_number(level), side))
            case Receive() | Process():
                pass
            case _:
                assert_never(level)

    def _without(self, order: Order) -> None:
        """Demand that nothing in `order` orders the pair."""
        if order.origins:
            for side, access in enumerate(self.pair.accesses):
                self._trace_tokens(access.levels[self.pair.depth:], side, order, frozenset())
        if order.replicas:
            mine, other = (next(level for level in access.levels[self.pair.depth:] if isinstance(level, Consume))
                           for access in self.pair.accesses)
            homes = (s.binary(s.Op.MOD, token_number(level), s.Const(order.replicas)) for level in (mine, other))
            self.differ(next(homes), next(homes))
        for route in order.routes:
            self._unordered(route)
        for chain in order.chains:
            self._not_by(chain)

    def _trace_tokens(self, levels: tuple[Level, ...], side: int, order: Order, seen: frozenset[int]) -> None:
        """Add the iteration that sent each token received at these levels; repeat for the tokens received in that iteration."""
        for level in levels:
            origin = order.origins.get(level.channel) if isinstance(level, Consume | Receive) and level.channel not in seen else None
            if origin is None or not isinstance(level, Consume | Receive):
                continue
            sent = self._copied(origin.levels)
            for level_around in origin.levels:
                self._enter(level_around, sent)
            for var, payload in zip(level.vars, origin.payload, strict=False):
                self.system.equal(self.number(var, side), self.number(payload, sent))
            if origin.sent is not None and origin.taken is not None:
                self.system.equal(self.number(origin.sent, sent), self.number(origin.taken, side))
            self._trace_tokens(origin.levels, sent, order, seen | {level.channel})

    def _not_by(self, chain: TokenChain) -> None:
        """Demand that a chain does not reach the other access: the chain arrives later than the last token before that access."""
        position_now = self.number(chain.first, chain.side) + chain.shift
        for link in chain.links:
            side = self._copied(link.levels)
            for position, level in enumerate(link.levels):
                self._enter(level, side, ends=position > 0)
            self.system.equal(self.number(link.position, side), position_now)
            position_now = self.number(link.then, side) + link.shift
        last = self.number(chain.last, 1 - chain.side)
        if chain.stretch:
            self.system.below(last, position_now)
        else:
            self.system.differ(last, position_now)

    def _unordered(self, route: Route) -> None:
        """Demand that the access on the route's side is in another iteration of the surrounding levels than the first send."""
        sent = self._back(route.hops, 1 - route.side)[-1] if route.hops else 1 - route.side if route.replicas else route.side
        ways: list[System] = []
        for loop in route.loops:
            here, there = self.number(loop.var, route.side), self.number(loop.var, sent)
            ways.append(System().below(there, here))
            if not loop.ordered:
                ways.append(System().below(here, there))
        for iteration in route.iterations:
            for hop, ours, theirs in zip(iteration, self._back(iteration, route.side), self._back(iteration, sent), strict=True):
                for level in hop.levels:
                    if isinstance(level, Loop):
                        here, there = self.number(level.var, ours), self.number(level.var, theirs)
                        ways += [System().below(here, there), System().below(there, here)]
        self.system.either(*ways)

    def _back(self, hops: tuple[Hop, ...], side: int) -> list[int]:
        """Follow tokens back from `side`; return the sides of their sends, each with variables of its own."""
        sides: list[int] = []
        for hop in hops:
            sent = self._copied(hop.levels)
            for level in hop.levels:
                self._enter(level, sent)
            for var, payload in zip(hop.vars, hop.payload, strict=False):
                self.system.equal(self.number(var, side), self.number(payload, sent))
            sides.append(sent)
            side = sent
        return sides

    def _copied(self, levels: tuple[Level, ...]) -> int:
        """Return the number of a new side: shared levels keep their variables, `levels` get new variables."""
        bound: dict[s.Scalar, LinExpr] = {
            var: self.bound[0][var] for level in self.pair.first.levels[:self.pair.depth] for var in _variables(level)}
        for level in levels:
            for var in _variables(level):
                bound[var] = fresh_variable(var.name, VarKind.FREE if isinstance(level, Loop) else VarKind.OPAQUE)
        self.bound.append(bound)
        self.scopes.append(self.translator.scope(bound))
        return len(self.scopes) - 1

    def _along_row(self, loop: PlanLoop) -> None:
        """The columns of a sparse row rise: where both sides walk the same row, the later position has the larger column."""
        if loop.through is None or any(self.number(bound, 0) != self.number(bound, 1) for bound in (loop.start, loop.stop)):
            return
        ends = {(start.tensor.id, value.tensor.id) if isinstance(start, s.Element) and isinstance(value, s.Element) else None
                for start in (loop.start, loop.stop) for value in (loop.through.value,)}
        if not ends <= self.data.rising:
            return
        here, there = self.number(loop.var, 0), self.number(loop.var, 1)
        column, other = self.number(loop.through.var, 0), self.number(loop.through.var, 1)
        self.system.either(System().below(here, there).below(column, other), System().below(there, here).below(other, column),
                           System().equal(here, there).equal(column, other))

    def guard(self) -> None:
        """Add what run-time checks establish before any task runs: views lie inside their tensors and fit their tiles."""
        for side, access in enumerate(self.pair.accesses):
            guards = {(bound.lower, bound.value, bound.upper): None for bound in bounds_of(access.view)}
            guards |= {(check.lower, check.value, check.upper): None for check in access.checks}
            for lower, value, upper in guards:
                for smaller, larger in ((lower, value), (value, upper)):
                    if not (isinstance(smaller, s.Const) and isinstance(larger, s.Const)):
                        self.not_above(smaller, larger, side)

    def _share_an_element(self, ours: Region, theirs: Region) -> None:
        """Demand that some element lies in both regions: the positions agree in each dimension of the tensor."""
        regions, boxes = (ours, theirs), ours.is_box and theirs.is_box
        positions: tuple[dict[int, LinExpr], dict[int, LinExpr]] = ({}, {})
        for side, region in enumerate(regions):
            for number in region.positions() if self.only is None else [number for number, _ in region.dims[self.only].terms]:
                self.not_above(s.Const(1), region.extents[number], side)
                positions[side][number] = fresh_variable("position")
        for dim, (here, there) in enumerate(zip(ours.dims, theirs.dims, strict=True)):
            if self.only not in (None, dim):
                continue
            if boxes and _is_stretch(here) and _is_stretch(there):
                first, second = self.number(here.start, 0), self.number(there.start, 1)
                self.system.below(first, second + self._length(theirs, there, 1))
                self.system.below(second, first + self._length(ours, here, 0))
            else:
                self.system.equal(self._along(ours, here, 0, positions[0]), self._along(theirs, there, 1, positions[1]))
        for side, region in enumerate(regions):
            for line in region.equal:
                self.system.equal(self._along(region, line, side, positions[side]))

    def _differ_somewhere(self, ours: Region, theirs: Region) -> None:
        """Demand that the two regions differ: in the start or the length of some dimension.

        Regions whose positions are counted differently may always differ, so nothing is added for them.
        """
        pairs = list(zip((*ours.dims, *ours.equal), (*theirs.dims, *theirs.equal), strict=False))
        alike = len(ours.equal) == len(theirs.equal) and all(here.terms == there.terms for here, there in pairs)
        if not alike and not (ours.is_box and theirs.is_box and all(len(line.terms) < 2 for pair in pairs for line in pair)):
            return
        numbers = [(self.number(here.start, 0), self.number(there.start, 1)) for here, there in pairs]
        ways: list[System] = []
        if alike:
            numbers += [(self.number(ours.extents[k], 0), self.number(theirs.extents[k], 1)) for k in ours.positions()]
        else:
            lengths = [(self._length(ours, here, 0), self._length(theirs, there, 1)) for here, there in pairs]
            numbers += lengths
            ways += [System().at_least(length, 2) for (here, there), (length, _) in zip(pairs, lengths, strict=True)
                     if _step(here) != _step(there)]
        ways += [way for first, second in numbers if first != second
                 for way in (System().below(first, second), System().below(second, first))]
        self.system.either(*ways)

    def _length(self, region: Region, line: Line, side: int) -> LinExpr:
        return self.number(region.extents[line.terms[0][0]], side) if line.terms else LinExpr.known(1)

    def _along(self, region: Region, line: Line, side: int, positions: dict[int, LinExpr]) -> LinExpr:
        """Return a line at its positions, each of which is inside its extent."""
        value = self.number(line.start, side)
        for number, factor in line.terms:
            self.system.within(positions[number], 0, self.number(region.extents[number], side))
            value = value + positions[number] * factor
        return value

    # -- properties of the question's answer ---------------------------------------------------------------------------

    @property
    def tables(self) -> tuple[TensorRef, ...]:
        """The tensors whose elements the question reads."""
        return tuple(self.translator.applications)

    @property
    def is_large(self) -> bool:
        """True if coefficients may exceed 64 bits: a run wraps, the solver's integers do not."""
        return any(abs(factor) > _LARGEST for expr in (*self.system.equalities, *self.system.inequalities)
                   for factor in expr.terms.values())

    @property
    def places_by_data(self) -> bool:
        """True if tensor elements decide more than loop extents: which elements a view reaches, or which branch runs."""
        for access in self.pair.accesses:
            levels = [level for level in access.levels
                      if isinstance(level, Taken) or (isinstance(level, Loop) and level.through is not None)]
            roots = (*(index for step in access.view.steps for index in _scalars(step)), *(
                node for level in levels if isinstance(level, Taken)
                for node in (*(branch.condition for branch in level.refused), level.held) if node is not None))
            walks = any(isinstance(level, Loop) for level in levels)
            if walks or any(isinstance(leaf, s.Element) for node in roots for leaf in s.leaves(node)):
                return True
        return False


def contract_law(first: Application, second: Application) -> System | None:
    """Return what the contracts of a tensor (injective, monotone) imply for two of its elements; None if the tensor has no contract."""
    value, other = first.value, second.value
    pairs = list(zip(first.index, second.index, strict=True))
    law: System | None = None
    if Contract.INJECTIVE in first.tensor.contracts:
        same = System()
        for here, there in pairs:
            same.equal(here, there)
        law = System().either(same, System().below(value, other), System().below(other, value), System().below(value, 0))
    if Contract.MONOTONE in first.tensor.contracts and pairs:
        ways = [way for here, there in pairs[:-1] for way in (System().below(here, there), System().below(there, here))]
        here, there = pairs[-1]
        ways += [System().below(here, there).at_least(other, value), System().below(there, here).at_least(value, other),
                 System().equal(here, there).equal(value, other)]
        law = (law or System()).either(*ways)
    return law


def _scalars(step: Step) -> tuple[s.Scalar, ...]:
    match step:
        case Pick(index=index):
            return (index,)
        case Cut(start=start, stop=stop):
            return (start, stop)
        case _:
            return ()


def _variables(level: Level) -> Iterator[s.Var]:
    match level:
        case Loop(var=var, through=through):
            yield var
            if through is not None:
                yield through.var
        case Consume(vars=variables):
            yield from variables
            yield token_number(level)
        case Receive(vars=variables):
            yield from variables
        case Taken() | Process():
            pass
        case _:
            assert_never(level)


def _step(line: Line) -> int:
    return line.terms[0][1] if line.terms else 1


def _is_stretch(line: Line) -> bool:
    """Tell whether the elements of a dimension are adjacent."""
    return not line.terms or (len(line.terms) == 1 and line.terms[0][1] == 1)


def opaque_names(variables: Iterator[object]) -> tuple[str, ...]:
    """Return the names of the opaque variables, each once."""
    return tuple(dict.fromkeys(v.name for v in variables if isinstance(v, Variable) and v.kind is VarKind.OPAQUE))
