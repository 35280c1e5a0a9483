"""Give every flag its events: eight between two pipes, of which one is kept for meetings.

An event may be set again when its last wait is known to be over. Within a loop that is so in the next turn, or in the one after, and then
the flag has two events in turn; else the flag becomes a meeting. Flags of different blocks have different events; flags of one block share
one when there are not enough.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field
from typing import TypeAlias

from pto_wsp.expr import tile_program as tp
from pto_wsp.expr.tile_program import Pipe
from pto_wsp.plan.npu.tiles.order import AT_LEFT, AT_SET, AT_WAIT, PARTS, Graph, Inner, Need, Works
from pto_wsp.values import dataclass

_EVENTS = 7
BlockKey: TypeAlias = tuple[int, ...]        # child and side of each block around, outermost first


@dataclass(slots=True, eq=False)
class Block:
    """A block on its way to flags: its graph of guards, and the blocks inside by child and side."""

    body: tuple[tp.Step, ...]
    loop: tp.Loop | None
    parent: tuple[Block, int, int] | None
    repeating: bool                  # it is in a loop, or a loop's body
    graph: Graph
    works: Works = field(default_factory=dict)
    says: Inner = field(default_factory=Inner)
    flags: list[Flag] = field(default_factory=list)
    inner: dict[tuple[int, int], Block] = field(default_factory=dict)

    @property
    def key(self) -> BlockKey:
        """Where the block stands."""
        return () if self.parent is None else (*self.parent[0].key, *self.parent[1:])

    @property
    def depth(self) -> int:
        """How many loops it is in."""
        return (self.loop is not None) + (self.parent[0].depth if self.parent else 0)

    @property
    def loop_around(self) -> tp.Loop | None:
        """The innermost loop that it is in."""
        return self.loop if self.loop is not None or self.parent is None else self.parent[0].loop_around


@dataclass(slots=True, eq=False)
class Flag:
    """A flag: `copies` events from `event` on, or a meeting."""

    need: Need
    block: Block
    event: int = -1
    copies: int = 1
    meets: bool = False


def give_events(blocks: Sequence[Block], owned: Collection[tuple[Pipe, Pipe, int]] = ()) -> frozenset[tuple[BlockKey, Need]]:
    """Give events to the flags of all blocks, first to those of the innermost loops; none that instructions set themselves (`owned`).

    Flags that get none become meetings, but for those across turns, which are returned.
    """
    without: set[tuple[BlockKey, Need]] = set()
    users: dict[tuple[Pipe, Pipe], list[list[Flag]]] = {}
    order = {id(block): at for at, block in enumerate(blocks)}
    flags = [flag for block in blocks for flag in block.flags if flag.event < 0 and not flag.meets]
    for flag in sorted(flags, key=lambda one: (-one.block.depth, not one.need.turns, order[id(one.block)], one.need.start, one.need.end)):
        pair = flag.need.first, flag.need.then
        copies = copies_of(flag)
        first = 1 + max((event for *pipes, event in owned if tuple(pipes) == pair), default=-1)
        event = None if copies is None else _free(users.setdefault(pair, [[] for _ in range(_EVENTS)]), flag, copies, first)
        if copies is None or event is None:
            flag.meets = True
            without |= {(flag.block.key, flag.need)} if flag.need.turns else set()
            continue
        flag.event, flag.copies = event, copies
        for used in users[pair][event:event + copies]:
            used.append(flag)
    return frozenset(without)


def copies_of(flag: Flag) -> int | None:
    """Return how many events a flag needs so that each is awaited before it is set again; None: no number does."""
    block, need = flag.block, flag.need
    if not block.repeating:
        return 1
    child = None
    while block.loop is None:
        assert block.parent is not None
        block, child, _ = block.parent
    for copies in (need.turns,) if need.turns else (1, 2):
        if child is not None:
            if _reaches(block.graph, need.then, PARTS * child + AT_LEFT, need.first, PARTS * child + AT_WAIT, copies):
                return copies
        elif _reaches(block.graph, need.then, PARTS * need.end + AT_WAIT, need.first, PARTS * need.start + AT_SET, copies - need.turns):
            return copies
    return None


def _reaches(graph: Graph, start: Pipe, at: int, then: Pipe, where: int, turns: int) -> bool:
    """Tell whether `then` in front of `where`, some turns later, comes after `start` at `at`."""
    period = PARTS * graph.n
    if turns >= 2 and graph.parity:
        return (_reaches(graph, start, at, then, where, 1)
                or graph.reach(start, at, leap=turns).get(then, where + turns * period + 1) <= where + turns * period)
    return graph.reach(start, at).get(then, where + turns * period + 1) <= where + turns * period


def _free(users: list[list[Flag]], flag: Flag, copies: int, first: int) -> int | None:
    unused = [event for event in range(first, _EVENTS - copies + 1) if not any(users[event:event + copies])]
    if unused:
        return unused[0]
    if flag.need.turns or copies > 1:
        return None
    return next((event for event, others in enumerate(users) if event >= first and all(_shares(other, flag) for other in others)), None)


def _shares(other: Flag, flag: Flag) -> bool:
    """Tell whether a flag may use the event of one that stands before it in the same block."""
    block = flag.block
    if other.block is not block or other.need.turns or other.copies > 1 or other.need.end > flag.need.start:
        return False
    first, then = flag.need.first, flag.need.then
    again = block.loop is None or _reaches(block.graph, then, PARTS * flag.need.end + AT_WAIT, first,
                                           PARTS * other.need.start + AT_SET, 1)
    return again and _reaches(block.graph, then, PARTS * other.need.end + AT_WAIT, first, PARTS * flag.need.start + AT_SET, 0)
