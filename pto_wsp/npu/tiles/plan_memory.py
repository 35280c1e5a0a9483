"""Plan the on-chip memories: live ranges of buffers, double buffering, and addresses.

`lives_of` computes live ranges in steps, counted as `steps` yields them. A buffer's contents end with the block that declares its tiles,
unless a step there reads them before a write: then they are live across iterations, or from one branch to the next. A buffer written before
a loop and used inside, or with copies used in alternation, is live for the whole loop.

`double_buffer` gives a buffer two copies if a loop passes it from one pipe to another (loads, stores, operands of the matrix unit):

    buffer x                       buffer x, 2 copies
    for j:                       for j:
        x = T[j]                     x (copy j % 2) = T[j]
        use x                        use x

`plan_memory` assigns addresses. Buffers share memory only if they do not fit side by side, because sharing makes pipes wait. If they do not
fit even then, buffers lose their second copies at the fullest step: outer loops first, then branches, then the largest.

    0x00000 .. 0x04000  x         2 copies of 8192, steps 4 to 19
    0x04000 .. 0x06000  squares   steps 6 to 8
    0x04000 .. 0x06000  y         steps 9 to 12
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from pto_wsp.arch.model import Arch
from pto_wsp.errors import CapacityError
from pto_wsp.ir.kernel import ScalarParamDecl
from pto_wsp.ir.scalar import Binary, Const, Op, Scalar
from pto_wsp.npu.isa import tile_program as tp
from pto_wsp.npu.isa.instructions import find_instruction
from pto_wsp.npu.isa.tile_program import Access, ChipBuffer, Pipe, Space, TileProgram
from pto_wsp.npu.tiles.touches import iteration_of
from pto_wsp.passes.kernel.arena import best_gap
from pto_wsp.source import Span
from pto_wsp.values import dataclass

Body = tuple[tp.Step, ...]


@dataclass(frozen=True, slots=True)
class LiveRange:
    """A live range of an on-chip buffer, steps `first` to `last`. `loops`: loops around its block, outermost first.

    `branch`: its block is a side of a branch. `pipes`: the pipes that touch the buffer.
    """

    buffer: tp.ChipBuffer
    first: int
    last: int
    loops: tuple[tp.For, ...]
    branch: bool
    pipes: frozenset[Pipe]
    spans: tuple[Span, ...]

    def meets(self, other: LiveRange) -> bool:
        """Return whether both buffers are live at some step, in the same memory."""
        return self.buffer.space is other.buffer.space and self.first <= other.last and other.first <= self.last


def lives_of(program: tp.TileProgram) -> tuple[LiveRange, ...]:
    """Return the live ranges of the buffers that steps touch, in order of buffers."""
    return _LiveRanges(program).found()


@dataclass(slots=True)
class _BlockRange:
    """A block, the loop whose body it is, and its step range. `exposed`: buffers that it reads before it writes them."""

    parent: _BlockRange | None
    loop: tp.For | None
    first: int
    last: int
    exposed: frozenset[int]

    def path(self) -> tuple[_BlockRange, ...]:
        """Return the enclosing blocks and the block itself, outermost first."""
        return (*(self.parent.path() if self.parent else ()), self)


@dataclass(slots=True)
class _BufferUse:
    at: int
    block: _BlockRange
    pipe: Pipe
    span: Span


@dataclass(slots=True)
class _LiveRanges:
    program: tp.TileProgram
    tiles: dict[int, tp.TileView] = field(default_factory=dict)
    buffers: dict[int, tp.ChipBuffer] = field(default_factory=dict)
    uses: dict[int, list[_BufferUse]] = field(default_factory=dict)
    homes: dict[int, list[_BlockRange]] = field(default_factory=dict)     # buffer -> the blocks that declare its tiles
    at: int = 0

    def found(self) -> tuple[LiveRange, ...]:
        self.tiles = {tile.id: tile for tile in self.program.tiles}
        self.buffers = {buffer.id: buffer for buffer in self.program.buffers}
        self._visit(self.program.body, None, None)
        return tuple(self._life(buffer) for buffer in self.program.buffers if buffer.id in self.uses)

    def _visit(self, body: Body, parent: _BlockRange | None, loop: tp.For | None) -> None:
        block = _BlockRange(parent, loop, self.at, self.at + sum(1 for _ in tp.steps(body)) - 1, self._exposed(body)[0])
        for step in body:
            at = self.at
            self.at += 1
            match step:
                case tp.BindTile(tile):
                    self.homes.setdefault(self.tiles[tile].buffer, []).append(block)
                case tp.For():
                    self._visit(step.body, block, step)
                case tp.If():
                    self._visit(step.then, block, None)
                    self._visit(step.other, block, None)
                case _:
                    pass
            for use in tp.uses_of(step):
                pipe = tp.pipe_of(step, self.program)
                assert pipe is not None
                self.uses.setdefault(self.tiles[use.tile].buffer, []).append(_BufferUse(at, block, pipe, step.span))

    # -- upward-exposed reads

    def _exposed(self, body: Body, first_of: tp.For | None = None) -> tuple[frozenset[int], frozenset[int]]:
        """Return the buffers that a block reads before it writes them, and the buffers that it writes.

        `first_of`: the loop whose first iteration the block is: branches on that iteration are taken. A branch may rely on the writes of an
        earlier branch on the same condition.
        """
        exposed: set[int] = set()
        written: set[int] = set()
        where: dict[Scalar, frozenset[int]] = {}
        for step in body:
            match step:
                case tp.For():
                    reads, writes = self._exposed(step.body, step)
                case tp.If(condition, then, other):
                    reads, writes = self._exposed(then, first_of)
                    reads -= where.get(condition, frozenset())
                    where[condition] = where.get(condition, frozenset()) | writes
                    if first_of is None or not _is_first_iteration(condition, first_of):
                        more, also = self._exposed(other, first_of)
                        reads, writes = reads | more, writes & also
                case _:
                    reads, writes = self._of_step(step)
            exposed |= reads - written
            written |= writes
        return frozenset(exposed), frozenset(written)

    def _of_step(self, step: tp.Step) -> tuple[frozenset[int], frozenset[int]]:
        scratch = _scratch(step)
        reads = {self.tiles[use.tile].buffer for at, use in enumerate(tp.uses_of(step)) if use.access.reads and at not in scratch}
        writes = {self.tiles[use.tile].buffer for use in tp.uses_of(step) if use.access is Access.WRITE and self._is_whole(use.tile)}
        return frozenset(reads), frozenset(writes)

    def _is_whole(self, tile_id: int) -> bool:
        tile = self.tiles[tile_id]
        return tile.offset == 0 and -(-tile.size_bytes // tp.ALIGN_BYTES) * tp.ALIGN_BYTES >= self.buffers[tile.buffer].size_bytes

    # -- live ranges

    def _life(self, buffer: tp.ChipBuffer) -> LiveRange:
        uses = self.uses[buffer.id]
        paths = [block.path() for block in self.homes.get(buffer.id) or [use.block for use in uses]]
        common = [level[0] for level in zip(*paths, strict=False) if all(one is level[0] for one in level)]
        while len(common) > 1 and buffer.id in common[-1].exposed:
            common.pop()
        home = common[-1]
        first, last = min(self._from_home(use, home)[0] for use in uses), max(self._from_home(use, home)[1] for use in uses)
        loops = [block for block in home.path() if block.loop is not None]
        if buffer.copies > 1 and loops:
            first, last = loops[-1].first, loops[-1].last
        pipes = frozenset(use.pipe for use in uses)
        around = tuple(block.loop for block in loops if block.loop is not None)
        return LiveRange(buffer, first, last, around, home.loop is None and home.parent is not None, pipes, tuple(use.span for use in uses))

    def _from_home(self, use: _BufferUse, home: _BlockRange) -> tuple[int, int]:
        """Return the steps of a use as seen from the home block: its own step, or the range of the outermost loop between."""
        outer = next((block for block in use.block.path()[len(home.path()):] if block.loop is not None), None)
        return (use.at, use.at) if outer is None else (outer.first, outer.last)


def _is_first_iteration(condition: object, loop: tp.For) -> bool:
    match condition:
        case Binary(Op.EQ, lhs, rhs):
            return {lhs, rhs} == {loop.var, loop.start}
        case _:
            return False


def _scratch(step: tp.Step) -> frozenset[int]:
    """Return the positions, among an instruction's tiles, of scratch tiles, whose contents are not read."""
    if not isinstance(step, tp.Instr):
        return frozenset()
    form = find_instruction(step.name).form(len(step.args)) or ()
    tiles = [operand for operand in form if operand.kind.is_tile]
    return frozenset(at for at, operand in enumerate(tiles) if operand.name == "tmp")


