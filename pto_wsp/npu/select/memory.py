"""Lower loads and stores of vector kernels: the valid part, the fill around it, transposed pieces, and indexed rows.

A piece is the rectangle of a parameter that a load or store moves. A piece of a Tensor parameter that would reach outside of its region
does not move: a device cannot report the error. A piece moves row by row if columns of the tile are contiguous in memory, and is transposed
on chip if rows are. A row or column with gaps moves element by element into 32-byte rows, which a reduction packs into one column.

`gather` and `scatter` move rows that an index names, each as a load or store of its own; the scalar unit reads the index. A row outside the
region moves nothing, and a gathered one is `fill`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel_walk import piece_of
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.tile import TileType
from pto_wsp.npu.isa import tile_program as tp
from pto_wsp.npu.rules.builder import Builder, ChipTile
from pto_wsp.npu.rules.lanes import copy, copy_tile, moved_as, row_at
from pto_wsp.npu.rules.layout import allocate_rows, lay_out_rows, transpose_tile, without_gaps
from pto_wsp.npu.rules.operands import computed_in, convert_tile, from_memory, round_result, storage_dtype, stored_as, to_memory
from pto_wsp.ops.entries.elementwise import add
from pto_wsp.values import dataclass

_ZERO, _ONE = s.Const(0), s.Const(1)


@dataclass(frozen=True, slots=True)
class Transfer:
    """The rectangle that a load or store moves. `turned`: the tile is transposed, its rows are columns of the parameter.

    `valid_rows`, `valid_cols` count rows and columns of the tile. `inside`, `some_rows`, `some_cols`: the conditions, as far as they are
    unproven, that the piece is inside the region and that it is not empty.
    """

    param: str
    row: s.Scalar
    col: s.Scalar
    valid_rows: s.Scalar
    valid_cols: s.Scalar
    inside: s.Scalar
    some_rows: s.Scalar
    some_cols: s.Scalar
    turned: bool = False

    @property
    def condition(self) -> s.Scalar:
        """Return the condition that the piece moves at all."""
        return all_of((self.inside, self.some_rows, self.some_cols))

    def complete(self, rows: s.Scalar, cols: s.Scalar) -> s.Scalar:
        """Return the condition that the piece moves and has exactly `rows` x `cols` elements, its nonzero maximum."""
        all_rows, all_cols = (some if n == most else s.binary(s.Op.GE, n, most) for n, most, some in (
            (self.valid_rows, rows, self.some_rows), (self.valid_cols, cols, self.some_cols)))
        return all_of((self.inside, all_rows, all_cols))

    def transposed(self) -> Transfer:
        """Return the piece for the transposed tile."""
        return replace(self, turned=not self.turned, valid_rows=self.valid_cols, valid_cols=self.valid_rows,
                       some_rows=self.some_cols, some_cols=self.some_rows)

    def row_at(self, row: s.Scalar) -> Transfer:
        """Return the piece of one row of the tile, which must be valid."""
        moved = replace(self, col=s.add(self.col, row)) if self.turned else replace(self, row=s.add(self.row, row))
        return replace(moved, valid_rows=_ONE)



def transfer_of(b: Builder, stmt: k.Load | k.Store) -> Transfer:
    """Return the piece that a statement moves, in rows and columns of the parameter."""
    valid = valid_rows, valid_cols = valid_part(b, stmt)
    inside = inside_of(b, stmt, valid)
    shown = {valid_rows: b.named(valid_rows, "rows"), valid_cols: b.named(valid_cols, "cols")}
    inside, some_rows, some_cols = (s.substitute(one, shown.get) for one in (
        inside, _unproved(b, [(valid_rows, _ONE)]), _unproved(b, [(valid_cols, _ONE)])))
    return Transfer(stmt.param, b.scalar(stmt.row), b.scalar(stmt.col), shown[valid_rows], shown[valid_cols], inside, some_rows, some_cols)


def inside_of(b: Builder, stmt: k.Load | k.Store, valid: tuple[s.Scalar, s.Scalar]) -> s.Scalar:
    """Return the condition that a piece's valid part is inside its region, and record whether the condition is proven."""
    if isinstance(_param(b, stmt), k.TileParam):
        return s.Const(True)
    tests: list[tuple[s.Scalar, s.Scalar]] = []
    for first, most, extent, whole in _reaches(b, stmt, valid):
        tests.append((first, _ZERO))
        if not b.surely(most, s.add(first, s.Const(whole))):
            tests.append((most, s.add(first, extent)))
    inside = _unproved(b, tests)
    what = f"{'load' if isinstance(stmt, k.Load) else 'store'} {stmt.param}[{print_scalar(stmt.row)}, {print_scalar(stmt.col)}]"
    b.reaches.append(tp.MovedRegion(what, inside == s.Const(True), stmt.span))
    return inside


