"""Order: argsort and topk by sorting pairs of value and column, and the column of the largest or smallest element.

A row is sorted 32 elements at a time and merged four blocks at a time, in f32, which holds every number of the dtypes that are taken. Of
equal elements, and of NaN, the order is the device's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pto_wsp.expr import kernel as k
from pto_wsp.expr import tile_program as tp
from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.plan.npu.select.carried import carried
from pto_wsp.plan.npu.select.formulas.lanes import Lanes
from pto_wsp.plan.npu.select.held import Held, Sorted, padded
from pto_wsp.plan.npu.select.layout.copies import row_at
from pto_wsp.plan.npu.select.layout.laid import first_columns, hold_laid, laid, without_gaps
from pto_wsp.plan.npu.select.layout.ramp import ramp
from pto_wsp.plan.npu.select.rules.elements.cast import cast_lanes
from pto_wsp.plan.npu.select.rules.elements.composed import name_of
from pto_wsp.plan.npu.select.shapes import as_tile, expanded
from pto_wsp.types.dtype import DType
from pto_wsp.types.scalar import Const

_BLOCK = 32             # elements that are sorted at once
_PAIR_WORDS = 2         # a value and its column
_LOWEST = -float.fromhex("0x1.fffffep127")
_FAR = float(1 << 23)   # more than any column


def _ordered(b: Builder, stmt: k.Compute) -> Held:
    operand, type = stmt.operands[0], stmt.result.type
    descending = ("descending", True) in stmt.attrs or ("descending", 1) in stmt.attrs
    values, columns = _sorted(b, as_tile(b, operand, DType.F32), type.cols, not descending, name_of(stmt))
    if isinstance(operand, k.Value):
        b.sorted[stmt.result.id] = Sorted(operand.id, values, not descending)
    return columns


def _sorted(b: Builder, held: Held, cols: int, turned: bool, name: str) -> tuple[Held, Held]:
    """Return the first `cols` elements of each row, the largest first, and their columns; `turned`: of the elements with their sign
    turned."""
    width = _BLOCK
    while width < held.cols:
        width *= 4
    keys = _keys(b, held, width, turned, name)
    columns = ramp(b, width, f"{name}_columns").bits(DType.U32)
    pairs = b.hold(1, _PAIR_WORDS * width, DType.F32, f"{name}_pairs")
    merged = b.hold(1, _PAIR_WORDS * width, DType.F32, f"{name}_merged")
    values, order = (hold_laid(b, held.rows, cols, dtype, what) for dtype, what in ((DType.F32, f"{name}_values"), (DType.I32, name)))
    line = b.hold(1, width, DType.F32, f"{name}_line")
    with b.loop("r", Const(held.rows)) as r:
        b.emit("TSORT32", b.flat(pairs), row_at(b, keys, r), b.flat(columns))
        source, target, block = pairs, merged, _BLOCK
        while block < width:
            b.emit("TMRGSORT", b.flat(target), b.flat(source), tp.ScalarArg(Const(_PAIR_WORDS * block), DType.U32))
            source, target, block = target, source, 4 * block
        for into, pattern in ((values, "P0101"), (order, "P1010")):
            every = line.bits(into.dtype)
            b.emit("TGATHER", b.flat(every), b.flat(source.bits(into.dtype)), template=_every_second(pattern))
            first = replace(every, cols=cols, pitch=padded(cols, into.dtype), valid_cols=Const(cols))
            b.emit("TMOV", row_at(b, into, r), b.flat(first))
    return without_gaps(b, values), without_gaps(b, order)


def _every_second(pattern: str) -> tuple[str, ...]:
    """Return the template arguments of TGATHER: the types of its operands, and which words it takes."""
    return "{0}", "{1}", f"MaskPattern::{pattern}"


def _keys(b: Builder, held: Held, width: int, turned: bool, name: str) -> Held:
    """Return the rows in `width` columns: behind an element that is as small as none can be, so that it comes last."""
    held = laid(b, held)
    if held.cols == width:
        if not turned:
            return held
        out = b.hold(held.rows, width, DType.F32, f"{name}_keys")
        b.emit("TMULS", b.flat(out), b.flat(held), b.number(-1.0, DType.F32))
        return out
    out = b.hold(held.rows, width, DType.F32, f"{name}_keys")
    b.emit("TEXPANDS", b.flat(out), b.number(float("-inf"), DType.F32))
    part = first_columns(out, held.cols)
    b.emit("TMULS", b.flat(part), b.flat(held), b.number(-1.0 if turned else 1.0, DType.F32))
    b.emit("TMAXS", b.flat(part), b.flat(part), b.number(_LOWEST, DType.F32))
    return out


def sorted_values(b: Builder, stmt: k.Compute) -> Held | None:
    """Return what a gather by columns that an order gave would: it is there already. None for any other gather."""
    operand, index = stmt.operands
    if ("inside", True) not in stmt.attrs or not isinstance(operand, k.Value) or not isinstance(index, k.Value):
        return None
    found = b.sorted.get(index.id)
    if found is None or found.source != operand.id:
        return None
    work = Lanes(b, *stmt.result.type.shape)
    x = work.given(found.values)
    x = work.select(work.compare(x, "EQ", _LOWEST), float("-inf"), x)
    x = work.mul(x, -1.0) if found.turned else x
    dtype = stmt.result.type.dtype
    if carried(dtype) is not DType.F32:
        x = cast_lanes(work, x, DType.F32, dtype, "rint" if dtype.is_integer else None, None)
    return work.finish(x, name_of(stmt))


# ---- the column of the largest ----

def _place(b: Builder, stmt: k.Compute) -> Held:
    """The first column whose element equals the row's largest; of a NaN, whose columns count as lower ones, if there is one."""
    held, rows = as_tile(b, stmt.operands[0], _compared(stmt)), stmt.result.type.rows
    if held.cols == 1:
        return _constant(b, rows, name_of(stmt))
    best = b.hold(rows, 1, held.dtype, f"{name_of(stmt)}_best")
    scratch = b.like(held, f"{name_of(stmt)}_tmp")
    b.emit("TROWMAX" if stmt.op == "rowargmax" else "TROWMIN", b.column(best), b.flat(held), b.flat(scratch))
    columns = expanded(b, ramp(b, held.cols, f"{name_of(stmt)}_columns"), rows, held.cols)
    work = Lanes(b, rows, held.cols)
    x, top = work.given(held), work.given(expanded(b, best, rows, held.cols))
    numbers = work.convert(work.given(columns), DType.F32, "RINT")
    hits = work.select(work.compare(x, "EQ", top), numbers, _FAR)
    if held.dtype is DType.F32:
        hits = work.select(work.compare(x, "EQ", x), hits, work.add(numbers, -_FAR))
    found = b.hold(rows, 1, DType.F32, f"{name_of(stmt)}_first")
    marked = work.finish(hits, f"{name_of(stmt)}_hits")
    b.emit("TROWMIN", b.column(found), b.flat(marked), b.flat(b.like(marked, f"{name_of(stmt)}_again")))
    line = Lanes(b, rows, 1)
    first = line.given(found)
    first = line.select(line.compare(first, "LT", 0.0), line.add(first, _FAR), first)
    return line.finish(line.convert(first, DType.I32, "RINT"), name_of(stmt))


def _compared(stmt: k.Compute) -> DType:
    operand = stmt.operands[0]
    dtype = operand.type.dtype if isinstance(operand, k.Value) else operand.dtype
    return DType.I32 if dtype is DType.I32 else DType.F32


def _constant(b: Builder, rows: int, name: str) -> Held:
    out = b.hold(rows, 1, DType.I32, name)
    b.emit("TEXPANDS", b.flat(out), b.number(0, DType.I32))
    return out


# Keys are f32, which does not hold every i32; u32 lies on chip by the bits of an i32, which convert otherwise.
LACKING: Mapping[str, tuple[DType, ...]] = dict.fromkeys(("argsort", "topk"), (DType.I32, DType.U32))
RULES: Mapping[str, Callable[[Builder, k.Compute], Held]] = {
    **dict.fromkeys(("argsort", "topk"), _ordered), **dict.fromkeys(("rowargmax", "rowargmin"), _place)}
