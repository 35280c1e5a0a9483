"""How long a room holds something: from which step to which, steps counted as `steps` yields them.

What a room holds does not outlive the block that its tiles are declared in, unless something there reads it before it is written: then
it is carried from turn to turn, or from a branch to the next. What is made before a loop and touched in it lives as long as the loop,
and so does a room whose copies are used in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from pto_wsp.arch.isa.instruction import find_instruction
from pto_wsp.expr import tile_program as tp
from pto_wsp.expr.tile_program import Access, Pipe
from pto_wsp.source import Span
from pto_wsp.types.scalar import Binary, Op, Scalar
from pto_wsp.values import dataclass

Body = tuple[tp.Step, ...]


@dataclass(frozen=True, slots=True)
class Life:
    """From step `first` to `last`. `loops`: the loops around the block that it belongs to, outermost first; `pipes` touch it.

    `branch`: that block is a side of a branch.
    """

    room: tp.Room
    first: int
    last: int
    loops: tuple[tp.Loop, ...]
    branch: bool
    pipes: frozenset[Pipe]
    spans: tuple[Span, ...]

    def meets(self, other: Life) -> bool:
        """Tell whether both rooms hold something at a time."""
        return self.room.space is other.room.space and self.first <= other.last and other.first <= self.last


def lives_of(program: tp.TileProgram) -> tuple[Life, ...]:
    """Return the lives of the rooms that steps touch, in the order of rooms."""
    return _Lives(program).found()


@dataclass(slots=True)
class _Block:
    """A block, the loop that it is the body of, and the steps that it spans."""

    parent: _Block | None
    loop: tp.Loop | None
    first: int
    last: int
    exposed: frozenset[int]

    def path(self) -> tuple[_Block, ...]:
        """Return the blocks around it and itself, outermost first."""
        return (*(self.parent.path() if self.parent else ()), self)


@dataclass(slots=True)
class _Use:
    at: int
    block: _Block
    pipe: Pipe
    span: Span


@dataclass(slots=True)
class _Lives:
    program: tp.TileProgram
    tiles: dict[int, tp.Tile] = field(default_factory=dict)
    rooms: dict[int, tp.Room] = field(default_factory=dict)
    uses: dict[int, list[_Use]] = field(default_factory=dict)
    homes: dict[int, list[_Block]] = field(default_factory=dict)     # room -> the blocks that its tiles are declared in
    at: int = 0

    def found(self) -> tuple[Life, ...]:
        self.tiles = {tile.id: tile for tile in self.program.tiles}
        self.rooms = {room.id: room for room in self.program.rooms}
        self._visit(self.program.body, None, None)
        return tuple(self._life(room) for room in self.program.rooms if room.id in self.uses)

    def _visit(self, body: Body, parent: _Block | None, loop: tp.Loop | None) -> None:
        block = _Block(parent, loop, self.at, self.at + sum(1 for _ in tp.steps(body)) - 1, self._exposed(body)[0])
        for step in body:
            at = self.at
            self.at += 1
            match step:
                case tp.Declare(tile):
                    self.homes.setdefault(self.tiles[tile].room, []).append(block)
                case tp.Loop():
                    self._visit(step.body, block, step)
                case tp.Branch():
                    self._visit(step.then, block, None)
                    self._visit(step.other, block, None)
                case _:
                    pass
            for use in tp.uses_of(step):
                pipe = tp.pipe_of(step, self.program)
                assert pipe is not None
                self.uses.setdefault(self.tiles[use.tile].room, []).append(_Use(at, block, pipe, step.span))

    # ---- what a block reads of what was there before it ----

    def _exposed(self, body: Body, first_turn: tp.Loop | None = None) -> tuple[frozenset[int], frozenset[int]]:
        """Return the rooms that a block reads before it writes them, and those that it writes. `first_turn`: of that loop, so that
        branches on its first turn are taken. What one branch writes, another on the same condition finds."""
        exposed: set[int] = set()
        written: set[int] = set()
        where: dict[Scalar, frozenset[int]] = {}
        for step in body:
            match step:
                case tp.Loop():
                    reads, writes = self._exposed(step.body, step)
                case tp.Branch(condition, then, other):
                    reads, writes = self._exposed(then, first_turn)
                    reads -= where.get(condition, frozenset())
                    where[condition] = where.get(condition, frozenset()) | writes
                    if first_turn is None or not _is_first_turn(condition, first_turn):
                        more, also = self._exposed(other, first_turn)
                        reads, writes = reads | more, writes & also
                case _:
                    reads, writes = self._of_step(step)
            exposed |= reads - written
            written |= writes
        return frozenset(exposed), frozenset(written)

    def _of_step(self, step: tp.Step) -> tuple[frozenset[int], frozenset[int]]:
        scratch = _scratch(step)
        reads = {self.tiles[use.tile].room for at, use in enumerate(tp.uses_of(step)) if use.access.reads and at not in scratch}
        writes = {self.tiles[use.tile].room for use in tp.uses_of(step) if use.access is Access.WRITE and self._is_whole(use.tile)}
        return frozenset(reads), frozenset(writes)

    def _is_whole(self, tile_id: int) -> bool:
        tile = self.tiles[tile_id]
        return tile.offset == 0 and -(-tile.size_bytes // tp.ALIGN_BYTES) * tp.ALIGN_BYTES >= self.rooms[tile.room].size_bytes

    # ---- lives ----

    def _life(self, room: tp.Room) -> Life:
        uses = self.uses[room.id]
        paths = [block.path() for block in (*self.homes.get(room.id, ()), *(() if room.id in self.homes else (use.block for use in uses)))]
        common = [level[0] for level in zip(*paths, strict=False) if all(one is level[0] for one in level)]
        while len(common) > 1 and room.id in common[-1].exposed:
            common.pop()
        home = common[-1]
        first, last = min(self._from_home(use, home)[0] for use in uses), max(self._from_home(use, home)[1] for use in uses)
        loops = [block for block in home.path() if block.loop is not None]
        if room.copies > 1 and loops:
            first, last = loops[-1].first, loops[-1].last
        pipes = frozenset(use.pipe for use in uses)
        around = tuple(block.loop for block in loops if block.loop is not None)
        return Life(room, first, last, around, home.loop is None and home.parent is not None, pipes, tuple(use.span for use in uses))

    def _from_home(self, use: _Use, home: _Block) -> tuple[int, int]:
        """The steps that a use takes, seen from the block that the room belongs to: its own, or the loop's that it is in."""
        outer = next((block for block in use.block.path()[len(home.path()):] if block.loop is not None), None)
        return (use.at, use.at) if outer is None else (outer.first, outer.last)


def _is_first_turn(condition: object, loop: tp.Loop) -> bool:
    match condition:
        case Binary(Op.EQ, lhs, rhs):
            return {lhs, rhs} == {loop.var, loop.start}
        case _:
            return False


def _scratch(step: tp.Step) -> frozenset[int]:
    """Return which of an instruction's tiles are scratch, of which it wants nothing, by their place among its tiles."""
    if not isinstance(step, tp.Instr):
        return frozenset()
    form = find_instruction(step.name).form(len(step.args)) or ()
    tiles = [operand for operand in form if operand.kind.is_tile]
    return frozenset(at for at, operand in enumerate(tiles) if operand.name == "tmp")


def alive(lives: tuple[Life, ...], at: int) -> Iterator[Life]:
    """Yield what lives at a step."""
    yield from (life for life in lives if life.first <= at <= life.last)