def clamp_start(b: Builder, stmt: k.Load, valid: tuple[s.Scalar, s.Scalar]) -> tuple[s.Scalar, s.Scalar]:
    """Return the start of a loaded piece, moved back as far as needed to stay inside the region.

    An operand of the matrix unit has no fill, so the load cannot be skipped. A region smaller than the piece is read from its start.
    """
    row, col = b.scalar(stmt.row), b.scalar(stmt.col)
    if inside_of(b, stmt, valid) == s.Const(True):
        return row, col
    kept: list[s.Scalar] = []
    for first, most, extent, whole in _reaches(b, stmt, valid):
        if not b.surely(most, s.add(first, s.Const(whole))) and not b.surely(most, s.add(first, extent)):
            first = s.minimum(first, s.sub(most, extent))
        kept.append(_at_least_0(b, first))
    return kept[0], kept[1]


def _reaches(b: Builder, stmt: k.Load | k.Store, valid: tuple[s.Scalar, s.Scalar]) -> Iterator[tuple[s.Scalar, s.Scalar, s.Scalar, int]]:
    """Yield (start, region extent, valid extent, whole extent) of a piece, for rows and then for columns."""
    for dim, (at, extent, whole) in enumerate(zip((stmt.row, stmt.col), valid, piece_of(stmt), strict=True)):
        yield b.scalar(at), b.scalar(s.ParamExtent(stmt.param, dim)), extent, whole


def _unproved(b: Builder, tests: Iterable[tuple[s.Scalar, s.Scalar]]) -> s.Scalar:
    """Return the conjunction of value >= least for all pairs, without the pairs that are proven."""
    return all_of(s.binary(s.Op.GE, value, least) for value, least in tests if not b.surely(value, least))


def valid_part(b: Builder, stmt: k.Load | k.Store) -> tuple[s.Scalar, s.Scalar]:
    """Return the valid row and column counts of a piece that is inside its region, in the parameter's orientation."""
    param, most = _param(b, stmt), piece_of(stmt)
    counts = []
    for dim, (given, at) in enumerate(((stmt.valid_rows, stmt.row), (stmt.valid_cols, stmt.col))):
        valid: s.Scalar = s.Const(most[dim])
        if given is not None:
            valid = _smaller(b, _at_least_0(b, b.scalar(given)), valid)
        if isinstance(param, k.TileParam):
            extent, start = b.scalar(s.ParamExtent(stmt.param, dim)), b.scalar(at)
            whole = given is None and start == _ZERO and most[dim] == param.type.shape[dim]
            valid = extent if whole else _smaller(b, valid, _at_least_0(b, s.sub(extent, start)))
        counts.append(valid)
    return counts[0], counts[1]


def _at_least_0(b: Builder, value: s.Scalar) -> s.Scalar:
    return value if b.surely(value, _ZERO) else s.maximum(value, _ZERO)


def _smaller(b: Builder, one: s.Scalar, other: s.Scalar) -> s.Scalar:
    return one if b.surely(other, one) else other if b.surely(one, other) else s.minimum(one, other)


def _param(b: Builder, stmt: k.Load | k.Store) -> k.MemoryParam:
    return next(p for p in b.kernel.memory_params if p.name == stmt.param)


def all_of(conditions: Iterable[s.Scalar]) -> s.Scalar:
    """Return the conjunction of conditions; False if one is surely false."""
    out: s.Scalar = s.Const(True)
    for condition in dict.fromkeys(conditions):
        if isinstance(condition, s.Const):
            if not condition.value:
                return s.Const(False)
            continue
        out = condition if out == s.Const(True) else s.binary(s.Op.AND, out, condition)
    return out


# -- loads and stores ------------------------------------------------------------------------------


def load(b: Builder, stmt: k.Load) -> ChipTile:
    """Emit a load and return the tile: moved directly if the piece is the whole tile, else moved into a tile with fill."""
    piece = transfer_of(b, stmt)
    if stmt.transpose:
        piece = piece.transposed()
    type, name = stmt.result.type, stmt.result.name or stmt.param
    kept, stored = storage_dtype(type.dtype), stored_as(type.dtype)
    b.require("TLOAD", stored)
    rows, cols = b.valid_rows(type.rows), s.Const(type.cols)      # the extent that any user reads
    if piece.valid_rows == s.Const(type.rows):
        piece = replace(piece, valid_rows=rows)
    complete = piece.complete(rows, cols)
    if complete == s.Const(True):
        return from_memory(b, _fetch_tile(b, piece, type.rows, type.cols, stored, name), type.dtype)
    out = b.hold(type.rows, type.cols, kept, name)
    if piece.condition == s.Const(False):
        _fill(b, out, stmt.fill)
        return out
    at_once = complete != s.Const(False) and kept is stored and _is_plain(b, piece, type.cols)
    with b.inside() as then:
        if at_once:
            _emit_load(b, replace(piece, valid_rows=rows, valid_cols=cols), out)
    with b.inside() as other:
        _fill(b, out, stmt.fill)
        if complete != piece.condition or not at_once:
            with b.when(piece.condition):
                raw = from_memory(b, _fetch_tile(b, piece, type.rows, type.cols, stored, f"{name}_part"), type.dtype)
                copy(b, out.part(raw.valid_rows, raw.valid_cols), raw)
    b.choose(complete if at_once else s.Const(False), then, other)
    return out


