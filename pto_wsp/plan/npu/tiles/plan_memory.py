"""Give every room its address in on-chip memory; rooms that never hold something at the same time may share one.

    UB
        0x00000 .. 0x04000  x         2 copies of 8192, steps 4 to 19
        0x04000 .. 0x06000  squares   steps 6 to 8
        0x04000 .. 0x06000  y         steps 9 to 12

Rooms share only in a memory that is too small for all of them side by side: a shared place is one more reason for a pipe to wait. Where
they do not fit even so, rooms lose their second copies where it is fullest: those of outer loops first, of branches
before others, the largest first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pto_wsp.arch.model import Arch
from pto_wsp.errors import CapacityError
from pto_wsp.expr.tile_program import Room, Space, TileProgram
from pto_wsp.plan.gaps import best_gap
from pto_wsp.plan.npu.tiles.double_buffer import without_copies
from pto_wsp.plan.npu.tiles.lives import Life, alive, lives_of

# What a fractal of that memory takes; UB moves blocks of 32 bytes.
_ALIGN = {Space.UB: 32, Space.L1: 512, Space.L0A: 512, Space.L0B: 512, Space.L0C: 1024}


def plan_memory(program: TileProgram, arch: Arch) -> TileProgram:
    """Return the program with addresses, with fewer copies of rooms where they do not fit.

    Raises: K110 when they do not fit with one copy each.
    """
    rooms = tuple(replace(room, size_bytes=_round(room.size_bytes, room.space)) for room in program.rooms)
    program = replace(program, rooms=rooms)
    addresses: dict[int, int] = {}
    for space in Space:
        program, placed = _fitted(program, space, arch)
        addresses |= placed
    return replace(program, rooms=tuple(replace(room, address=addresses[room.id]) for room in program.rooms))


def verify_after_plan_memory(program: TileProgram) -> None:
    """Every room has an address that is aligned, and rooms that live at the same time do not overlap."""
    lives = lives_of(program)
    for at, life in enumerate(lives):
        start, stop = _bytes_of(life.room)
        assert start % _ALIGN[life.room.space] == 0, life.room
        assert not any(life.meets(other) and start < _bytes_of(other.room)[1] and _bytes_of(other.room)[0] < stop
                       for other in lives[:at]), life.room


def _bytes_of(room: Room) -> tuple[int, int]:
    assert room.address is not None, room
    return room.address, room.address + room.size_bytes * room.copies


def _fitted(program: TileProgram, space: Space, arch: Arch) -> tuple[TileProgram, dict[int, int]]:
    """Return the program with as many copies as fit into a memory, and the addresses of its rooms there."""
    limit = arch.memory(space.value).usable_bytes
    while True:
        lives = [life for life in lives_of(program) if life.room.space is space]
        for placed in (_side_by_side(lives), _shared(lives)):
            if limit is None or _end(placed, lives) <= limit:
                return program, placed
        copied = [life for life in lives if life.room.copies > 1]
        if not copied:
            raise _too_much(program, lives, max(_end(placed, lives), 0), limit or 0, arch)
        full = tuple(alive(tuple(copied), _fullest(lives))) or copied
        dropped = min(full, key=lambda life: (len(life.loops), not life.branch, -life.room.size_bytes, life.room.id))
        program = without_copies(program, dropped.room.id)


def _end(placed: dict[int, int], lives: Sequence[Life]) -> int:
    return max((placed[life.room.id] + _size(life) for life in lives), default=0)


def _size(life: Life) -> int:
    return life.room.size_bytes * life.room.copies


def _round(size: int, space: Space) -> int:
    return -(-size // _ALIGN[space]) * _ALIGN[space]


def _side_by_side(lives: Sequence[Life]) -> dict[int, int]:
    placed, end = {}, 0
    for life in lives:
        placed[life.room.id] = end
        end += _size(life)
    return placed


def _shared(lives: Sequence[Life]) -> dict[int, int]:
    """Place the largest first, each into the smallest gap between those that it meets."""
    placed: dict[int, int] = {}
    done: list[Life] = []
    for life in sorted(lives, key=lambda one: (-_size(one), one.first, one.room.id)):
        taken = sorted((placed[other.room.id], placed[other.room.id] + _size(other)) for other in done if life.meets(other))
        placed[life.room.id] = best_gap(_size(life), taken)
        done.append(life)
    return placed


def _fullest(lives: Sequence[Life]) -> int:
    """Return the first step at which rooms take most."""
    return max((life.first for life in lives), key=lambda step: (sum(_size(life) for life in alive(tuple(lives), step)), -step))


# ---- refusal ----

def _too_much(program: TileProgram, lives: Sequence[Life], end: int, limit: int, arch: Arch) -> CapacityError:
    there = sorted(alive(tuple(lives), _fullest(lives)), key=lambda life: (-_size(life), life.first))
    peak = sum(_size(life) for life in there)
    newest = max(there, key=lambda life: life.first)
    needed = peak if peak > limit else end
    return CapacityError(
        f"kernel `{program.name}` needs {needed} bytes of {newest.room.space.value}, more than {arch.name} has", newest.spans[0],
        expected=f"at most {limit} bytes at any time", found=f"{needed} bytes at line {newest.spans[0].line}",
        help=_advice(program, there, limit),
        notes=(f"who lives in {newest.room.space.value} then:", *(_tenant(program, life) for life in there)))


def _shape(program: TileProgram, life: Life) -> tuple[int, int, str]:
    tile = max((tile for tile in program.tiles if tile.room == life.room.id), key=lambda tile: (tile.size_bytes, -tile.id))
    return tile.rows, tile.cols, str(tile.dtype)


def _tenant(program: TileProgram, life: Life) -> str:
    rows, cols, dtype = _shape(program, life)
    first, last = min(span.line for span in life.spans), max(span.line for span in life.spans)
    lines = f"line {first}" + (f" to {last}" if last != first else "")
    return f"{_size(life):>8}  {life.room.name:<12} [{rows}, {cols}] {dtype}  {lines}"


def _advice(program: TileProgram, there: Sequence[Life], limit: int) -> str:
    """Say by how much tiles must shrink to fit, with the largest as the example."""
    factor = 2
    while sum(_round(-(-_size(life) // factor), life.room.space) for life in there) > limit and factor < 1 << 20:
        factor *= 2
    rows, cols, _ = _shape(program, there[0])
    smaller = [rows // factor, cols] if rows >= factor and rows % factor == 0 else [rows, max(1, cols // factor)]
    return f"tiles of 1/{factor} of the elements fit, e.g. `{there[0].room.name}` as {smaller} instead of [{rows}, {cols}]"
