"""Loads and stores of vector kernels: the part that is valid, what is filled around it, and pieces whose rows are not rows in memory.

A piece moves row by row where the columns of the tile are neighbours in memory, and turned on chip where its rows are. A piece of
one row or column without neighbours moves an element at a time into 32-byte rows, of which a reduction makes one column.
"""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.expr import kernel as k
from pto_wsp.expr import tile_program as tp
from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.plan.npu.select.carried import carried, from_memory, stored_as, to_memory
from pto_wsp.plan.npu.select.held import Held
from pto_wsp.plan.npu.select.layout.copies import copy, moved_as, row_at
from pto_wsp.plan.npu.select.layout.turn import transposed
from pto_wsp.plan.npu.select.moves.piece import Piece, moved_by
from pto_wsp.types import scalar as s
from pto_wsp.types.dtype import DType


def load(b: Builder, stmt: k.Load) -> Held:
    """Return a piece of a parameter on chip: moved at once where it is all of the tile, else moved into a tile that is filled."""
    piece = moved_by(b, stmt)
    if stmt.transpose:
        piece = piece.transposed()
    type, name = stmt.result.type, stmt.result.name or stmt.param
    kept, stored = carried(type.dtype), stored_as(type.dtype)
    b.require("TLOAD", stored)
    rows, cols = b.valid_rows(type.rows), s.Const(type.cols)      # that anything reads
    if piece.valid_rows == s.Const(type.rows):
        piece = replace(piece, valid_rows=rows)
    complete = piece.complete(rows, cols)
    if complete == s.Const(True):
        return from_memory(b, _fetched(b, piece, type.rows, type.cols, stored, name), type.dtype)
    out = b.hold(type.rows, type.cols, kept, name)
    if piece.condition == s.Const(False):
        _fill(b, out, stmt.fill)
        return out
    at_once = complete != s.Const(False) and kept is stored and _is_plain(b, piece, type.cols)
    with b.inside() as then:
        if at_once:
            _moved(b, replace(piece, valid_rows=rows, valid_cols=cols), out)
    with b.inside() as other:
        _fill(b, out, stmt.fill)
        if complete != piece.condition or not at_once:
            with b.when(piece.condition):
                raw = from_memory(b, _fetched(b, piece, type.rows, type.cols, stored, f"{name}_part"), type.dtype)
                copy(b, out.part(raw.valid_rows, raw.valid_cols), raw)
    b.choose(complete if at_once else s.Const(False), then, other)
    return out


def _fill(b: Builder, out: Held, number: float) -> None:
    """Put a number into every element; zeros of eight bytes are zeros of four."""
    if out.dtype.nbytes == 8 and number == 0:
        rows, cols = (2 * out.rows, 1) if out.is_column else (out.rows, 2 * out.cols)
        pitch, stored = (1, 2 * out.stored_rows) if out.is_column else (2 * out.pitch, out.stored_rows)
        out = replace(out, rows=rows, cols=cols, dtype=DType.I32, pitch=pitch, stored_rows=stored, valid_rows=s.Const(rows),
                      valid_cols=s.Const(cols))
    b.emit("TEXPANDS", b.flat(out), b.number(number, out.dtype))


def store(b: Builder, stmt: k.Store) -> None:
    """Move a value to a parameter, the valid part of it."""
    piece = moved_by(b, stmt)
    if piece.condition == s.Const(False):
        return
    held = b.held(stmt.value)
    b.require("TSTORE", stored_as(stmt.value.type.dtype))
    with b.when(piece.condition):
        _put(b, piece, to_memory(b, held, stmt.value.type.dtype).part(piece.valid_rows, piece.valid_cols))


# ---- from memory ----

def _units(b: Builder, piece: Piece) -> tuple[bool, bool]:
    """Tell whether the tile's columns, and its rows, are neighbours in memory."""
    access = b.access[piece.param]
    return (access.unit_rows, access.unit_cols) if piece.turned else (access.unit_cols, access.unit_rows)


def _is_plain(b: Builder, piece: Piece, cols: int) -> bool:
    """Tell whether a piece lies in memory as its tile does."""
    unit_cols, unit_rows = _units(b, piece)
    return unit_rows if cols == 1 else unit_cols


def _moved(b: Builder, piece: Piece, out: Held) -> None:
    """Load a plain piece; a column moves as the row that it is in memory."""
    if out.is_column:
        piece = piece.transposed()
    b.add(tp.GmLoad(b.flat(out), piece.param, piece.row, piece.col, piece.turned, b.span))


