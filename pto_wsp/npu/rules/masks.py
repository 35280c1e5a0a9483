"""Rules for comparisons, select by mask, bitwise logic and casts.

On chip a mask is 0 and 1 in f32. Packed bits exist only between a comparison and a select of elements of equal width: the bit layout for
other widths is not documented.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pto_wsp.ir import kernel as k
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel_walk import bodies_of, uses_of, walk
from pto_wsp.ir.scalar import Const
from pto_wsp.npu.rules import formulas
from pto_wsp.npu.rules.builder import Builder, ChipTile, Mask
from pto_wsp.npu.rules.formulas import shift_bits, wrap_integer
from pto_wsp.npu.rules.functions import lane_of, lanes_of, name_of
from pto_wsp.npu.rules.lanes import Lane, Lanes, Relation
from pto_wsp.npu.rules.operands import on_chip, storage_dtype
from pto_wsp.ops.entries.cast import cast

_RELATIONS: Mapping[str, Relation] = {"eq": "EQ", "ne": "NE", "lt": "LT", "le": "LE", "gt": "GT", "ge": "GE"}


def packed_masks(kernel: k.Kernel) -> frozenset[int]:
    """Return the comparisons, by value, that stay packed: their only users select elements of equal width."""
    comparisons = {stmt.result.id: stmt for stmt in walk(kernel.body) if isinstance(stmt, k.Compute) and stmt.op in _RELATIONS}
    for stmt in walk(kernel.body):
        chosen_by = _choice(stmt)
        for value in () if bodies_of(stmt) else uses_of(stmt):
            if value.id != chosen_by:
                comparisons.pop(value.id, None)
    return frozenset(comparisons)


def _choice(stmt: k.Stmt) -> int | None:
    """Return the mask by which a statement selects four-byte elements of the mask's shape; None for any other statement."""
    if not isinstance(stmt, k.Compute) or stmt.op != "where" or storage_dtype(stmt.result.type.dtype).nbytes != 4:
        return None
    condition, *sides = stmt.operands
    if not isinstance(condition, k.Value) or condition in sides or condition.type.shape != stmt.result.type.shape:
        return None
    return condition.id


def pack_comparison(b: Builder, stmt: k.Compute) -> Mask:
    """Return a comparison as packed bits."""
    work, holds, yes = _comparison(b, stmt)
    return Mask(work.finish(holds, name_of(stmt)), yes)


def _compare(b: Builder, stmt: k.Compute) -> ChipTile:
    work, holds, yes = _comparison(b, stmt)
    return work.finish(work.select(holds, float(yes), float(not yes)), name_of(stmt))


def _comparison(b: Builder, stmt: k.Compute) -> tuple[Lanes, Lane, bool]:
    work, (x, y) = lanes_of(b, stmt)
    operand = stmt.operands[0]
    dtype = operand.type.dtype if isinstance(operand, k.Value) else operand.dtype
    return work, *_compare_bits(work, _RELATIONS[stmt.op], x, y, dtype is DType.U32)


def compare_floats(work: Lanes, relation: Relation, x: Lane, y: Lane) -> Lane:
    """Return a comparison as 0 and 1 in f32."""
    holds, yes = _compare_bits(work, relation, x, y, False)
    return work.select(holds, float(yes), float(not yes))


def _compare_bits(work: Lanes, relation: Relation, x: Lane, y: Lane, unsigned: bool) -> tuple[Lane, bool]:
    """Return the packed bits of a comparison, and whether a set bit means True.

    i32 supports equality only: order follows from comparing with the maximum.
    """
    if x.dtype is not DType.I32:
        if x.dtype is not DType.F32:
            x, y = (work.convert(value, DType.F32) for value in (x, y))
        return work.compare(x, relation, y), True
    if unsigned and relation not in ("EQ", "NE"):
        x, y = (work.add(value, -(1 << 31)) for value in (x, y))
    match relation:
        case "EQ" | "NE":
            return work.compare(x, "EQ", y), relation == "EQ"
        case "GE" | "LT":
            return work.compare(work.max(x, y), "EQ", x), relation == "GE"
        case "LE" | "GT":
            return work.compare(work.max(x, y), "EQ", y), relation == "LE"


def _where(b: Builder, stmt: k.Compute) -> ChipTile:
    condition, shape = stmt.operands[0], stmt.result.type.shape
    mask = b.masks.get(condition.id) if isinstance(condition, k.Value) else None
    if mask is not None:
        work = Lanes(b, *shape)
        then, other = (lane_of(work, side, shape, on_chip(side)) for side in stmt.operands[1:])
        sides = (then, other) if mask.yes else (other, then)
        return work.finish(work.select(work.given_mask(mask.held), *sides), name_of(stmt))
    work, (flags, then, other) = lanes_of(b, stmt)
    flags = flags if then.dtype.nbytes == 4 else work.convert(flags, DType.F16, "RINT")
    return work.finish(work.select(work.compare(flags, "NE", 0.0), then, other), name_of(stmt))