def alive(lives: tuple[LiveRange, ...], at: int) -> Iterator[LiveRange]:
    """Yield the live ranges that include a step."""
    yield from (life for life in lives if life.first <= at <= life.last)


# -- double buffering ------------------------------------------------------------------------------


COPIES = 2


def double_buffer(program: tp.TileProgram, arch: Arch) -> tp.TileProgram:
    """Return the program with two copies of the buffers that loops pass between pipes, in memories of known size."""
    rotation: dict[int, Scalar] = {}
    for life in lives_of(program):
        bounded = arch.memory(life.buffer.space.value).usable_bytes is not None
        if bounded and life.loops and len(life.pipes) > 1 and Pipe.S not in life.pipes and _may_repeat(life.loops[-1]):
            rotation[life.buffer.id] = iteration_of(life.loops[-1])
    buffers = tuple(replace(buffer, copies=COPIES) if buffer.id in rotation else buffer for buffer in program.buffers)
    return with_rotation(replace(program, buffers=buffers), rotation)


def with_rotation(program: tp.TileProgram, rotation: dict[int, Scalar]) -> tp.TileProgram:
    """Return the program with declarations of tiles at the copies that `rotation` gives, by buffer; other buffers stay as they are."""
    buffer_of = {tile.id: tile.buffer for tile in program.tiles}

    def changed(body: tuple[tp.Step, ...]) -> tuple[tp.Step, ...]:
        return tuple(one(step) for step in body)

    def one(step: tp.Step) -> tp.Step:
        match step:
            case tp.BindTile(tile) if buffer_of[tile] in rotation:
                return replace(step, iteration=rotation[buffer_of[tile]])
            case tp.For():
                return replace(step, body=changed(step.body))
            case tp.If():
                return replace(step, then=changed(step.then), other=changed(step.other))
            case _:
                return step

    return replace(program, body=changed(program.body))


