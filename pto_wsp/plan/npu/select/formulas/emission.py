"""How work on lanes becomes instructions: rooms by lifetime, and bands of rows where whole tiles would take much of the memory.

    for band: t0 = |x|; t1 = t0 + 1; out = x / t1        three rooms of a few rows each, besides x and out
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from pto_wsp.expr.tile_program import ALIGN_BYTES, ScalarArg, Word
from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.plan.npu.select.held import Held, padded
from pto_wsp.types.dtype import DType
from pto_wsp.types.scalar import Const, Op, Scalar, binary, ceil_div, minimum, mul, sub
from pto_wsp.values import dataclass

_SCRATCH_BYTES = 256
_BAND_BYTES = 8192      # of a value of a band; work that has few values is not cut
_FEW_STEPS = 4
_PACKING = frozenset({"TCMP", "TSEL"})     # instructions on packed masks
_BITS = 8


@dataclass(frozen=True, slots=True)
class Lane:
    """A value of every lane, or (`bits`) a packed mask. `place`: which of the values of its work it lies with."""

    place: int
    dtype: DType
    bits: bool = False


Argument: TypeAlias = Lane | ScalarArg | Word


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction of a formula."""

    name: str
    out: Lane
    args: tuple[Argument, ...]
    in_place: bool
    scratch: bool


@dataclass(frozen=True, slots=True)
class Work:
    """Steps in order, values that are there already by place, bytes a lane of each place (0: packed), and what is wanted."""

    steps: tuple[Step, ...]
    given: Mapping[int, Held]
    widths: Mapping[int, int]
    result: Lane

    def needed(self) -> tuple[Step, ...]:
        """Return the steps that the result needs."""
        wanted, kept = {self.result.place}, []
        for step in reversed(self.steps):
            if step.out.place in wanted:
                kept.append(step)
                wanted |= {arg.place for arg in step.args if isinstance(arg, Lane)}
        return tuple(kept[::-1])


@dataclass(frozen=True, slots=True)
class Area:
    """Rows and columns of every value, and how many are valid."""

    rows: int
    cols: int
    valid_rows: Scalar
    valid_cols: Scalar


