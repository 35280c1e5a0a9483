"""Check the placement of tiles: aligned, inside their buffers and memories, and not overwritten while still needed.

The last property is checked run by run: a buffer must read what it wrote, whatever other buffers wrote to the same bytes in between. The
check does not use live ranges: a buffer may reuse bytes as soon as no later step reads them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import field

from pto_wsp.arch.model import Arch
from pto_wsp.check.verdict import Finding, Verdict
from pto_wsp.errors import TilePlaceError
from pto_wsp.ir.scalar import Const
from pto_wsp.npu.check.runs import Bytes, Run, WorkStep, runs_of
from pto_wsp.npu.isa import tile_program as tp
from pto_wsp.npu.isa.instructions import find_instruction
from pto_wsp.npu.isa.tile_program import ALIGN_BYTES
from pto_wsp.source import Span
from pto_wsp.values import dataclass

_ALIGNED, _WITHIN, _APART, _KEPT = "alignment", "on-chip capacity", "operands apart", "on-chip places"


def check_places(program: tp.TileProgram, arch: Arch) -> tuple[Finding, ...]:
    """Return a finding for each property of placement, with the first tile that violates it.

    Properties: alignment, capacity, operands of an instruction apart from each other, and contents kept.
    """
    findings = []
    runs = tuple(runs_of(program))
    for check, errors in ((_ALIGNED, _misaligned(program, runs)), (_WITHIN, _outside(program, arch)), (_APART, _overlaps(program, runs))):
        error = next(errors, None)
        if error is not None:
            findings.append(Finding(check, Verdict.COUNTEREXAMPLE, error.message, error))
        else:
            findings.append(Finding(check, Verdict.PROVED, f"{len(program.buffers)} buffers, {len(program.tiles)} tiles"))
    if all(finding.verdict is Verdict.PROVED for finding in findings):
        findings.append(_check_contents(program, runs))
    return tuple(findings)


def _span_of(program: tp.TileProgram, tile: int | None = None, buffer: int | None = None) -> Span:
    tiles = {one.id for one in program.tiles if one.id == tile or one.buffer == buffer}
    return next((step.span for step in tp.steps(program.body) for use in tp.uses_of(step) if use.tile in tiles), program.span)


# -- alignment

def _misaligned(program: tp.TileProgram, runs: Iterable[Run]) -> Iterator[TilePlaceError]:
    for buffer in program.buffers:
        for what, value in (("address", buffer.address), ("size", buffer.size_bytes)):
            if value is None or value % ALIGN_BYTES:
                yield TilePlaceError(f"kernel `{program.name}`: the {what} of `{buffer.name}` in {buffer.space.value} is off its alignment",
                                     _span_of(program, buffer=buffer.id), expected=f"a multiple of {ALIGN_BYTES} bytes", found=str(value))
    for tile in program.tiles:
        if tile.offset % ALIGN_BYTES:
            yield TilePlaceError(f"kernel `{program.name}`: tile `{tile.name}` does not start at its alignment",
                                 _span_of(program, tile=tile.id), expected=f"a multiple of {ALIGN_BYTES} bytes", found=str(tile.offset))
    for run in runs:
        for work in (one for one in run if isinstance(one, WorkStep)):
            for use in work.uses:
                if isinstance(use.place, Bytes) and use.place.start % ALIGN_BYTES:
                    yield TilePlaceError(
                        f"kernel `{program.name}`: tile `{program.tile(use.place.tile).name}` is used off its alignment", work.step.span,
                        expected=f"a multiple of {ALIGN_BYTES} bytes", found=str(use.place.start))


# -- capacity

def _outside(program: tp.TileProgram, arch: Arch) -> Iterator[TilePlaceError]:
    for buffer in program.buffers:
        limit = arch.memory(buffer.space.value).usable_bytes
        start = buffer.address or 0
        stop = start + buffer.size_bytes * buffer.copies
        if start < 0 or (limit is not None and stop > limit):
            yield TilePlaceError(f"kernel `{program.name}`: `{buffer.name}` does not lie inside {buffer.space.value} of {arch.name}",
                                 _span_of(program, buffer=buffer.id), expected=f"bytes 0 to {limit}", found=f"bytes {start} to {stop}")
    sizes = {buffer.id: buffer.size_bytes for buffer in program.buffers}
    for tile in program.tiles:
        if tile.offset < 0 or tile.offset + tile.size_bytes > sizes[tile.buffer]:
            yield TilePlaceError(
                f"kernel `{program.name}`: tile `{tile.name}` does not lie inside its buffer", _span_of(program, tile=tile.id),
                expected=f"at most {sizes[tile.buffer]} bytes", found=f"bytes {tile.offset} to {tile.offset + tile.size_bytes}")


# -- operands apart

def _overlaps(program: tp.TileProgram, runs: Iterable[Run]) -> Iterator[TilePlaceError]:
    """Yield errors for operands that overlap while an instruction reads and writes.

    A source must share all of the result's bytes or none, and scratch must share none.
    """
    sizes = {tile.id: tile.size_bytes for tile in program.tiles}
    moving = {step.tile for step in tp.steps(program.body) if isinstance(step, tp.BindTile) and not isinstance(step.shift, Const)}
    seen: set[tuple[int, tuple[object, ...]]] = set()
    for run in runs:
        for work in run:
            if not isinstance(work, WorkStep) or not isinstance(work.step, tp.Instr) or (id(work.step), work.uses) in seen:
                continue
            seen.add((id(work.step), work.uses))
            # The position of a sliding tile depends on scalars that a run only assumes.
            places = [(at, use.place) for at, use in enumerate(work.uses) if isinstance(use.place, Bytes) and use.place.tile not in moving
                      and use.place.stop - use.place.start == sizes[use.place.tile]]
            scratch = _scratch(work.step)
            for (one, first), (other, then) in itertools.combinations(places, 2):
                meet = first.space is then.space and first.start < then.stop and then.start < first.stop
                same = (first.start, first.stop) == (then.start, then.stop)
                if meet and (one in scratch or other in scratch or (one == 0 and not same)):
                    tiles = [f"`{program.tile(place.tile).name}`" for place in (first, then)]
                    yield TilePlaceError(f"kernel `{program.name}`: {work.step.name} is given {' and '.join(tiles)}, which share bytes",
                                         work.step.span, expected="operands that lie apart, or a source at the result's own place",
                                         found=f"bytes {first.start} to {first.stop} and {then.start} to {then.stop}")


# -- contents kept

def _check_contents(program: tp.TileProgram, runs: Iterable[Run]) -> Finding:
    sharing = _sharing(program)
    if sharing:
        for run in runs:
            error = _WrittenBytes(program, sharing).fault(run)
            if error is not None:
                return Finding(_KEPT, Verdict.COUNTEREXAMPLE, error.message, error)
    return Finding(_KEPT, Verdict.PROVED, f"{len(sharing)} buffers share bytes with others")


def _sharing(program: tp.TileProgram) -> frozenset[int]:
    """Return the buffers that share bytes with others."""
    sharing: set[int] = set()
    for space in tp.Space:
        buffers = sorted((buffer.address or 0, (buffer.address or 0) + buffer.size_bytes * buffer.copies, buffer.id)
                       for buffer in program.buffers if buffer.space is space)
        reached = 0       # where the buffers that start earlier end
        for position, (start, stop, buffer) in enumerate(buffers):
            if start < reached or (position + 1 < len(buffers) and buffers[position + 1][0] < stop):
                sharing.add(buffer)
            reached = max(reached, stop)
    return frozenset(sharing)


@dataclass(slots=True)
class _WrittenBytes:
    """The bytes that each buffer wrote, and the bytes of it that other buffers have overwritten."""

    program: tp.TileProgram
    sharing: frozenset[int]
    written: dict[tp.Space, dict[int, list[tuple[int, int]]]] = field(default_factory=dict)      # stretches not yet lost as a whole
    lost: dict[int, list[tuple[int, int, tp.Step]]] = field(default_factory=dict)

    def fault(self, run: Run) -> TilePlaceError | None:
        """Return the first read of bytes that another buffer has overwritten."""
        for work in run:
            if not isinstance(work, WorkStep):
                continue
            scratch = _scratch(work.step)
            places = [(at, use) for at, use in enumerate(work.uses) if isinstance(use.place, Bytes) and use.place.buffer in self.sharing]
            for at, use in places:
                assert isinstance(use.place, Bytes)
                taken = next(((start, stop, step) for start, stop, step in self.lost.get(use.place.buffer, ())
                              if use.reads and at not in scratch and start < use.place.stop and use.place.start < stop), None)
                if taken is not None:
                    return self._error(work, use.place, taken)
            for _, use in places:
                if use.writes:
                    assert isinstance(use.place, Bytes)
                    self._write(use.place, work.step)
        return None

    def _write(self, place: Bytes, step: tp.Step) -> None:
        buffer, written = place.buffer, self.written.setdefault(place.space, {})
        self.lost[buffer] = [(start, stop, by) for before, after, by in self.lost.get(buffer, ())
                           for start, stop in ((before, min(after, place.start)), (max(before, place.stop), after)) if start < stop]
        stretches = written.pop(buffer, [])
        for other, kept in list(written.items()):
            for before, after in kept:
                start, stop = max(before, place.start), min(after, place.stop)
                if start < stop and not any(start >= one and stop <= two for one, two, _ in self.lost.get(other, ())):
                    self.lost.setdefault(other, []).append((start, stop, step))
            kept[:] = [(before, after) for before, after in kept if before < place.start or place.stop < after]
            if not kept:
                del written[other]
        stretch = place.start, place.stop
        written[buffer] = stretches if stretch in stretches else [*stretches, stretch]

    def _error(self, work: WorkStep, place: Bytes, taken: tuple[int, int, tp.Step]) -> TilePlaceError:
        start, stop, step = taken
        return TilePlaceError(
            f"kernel `{self.program.name}`: `{self.program.buffer(place.buffer).name}` in {place.space.value} is read after another tile "
            "was written over it", work.step.span, expected="buffers that live at the same time to lie apart",
            found=f"bytes {start} to {stop} written at {step.span.short}")


def _scratch(step: tp.Step) -> frozenset[int]:
    """Return the positions, among an instruction's tiles, of scratch tiles, whose contents are not read."""
    if not isinstance(step, tp.Instr):
        return frozenset()
    tiles = [operand for operand in find_instruction(step.name).form(len(step.args)) or () if operand.kind.is_tile]
    return frozenset(at for at, operand in enumerate(tiles) if operand.name == "tmp")