def without_copies(program: tp.TileProgram, buffer_id: int) -> tp.TileProgram:
    """Return the program with a single copy of a buffer."""
    buffers = tuple(replace(buffer, copies=1) if buffer.id == buffer_id else buffer for buffer in program.buffers)
    return with_rotation(replace(program, buffers=buffers), {buffer_id: Const(0)})


def _may_repeat(loop: tp.For) -> bool:
    """Return False for a loop of at most one iteration."""
    bounds = loop.start, loop.stop, loop.step
    numbers = [int(bound.value) for bound in bounds if isinstance(bound, Const)]
    return len(numbers) < 3 or len(range(*numbers)) > 1


# -- unused tiles ----------------------------------------------------------------------------------


def drop_unused(program: tp.TileProgram, arch: Arch) -> tp.TileProgram:
    """Return the program without unused tiles and buffers."""
    used = {use.tile for step in tp.steps(program.body) for use in tp.uses_of(step)}

    def kept(body: tuple[tp.Step, ...]) -> tuple[tp.Step, ...]:
        return tuple(one(step) for step in body if not (isinstance(step, tp.BindTile) and step.tile not in used))

    def one(step: tp.Step) -> tp.Step:
        match step:
            case tp.For():
                return replace(step, body=kept(step.body))
            case tp.If():
                return replace(step, then=kept(step.then), other=kept(step.other))
            case _:
                return step

    tiles = tuple(tile for tile in program.tiles if tile.id in used)
    homes = {tile.buffer for tile in tiles}
    return replace(program, body=kept(program.body), tiles=tiles, buffers=tuple(buffer for buffer in program.buffers if buffer.id in homes))


