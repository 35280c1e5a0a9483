"""Compute token positions: which token of its channel a statement sends or receives, as an affine function of the iterations around.

An end of a channel is countable if it is one unconditional statement in loops whose inner extents are fixed: the position is then affine,
as 4*b + i in `for b in P.seq(n): for i in P.seq(4): send(ch, i)`. A consumer counts its tokens, and replicas that receive and send one
token at a time keep positions, because tokens are dealt and merged in the same turns. The number of sends before a place gives the next
send after the place and the last send before it. Records and waits of an event are the ends of a channel that is never full.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from pto_wsp.check.races.accesses import Level, Taken, token_number
from pto_wsp.ir import scalar as s
from pto_wsp.ir.flow import AwaitEvent, Choice, Consume, Do, Loop, Receive, RecordEvent, Send, Sequence, Sides, children
from pto_wsp.ir.plan import Item, PlanCommunication, PlanConsume, PlanLoop, PlanPipeline, PlanProcess, Submit
from pto_wsp.ir.scalar import Op
from pto_wsp.values import dataclass

Path: TypeAlias = tuple[tuple[Item, int], ...]      # from a body down to an item: what is around it, and which of its parts leads on
Repeats: TypeAlias = PlanLoop | PlanConsume


@dataclass(frozen=True, slots=True, eq=False)
class End:
    """A statement at one end of a channel or event. `levels`: the levels around, outermost first; a consumer is a level of itself."""

    process: PlanProcess
    statement: PlanCommunication
    levels: tuple[Level, ...]
    path: Path

    @property
    def around(self) -> tuple[Repeats, ...]:
        """The loops and consumers around the statement, outermost first."""
        return tuple(level for level in self.levels if isinstance(level, Loop | Consume))

    @property
    def position(self) -> s.Scalar:
        """The token number of a countable end."""
        return _sum_of_iterations(self.around, len(self.around))

    @property
    def is_countable(self) -> bool:
        """Tell whether the position is affine."""
        around = self.around
        if any(isinstance(level, Taken) for level in self.levels) or any(isinstance(item, Sides | Choice) for item, _ in self.path):
            return False
        if any(isinstance(level, Consume) for level in around[1:]) or not all(map(_counts_iterations, around)):
            return False
        if self.process.replicas > 1:
            return len(around) == 1 and isinstance(around[0], Consume)
        return all(isinstance(level, Loop) and _is_fixed(_extent(level)) for level in around[1:])

    @property
    def is_endless(self) -> bool:
        """Tell whether the position takes every number if the outermost level is endless."""
        around = self.around
        return bool(around) and all(isinstance(level, Loop) and _is_positive(level) for level in around[1:])


@dataclass(frozen=True, slots=True)
class TokenPosition:
    """A token's position. `stretch`: the order also holds for all later tokens (or all earlier ones, looking back)."""

    position: s.Scalar
    stretch: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Count:
    """The relation of an end to a place of its process: `number` of its tokens precede the place.

    `earlier`: tokens of earlier common iterations; `common`: number of common levels; `before`: the end precedes the place in a common
    iteration;
    `ordered`: common iterations are ordered; `each_iteration`: every common iteration has a token.
    """

    number: s.Scalar
    earlier: s.Scalar
    common: int
    before: bool
    ordered: bool
    each_iteration: bool


def ends_in(process: PlanProcess, kinds: tuple[type, ...], number: int) -> Iterator[End]:
    """Yield the statements of these kinds at a channel, or event, in a process."""
    yield from (End(process, statement, levels, path) for statement, levels, path in _ends(process.body, kinds, number, (), ()))


def only_end(pipeline: PlanPipeline, kinds: tuple[type, ...], number: int, leave_out: int = 0) -> End | None:
    """Return the one statement of these kinds at a channel; None where there are several. `leave_out`: so many of the first."""
    found = [end for process in pipeline.processes for end in ends_in(process, kinds, number)][leave_out:]
    return found[0] if len(found) == 1 else None


def path_to(item: Item, target: object) -> Path | None:
    """Return the way from an item down to one inside it."""
    if item is target or (isinstance(item, Do) and item.leaf is target):
        return ()
    for at, inner in enumerate(children(item)):
        below = path_to(inner, target)
        if below is not None:
            return ((item, at), *below)
    return None


def next_after(place: Path, end: End, task: Submit | None, *, structure: bool) -> TokenPosition | None:
    """Return the first token of an end that certainly follows a place of its process; None if none does. `task`: the task at the place.

    Without `structure` a token waits only for the tasks it was sent with, and a record for all earlier tasks of its process.
    """
    count = _count(place, end)
    if count is None:
        return None
    if not structure and task is not None:
        match end.statement:
            case RecordEvent():
                return TokenPosition(count.number, True)
            case Send(after=after):
                own = task.handle in after and not count.before and count.common == len(end.around)
                return TokenPosition(count.number, False) if own else None
            case _:
                return None
    replicas = end.process.replicas
    if replicas > 1:
        if not count.common:
            return None
        return TokenPosition(s.add(count.earlier, s.Const(replicas)) if count.before else count.earlier, False)
    if count.ordered or not structure:
        return TokenPosition(count.number, True)
    return TokenPosition(count.number, False) if not count.before and count.each_iteration else None