def emit(b: Builder, work: Work, area: Area, name: str) -> Held:
    """Emit the instructions that the result needs, and return where it lies."""
    steps = work.needed()
    if not steps:
        return _seen(work.given[work.result.place], work.result)
    rows = _band_rows(area, len(steps))
    if rows == area.rows:
        return _seen(_Emission(b, work, area, name).run(steps), work.result)
    width = work.widths[work.result.place]
    out = _hold(b, area, width, name)
    with b.loop(f"{name}_band", Const(area.rows // rows)) as band:
        first = mul(band, Const(rows))
        if area.valid_rows == Const(area.rows):
            _Emission(b, work, replace(area, rows=rows, valid_rows=Const(rows)), name, first, out).run(steps)
        else:
            left = b.named(sub(area.valid_rows, first), "left")
            with b.when(binary(Op.GE, left, Const(1))):
                some = b.named(minimum(left, Const(rows)), "band_rows")
                _Emission(b, work, replace(area, rows=rows, valid_rows=some), name, first, out).run(steps)
    return _seen(out, work.result)


def _band_rows(area: Area, n_steps: int) -> int:
    """Return how many rows are worked on at once: all, or so many that they divide them."""
    row_bytes = 4 * padded(area.cols, DType.F32)
    if area.cols == 1 or n_steps < _FEW_STEPS or area.rows * row_bytes <= _BAND_BYTES:
        return area.rows
    return max((n for n in range(1, area.rows) if area.rows % n == 0 and n * row_bytes <= _BAND_BYTES), default=1)


class _Emission:
    """The steps on one area. `first`: in bands, the row that this one starts with; `into`: where its result goes."""

    def __init__(self, b: Builder, work: Work, area: Area, name: str, first: Scalar | None = None, into: Held | None = None) -> None:
        self._b, self._work, self._area, self._name = b, work, area, name
        self._first, self._into = first, into
        self._rooms = {place: self._cut(held) for place, held in work.given.items()}
        self._slid: dict[tuple[int, DType, Scalar], int] = {}
        self._outside = set(work.given)
        self._scratch: Held | None = None

    def run(self, steps: tuple[Step, ...]) -> Held:
        """Emit the steps; return the room of the last one's result."""
        widths, given = self._work.widths, self._work.given
        last = {arg.place: at for at, step in enumerate(steps) for arg in step.args if isinstance(arg, Lane)}
        free: dict[int, list[Held]] = {}
        for at, step in enumerate(steps):
            place = step.out.place
            ending = [one for one in dict.fromkeys(arg.place for arg in step.args if isinstance(arg, Lane))
                      if last[one] == at and one not in given]
            early = [one for one in ending if step.in_place and widths[one] == widths[place]]
            for one in early:
                free.setdefault(widths[one], []).append(self._rooms[one])
            if at == len(steps) - 1 and self._into is not None:
                self._rooms[place] = self._cut(self._into)
                self._outside.add(place)
            else:
                spare = free.get(widths[place])
                self._rooms[place] = spare.pop() if spare else _hold(self._b, self._area, widths[place], self._name)
            self._emit(step)
            for one in ending:
                if one not in early:
                    free.setdefault(widths[one], []).append(self._rooms[one])
        return self._rooms[steps[-1].out.place]

    def _cut(self, held: Held) -> Held:
        """Return the rows of the band, as if it were the first."""
        if self._first is None:
            return held
        return replace(held, rows=self._area.rows, stored_rows=self._area.rows, valid_rows=self._area.valid_rows)

    def _tile(self, lane: Lane, packs: int = 0) -> int:
        """Return the tile of a value. `packs`: of an instruction that takes or gives packed bits, the bytes of an element that each bit is
        about: with it, all that is stored of a row is valid, so that bits of one row fill whole bytes."""
        held = _seen(self._rooms[lane.place], lane)
        if packs:
            held = self._filled(held, packs if lane.bits else 0)
        if self._first is None or lane.place not in self._outside:
            return self._b.flat(held)
        key = lane.place, held.dtype, held.valid_cols
        if key not in self._slid:
            shift = mul(self._first, Const(held.pitch * held.dtype.nbytes))
            self._slid[key] = self._b.sliding(held, shift)
        return self._slid[key]

    def _filled(self, held: Held, nbytes: int) -> Held:
        """Return a value, or (`nbytes`: of what it is about) a mask, with all that is stored of its rows valid."""
        if not nbytes:
            return held.part(Const(held.stored_rows), held.valid_cols) if held.is_column else held.part(held.valid_rows, Const(held.pitch))
        step = ALIGN_BYTES // nbytes
        stored = -(-(self._area.rows if self._area.cols == 1 else self._area.cols) // step) * step
        return held.part(held.valid_rows, Const(stored // _BITS))

    def _emit(self, step: Step) -> None:
        packs = 0
        if step.name in _PACKING:
            packs = next(arg.dtype.nbytes for arg in step.args if isinstance(arg, Lane) and not arg.bits)
        args = [self._tile(arg, packs) if isinstance(arg, Lane) else arg for arg in (step.out, *step.args)]
        scratch = [self._b.flat(self._scratch_for(step))] if step.scratch else []
        self._b.emit(step.name, *args, *scratch)

    def _scratch_for(self, step: Step) -> Held:
        """Return room to work in: as large as the result for TXOR; TSEL keeps some bytes."""
        if step.name == "TXOR":
            return _seen(_hold(self._b, self._area, self._work.widths[step.out.place], f"{self._name}_tmp"), step.out)
        if self._scratch is None:
            self._scratch = _bytes(self._b, 1, _SCRATCH_BYTES, f"{self._name}_tmp")
        return self._scratch


def _hold(b: Builder, area: Area, width: int, name: str) -> Held:
    """Return room for a value; `width` bytes a lane, 0 for a packed mask."""
    valid = area.valid_rows, area.valid_cols
    if width:
        dtype = next(dtype for dtype in (DType.F32, DType.F16, DType.U8) if dtype.nbytes == width)
        return b.hold(area.rows, area.cols, dtype, name).part(*valid)
    rows, lanes, valid = (1, area.rows, valid[::-1]) if area.cols == 1 else (area.rows, area.cols, valid)
    return _bytes(b, rows, -(-lanes // 8), f"{name}_mask").part(valid[0], ceil_div(valid[1], Const(8)))


def _bytes(b: Builder, rows: int, cols: int, name: str) -> Held:
    pitch = -(-cols // ALIGN_BYTES) * ALIGN_BYTES
    return Held(b.room(rows * pitch, name), name, rows, cols, DType.U8, pitch, rows, Const(rows), Const(cols))


def _seen(held: Held, lane: Lane) -> Held:
    """Return a room seen in the dtype of a lane."""
    if lane.bits:
        return held
    many = held.dtype.nbytes // lane.dtype.nbytes
    if many == 1:
        return held.bits(lane.dtype)
    if held.is_column:
        return replace(held, rows=many * held.rows, dtype=lane.dtype, valid_rows=mul(Const(many), held.valid_rows),
                       stored_rows=many * held.stored_rows)
    return replace(held, cols=many * held.cols, pitch=many * held.pitch, dtype=lane.dtype, valid_cols=mul(Const(many), held.valid_cols))
