"""Order the pipes of a core: flags between pipes and barriers within them, as few as the touches of memory need.

In one block a flag stands behind the child that makes something and is awaited in front of the child that takes it. What a turn of a
loop leaves for a later one is a flag that is set before the loop, awaited at the taker, set behind the maker, and awaited after the
loop; in nested loops, around the outermost, so that it is up between the loop's runs. Where rooms have two copies, so has the flag:

    set_flag(V, MTE2, 0); set_flag(V, MTE2, 1)          # both copies are free
    for j:
        wait_flag(V, MTE2, j % 2); load x[j % 2]
        set_flag(MTE2, V, j % 2); wait_flag(MTE2, V, j % 2); use x[j % 2]
        set_flag(V, MTE2, j % 2)
    wait_flag(V, MTE2, 0); wait_flag(V, MTE2, 1)

An event is set again only by a pipe that is known to come after the wait for its last time. A flag for which no event can be had so is a
meeting: both pipes wait for each other there, with event 7, which no other flag uses but the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace

from pto_wsp.arch.isa.rules import Demand, rules_of
from pto_wsp.arch.model import Arch
from pto_wsp.errors import InternalError
from pto_wsp.expr import tile_program as tp
from pto_wsp.expr.tile_program import Pipe
from pto_wsp.plan.npu.tiles.events import Block, BlockKey, Flag, copies_of, give_events
from pto_wsp.plan.npu.tiles.order import (
    Barrier,
    Graph,
    Inner,
    Need,
    Works,
    across_loop,
    either,
    find_needs,
    inside,
    meet_needs,
    through_branch,
)
from pto_wsp.plan.npu.tiles.touches import Survey, Touch, turn_of
from pto_wsp.source import UNKNOWN, Span
from pto_wsp.types.scalar import Const, Op, Scalar, add, binary
from pto_wsp.values import dataclass

_OUTPUT = (Pipe.MTE3, Pipe.FIX)
MEETING_EVENT = 7


def insert_sync(program: tp.TileProgram, arch: Arch) -> tp.TileProgram:
    """Return the program with flags and barriers."""
    meetings: frozenset[tuple[BlockKey, Need]] = frozenset()
    owned = _owned(program, arch.family)
    while True:
        root = _Planner(program, meetings).block(program.body, None, None, {})
        without = give_events(list(_all(root)), owned)
        if not without:
            return replace(program, body=tuple(_emitted(root)))
        meetings |= without      # what is around those loops relied on flags that are up before and after them


def _owned(program: tp.TileProgram, family: str) -> frozenset[tuple[Pipe, Pipe, int]]:
    """Return the flags, by their pipes and event, that instructions of the program set themselves."""
    names = {step.name for step in tp.steps(program.body) if isinstance(step, tp.Instr)}
    return frozenset((*pipes, rule.number) for name in names for rule in rules_of(name, family) if rule.demand is Demand.FLAGS_DOWN
                     for pipes in ((Pipe.V, Pipe.S), (Pipe.S, Pipe.V)))


def _all(block: Block) -> Iterator[Block]:
    yield block
    for inner in block.inner.values():
        yield from _all(inner)


@dataclass(slots=True)
class _Planner:
    """Finds the guards of every block, the inner ones first."""

    program: tp.TileProgram
    meetings: frozenset[tuple[BlockKey, Need]]        # flags across turns for which there are no events

    def block(self, body: tuple[tp.Step, ...], loop: tp.Loop | None, parent: tuple[Block, int, int] | None,
              declared: dict[int, tp.Declare]) -> Block:
        """Return a block with its guards. `loop`: whose body it is; `parent`: the block around it, and the child and side there."""
        repeating = loop is not None or (parent is not None and parent[0].repeating)
        nested = loop is not None and parent is not None and parent[0].repeating
        graph = Graph(len(body) + (parent is None), loop is not None, nested)
        block = Block(body, loop, parent, repeating, graph)
        survey = Survey(self.program, loop, dict(declared))
        touched: list[list[Touch]] = []
        inner: dict[int, Inner] = {}
        for at, step in enumerate(body):
            here = dict(survey.declared)
            touched.append(survey.child(step))
            match step:
                case tp.Loop():
                    body_of = block.inner[at, 0] = self.block(step.body, step, (block, at, 0), here)
                    if not repeating:
                        for edge in across_loop(at, [flag.need for flag in body_of.flags if not flag.meets], body_of.works):
                            graph.add(edge)
                    inner[at] = body_of.says
                case tp.Branch():
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
        copies = max((room.copies for room in self.program.rooms), default=1)
        needs = find_needs(touched, loop, 0 if loop is None else max(copies, 1), inner)
        meet_needs(_behind_leaves(needs, body), graph)
        block.says = inside(graph, block.works, inner)
        block.flags = [Flag(guard, block) for guard in graph.guards if isinstance(guard, Need)]
        for flag in block.flags:
            flag.meets = flag.need.turns > 0 and ((block.key, flag.need) in self.meetings or copies_of(flag) is None)
        if parent is None:
            block.flags += _drains(body, touched, block)
        return block


def _works(touched: list[list[Touch]]) -> Works:
    return {pipe: tuple(at for at, touches in enumerate(touched) if any(touch.pipe is pipe for touch in touches)) for pipe in
            dict.fromkeys(touch.pipe for touches in touched for touch in touches)}


def _behind_leaves(needs: tuple[Need, ...], body: tuple[tp.Step, ...]) -> list[Need]:
    """No flag is up where a kernel may end: those that would be are set behind it."""
    leaves = [at for at, step in enumerate(body) if isinstance(step, tp.Leave)]
    return [replace(need, start=max((at for at in leaves if need.start < at < need.end), default=need.start)) for need in needs]


def _drains(body: tuple[tp.Step, ...], touched: list[list[Touch]], block: Block) -> list[Flag]:
    """What is stored has arrived before the kernel ends."""
    found = []
    for end in [*(at for at, step in enumerate(body) if isinstance(step, tp.Leave)), len(body)]:
        pipes = {touch.pipe for touches in touched[:end] for touch in touches}
        for pipe in (one for one in _OUTPUT if one in pipes):
            last = end == len(body)
            found.append(Flag(Need(end - 1, pipe, end, Pipe.S), block, event=MEETING_EVENT, meets=not last))
    return found


# ---- text ----

@dataclass(slots=True)
class _Gap:
    """What stands in front of a child, and what behind it."""

    waits: list[Flag] = field(default_factory=list)
    barriers: list[Pipe] = field(default_factory=list)
    meetings: list[Flag] = field(default_factory=list)
    drains: list[Flag] = field(default_factory=list)
    sets: list[Flag] = field(default_factory=list)


def _gaps(block: Block) -> list[_Gap]:
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
        if isinstance(guard, Barrier):
            gaps[guard.gap].barriers.append(guard.pipe)
    return gaps


def _emitted(block: Block) -> Iterator[tp.Step]:
    spans = [step.span for step in block.body]
    for at, gap in enumerate(_gaps(block)):
        here = spans[at] if at < len(spans) else (spans[-1] if spans else UNKNOWN)
        yield from _in_front(gap, here)
        if at == len(block.body):
            break
        step = block.body[at]
        match step:
            case tp.Loop():
                inner = block.inner[at, 0]
                held = [] if block.repeating else [flag for one in _all(inner) for flag in one.flags if flag.need.turns and not flag.meets]
                yield from (tp.SetFlag(*_ends(flag), Const(flag.event + copy), here) for flag in held for copy in range(flag.copies))
                yield replace(step, body=tuple(_emitted(inner)))
                yield from (tp.WaitFlag(*_ends(flag), Const(flag.event + copy), here) for flag in held for copy in range(flag.copies))
            case tp.Branch():
                yield replace(step, then=tuple(_emitted(block.inner[at, 0])), other=tuple(_emitted(block.inner[at, 1])))
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
    """The pipes of a meeting: always in the same order, so that each knows of the last time; S last, as where the kernel ends."""
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
    return add(binary(Op.MOD, turn_of(loop), Const(flag.copies)), Const(flag.event))
