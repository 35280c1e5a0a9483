"""Places: gather, scatter and scatter_add on tiles, and row and column numbers.

An index is compared with every place in turn, so that one outside takes and gives nothing; what it costs grows with the places.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pto_wsp.expr import kernel as k
from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.plan.npu.select.formulas.lanes import Lane, Lanes
from pto_wsp.plan.npu.select.held import Held
from pto_wsp.plan.npu.select.layout.copies import copied, copy, moved_as, row_at
from pto_wsp.plan.npu.select.layout.laid import laid, turned_over, without_gaps
from pto_wsp.plan.npu.select.layout.ramp import ramp
from pto_wsp.plan.npu.select.rules.across.order import sorted_values
from pto_wsp.plan.npu.select.rules.elements.cast import cast_lanes
from pto_wsp.plan.npu.select.rules.elements.composed import name_of
from pto_wsp.plan.npu.select.shapes import as_tile, expanded, on_chip
from pto_wsp.types.dtype import DType
from pto_wsp.types.scalar import Const, Var


def _gather(b: Builder, stmt: k.Compute) -> Held:
    found = sorted_values(b, stmt)
    if found is not None:
        return found
    x, index = _by_rows(b, stmt)
    rows, cols = _shape(stmt)
    x, index = laid(b, _spread(b, x, x.rows, cols)), _spread(b, index, rows, cols)
    out = b.hold(rows, cols, x.dtype, name_of(stmt))
    b.emit("TEXPANDS", b.flat(out.bits(moved_as(out.dtype))), b.number(0, moved_as(out.dtype)))
    with b.loop("place", Const(x.rows)) as place:
        row = _row(b, x, place, rows)
        work = Lanes(b, rows, cols)
        hit = _at_width(work, work.compare(work.given(index), "EQ", place), x.dtype)
        copy(b, out, work.finish(work.select(hit, work.given(row), work.given(out)), f"{name_of(stmt)}_then"))
    return _back(b, stmt, out)


def _scatter(b: Builder, stmt: k.Compute) -> Held:
    x, index, value = _by_rows(b, stmt)
    rows, cols = x.rows, x.cols
    n = max(index.rows, value.rows)
    index, value = (laid(b, _spread(b, one, n, cols)) for one in (index, value))
    out = copied(b, without_gaps(b, x), name_of(stmt))
    places = expanded(b, ramp(b, rows, f"{name_of(stmt)}_places").turned(), rows, cols)
    with b.loop("n", Const(n)) as at:
        wanted, given = _row(b, index, at, rows), _row(b, value, at, rows)
        work = Lanes(b, rows, cols)
        hit = _at_width(work, work.compare(work.given(places), "EQ", work.given(wanted)), x.dtype)
        old, new = work.given(out), work.given(given)
        result = work.select(hit, _sum(work, old, new) if stmt.op == "scatter_add" else new, old)
        copy(b, out, work.finish(result, f"{name_of(stmt)}_then"))
    return _back(b, stmt, out)


def _sum(work: Lanes, x: Lane, y: Lane) -> Lane:
    if x.dtype is not DType.BF16:
        return work.add(x, y)
    return work.convert(work.add(work.convert(x, DType.F32), work.convert(y, DType.F32)), DType.BF16, "RINT")


# ---- places as rows ----

def _by_rows(b: Builder, stmt: k.Compute) -> list[Held]:
    """Return the operands; where places are columns, all turned over."""
    held = [as_tile(b, operand, on_chip(operand)) for operand in stmt.operands]
    return [turned_over(b, laid(b, one)) for one in held] if _along_columns(stmt) else held


def _along_columns(stmt: k.Compute) -> bool:
    return any(name == "axis" and value == 1 for name, value in stmt.attrs)


def _shape(stmt: k.Compute) -> tuple[int, int]:
    """Return rows and columns of the result while places are rows."""
    rows, cols = stmt.result.type.shape
    return (cols, rows) if _along_columns(stmt) else (rows, cols)


def _spread(b: Builder, held: Held, rows: int, cols: int) -> Held:
    return expanded(b, without_gaps(b, held), rows, cols)


def _row(b: Builder, held: Held, row: Var, rows: int) -> Held:
    """Return one row of a value, known when the kernel runs, in every row of a tile."""
    one = b.hold(1, held.cols, held.dtype, f"{held.name}_row")
    b.emit("TMOV", b.flat(one.bits(moved_as(one.dtype))), row_at(b, held, row))
    return expanded(b, one, rows, held.cols)


def _back(b: Builder, stmt: k.Compute, out: Held) -> Held:
    return without_gaps(b, turned_over(b, laid(b, out))) if _along_columns(stmt) else out


def _at_width(work: Lanes, mask: Lane, dtype: DType) -> Lane:
    """Return a packed mask of i32 as one of the width of `dtype`."""
    if dtype.nbytes == 4:
        return mask
    return work.compare(work.convert(work.select(mask, 1.0, 0.0), DType.F16, "RINT"), "NE", 0.0)


# ---- numbers of rows and columns ----

def _iota(b: Builder, stmt: k.Compute) -> Held:
    rows, cols = stmt.result.type.shape
    along = _along_columns(stmt)
    numbers = ramp(b, cols if along else rows, f"{name_of(stmt)}_numbers")
    line = numbers if along else numbers.turned()
    work = Lanes(b, line.rows, line.cols)
    wanted = work.finish(cast_lanes(work, work.given(line), DType.I32, stmt.result.type.dtype, None, None), name_of(stmt))
    return expanded(b, wanted, rows, cols)


RULES: Mapping[str, Callable[[Builder, k.Compute], Held]] = {
    "gather": _gather, "scatter": _scatter, "scatter_add": _scatter, "iota": _iota}
