"""Write elementwise formulas as straight-line code on lanes, and emit them with few on-chip buffers.

A lane here is a value with one element per SIMD lane of a tile. Ops without an instruction of their own, such as tanh, are formulas on
`Lanes`:

>>> work = Lanes(b, x.rows, x.cols)
>>> a = work.given(x)
>>> return work.finish(work.div(1.0, work.add(work.exp(work.neg(a)), 1.0)), "sigmoid")

`emit` allocates on-chip buffers by live range: an elementwise instruction may overwrite an operand at its last use. A formula on a large
tile runs in a loop over bands of rows, so that its temporaries stay small:

    for band: t0 = |x|; t1 = t0 + 1; out = x / t1        three buffers of a few rows each, besides x and out

`copy` moves bits: TMOV sees a dtype that some cores do not move as another one of equal width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, TypeAlias

from pto_wsp.errors import InternalError
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Const, Op, Scalar, Var, add, binary, ceil_div, minimum, mul, sub
from pto_wsp.npu.isa.instructions import legal
from pto_wsp.npu.isa.tile_program import ALIGN_BYTES, NumberArg, Word
from pto_wsp.npu.rules.builder import Builder, ChipTile, padded_cols
from pto_wsp.values import dataclass

_MOVED_AS = {DType.BF16: DType.F16, DType.I16: DType.F16, DType.U16: DType.F16, DType.U32: DType.I32}


def moved_as(dtype: DType) -> DType:
    """Return the dtype of equal width as which elements of `dtype` are copied."""
    return _MOVED_AS.get(dtype, dtype)


def copy(b: Builder, out: ChipTile, held: ChipTile) -> None:
    """Emit a copy of a value's valid part to `out`, whose valid part has the same size.

    Some cores require equal stored rows on both sides, so both are viewed alike; rows of different pitch are copied one by one.
    """
    sides = [_as_row(one) if out.rows == held.rows == 1 else one for one in (out, held)]
    if out.rows == 1 or out.pitch == held.pitch:
        pitch, stored = min(one.pitch for one in sides), min(one.stored_rows for one in sides)
        b.emit("TMOV", *(b.flat(replace(one, pitch=pitch, stored_rows=stored).bits(moved_as(one.dtype))) for one in sides))
        return
    with b.loop("r", b.named(out.valid_rows, "rows")) as r:
        b.emit("TMOV", row_at(b, out, r), row_at(b, held, r))


def _as_row(held: ChipTile) -> ChipTile:
    """Return a single element without gaps as a row, which is the same bytes; other values of one row are rows already."""
    return replace(held, pitch=held.stored_rows, stored_rows=1) if held.is_column else held


def copy_tile(b: Builder, held: ChipTile, name: str) -> ChipTile:
    """Return a copy in a new on-chip buffer."""
    out = b.like(held, name)
    copy(b, out, held)
    return out


def regular(b: Builder, held: ChipTile) -> ChipTile:
    """Return a value stored as `Builder.hold` stores it, copied if needed: many instructions require operands of one tile type."""
    one_column = held.cols == 1
    pitch = 1 if one_column else padded_cols(held.cols, held.dtype)
    stored = padded_cols(held.rows, held.dtype) if one_column else held.rows
    if held.pitch == pitch and held.stored_rows >= stored:
        return replace(held, stored_rows=stored)
    if one_column:
        return held                     # one column with gaps, the stored form of such columns
    return copy_tile(b, held, f"{held.name}_plain")


def row_at(b: Builder, held: ChipTile, row: Scalar, first_col: int = 0) -> int:
    """Return the tile of row `row`, a scalar, from column `first_col` on; in the dtype for copies, valid in this block only."""
    size = held.dtype.nbytes
    start = add(mul(row, Const(held.pitch * size)), Const(first_col * size))
    one = replace(held, rows=1, stored_rows=1, valid_rows=Const(1), pitch=padded_cols(held.cols, held.dtype)).bits(moved_as(held.dtype))
    return b.flat(one) if start == Const(0) else b.sliding(one, start)


# -- emission --------------------------------------------------------------------------------------


_SCRATCH_BYTES = 256
_BAND_BYTES = 8192      # of one value in a band; a formula with few values is not cut
_FEW_STEPS = 4
_PACKING = frozenset({"TCMP", "TSEL"})     # instructions that read or write packed masks
_BITS = 8


@dataclass(frozen=True, slots=True)
class Lane:
    """A value with one element per lane, or (`bits`) a packed mask. `place`: the storage it shares with other views."""

    place: int
    dtype: DType
    bits: bool = False


Argument: TypeAlias = Lane | NumberArg | Word


@dataclass(frozen=True, slots=True)
class LaneStep:
    """One instruction of a formula."""

    name: str
    out: Lane
    args: tuple[Argument, ...]
    in_place: bool
    scratch: bool


@dataclass(frozen=True, slots=True)
class LaneFormula:
    """A formula: steps in order, given values by place, bytes per lane of each place (0: packed bits), and the result."""

    steps: tuple[LaneStep, ...]
    given: Mapping[int, ChipTile]
    widths: Mapping[int, int]
    result: Lane

    def needed(self) -> tuple[LaneStep, ...]:
        """Return the steps that the result depends on."""
        wanted, kept = {self.result.place}, []
        for step in reversed(self.steps):
            if step.out.place in wanted:
                kept.append(step)
                wanted |= {arg.place for arg in step.args if isinstance(arg, Lane)}
        return tuple(kept[::-1])


@dataclass(frozen=True, slots=True)
class Area:
    """The shape of every value, and its valid part."""

    rows: int
    cols: int
    valid_rows: Scalar
    valid_cols: Scalar


def emit(b: Builder, work: LaneFormula, area: Area, name: str) -> ChipTile:
    """Emit the instructions that the result depends on, and return the result."""
    steps = work.needed()
    if not steps:
        return _view_as_lane(work.given[work.result.place], work.result)
    rows = _band_rows(area, len(steps))
    if rows == area.rows:
        return _view_as_lane(_BandEmission(b, work, area, name).run(steps), work.result)
    width = work.widths[work.result.place]
    out = _allocate(b, area, width, name)
    with b.loop(f"{name}_band", Const(area.rows // rows)) as band:
        first = mul(band, Const(rows))
        if area.valid_rows == Const(area.rows):
            _BandEmission(b, work, replace(area, rows=rows, valid_rows=Const(rows)), name, first, out).run(steps)
        else:
            left = b.named(sub(area.valid_rows, first), "left")
            with b.when(binary(Op.GE, left, Const(1))):
                some = b.named(minimum(left, Const(rows)), "band_rows")
                _BandEmission(b, work, replace(area, rows=rows, valid_rows=some), name, first, out).run(steps)
    return _view_as_lane(out, work.result)


def _band_rows(area: Area, n_steps: int) -> int:
    """Return the rows to process at once: all, or the largest divisor of the rows with a small band."""
    row_bytes = 4 * padded_cols(area.cols, DType.F32)
    if area.cols == 1 or n_steps < _FEW_STEPS or area.rows * row_bytes <= _BAND_BYTES:
        return area.rows
    return max((n for n in range(1, area.rows) if area.rows % n == 0 and n * row_bytes <= _BAND_BYTES), default=1)


class _BandEmission:
    """Emits the steps on one area. `first`: the first row of a band; `into`: where the band's result goes."""

    def __init__(self, b: Builder, work: LaneFormula, area: Area, name: str, first: Scalar | None = None,
                 into: ChipTile | None = None) -> None:
        self._b, self._work, self._area, self._name = b, work, area, name
        self._first, self._into = first, into
        self._chip_buffers = {place: self._cut(held) for place, held in work.given.items()}
        self._slid: dict[tuple[int, DType, Scalar], int] = {}
        self._outside = set(work.given)
        self._scratch: ChipTile | None = None

    def run(self, steps: tuple[LaneStep, ...]) -> ChipTile:
        """Emit the steps and return the result of the last one.

        Invariant: `free` holds, by width, the on-chip buffers whose values have no later use. A value that dies in an in-place step frees
        its buffer for that step's own result.
        """
        widths, given = self._work.widths, self._work.given
        last = {arg.place: at for at, step in enumerate(steps) for arg in step.args if isinstance(arg, Lane)}
        free: dict[int, list[ChipTile]] = {}
        for at, step in enumerate(steps):
            place = step.out.place
            ending = [one for one in dict.fromkeys(arg.place for arg in step.args if isinstance(arg, Lane))
                      if last[one] == at and one not in given]
            early = [one for one in ending if step.in_place and widths[one] == widths[place]]
            for one in early:
                free.setdefault(widths[one], []).append(self._chip_buffers[one])
            if at == len(steps) - 1 and self._into is not None:
                self._chip_buffers[place] = self._cut(self._into)
                self._outside.add(place)
            else:
                spare = free.get(widths[place])
                self._chip_buffers[place] = spare.pop() if spare else _allocate(self._b, self._area, widths[place], self._name)
            self._emit(step)
            for one in ending:
                if one not in early:
                    free.setdefault(widths[one], []).append(self._chip_buffers[one])
        return self._chip_buffers[steps[-1].out.place]

    def _cut(self, held: ChipTile) -> ChipTile:
        """Return the band's rows of a value, as if the band were the first."""
        if self._first is None:
            return held
        return replace(held, rows=self._area.rows, stored_rows=self._area.rows, valid_rows=self._area.valid_rows)

    def _tile(self, lane: Lane, packs: int = 0) -> int:
        """Return the tile of a value.

        `packs`: bytes of an element per packed bit, for an instruction on packed masks. All stored elements of a row are valid then, so
        that the bits of a row fill whole bytes.
        """
        held = _view_as_lane(self._chip_buffers[lane.place], lane)
        if packs:
            held = self._filled(held, packs if lane.bits else 0)
        if self._first is None or lane.place not in self._outside:
            return self._b.flat(held)
        key = lane.place, held.dtype, held.valid_cols
        if key not in self._slid:
            shift = mul(self._first, Const(held.pitch * held.dtype.nbytes))
            self._slid[key] = self._b.sliding(held, shift)
        return self._slid[key]

    def _filled(self, held: ChipTile, nbytes: int) -> ChipTile:
        """Return a value, or (with `nbytes` per element) a mask, with all stored elements of its rows valid."""
        if not nbytes:
            return held.part(Const(held.stored_rows), held.valid_cols) if held.is_column else held.part(held.valid_rows, Const(held.pitch))
        step = ALIGN_BYTES // nbytes
        stored = -(-(self._area.rows if self._area.cols == 1 else self._area.cols) // step) * step
        return held.part(held.valid_rows, Const(stored // _BITS))

    def _emit(self, step: LaneStep) -> None:
        packs = 0
        if step.name in _PACKING:
            packs = next(arg.dtype.nbytes for arg in step.args if isinstance(arg, Lane) and not arg.bits)
        args = [self._tile(arg, packs) if isinstance(arg, Lane) else arg for arg in (step.out, *step.args)]
        scratch = [self._b.flat(self._scratch_for(step))] if step.scratch else []
        self._b.emit(step.name, *args, *scratch)

    def _scratch_for(self, step: LaneStep) -> ChipTile:
        """Return scratch memory for an instruction: the size of the result for TXOR, a few bytes for TSEL."""
        if step.name == "TXOR":
            return _view_as_lane(_allocate(self._b, self._area, self._work.widths[step.out.place], f"{self._name}_tmp"), step.out)
        if self._scratch is None:
            self._scratch = _bytes(self._b, 1, _SCRATCH_BYTES, f"{self._name}_tmp")
        return self._scratch


def _allocate(b: Builder, area: Area, width: int, name: str) -> ChipTile:
    """Return a new value; `width` bytes per lane, 0 for a packed mask."""
    valid = area.valid_rows, area.valid_cols
    if width:
        dtype = next(dtype for dtype in (DType.F32, DType.F16, DType.U8) if dtype.nbytes == width)
        return b.hold(area.rows, area.cols, dtype, name).part(*valid)
    rows, lanes, valid = (1, area.rows, valid[::-1]) if area.cols == 1 else (area.rows, area.cols, valid)
    return _bytes(b, rows, -(-lanes // 8), f"{name}_mask").part(valid[0], ceil_div(valid[1], Const(8)))


def _bytes(b: Builder, rows: int, cols: int, name: str) -> ChipTile:
    pitch = -(-cols // ALIGN_BYTES) * ALIGN_BYTES
    return ChipTile(b.buffer(rows * pitch, name), name, rows, cols, DType.U8, pitch, rows, Const(rows), Const(cols))


def _view_as_lane(held: ChipTile, lane: Lane) -> ChipTile:
    """Return a stored value viewed in the dtype of a lane."""
    if lane.bits:
        return held
    many = held.dtype.nbytes // lane.dtype.nbytes
    if many == 1:
        return held.bits(lane.dtype)
    if held.is_column:
        return replace(held, rows=many * held.rows, dtype=lane.dtype, valid_rows=mul(Const(many), held.valid_rows),
                       stored_rows=many * held.stored_rows)
    return replace(held, cols=many * held.cols, pitch=many * held.pitch, dtype=lane.dtype, valid_cols=mul(Const(many), held.valid_cols))


# -- formulas --------------------------------------------------------------------------------------


Relation: TypeAlias = Literal["EQ", "NE", "LT", "LE", "GT", "GE"]
Mode: TypeAlias = Literal["NONE", "RINT", "ROUND", "FLOOR", "CEIL", "TRUNC"]
Number: TypeAlias = int | float | Var


class Lanes:
    """A formula on [rows, cols] values with a common valid part, by default the part that the current statement needs."""

    def __init__(self, b: Builder, rows: int, cols: int, valid_rows: Scalar | None = None, valid_cols: Scalar | None = None) -> None:
        self.b = b
        self._rows, self._cols = rows, cols
        self._valid = (valid_rows or b.valid_rows(rows), valid_cols or Const(cols))
        self._given: dict[int, ChipTile] = {}
        self._steps: list[LaneStep] = []
        self._n_places = 0
        self._widths: dict[int, int] = {}        # bytes per lane of each place; 0: packed bits

    # -- values

    def given(self, held: ChipTile) -> Lane:
        """Return a tile value as an input of the formula; the formula does not overwrite it."""
        if (held.rows, held.cols) != (self._rows, self._cols):
            raise InternalError(f"{held.type} among lanes of [{self._rows}, {self._cols}]")
        lane = self._new(held.dtype)
        self._given[lane.place] = regular(self.b, held.part(*self._valid))
        return lane

    def given_mask(self, held: ChipTile) -> Lane:
        """Return packed bits as an input of the formula."""
        lane = self._new(DType.U8, bits=True)
        self._given[lane.place] = held.part(Const(1) if self._cols == 1 else self._valid[0], held.valid_cols)
        return lane

    def seen_as(self, lane: Lane, dtype: DType) -> Lane:
        """Return the same bytes in another dtype; a lane may then have two or four elements."""
        return Lane(lane.place, dtype)

    def op(self, name: str, *args: Argument, dtype: DType | None = None, in_place: bool = True, scratch: bool = False) -> Lane:
        """Append an instruction and return its result, in the dtype of the first operand unless given."""
        out_dtype = dtype or next(arg.dtype for arg in args if isinstance(arg, Lane) and not arg.bits)
        width = max([self._widths[arg.place] for arg in args if isinstance(arg, Lane) and arg.dtype.nbytes == out_dtype.nbytes],
                    default=out_dtype.nbytes)
        out = self._new(out_dtype, width)
        self._steps.append(LaneStep(name, out, args, in_place, scratch))
        return out

    def _new(self, dtype: DType, width: int | None = None, bits: bool = False) -> Lane:
        place = self._n_places
        self._n_places += 1
        self._widths[place] = 0 if bits else width or dtype.nbytes
        return Lane(place, dtype, bits)

    def number(self, value: Number, dtype: DType) -> NumberArg:
        """Return a number as an argument."""
        return NumberArg(value if isinstance(value, Var) else Const(value), dtype)

    def full(self, value: Number, dtype: DType) -> Lane:
        """Return a value with a number in every lane."""
        return self.op("TEXPANDS", self.number(value, dtype), dtype=dtype)

    # -- arithmetic

    def add(self, x: Lane, y: Lane | Number) -> Lane:
        """Return x + y."""
        return self._with("TADD", x, y)

    def sub(self, x: Lane | Number, y: Lane | Number) -> Lane:
        """Return x - y."""
        if isinstance(y, Lane):
            return self.op("TSUB", x, y) if isinstance(x, Lane) else self.add(self.mul(y, -1), x)
        assert isinstance(x, Lane) and not isinstance(y, Var)
        return self.add(x, -y)

    def mul(self, x: Lane, y: Lane | Number) -> Lane:
        """Return x * y."""
        return self._with("TMUL", x, y)

    def div(self, x: Lane | Number, y: Lane) -> Lane:
        """Return x / y of floats."""
        return self.op("TDIV", x if isinstance(x, Lane) else self.full(x, y.dtype), y)

    def max(self, x: Lane, y: Lane | Number) -> Lane:
        """Return the larger of x and y."""
        return self._with("TMAX", x, y)

    def min(self, x: Lane, y: Lane | Number) -> Lane:
        """Return the smaller of x and y."""
        return self._with("TMIN", x, y)

    def _with(self, name: str, x: Lane, y: Lane | Number) -> Lane:
        return self.op(name, x, y) if isinstance(y, Lane) else self.op(f"{name}S", x, self.number(y, x.dtype))

    def neg(self, x: Lane) -> Lane:
        """Return -x."""
        return self.op("TNEG", x)

    def abs(self, x: Lane) -> Lane:
        """Return |x|, as max(x, -x) if the core has no instruction for the dtype."""
        if legal("TABS", x.dtype, self.b.arch.family):
            return self.op("TABS", x)
        return self.max(self.mul(x, -1), x)

    def exp(self, x: Lane) -> Lane:
        """Return e^x."""
        return self.op("TEXP", x)

    def log(self, x: Lane) -> Lane:
        """Return the natural logarithm of x."""
        return self.op("TLOG", x)

    def polynomial(self, x: Lane, *coefficients: float) -> Lane:
        """Return the polynomial of x with these coefficients, highest power first."""
        total = self.add(self.mul(x, coefficients[0]), coefficients[1])
        for coefficient in coefficients[2:]:
            total = self.add(self.mul(total, x), coefficient)
        return total

    # -- conversions and bits

    def convert(self, x: Lane, dtype: DType, mode: Mode = "NONE") -> Lane:
        """Return x in another dtype, of a pair that a single TCVT converts."""
        return self.op("TCVT", x, Word(f"RoundMode::CAST_{mode}"), dtype=dtype, in_place=False)

    def bitwise(self, name: str, x: Lane, y: Lane) -> Lane:
        """Return x AND, OR or XOR y (TAND, TOR, TXOR) of any dtype, in units of 16 bits, which all cores support."""
        parts = self.seen_as(x, DType.I16), self.seen_as(y, DType.I16)
        return self.seen_as(self.op(name, *parts, in_place=name != "TXOR", scratch=name == "TXOR"), x.dtype)

    def shift(self, x: Lane, n: int) -> Lane:
        """Return an i32 or i16 shifted left by n, or arithmetically right by -n."""
        return self.op("TSHLS" if n > 0 else "TSHRS", x, self.number(abs(n), x.dtype))

    # -- masks

    def compare(self, x: Lane, relation: Relation, y: Lane | Number) -> Lane:
        """Return the packed mask of a comparison of f32, f16, or (EQ only) i32."""
        other = y if isinstance(y, Lane) else self.full(y, x.dtype)
        if x.dtype is DType.I32 and relation != "EQ":
            raise InternalError("integers are compared for being equal only")
        out = self._new(DType.U8, bits=True)
        self._steps.append(LaneStep("TCMP", out, (x, other, Word(f"CmpMode::{relation}")), False, False))
        return out

    def select(self, mask: Lane, then: Lane | Number, other: Lane | Number, dtype: DType = DType.F32) -> Lane:
        """Return `then` in lanes whose mask bit is set, else `other`; any dtype of two or four bytes, viewed as floats.

        `dtype`: of the result if both are numbers.
        """
        dtype = next((lane.dtype for lane in (then, other) if isinstance(lane, Lane)), dtype)
        seen = DType.F32 if dtype.nbytes == 4 else DType.F16
        sides = [self.seen_as(side if isinstance(side, Lane) else self.full(side, dtype), seen) for side in (then, other)]
        return self.seen_as(self.op("TSEL", mask, *sides, dtype=seen, in_place=False, scratch=True), dtype)

    # -- emission

    def finish(self, result: Lane, name: str) -> ChipTile:
        """Emit the instructions that `result` depends on, and return it as a tile value."""
        area = Area(self._rows, self._cols, *self._valid)
        return emit(self.b, LaneFormula(tuple(self._steps), self._given, self._widths, result), area, name)