def _fill(b: Builder, out: ChipTile, number: float) -> None:
    """Emit a fill of every element; zeros of an eight-byte dtype are written as i32 zeros."""
    if out.dtype.nbytes == 8 and number == 0:
        rows, cols = (2 * out.rows, 1) if out.is_column else (out.rows, 2 * out.cols)
        pitch, stored = (1, 2 * out.stored_rows) if out.is_column else (2 * out.pitch, out.stored_rows)
        out = replace(out, rows=rows, cols=cols, dtype=DType.I32, pitch=pitch, stored_rows=stored, valid_rows=s.Const(rows),
                      valid_cols=s.Const(cols))
    b.emit("TEXPANDS", b.flat(out), b.number(number, out.dtype))


def store(b: Builder, stmt: k.Store) -> None:
    """Emit a store of the valid part of a value."""
    piece = transfer_of(b, stmt)
    if piece.condition == s.Const(False):
        return
    held = b.held(stmt.value)
    b.require("TSTORE", stored_as(stmt.value.type.dtype))
    with b.when(piece.condition):
        _emit_store(b, piece, to_memory(b, held, stmt.value.type.dtype).part(piece.valid_rows, piece.valid_cols))


# -- from memory

def _units(b: Builder, piece: Transfer) -> tuple[bool, bool]:
    """Return whether columns, and whether rows, of the tile are contiguous in memory."""
    access = b.access[piece.param]
    return (access.unit_rows, access.unit_cols) if piece.turned else (access.unit_cols, access.unit_rows)


def _is_plain(b: Builder, piece: Transfer, cols: int) -> bool:
    """Return whether a piece has the same layout in memory as its tile."""
    unit_cols, unit_rows = _units(b, piece)
    return unit_rows if cols == 1 else unit_cols


def _emit_load(b: Builder, piece: Transfer, out: ChipTile) -> None:
    """Emit the load of a plain piece; a column moves as a row, which it is in memory."""
    if out.is_column:
        piece = piece.transposed()
    b.add(tp.GmLoad(b.flat(out), piece.param, piece.row, piece.col, piece.turned, b.span))


def _fetch_tile(b: Builder, piece: Transfer, rows: int, cols: int, dtype: DType, name: str) -> ChipTile:
    """Emit the load of a piece's valid part and return it as stored in memory."""
    unit_cols, unit_rows = _units(b, piece)
    if rows == 1 and cols > 1 and not unit_cols:
        return _fetch_tile(b, piece.transposed(), cols, 1, dtype, name).turned()
    if cols == 1:
        return _line(b, piece, rows, dtype, name, unit_rows)
    if unit_cols:
        out = b.hold(rows, cols, dtype, name).part(piece.valid_rows, piece.valid_cols)
        _emit_load(b, piece, out)
        return out
    if unit_rows:
        other = piece.transposed()
        lying = b.hold(cols, rows, dtype, f"{name}_lying").part(other.valid_rows, other.valid_cols)
        b.add(tp.GmLoad(b.flat(lying), other.param, other.row, other.col, other.turned, b.span))
        return transpose_tile(b, lying, name)
    out = b.hold(rows, cols, dtype, name).part(piece.valid_rows, piece.valid_cols)
    with b.loop("r", piece.valid_rows) as r:
        one = piece.row_at(r)
        row = _line(b, one.transposed(), cols, dtype, f"{name}_row", False).turned()
        b.emit("TMOV", row_at(b, out, r), b.flat(row.bits(moved_as(dtype))))
    return out


def _line(b: Builder, piece: Transfer, rows: int, dtype: DType, name: str, unit: bool) -> ChipTile:
    """Emit the load of a single column. `unit`: its elements are contiguous in memory."""
    out = b.hold(rows, 1, dtype, name).part(piece.valid_rows, s.Const(1))
    if unit:
        _emit_load(b, piece, out)
        return out
    lying = b.gapped(rows, dtype, f"{name}_lying").part(piece.valid_rows, s.Const(1))
    b.add(tp.GmLoad(b.flat(lying), piece.param, piece.row, piece.col, piece.turned, b.span))
    if dtype.nbytes == 8:   # no reduction takes eight bytes; the scalar unit reads such an index with gaps
        return lying
    if dtype.nbytes == 1:   # no reduction takes bytes; f16 represents each of them exactly
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