def last_before(place: Path, end: End, *, structure: bool) -> TokenPosition | None:
    """Return the last token of an end that certainly precedes a place of its process; None if none does.

    Without `structure` a process still blocks at a receive and at a full channel: its later tasks come after.
    """
    count = _count(place, end)
    if count is None:
        return None
    replicas = end.process.replicas
    if replicas > 1:
        if not count.common:
            return None
        return TokenPosition(count.earlier if count.before else s.sub(count.earlier, s.Const(replicas)), False)
    last = s.sub(count.number, s.Const(1))
    if count.ordered or not structure:
        return TokenPosition(last, True)
    return TokenPosition(last, False) if count.before and count.each_iteration else None


def next_of(end: End, other: End, *, structure: bool) -> s.Scalar | None:
    """Return the first token of another end of the process that follows a token of `end`, as a scalar over the levels of `end`.

    None if unknown, or if unknown for an endless outermost level: otherwise a token beyond the last one would seem to precede an access.
    """
    count = _count(end.path, other)
    if count is None or not count.common or not end.is_endless or end.around[0] is not other.around[0]:
        return None
    reach = next_after(end.path, other, None, structure=structure)
    return None if reach is None or (structure and end.process.replicas == 1 and not reach.stretch) else reach.position


def _ends(item: Item, kinds: tuple[type, ...], number: int, levels: tuple[Level, ...],
          path: Path) -> Iterator[tuple[PlanCommunication, tuple[Level, ...], Path]]:
    match item:
        case Send(channel=own) | Receive(channel=own):
            if own == number and isinstance(item, kinds):
                yield item, levels, path
        case RecordEvent(event=own) | AwaitEvent(event=own):
            if own == number and isinstance(item, kinds):
                yield item, levels, path
        case Sequence(items):
            for at, inner in enumerate(items):
                yield from _ends(inner, kinds, number, levels, (*path, (item, at)))
                if isinstance(inner, Receive):
                    levels = (*levels, inner)
        case Choice():
            for at, body in enumerate(item.bodies):
                yield from _ends(body, kinds, number, (*levels, Taken(item, at)), (*path, (item, at)))
        case Loop() | Consume():
            if isinstance(item, kinds) and isinstance(item, Consume) and item.channel == number:
                yield item, (*levels, item), path
            yield from _ends(item.body, kinds, number, (*levels, item), (*path, (item, 0)))
        case _:
            for at, inner in enumerate(children(item)):
                yield from _ends(inner, kinds, number, levels, (*path, (item, at)))


def _count(place: Path, end: End) -> _Count | None:
    """Return the relation of a countable end to a place of its process; None if it cannot be counted, or both are on different sides."""
    around = end.around
    common = 0
    before = isinstance(end.statement, Consume)      # a statement inside a consumer follows the receive of its token
    for (item, here), (other, there) in zip(place, end.path, strict=False):
        if item is not other or (here != there and not isinstance(item, Sequence)):
            return None
        if here != there:
            before = there < here
            break
        common += isinstance(item, Loop | Consume)
    else:
        if len(place) == len(end.path):
            return None     # the end itself
        if len(place) > len(end.path):      # inside a consumer
            common += 1
        else:
            before = False
            common += 1     # the place is a consumer, and the end inside
    deeper = around[common:]
    if any(isinstance(level, Consume) for level in deeper) and before:
        return None
    earlier = _sum_of_iterations(around, common)
    number = earlier
    if before:
        number = s.add(earlier, _product(deeper))
    ordered = all(level.ordered for level in around[:common] if isinstance(level, Loop))
    each_iteration = all(isinstance(level, Loop) and _is_positive(level) for level in deeper)
    return _Count(number, earlier, common, before, ordered, each_iteration)


def _sum_of_iterations(around: tuple[Repeats, ...], common: int) -> s.Scalar:
    """Return the number of tokens in earlier iterations of the first `common` levels."""
    total: s.Scalar = s.Const(0)
    for at, level in enumerate(around[:common]):
        total = s.add(total, s.mul(_iteration(level), _product(around[at + 1:])))
    return total


def _product(levels: tuple[Repeats, ...]) -> s.Scalar:
    made: s.Scalar = s.Const(1)
    for level in levels:
        if isinstance(level, Loop):
            made = s.mul(made, _extent(level))
    return made


def _iteration(level: Repeats) -> s.Scalar:
    if isinstance(level, Consume):
        return token_number(level)
    passed = s.sub(level.var, level.start)
    return passed if level.step == s.Const(1) else s.binary(Op.FLOORDIV, passed, level.step)


def _extent(loop: PlanLoop) -> s.Scalar:
    """Return how many iterations a loop has; where it starts at 0, a check of the loop keeps `stop` from being negative."""
    extent = s.ceil_div(s.sub(loop.stop, loop.start), loop.step)
    return extent if loop.start == s.Const(0) and not isinstance(extent, s.Const) else s.maximum(extent, s.Const(0))


def _counts_iterations(level: Repeats) -> bool:
    return isinstance(level, Consume) or (isinstance(level.step, s.Const) and int(level.step.value) > 0)


def _is_fixed(extent: s.Scalar) -> bool:
    """Tell whether an extent is the same in all iterations of the levels around."""
    return all(isinstance(leaf, s.Const | s.SymbolRef | s.DimOf) for leaf in s.leaves(extent))


def _is_positive(loop: PlanLoop) -> bool:
    extent = _extent(loop)
    return isinstance(extent, s.Const) and int(extent.value) > 0