def _fetched(b: Builder, piece: Piece, rows: int, cols: int, dtype: DType, name: str) -> Held:
    """Return the valid part of a piece on chip, as it is in memory."""
    unit_cols, unit_rows = _units(b, piece)
    if rows == 1 and cols > 1 and not unit_cols:
        return _fetched(b, piece.transposed(), cols, 1, dtype, name).turned()
    if cols == 1:
        return _line(b, piece, rows, dtype, name, unit_rows)
    if unit_cols:
        out = b.hold(rows, cols, dtype, name).part(piece.valid_rows, piece.valid_cols)
        _moved(b, piece, out)
        return out
    if unit_rows:
        other = piece.transposed()
        lying = b.hold(cols, rows, dtype, f"{name}_lying").part(other.valid_rows, other.valid_cols)
        b.add(tp.GmLoad(b.flat(lying), other.param, other.row, other.col, other.turned, b.span))
        return transposed(b, lying, name)
    out = b.hold(rows, cols, dtype, name).part(piece.valid_rows, piece.valid_cols)
    with b.loop("r", piece.valid_rows) as r:
        one = piece.row_at(r)
        row = _line(b, one.transposed(), cols, dtype, f"{name}_row", False).turned()
        b.emit("TMOV", row_at(b, out, r), b.flat(row.bits(moved_as(dtype))))
    return out


def _line(b: Builder, piece: Piece, rows: int, dtype: DType, name: str, unit: bool) -> Held:
    """Return a piece of one column; `unit`: its elements are neighbours in memory."""
    out = b.hold(rows, 1, dtype, name).part(piece.valid_rows, s.Const(1))
    if unit:
        _moved(b, piece, out)
        return out
    lying = b.gapped(rows, dtype, f"{name}_lying").part(piece.valid_rows, s.Const(1))
    b.add(tp.GmLoad(b.flat(lying), piece.param, piece.row, piece.col, piece.turned, b.span))
    if dtype.nbytes == 8:   # no reduction takes them; the scalar unit, which reads them as an index, does not mind gaps
        return lying
    if dtype.nbytes == 1:   # no reduction takes bytes; f16 holds every one
        bits, wide, column = DType.F16, b.gapped(rows, DType.F16, f"{name}_wide"), b.hold(rows, 1, DType.F16, f"{name}_col")
        wide, column = (held.part(piece.valid_rows, s.Const(1)) for held in (wide, column))
        b.emit("TCVT", b.flat(wide), b.flat(lying), _AS_IT_IS)
    else:
        bits = _COMPARED.get(dtype, dtype)
        wide, column = lying.bits(bits), out.bits(bits)
    scratch = b.flat(b.gapped(rows, bits, f"{name}_tmp").part(piece.valid_rows, s.Const(1)))
    b.emit("TROWMAX", b.column(column), b.flat(wide), scratch)
    if dtype.nbytes == 1:
        b.emit("TCVT", b.flat(out), b.flat(column), _AS_IT_IS)
    return out


_AS_IT_IS = tp.Word("RoundMode::CAST_RINT")

# The largest of one element is that element: as which dtype it is compared.
_COMPARED = {DType.BF16: DType.I16, DType.U16: DType.I16, DType.U32: DType.I32}


# ---- to memory ----

def _put(b: Builder, piece: Piece, held: Held) -> None:
    unit_cols, unit_rows = _units(b, piece)
    if held.rows == 1 and held.cols > 1 and not unit_cols:
        _put(b, piece.transposed(), held.turned())
    elif held.cols == 1:
        _put_line(b, piece, held, unit_rows)
    elif unit_cols:
        b.add(tp.GmStore(piece.param, b.flat(held), piece.row, piece.col, piece.turned, b.span))
    elif unit_rows:
        _put(b, piece.transposed(), transposed(b, held, f"{held.name}_turned", stored=True))
    else:
        with b.loop("r", piece.valid_rows) as r:
            row = b.hold(1, held.cols, held.dtype, f"{held.name}_row").part(s.Const(1), held.valid_cols)
            b.emit("TMOV", b.flat(row.bits(moved_as(held.dtype))), row_at(b, held, r))
            _put_line(b, piece.row_at(r).transposed(), row.turned(), False)


def _put_line(b: Builder, piece: Piece, column: Held, unit: bool) -> None:
    column = column.part(column.valid_rows, s.Const(1))
    if unit:
        across = piece.transposed()
        b.add(tp.GmStore(across.param, b.flat(column), across.row, across.col, across.turned, b.span))
        return
    lying = b.gapped(column.rows, column.dtype, f"{column.name}_lying").part(column.valid_rows, column.valid_cols)
    b.emit("TROWEXPAND", b.flat(lying), b.column(column))
    b.add(tp.GmStore(piece.param, b.flat(lying), piece.row, piece.col, piece.turned, b.span))