# The maximum of a single element is that element; the dtype in which the reduction compares it.
_COMPARED = {DType.BF16: DType.I16, DType.U16: DType.I16, DType.U32: DType.I32}


# -- to memory

def _emit_store(b: Builder, piece: Transfer, held: ChipTile) -> None:
    unit_cols, unit_rows = _units(b, piece)
    if held.rows == 1 and held.cols > 1 and not unit_cols:
        _emit_store(b, piece.transposed(), held.turned())
    elif held.cols == 1:
        _put_line(b, piece, held, unit_rows)
    elif unit_cols:
        b.add(tp.GmStore(piece.param, b.flat(held), piece.row, piece.col, piece.turned, b.span))
    elif unit_rows:
        _emit_store(b, piece.transposed(), transpose_tile(b, held, f"{held.name}_turned", stored=True))
    else:
        with b.loop("r", piece.valid_rows) as r:
            row = b.hold(1, held.cols, held.dtype, f"{held.name}_row").part(s.Const(1), held.valid_cols)
            b.emit("TMOV", b.flat(row.bits(moved_as(held.dtype))), row_at(b, held, r))
            _put_line(b, piece.row_at(r).transposed(), row.turned(), False)


def _put_line(b: Builder, piece: Transfer, column: ChipTile, unit: bool) -> None:
    column = column.part(column.valid_rows, s.Const(1))
    if unit:
        across = piece.transposed()
        b.add(tp.GmStore(across.param, b.flat(column), across.row, across.col, across.turned, b.span))
        return
    lying = b.gapped(column.rows, column.dtype, f"{column.name}_lying").part(column.valid_rows, column.valid_cols)
    b.emit("TROWEXPAND", b.flat(lying), b.column(column))
    b.add(tp.GmStore(piece.param, b.flat(lying), piece.row, piece.col, piece.turned, b.span))


# -- rows named by an index ------------------------------------------------------------------------


_ROW = -1       # id of the value for the row that moves; ids of kernel values start from 0


def gather(b: Builder, stmt: k.Gather) -> ChipTile:
    """Return the rows that an index names, and `fill` in the rows after the valid ones."""
    type = stmt.result.type
    out = allocate_rows(b, type.rows, type.cols, storage_dtype(type.dtype), stmt.result.name or f"{stmt.param}_rows")
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
    """Emit stores of the value's rows at the places that an index names, in order; `add` adds to the previous contents."""
    type = stmt.value.type
    held, index = lay_out_rows(b, b.held(stmt.value)), _numbers(b, b.held(stmt.index))
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
    """Return the condition that row n is valid. The loop over all rows keeps the access inside the buffers for any `valid`."""
    return s.Const(True) if valid == s.Const(rows) else s.binary(s.Op.LT, n, valid)


def _numbers(b: Builder, index: ChipTile) -> ChipTile:
    """Return an index that starts at the beginning of its on-chip buffer, as the scalar unit addresses it."""
    return index if index.offset == 0 else copy_tile(b, index, f"{index.name}_numbers")


def _element(b: Builder, index: ChipTile, n: s.Var) -> s.Var:
    """Emit a scalar read of element n of an index, a column with or without gaps, and return its variable."""
    var = b.var("row")
    b.add(tp.Peek(var, b.flat(index), s.mul(n, s.Const(index.pitch)), b.span))
    return var


def read_item(b: Builder, stmt: k.Item) -> None:
    """Emit a scalar read of an element of a tile; a run-time index outside the tile reads the nearest element."""
    held = _numbers(b, b.held(stmt.value))
    row, col = (_within(b, b.scalar(at), extent) for at, extent in zip((stmt.row, stmt.col), stmt.value.type.shape, strict=True))
    var = b.items[stmt.item] = b.var(stmt.item.name)
    b.add(tp.Peek(var, b.flat(held), s.add(s.mul(row, s.Const(held.pitch)), col), b.span))


def _within(b: Builder, index: s.Scalar, extent: int) -> s.Scalar:
    return index if isinstance(index, s.Const) else _smaller(b, _at_least_0(b, index), s.Const(extent - 1))


def _sum(b: Builder, old: ChipTile, new: ChipTile, dtype: DType) -> ChipTile:
    wide = computed_in(add.name, dtype)
    out = b.like(new, f"{new.name}_sum", wide)
    b.emit("TADD", b.flat(out), b.flat(convert_tile(b, old, wide)), b.flat(convert_tile(b, new, wide)))
    return round_result(b, out, dtype, in_range=dtype in add.keeps_range)