def verify_after_drop_unused(program: tp.TileProgram) -> None:
    """Every tile is used, and every buffer has one."""
    used = {use.tile for step in tp.steps(program.body) for use in tp.uses_of(step)}
    assert {tile.id for tile in program.tiles} == used
    assert {buffer.id for buffer in program.buffers} == {tile.buffer for tile in program.tiles}


# -- addresses -------------------------------------------------------------------------------------


# Alignment of a fractal in each memory; UB moves blocks of 32 bytes.
_ALIGN = {Space.UB: 32, Space.L1: 512, Space.L0A: 512, Space.L0B: 512, Space.L0C: 1024}


def plan_memory(program: TileProgram, arch: Arch) -> TileProgram:
    """Return the program with addresses, and with fewer buffer copies if needed.

    Raises: K110 if the buffers do not fit with one copy each.
    """
    buffers = tuple(replace(buffer, size_bytes=_round(buffer.size_bytes, buffer.space)) for buffer in program.buffers)
    program = replace(program, buffers=buffers)
    addresses: dict[int, int] = {}
    lives = lives_of(program)
    for space in Space:
        program, lives, placed = _fit_copies(program, lives, space, arch)
        addresses |= placed
    return replace(program, buffers=tuple(replace(buffer, address=addresses[buffer.id]) for buffer in program.buffers))


def verify_after_plan_memory(program: TileProgram) -> None:
    """Every buffer has an address that is aligned, and buffers that live at the same time do not overlap."""
    lives = lives_of(program)
    for at, life in enumerate(lives):
        start, stop = _bytes_of(life.buffer)
        assert start % _ALIGN[life.buffer.space] == 0, life.buffer
        assert not any(life.meets(other) and start < _bytes_of(other.buffer)[1] and _bytes_of(other.buffer)[0] < stop
                       for other in lives[:at]), life.buffer


def _bytes_of(buffer: ChipBuffer) -> tuple[int, int]:
    assert buffer.address is not None, buffer
    return buffer.address, buffer.address + buffer.size_bytes * buffer.copies


def _fit_copies(program: TileProgram, lives: tuple[LiveRange, ...], space: Space,
                arch: Arch) -> tuple[TileProgram, tuple[LiveRange, ...], dict[int, int]]:
    """Return the program with as many copies as fit into a memory, its live ranges, and the addresses of the memory's buffers."""
    limit = arch.memory(space.value).usable_bytes
    while True:
        here = [life for life in lives if life.buffer.space is space]
        for place in (_side_by_side, _best_fit):
            placed = place(here)
            if limit is None or _end(placed, here) <= limit:
                return program, lives, placed
        copied = [life for life in here if life.buffer.copies > 1]
        if not copied:
            raise _too_much(program, here, max(_end(placed, here), 0), limit or 0, arch)
        full = tuple(alive(tuple(copied), _peak_step(here))) or copied
        dropped = min(full, key=lambda life: (len(life.loops), not life.branch, -life.buffer.size_bytes, life.buffer.id))
        program = without_copies(program, dropped.buffer.id)
        lives = lives_of(program)


def _end(placed: dict[int, int], lives: Sequence[LiveRange]) -> int:
    return max((placed[life.buffer.id] + _size(life) for life in lives), default=0)


def _size(life: LiveRange) -> int:
    return life.buffer.size_bytes * life.buffer.copies


