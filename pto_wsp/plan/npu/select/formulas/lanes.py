"""Straight-line work on the lanes of equal tiles: values as if they were variables, put into as few rooms as their lifetimes allow.

An op that is no single instruction, such as tanh, is written with these. Every value is computed once; an instruction that goes lane by
lane may write over an operand that ends there.

>>> work = Lanes(b, x.rows, x.cols)
>>> a = work.given(x)
>>> return work.finish(work.div(1.0, work.add(work.exp(work.neg(a)), 1.0)), "sigmoid")
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from pto_wsp.arch.isa.instruction import legal
from pto_wsp.errors import InternalError
from pto_wsp.expr.tile_program import ScalarArg, Word
from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.plan.npu.select.formulas.emission import Area, Argument, Step, Work, emit
from pto_wsp.plan.npu.select.formulas.emission import Lane as Lane
from pto_wsp.plan.npu.select.held import Held
from pto_wsp.plan.npu.select.layout.copies import regular
from pto_wsp.types.dtype import DType
from pto_wsp.types.scalar import Const, Scalar, Var

Relation: TypeAlias = Literal["EQ", "NE", "LT", "LE", "GT", "GE"]
Mode: TypeAlias = Literal["NONE", "RINT", "ROUND", "FLOOR", "CEIL", "TRUNC"]
Number: TypeAlias = int | float | Var


class Lanes:
    """Work on [rows, cols] values, of which the same part is valid: unless given, what the statement is about."""

    def __init__(self, b: Builder, rows: int, cols: int, valid_rows: Scalar | None = None, valid_cols: Scalar | None = None) -> None:
        self.b = b
        self._rows, self._cols = rows, cols
        self._valid = (valid_rows or b.valid_rows(rows), valid_cols or Const(cols))
        self._given: dict[int, Held] = {}
        self._steps: list[Step] = []
        self._n_places = 0
        self._widths: dict[int, int] = {}        # bytes a lane of each place; 0: packed

    # ---- values ----

    def given(self, held: Held) -> Lane:
        """Return a value that is there already; it is not written to."""
        if (held.rows, held.cols) != (self._rows, self._cols):
            raise InternalError(f"{held.type} among lanes of [{self._rows}, {self._cols}]")
        lane = self._new(held.dtype)
        self._given[lane.place] = regular(self.b, held.part(*self._valid))
        return lane

    def given_mask(self, held: Held) -> Lane:
        """Return packed bits that are there already."""
        lane = self._new(DType.U8, bits=True)
        self._given[lane.place] = held.part(Const(1) if self._cols == 1 else self._valid[0], held.valid_cols)
        return lane

    def seen_as(self, lane: Lane, dtype: DType) -> Lane:
        """Return the same bytes as numbers of another dtype, of which two or four may make a lane."""
        return Lane(lane.place, dtype)

    def op(self, name: str, *args: Argument, dtype: DType | None = None, in_place: bool = True, scratch: bool = False) -> Lane:
        """Return what an instruction makes of values, in the dtype of the first one unless given."""
        found = dtype or next(arg.dtype for arg in args if isinstance(arg, Lane) and not arg.bits)
        width = max([self._widths[arg.place] for arg in args if isinstance(arg, Lane) and arg.dtype.nbytes == found.nbytes],
                    default=found.nbytes)
        out = self._new(found, width)
        self._steps.append(Step(name, out, args, in_place, scratch))
        return out

    def _new(self, dtype: DType, width: int | None = None, bits: bool = False) -> Lane:
        place = self._n_places
        self._n_places += 1
        self._widths[place] = 0 if bits else width or dtype.nbytes
        return Lane(place, dtype, bits)

    def number(self, value: Number, dtype: DType) -> ScalarArg:
        """Return a number as an argument."""
        return ScalarArg(value if isinstance(value, Var) else Const(value), dtype)

    def full(self, value: Number, dtype: DType) -> Lane:
        """Return a number in every lane."""
        return self.op("TEXPANDS", self.number(value, dtype), dtype=dtype)

    # ---- arithmetic ----

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
        """Return x / y, floats."""
        return self.op("TDIV", x if isinstance(x, Lane) else self.full(x, y.dtype), y)

    def max(self, x: Lane, y: Lane | Number) -> Lane:
        """Return the larger."""
        return self._with("TMAX", x, y)

    def min(self, x: Lane, y: Lane | Number) -> Lane:
        """Return the smaller."""
        return self._with("TMIN", x, y)

    def _with(self, name: str, x: Lane, y: Lane | Number) -> Lane:
        return self.op(name, x, y) if isinstance(y, Lane) else self.op(f"{name}S", x, self.number(y, x.dtype))

    def neg(self, x: Lane) -> Lane:
        """Return -x."""
        return self.op("TNEG", x)

    def abs(self, x: Lane) -> Lane:
        """Return |x|, which for an integer takes the larger of x and -x."""
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
        """Return the polynomial of x with these coefficients, the highest power's first."""
        total = self.add(self.mul(x, coefficients[0]), coefficients[1])
        for coefficient in coefficients[2:]:
            total = self.add(self.mul(total, x), coefficient)
        return total

    # ---- conversions, bits ----

    def convert(self, x: Lane, dtype: DType, mode: Mode = "NONE") -> Lane:
        """Return x in another dtype, of those that one TCVT makes of its own."""
        return self.op("TCVT", x, Word(f"RoundMode::CAST_{mode}"), dtype=dtype, in_place=False)

    def bitwise(self, name: str, x: Lane, y: Lane) -> Lane:
        """Return x AND, OR or XOR y (TAND, TOR, TXOR), whatever they are: by 16 bits at a time, which is what all cores have."""
        parts = self.seen_as(x, DType.I16), self.seen_as(y, DType.I16)
        return self.seen_as(self.op(name, *parts, in_place=name != "TXOR", scratch=name == "TXOR"), x.dtype)

    def shift(self, x: Lane, n: int) -> Lane:
        """Return an i32 or i16 shifted to the left, or to the right for a negative n, with its sign."""
        return self.op("TSHLS" if n > 0 else "TSHRS", x, self.number(abs(n), x.dtype))

    # ---- masks ----

    def compare(self, x: Lane, relation: Relation, y: Lane | Number) -> Lane:
        """Return the packed mask of a comparison of f32, f16, or (only EQ) of i32."""
        other = y if isinstance(y, Lane) else self.full(y, x.dtype)
        if x.dtype is DType.I32 and relation != "EQ":
            raise InternalError("integers are compared for being equal only")
        out = self._new(DType.U8, bits=True)
        self._steps.append(Step("TCMP", out, (x, other, Word(f"CmpMode::{relation}")), False, False))
        return out

    def select(self, mask: Lane, then: Lane | Number, other: Lane | Number, dtype: DType = DType.F32) -> Lane:
        """Return `then` where the packed mask is set, else `other`; of any dtype of two or four bytes, seen as floats.

        `dtype`: of the result where both are numbers.
        """
        dtype = next((lane.dtype for lane in (then, other) if isinstance(lane, Lane)), dtype)
        seen = DType.F32 if dtype.nbytes == 4 else DType.F16
        sides = [self.seen_as(side if isinstance(side, Lane) else self.full(side, dtype), seen) for side in (then, other)]
        return self.seen_as(self.op("TSEL", mask, *sides, dtype=seen, in_place=False, scratch=True), dtype)

    # ---- out of values, instructions ----

    def finish(self, result: Lane, name: str) -> Held:
        """Emit the instructions that `result` needs, and return where it lies."""
        area = Area(self._rows, self._cols, *self._valid)
        return emit(self.b, Work(tuple(self._steps), self._given, self._widths, result), area, name)
