"""Give every room its address in on-chip memory."""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.arch.model import Arch
from pto_wsp.errors import CapacityError
from pto_wsp.expr.tile_program import ALIGN_BYTES, Room, Space, TileProgram


def plan_memory(program: TileProgram, arch: Arch) -> TileProgram:
    """Return the program with addresses: in each memory one room behind the other.

    Raises: K110 when they do not fit.
    """
    ends = dict.fromkeys(Space, 0)
    placed: list[Room] = []
    for room in program.rooms:
        placed.append(replace(room, address=ends[room.space]))
        ends[room.space] += -(-room.size_bytes // ALIGN_BYTES) * ALIGN_BYTES * room.copies
    for space, end in ends.items():
        limit = arch.memory(space.value).usable_bytes
        if limit is not None and end > limit:
            raise CapacityError(
                f"kernel `{program.name}` needs {end} bytes of {space.value}, more than {arch.name} has", program.span,
                expected=f"at most {limit} bytes at any time", found=f"{end} bytes")
    return replace(program, rooms=tuple(placed))


def verify_after_plan_memory(program: TileProgram) -> None:
    """Every room has an address that is aligned."""
    assert all(room.address is not None and room.address % ALIGN_BYTES == 0 for room in program.rooms), program.rooms