def of_masks(op: str, work: Lanes, x: Lane, y: Lane | None = None) -> Lane:
    """Return and_, or_, xor or not_ of masks."""
    if y is None:
        return work.sub(1.0, x)
    match op:
        case "and_":
            return work.mul(x, y)
        case "or_":
            return work.max(x, y)
        case _:
            return work.abs(work.sub(x, y))


MASK_RULES: Mapping[str, Callable[[Builder, k.Compute], ChipTile]] = {**dict.fromkeys(_RELATIONS, _compare), "where": _where}


# -- bits ------------------------------------------------------------------------------------------


_NAMES = {"and_": "TAND", "or_": "TOR", "xor": "TXOR"}


def _bitwise(b: Builder, stmt: k.Compute) -> ChipTile:
    work, (x, *more) = lanes_of(b, stmt)
    dtype = stmt.result.type.dtype
    if dtype.is_bool:
        return work.finish(of_masks(stmt.op, work, x, *more), name_of(stmt))
    if more:
        return work.finish(work.bitwise(_NAMES[stmt.op], x, *more), name_of(stmt))
    return work.finish(wrap_integer(work, _opposite(work, x), dtype), name_of(stmt))


def _opposite(work: Lanes, x: Lane) -> Lane:
    """Return ~x, which equals -x - 1."""
    return work.add(work.mul(x, -1), -1)


def _shift(b: Builder, stmt: k.Compute) -> ChipTile:
    dtype, left = stmt.result.type.dtype, stmt.op == "shl"
    match stmt.operands:
        case (k.Value() as value, k.ScalarOperand(value=Const(value=int(places)))):
            work = Lanes(b, *stmt.result.type.shape)
            given = lane_of(work, value, stmt.result.type.shape, on_chip(value))
            result = formulas.shift_by(work, widen(work, given), places, left, dtype)
            return work.finish(narrow_to_i16(work, wrap_integer(work, result, dtype) if left else result, given.dtype), name_of(stmt))
        case _:
            work, operands = lanes_of(b, stmt)
    kept = operands[0].dtype
    x, y = (widen(work, value) for value in operands)
    result = shift_bits(work, x, y, left, dtype)
    return work.finish(narrow_to_i16(work, wrap_integer(work, result, dtype) if left else result, kept), name_of(stmt))


def widen(work: Lanes, x: Lane) -> Lane:
    """Return i16 as i32; i32 unchanged."""
    return x if x.dtype is DType.I32 else work.convert(work.convert(x, DType.F32), DType.I32, "RINT")


def narrow_to_i16(work: Lanes, x: Lane, dtype: DType) -> Lane:
    """Return i32 values that fit as i16, if `dtype` is i16."""
    return x if x.dtype is dtype else work.convert(work.convert(x, DType.F32, "RINT"), dtype, "RINT")


BIT_RULES: Mapping[str, Callable[[Builder, k.Compute], ChipTile]] = {
    **dict.fromkeys((*_NAMES, "not_"), _bitwise), "shl": _shift, "shr": _shift}


# -- casts -----------------------------------------------------------------------------------------


def _cast(b: Builder, stmt: k.Compute) -> ChipTile:
    operand, target = stmt.operands[0], stmt.result.type.dtype
    source = operand.type.dtype if isinstance(operand, k.Value) else operand.dtype
    work, (x,) = lanes_of(b, stmt)
    if source is target and not source.is_float:
        return work.finish(x, name_of(stmt))
    return work.finish(cast_lanes(work, x, source, target, *cast.rules_of(stmt.attrs)), name_of(stmt))


def cast_lanes(work: Lanes, x: Lane, source: DType, target: DType, mode: str | None, saturate: bool | None) -> Lane:
    """Return numbers of dtype `source` cast to `target`, both as stored on chip."""
    kept = storage_dtype(target)
    if target.is_bool:
        return compare_floats(work, "NE", x, work.full(0, x.dtype)) if x.dtype is not DType.BF16 else \
            compare_floats(work, "NE", work.convert(x, DType.F32), work.full(0.0, DType.F32))
    if source.is_bool:
        return x if target.is_float else work.convert(x, kept, "RINT")
    if source.is_integer and target.is_integer:
        return formulas.integer_to_integer(work, x, source, target, kept, bool(saturate))
    wide = formulas.integer_to_float(work, x, source, target) if source.is_integer else \
        x if x.dtype is DType.F32 else work.convert(x, DType.F32)
    if target is DType.F32:
        return formulas.clamp_infinities(work, wide) if saturate and source.is_float else wide
    if target.is_float:
        return formulas.float_to_half(work, wide, target, mode or "rint", bool(saturate))
    return formulas.float_to_integer(work, wide, target, kept, mode or "trunc", saturate is not False)


CAST_RULES: Mapping[str, Callable[[Builder, k.Compute], ChipTile]] = {"cast": _cast}
