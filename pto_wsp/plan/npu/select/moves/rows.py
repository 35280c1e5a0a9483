"""Rows of a Tensor parameter picked by an index: read by the scalar unit, each row moved as a load or a store of its own.

A row outside the region moves nothing, as with any load or store: what is gathered is then `fill`.
"""

from __future__ import annotations

from pto_wsp.expr import kernel as k
from pto_wsp.expr import tile_program as tp
from pto_wsp.ops.entries.elementwise import add
from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.plan.npu.select.carried import carried, computed_in, converted, settled
from pto_wsp.plan.npu.select.held import Held
from pto_wsp.plan.npu.select.layout.copies import copied, moved_as, row_at
from pto_wsp.plan.npu.select.layout.laid import hold_laid, laid, without_gaps
from pto_wsp.plan.npu.select.moves.memory import load, store
from pto_wsp.types import scalar as s
from pto_wsp.types.dtype import DType
from pto_wsp.types.tile import TileType

_ROW = -1       # the value of the row that is moved; values of kernels count from 0


def gather(b: Builder, stmt: k.Gather) -> Held:
    """Return the rows that an index names, `fill` in those behind the valid ones."""
    type = stmt.result.type
    out = hold_laid(b, type.rows, type.cols, carried(type.dtype), stmt.result.name or f"{stmt.param}_rows")
    index = _numbers(b, b.held(stmt.index))
    valid = _valid(b, stmt.valid, type.rows)
    if valid != s.Const(type.rows):
        b.emit("TEXPANDS", b.flat(out), b.number(stmt.fill, out.dtype))
    one = k.Value(_ROW, TileType(1, type.cols, type.dtype), f"{stmt.param}_row")
    with b.loop("n", s.Const(type.rows)) as n, b.when(_counts(n, valid, type.rows)):
        row = load(b, k.Load(one, stmt.param, _element(b, index, n), stmt.col, fill=stmt.fill, span=stmt.span))
        b.emit("TMOV", row_at(b, out, n), b.flat(row.bits(moved_as(row.dtype))))
    return without_gaps(b, out)


def scatter(b: Builder, stmt: k.Scatter) -> None:
    """Move rows of a value to where an index names, one after the other; `add` adds them to what is there."""
    type = stmt.value.type
    held, index = laid(b, b.held(stmt.value)), _numbers(b, b.held(stmt.index))
    one = k.Value(_ROW, TileType(1, type.cols, type.dtype), f"{stmt.param}_row")
    valid = _valid(b, stmt.valid, type.rows)
    with b.loop("n", s.Const(type.rows)) as n, b.when(_counts(n, valid, type.rows)):
        at = _element(b, index, n)
        row = b.hold(1, type.cols, held.dtype, f"{held.name}_row")
        b.emit("TMOV", b.flat(row.bits(moved_as(row.dtype))), row_at(b, held, n))
        if stmt.add:
            row = _sum(b, load(b, k.Load(one, stmt.param, at, stmt.col, span=stmt.span)), row, type.dtype)
        b.values[_ROW] = row
        store(b, k.Store(stmt.param, one, at, stmt.col, span=stmt.span))


def _valid(b: Builder, valid: s.Scalar | None, rows: int) -> s.Scalar:
    return s.Const(rows) if valid is None else b.scalar(valid)


def _counts(n: s.Var, valid: s.Scalar, rows: int) -> s.Scalar:
    """Return whether row n counts. A loop over all rows stays within the rooms, whatever a kernel is given."""
    return s.Const(True) if valid == s.Const(rows) else s.binary(s.Op.LT, n, valid)


def _numbers(b: Builder, index: Held) -> Held:
    """Return an index at the start of a room, from where the scalar unit counts."""
    return index if index.offset == 0 else copied(b, index, f"{index.name}_numbers")


def _element(b: Builder, index: Held, n: s.Var) -> s.Var:
    """Return element n of an index, a column with or without gaps, read by the scalar unit."""
    var = b.var("row")
    b.add(tp.Peek(var, b.flat(index), s.mul(n, s.Const(index.pitch)), b.span))
    return var


def _sum(b: Builder, old: Held, new: Held, dtype: DType) -> Held:
    wide = computed_in(add.name, dtype)
    out = b.like(new, f"{new.name}_sum", wide)
    b.emit("TADD", b.flat(out), b.flat(converted(b, old, wide)), b.flat(converted(b, new, wide)))
    return settled(b, out, dtype, in_range=dtype in add.keeps_range)