def _round(size: int, space: Space) -> int:
    return -(-size // _ALIGN[space]) * _ALIGN[space]


def _side_by_side(lives: Sequence[LiveRange]) -> dict[int, int]:
    placed, end = {}, 0
    for life in lives:
        placed[life.buffer.id] = end
        end += _size(life)
    return placed


def _best_fit(lives: Sequence[LiveRange]) -> dict[int, int]:
    """Return addresses by best fit: largest buffer first, each into the smallest gap between buffers live at the same time."""
    placed: dict[int, int] = {}
    done: list[LiveRange] = []
    for life in sorted(lives, key=lambda one: (-_size(one), one.first, one.buffer.id)):
        taken = sorted((placed[other.buffer.id], placed[other.buffer.id] + _size(other)) for other in done if life.meets(other))
        placed[life.buffer.id] = best_gap(_size(life), taken)
        done.append(life)
    return placed


def _peak_step(lives: Sequence[LiveRange]) -> int:
    """Return the first step at which live buffers take the most bytes."""
    return max((life.first for life in lives), key=lambda step: (sum(_size(life) for life in alive(tuple(lives), step)), -step))


# -- refusal

def _too_much(program: TileProgram, lives: Sequence[LiveRange], end: int, limit: int, arch: Arch) -> CapacityError:
    there = sorted(alive(tuple(lives), _peak_step(lives)), key=lambda life: (-_size(life), life.first))
    peak = sum(_size(life) for life in there)
    newest = max(there, key=lambda life: life.first)
    needed = peak if peak > limit else end
    error = CapacityError(
        f"kernel `{program.name}` needs {needed} bytes of {newest.buffer.space.value}, more than {arch.name} has", newest.spans[0],
        expected=f"at most {limit} bytes at any time", found=f"{needed} bytes at line {newest.spans[0].line}",
        help=_advice(program, there, limit),
        notes=(f"tiles that live in {newest.buffer.space.value} then:", *(_tenant(program, life) for life in there)))
    error.kernel, error.memory, error.needed_bytes, error.limit_bytes = program.name, newest.buffer.space.value, needed, limit
    return error


def _shape(program: TileProgram, life: LiveRange) -> tuple[int, int, str]:
    tile = max((tile for tile in program.tiles if tile.buffer == life.buffer.id), key=lambda tile: (tile.size_bytes, -tile.id))
    return tile.rows, tile.cols, str(tile.dtype)


def _tenant(program: TileProgram, life: LiveRange) -> str:
    rows, cols, dtype = _shape(program, life)
    first, last = min(span.line for span in life.spans), max(span.line for span in life.spans)
    lines = f"line {first}" + (f" to {last}" if last != first else "")
    name = life.buffer.name
    if not _is_users(program, life):
        texts = [span.text for span in sorted(life.spans, key=lambda one: one.line) if span.text]
        name, lines = ("working memory", f"{lines}, for {texts[0]}") if texts else (name, lines)
    return f"{_size(life):>8}  {name:<14} [{rows}, {cols}] {dtype}  {lines}"


def _is_users(program: TileProgram, life: LiveRange) -> bool:
    """Tell whether a buffer holds what the user's lines call by the buffer's name; other buffers are working memory of an operation."""
    name = re.compile(rf"\b{re.escape(life.buffer.name)}\b")
    lines = [linecache.getline(span.file, span.line) for span in life.spans]
    return any(param.name == life.buffer.name for param in program.params) or any(map(name.search, lines)) or not any(lines)


def _advice(program: TileProgram, there: Sequence[LiveRange], limit: int) -> str:
    """Return the help text: the factor by which tiles must shrink, with the largest that the user named, or parameter, as the example."""
    factor = 2
    while sum(_round(-(-_size(life) // factor), life.buffer.space) for life in there) > limit and factor < 1 << 20:
        factor *= 2
    memory = [param.name for param in program.params if not isinstance(param, ScalarParamDecl)]
    params = [(name, one.rows, one.cols) for name, one in zip(memory, program.access, strict=False) if one.rows and one.cols]
    named = [(life.buffer.name, *_shape(program, life)[:2]) for life in there if _is_users(program, life)]
    name, rows, cols = (named or sorted(params, key=lambda one: -one[1] * one[2]) or [("", 0, 0)])[0]
    smaller = [rows // factor, cols] if rows >= factor and rows % factor == 0 else [rows, max(1, cols // factor)]
    return f"tiles of 1/{factor} of the elements fit" + (f", e.g. `{name}` as {smaller} instead of [{rows}, {cols}]" if name else "")
