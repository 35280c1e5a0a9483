"""Order the pipes of a core: insert flags between pipes and barriers within them, and assign events to the flags.

In a block, a flag is set after the producer and awaited before the consumer. An order across iterations is a flag that is set before the
loop, awaited at the consumer, set after the producer, and awaited after the loop; in a loop nest, around the outermost loop, so that it
stays set between runs of inner loops. A buffer with two copies has two events:

    set_flag(V, MTE2, 0); set_flag(V, MTE2, 1)          # both copies are free
    for j:
        wait_flag(V, MTE2, j % 2); load x[j % 2]
        set_flag(MTE2, V, j % 2); wait_flag(MTE2, V, j % 2); use x[j % 2]
        set_flag(V, MTE2, j % 2)
    wait_flag(V, MTE2, 0); wait_flag(V, MTE2, 1)

There are eight events between two pipes; event 7 is reserved. An event may be set again only by a pipe that surely follows the last wait:
in the next iteration, or in the one after, with two alternating events. A flag without such an event becomes a meeting: both pipes wait for
each other on event 7. Flags of different blocks have different events; flags of one block may share.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import field, replace
from typing import TypeAlias

from pto_wsp.arch.model import Arch
from pto_wsp.errors import InternalError
from pto_wsp.ir.scalar import Const, Op, Scalar, add, binary
from pto_wsp.npu.isa import tile_program as tp
from pto_wsp.npu.isa.rules import Demand, rules_of
from pto_wsp.npu.isa.tile_program import Pipe
from pto_wsp.npu.tiles.order import (
    AT_LEFT,
    AT_SET,
    AT_WAIT,
    PARTS,
    Graph,
    Inner,
    PipeBarrier,
    PipeNeed,
    Works,
    across_loop,
    either,
    find_needs,
    inside,
    meet_needs,
    through_branch,
)
from pto_wsp.npu.tiles.touches import Survey, Touch, iteration_of
from pto_wsp.source import UNKNOWN, Span
from pto_wsp.values import dataclass

_EVENTS = 7
BlockKey: TypeAlias = tuple[int, ...]        # child and side of each enclosing block, outermost first


@dataclass(slots=True, eq=False)
class BlockGuards:
    """A block under planning: its graph of guards, and its inner blocks by child and side."""

    body: tuple[tp.Step, ...]
    loop: tp.For | None
    parent: tuple[BlockGuards, int, int] | None
    repeating: bool                  # the block is in a loop, or is a loop body
    graph: Graph
    works: Works = field(default_factory=dict)
    says: Inner = field(default_factory=Inner)
    flags: list[Flag] = field(default_factory=list)
    inner: dict[tuple[int, int], BlockGuards] = field(default_factory=dict)

    @property
    def key(self) -> BlockKey:
        """Return the position of the block in the program."""
        return () if self.parent is None else (*self.parent[0].key, *self.parent[1:])

    @property
    def depth(self) -> int:
        """Return the number of loops around the block, its own included."""
        return (self.loop is not None) + (self.parent[0].depth if self.parent else 0)

    @property
    def loop_around(self) -> tp.For | None:
        """Return the innermost loop around the block."""
        return self.loop if self.loop is not None or self.parent is None else self.parent[0].loop_around


@dataclass(slots=True, eq=False)
class Flag:
    """A flag: `copies` events from `event` on, or a meeting."""

    need: PipeNeed
    block: BlockGuards
    event: int = -1
    copies: int = 1
    meets: bool = False


def give_events(blocks: Sequence[BlockGuards], owned: Collection[tuple[Pipe, Pipe, int]] = ()) -> frozenset[tuple[BlockKey, PipeNeed]]:
    """Assign events to the flags of all blocks, innermost loops first. `owned`: events that instructions set themselves.

    A flag without an event becomes a meeting. Such flags across iterations are returned: the blocks around must be planned again.
    """
    without: set[tuple[BlockKey, PipeNeed]] = set()
    users: dict[tuple[Pipe, Pipe], list[list[Flag]]] = {}
    order = {id(block): at for at, block in enumerate(blocks)}
    flags = [flag for block in blocks for flag in block.flags if flag.event < 0 and not flag.meets]
    for flag in sorted(flags, key=lambda one: (-one.block.depth, not one.need.distance, order[id(one.block)], one.need.start,
                                               one.need.end)):
        pair = flag.need.first, flag.need.then
        copies = copies_of(flag)
        first = 1 + max((event for *pipes, event in owned if tuple(pipes) == pair), default=-1)
        event = None if copies is None else _free(users.setdefault(pair, [[] for _ in range(_EVENTS)]), flag, copies, first)
        if copies is None or event is None:
            flag.meets = True
            without |= {(flag.block.key, flag.need)} if flag.need.distance else set()
            continue
        flag.event, flag.copies = event, copies
        for used in users[pair][event:event + copies]:
            used.append(flag)
    return frozenset(without)


def copies_of(flag: Flag) -> int | None:
    """Return the number of alternating events with which a flag is awaited before each new set; None if no number suffices."""
    block, need = flag.block, flag.need
    if not block.repeating:
        return 1
    child = None
    while block.loop is None:
        assert block.parent is not None
        block, child, _ = block.parent
    for copies in (need.distance,) if need.distance else (1, 2):
        if child is not None:
            if _reaches(block.graph, need.then, PARTS * child + AT_LEFT, need.first, PARTS * child + AT_WAIT, copies):
                return copies
        elif _reaches(block.graph, need.then, PARTS * need.end + AT_WAIT, need.first, PARTS * need.start + AT_SET, copies - need.distance):
            return copies
    return None


def _reaches(graph: Graph, start: Pipe, at: int, then: Pipe, where: int, iterations: int) -> bool:
    """Return whether pipe `then` at `where`, `iterations` iterations later, surely follows pipe `start` at `at`."""
    period = PARTS * graph.n
    if iterations >= 2 and graph.parity:
        return (_reaches(graph, start, at, then, where, 1)
                or graph.reach(start, at, leap=iterations).get(then, where + iterations * period + 1) <= where + iterations * period)
    return graph.reach(start, at).get(then, where + iterations * period + 1) <= where + iterations * period


def _free(users: list[list[Flag]], flag: Flag, copies: int, first: int) -> int | None:
    unused = [event for event in range(first, _EVENTS - copies + 1) if not any(users[event:event + copies])]
    if unused:
        return unused[0]
    if flag.need.distance or copies > 1:
        return None
    return next((event for event, others in enumerate(users) if event >= first and all(_shares(other, flag) for other in others)), None)


def _shares(other: Flag, flag: Flag) -> bool:
    """Return whether a flag may share the event of an earlier flag of the same block."""
    block = flag.block
    if other.block is not block or other.need.distance or other.copies > 1 or other.need.end > flag.need.start:
        return False
    first, then = flag.need.first, flag.need.then
    again = block.loop is None or _reaches(block.graph, then, PARTS * flag.need.end + AT_WAIT, first,
                                           PARTS * other.need.start + AT_SET, 1)
    return again and _reaches(block.graph, then, PARTS * other.need.end + AT_WAIT, first, PARTS * flag.need.start + AT_SET, 0)


# -- guards of a program ---------------------------------------------------------------------------


_OUTPUT = (Pipe.MTE3, Pipe.FIX)
MEETING_EVENT = 7


def insert_sync(program: tp.TileProgram, arch: Arch) -> tp.TileProgram:
    """Return the program with flags and barriers."""
    meetings: frozenset[tuple[BlockKey, PipeNeed]] = frozenset()
    owned = _instruction_flags(program, arch.family)
    while True:
        root = _SyncPlanner(program, meetings).block(program.body, None, None, {})
        without = give_events(list(_all(root)), owned)
        if not without:
            return replace(program, body=tuple(_emit_guards(root)))
        meetings |= without      # plan again: enclosing blocks relied on flags that stay set around those loops


def _instruction_flags(program: tp.TileProgram, family: str) -> frozenset[tuple[Pipe, Pipe, int]]:
    """Return the flags, by pipes and event, that instructions of the program set themselves."""
    names = {step.name for step in tp.steps(program.body) if isinstance(step, tp.Instr)}
    return frozenset((*pipes, rule.number) for name in names for rule in rules_of(name, family) if rule.demand is Demand.FLAGS_DOWN
                     for pipes in ((Pipe.V, Pipe.S), (Pipe.S, Pipe.V)))


def _all(block: BlockGuards) -> Iterator[BlockGuards]:
    yield block
    for inner in block.inner.values():
        yield from _all(inner)


@dataclass(slots=True)
class _SyncPlanner:
    """Plans the guards of every block, inner blocks first."""

    program: tp.TileProgram
    meetings: frozenset[tuple[BlockKey, PipeNeed]]        # flags across iterations for which no events are left

    def block(self, body: tuple[tp.Step, ...], loop: tp.For | None, parent: tuple[BlockGuards, int, int] | None,
              declared: dict[int, tp.BindTile]) -> BlockGuards:
        """Return a block with its guards. `loop`: the loop whose body it is; `parent`: the enclosing block, child and side."""
        repeating = loop is not None or (parent is not None and parent[0].repeating)
        nested = loop is not None and parent is not None and parent[0].repeating
        graph = Graph(len(body) + (parent is None), loop is not None, nested)
        block = BlockGuards(body, loop, parent, repeating, graph)
        survey = Survey(self.program, loop, dict(declared))
        touched: list[list[Touch]] = []
        inner: dict[int, Inner] = {}
        for at, step in enumerate(body):
            here = dict(survey.declared)
            touched.append(survey.child(step))
            match step:
                case tp.For():
                    body_of = block.inner[at, 0] = self.block(step.body, step, (block, at, 0), here)
                    if not repeating:
                        for edge in across_loop(at, [flag.need for flag in body_of.flags if not flag.meets], body_of.works):
                            graph.add(edge)
                    inner[at] = body_of.says
                case tp.If():
                    sides = [self.block(side, None, (block, at, n), here) for n, side in enumerate((step.then, step.other))]
                    block.inner[at, 0], block.inner[at, 1] = sides
                    inner[at] = either([(side.says, side.works) for side in sides])
                    for edge in through_branch(at, inner[at]):
                        graph.add(edge)
                case tp.Leave() if parent is not None:
                    raise InternalError("a kernel ends inside a loop or branch", self.program.name)
                case _:
                    pass
        block.works = _works(touched)
        copies = max((buffer.copies for buffer in self.program.buffers), default=1)
        needs = find_needs(touched, loop, 0 if loop is None else max(copies, 1), inner)
        meet_needs(_move_past_leaves(needs, body), graph)
        block.says = inside(graph, block.works, inner)
        block.flags = [Flag(guard, block) for guard in graph.guards if isinstance(guard, PipeNeed)]
        for flag in block.flags:
            flag.meets = flag.need.distance > 0 and ((block.key, flag.need) in self.meetings or copies_of(flag) is None)
        if parent is None:
            block.flags += _drains(body, touched, block)
        return block


def _works(touched: list[list[Touch]]) -> Works:
    return {pipe: tuple(at for at, touches in enumerate(touched) if any(touch.pipe is pipe for touch in touches)) for pipe in
            dict.fromkeys(touch.pipe for touches in touched for touch in touches)}


def _move_past_leaves(needs: tuple[PipeNeed, ...], body: tuple[tp.Step, ...]) -> list[PipeNeed]:
    """Return the needs with no flag set across an early return: such a flag is set after the return instead."""
    leaves = [at for at, step in enumerate(body) if isinstance(step, tp.Leave)]
    return [replace(need, start=max((at for at in leaves if need.start < at < need.end), default=need.start)) for need in needs]


def _drains(body: tuple[tp.Step, ...], touched: list[list[Touch]], block: BlockGuards) -> list[Flag]:
    """Return the flags that wait for stores before every end of the kernel."""
    drains = []
    for end in [*(at for at, step in enumerate(body) if isinstance(step, tp.Leave)), len(body)]:
        pipes = {touch.pipe for touches in touched[:end] for touch in touches}
        for pipe in (one for one in _OUTPUT if one in pipes):
            last = end == len(body)
            drains.append(Flag(PipeNeed(end - 1, pipe, end, Pipe.S), block, event=MEETING_EVENT, meets=not last))
    return drains


# -- emission

@dataclass(slots=True)
class _Gap:
    """The steps between two children: waits, barriers, meetings and drains, and the sets after the earlier child."""

    waits: list[Flag] = field(default_factory=list)
    barriers: list[Pipe] = field(default_factory=list)
    meetings: list[Flag] = field(default_factory=list)
    drains: list[Flag] = field(default_factory=list)
    sets: list[Flag] = field(default_factory=list)


def _gaps(block: BlockGuards) -> list[_Gap]:
    gaps = [_Gap() for _ in range(block.graph.n)]
    for flag in sorted(block.flags, key=_order):
        if flag.meets:
            gaps[flag.need.end].meetings.append(flag)
        elif flag.event == MEETING_EVENT:
            gaps[flag.need.end].drains.append(flag)
        else:
            gaps[flag.need.end].waits.append(flag)
            gaps[flag.need.start].sets.append(flag)
    for guard in block.graph.guards:
        if isinstance(guard, PipeBarrier):
            gaps[guard.gap].barriers.append(guard.pipe)
    return gaps


def _emit_guards(block: BlockGuards) -> Iterator[tp.Step]:
    spans = [step.span for step in block.body]
    for at, gap in enumerate(_gaps(block)):
        here = spans[at] if at < len(spans) else (spans[-1] if spans else UNKNOWN)
        yield from _in_front(gap, here)
        if at == len(block.body):
            break
        step = block.body[at]
        match step:
            case tp.For():
                inner = block.inner[at, 0]
                held = [] if block.repeating else [flag for one in _all(inner) for flag in one.flags
                                                   if flag.need.distance and not flag.meets]
                yield from (tp.SetFlag(*_ends(flag), Const(flag.event + copy), here) for flag in held for copy in range(flag.copies))
                yield replace(step, body=tuple(_emit_guards(inner)))
                yield from (tp.WaitFlag(*_ends(flag), Const(flag.event + copy), here) for flag in held for copy in range(flag.copies))
            case tp.If():
                yield replace(step, then=tuple(_emit_guards(block.inner[at, 0])), other=tuple(_emit_guards(block.inner[at, 1])))
            case _:
                yield step
        yield from (tp.SetFlag(*_ends(flag), _event(flag), here) for flag in gap.sets)


def _in_front(gap: _Gap, span: Span) -> Iterator[tp.Step]:
    yield from (tp.WaitFlag(*_ends(flag), _event(flag), span) for flag in gap.waits)
    yield from (tp.Barrier(pipe, span) for pipe in gap.barriers)
    for first, then in dict.fromkeys(_in_pipe_order(flag) for flag in gap.meetings):
        for after, before in ((first, then), (then, first)):
            yield tp.SetFlag(after, before, Const(MEETING_EVENT), span)
            yield tp.WaitFlag(after, before, Const(MEETING_EVENT), span)
    for flag in gap.drains:
        yield tp.SetFlag(*_ends(flag), Const(MEETING_EVENT), span)
        yield tp.WaitFlag(*_ends(flag), Const(MEETING_EVENT), span)


def _in_pipe_order(flag: Flag) -> tuple[Pipe, Pipe]:
    """Return the pipes of a meeting in a fixed order, S last, so that each pipe knows of the previous meeting."""
    first, then = sorted(_ends(flag), key=lambda pipe: (pipe is Pipe.S, pipe.value))
    return first, then


def _order(flag: Flag) -> tuple[int, int, int, int, int]:
    first, then = _ends(flag)
    return list(Pipe).index(first), list(Pipe).index(then), flag.event, flag.need.end, flag.need.start


def _ends(flag: Flag) -> tuple[Pipe, Pipe]:
    return flag.need.first, flag.need.then


def _event(flag: Flag) -> Scalar:
    loop = flag.block.loop_around
    if flag.copies == 1 or loop is None:
        return Const(flag.event)
    return add(binary(Op.MOD, iteration_of(loop), Const(flag.copies)), Const(flag.event))
