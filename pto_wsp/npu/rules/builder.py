"""Build tile programs: the interface through which selection rules allocate on-chip buffers, make tiles, and append steps.

`Held` is a tile value in an on-chip buffer. Rows start at multiples of 32 bytes. A value of one column has no gaps, so the same bytes can
be viewed as a column, as row reductions and row expansions need it, or as a row, as all other instructions need it.

>>> Held(0, "x", 5, 7, DType.F32, 8, 5, Const(5), Const(7)).type
Tile[5, 7, f32]

`Builder` appends the steps of a tile program:

>>> out = b.hold(x.rows, x.cols, x.dtype, "out")
>>> b.emit("TADD", b.flat(out), b.flat(x), b.flat(y))

`nonnegative` proves inequalities between scalars inside loops, which removes bounds tests of tiled loops:

>>> nonnegative(sub(extent, minimum(add(mul(j, Const(64)), Const(64)), extent)), {j: (Const(0), ceil_div(extent, Const(64)))})
True
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias

from pto_wsp.arch.model import Arch
from pto_wsp.errors import NpuOpError, unreachable
from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.names import Names
from pto_wsp.ir.rewrite import nodes
from pto_wsp.ir.scalar import Const, Scalar
from pto_wsp.ir.tile import TileType
from pto_wsp.npu.isa import tile_program as tp
from pto_wsp.npu.isa.instructions import Kind, find_instruction, legal
from pto_wsp.npu.isa.tile_program import ALIGN_BYTES
from pto_wsp.npu.plan.model import NpuKernel
from pto_wsp.ops.rounding import print_dtypes
from pto_wsp.source import Span
from pto_wsp.values import dataclass

Ranges: TypeAlias = Mapping[s.Var, tuple[s.Scalar, s.Scalar]]     # a loop variable: its first value, and an exclusive upper bound
Terms: TypeAlias = dict[s.Scalar, int]  # a linear combination, coefficient by term; the constant has the term Const(1)

_ONE = s.Const(1)
_MOST_STEPS = 400


def nonnegative(value: s.Scalar, ranges: Ranges, positive: Collection[s.Scalar] = ()) -> bool:
    """Return whether `value` >= 0 is proven inside loops of these ranges; False if the proof fails. `positive`: extents >= 1."""
    return _Proof(ranges, positive).holds(_sum_of(value))


def loop_range(start: s.Scalar, stop: s.Scalar, step: s.Scalar) -> tuple[s.Scalar, s.Scalar]:
    """Return the range of a loop variable; with constant bounds the step counts: 0 .. 120 in steps of 32 ends at 96."""
    match start, stop, step:
        case s.Const(int(first)), s.Const(int(end)), s.Const(int(by)) if by > 0 and end > first:
            return start, s.Const(first + (end - 1 - first) // by * by + 1)
        case _:
            return start, stop


class _Proof:
    """One proof attempt with a bounded number of steps."""

    def __init__(self, ranges: Ranges, positive: Collection[s.Scalar]) -> None:
        self.ranges = ranges
        self.positive = positive
        self.left = _MOST_STEPS

    def holds(self, terms: Terms) -> bool:
        """Return whether a linear combination is surely >= 0.

        Eliminates minima and maxima by cases first, then loop variables at their worst bound; extents remain.
        """
        self.left -= 1
        if self.left < 0:
            return False
        for term, factor in terms.items():
            if isinstance(term, s.Binary) and term.op in (s.Op.MIN, s.Op.MAX):
                rest = {other: n for other, n in terms.items() if other != term}
                sides = (self.holds(_plus(rest, _sum_of(side), factor)) for side in (term.lhs, term.rhs))
                smaller = (term.op is s.Op.MIN) == (factor > 0)
                return all(sides) if smaller else any(sides)
        for term, factor in terms.items():
            if isinstance(term, s.Var) and term in self.ranges:
                rest = {other: n for other, n in terms.items() if other != term}
                return self.holds(self._at_worst(rest, factor, *self.ranges[term]))
        least = terms.get(_ONE, 0) + sum(factor for term, factor in terms.items() if term in self.positive)
        return least >= 0 and all(term == _ONE or (isinstance(term, s.ParamExtent) and factor > 0) for term, factor in terms.items())

    def _at_worst(self, rest: Terms, factor: int, first: s.Scalar, stop: s.Scalar) -> Terms:
        if factor > 0:
            return _plus(rest, _sum_of(first), factor)
        if isinstance(stop, s.Binary) and stop.op is s.Op.FLOORDIV and isinstance(stop.rhs, s.Const):
            by = int(stop.rhs.value)
            if by > 0 and factor % by == 0:   # v < e // n: n * v <= e - n
                return _plus(rest, _plus(_sum_of(stop.lhs), {_ONE: -by}, 1), factor // by)
        return _plus(rest, _plus(_sum_of(stop), {_ONE: -1}, 1), factor)


def _sum_of(node: s.Scalar) -> Terms:
    """Return a scalar as a linear combination; a node that is no sum, difference or multiple is a term."""
    match node:
        case s.Const(value) if isinstance(value, int):
            return {_ONE: int(value)} if value else {}
        case s.Unary(s.Op.NEG, value):
            return _plus({}, _sum_of(value), -1)
        case s.Binary(s.Op.ADD, lhs, rhs):
            return _plus(_sum_of(lhs), _sum_of(rhs), 1)
        case s.Binary(s.Op.SUB, lhs, rhs):
            return _plus(_sum_of(lhs), _sum_of(rhs), -1)
        case s.Binary(s.Op.MUL, lhs, s.Const(value)) if isinstance(value, int):
            return _plus({}, _sum_of(lhs), int(value))
        case s.Binary(s.Op.MUL, s.Const(value), rhs) if isinstance(value, int):
            return _plus({}, _sum_of(rhs), int(value))
        case _:
            return {node: 1}


def _plus(terms: Terms, more: Terms, factor: int) -> Terms:
    total = dict(terms)
    for term, n in more.items():
        total[term] = total.get(term, 0) + n * factor
    return {term: n for term, n in total.items() if n}


# -- values on chip --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChipTile:
    """A tile value in an on-chip buffer. `pitch`: elements from one row to the next, 1 for a single column without gaps.

    `stored_rows`: rows, or elements of a column, that the buffer has at least. `valid_rows`, `valid_cols`: the part of rows x cols that
    instructions process. `offset`: bytes from the start of the buffer.
    """

    buffer: int
    name: str
    rows: int
    cols: int
    dtype: DType
    pitch: int
    stored_rows: int
    valid_rows: Scalar
    valid_cols: Scalar
    offset: int = 0

    @property
    def type(self) -> TileType:
        """Return the shape and dtype as stored on chip."""
        return TileType(self.rows, self.cols, self.dtype)

    @property
    def is_column(self) -> bool:
        """Return whether the value is a single column without gaps."""
        return self.pitch == 1

    @property
    def is_whole(self) -> bool:
        """Return whether the whole value is valid."""
        return self.valid_rows == Const(self.rows) and self.valid_cols == Const(self.cols)

    def part(self, valid_rows: Scalar, valid_cols: Scalar) -> ChipTile:
        """Return the same value with another valid part."""
        return replace(self, valid_rows=valid_rows, valid_cols=valid_cols)

    def turned(self) -> ChipTile:
        """Return a value of one row as one column, or the reverse: the same bytes."""
        assert 1 in (self.rows, self.cols)
        if self.rows == self.cols == 1:
            return self
        pitch, stored = (1, self.pitch) if self.cols > 1 else (self.stored_rows, 1)
        return replace(self, rows=self.cols, cols=self.rows, pitch=pitch, stored_rows=stored,
                       valid_rows=self.valid_cols, valid_cols=self.valid_rows)

    def bits(self, dtype: DType) -> ChipTile:
        """Return the same bytes as another dtype of equal width."""
        assert dtype.nbytes == self.dtype.nbytes
        return replace(self, dtype=dtype)

    def band(self, row: int, rows: int) -> ChipTile:
        """Return consecutive rows of a value that is wholly valid and has several columns."""
        assert not self.is_column and self.is_whole, self
        offset = self.offset + row * self.pitch * self.dtype.nbytes
        return replace(self, rows=rows, stored_rows=rows, valid_rows=Const(rows), offset=offset)


@dataclass(frozen=True, slots=True)
class Sorted:
    """A tile's elements in f32, in the order of a sorted column index; `turned`: negated, for an ascending order."""

    source: int
    values: ChipTile
    turned: bool


@dataclass(frozen=True, slots=True)
class Mask:
    """A mask as packed bits, from a comparison to a select. `yes`: a set bit means True."""

    held: ChipTile
    yes: bool


def padded_cols(n: int, dtype: DType) -> int:
    """Return the elements of a stored row of `n` elements: a multiple of 32 bytes."""
    step = ALIGN_BYTES // dtype.nbytes
    return -(-n // step) * step


# -- the builder -----------------------------------------------------------------------------------


Operand: TypeAlias = int | tp.Arg


@dataclass(frozen=True, slots=True)
class ValidRows:
    """The first `valid` of `most` rows; `valid` is at least one."""

    most: int
    valid: s.Scalar


class Builder:
    """A tile program under construction. `span`: the source of the current statement."""

    def __init__(self, use: NpuKernel, arch: Arch, space: tp.Space = tp.Space.UB) -> None:
        self.use = use
        self.kernel = use.kernel
        self.arch = arch
        self.space = space
        self.span: Span = use.kernel.span
        self.values: dict[int, ChipTile] = {}
        self.buffers: dict[int, ChipTile] = {}
        self.masks: dict[int, Mask] = {}         # comparisons that stay packed
        self.sorted: dict[int, Sorted] = {}      # by the value of their column index
        self.target: ChipTile | None = None     # the buffer in which the current operation computes its result
        self.rows: ValidRows | None = None       # set if the statement needs only the rows that the outputs have
        self.positive: set[s.Scalar] = set()            # extents known to be at least 1 from here on
        self.items: dict[s.ItemRef, s.Var] = {}
        self.ranges: dict[s.Var, tuple[s.Scalar, s.Scalar]] = {}   # of the loops around the statement
        self.access = dict(zip((p.name for p in use.kernel.memory_params), use.access, strict=True))
        self.reaches: list[tp.MovedRegion] = []
        self._chip_buffers: list[tp.ChipBuffer] = []
        self._tiles: dict[tuple[object, ...], tp.TileView] = {}
        self._tile_names: set[str] = set()
        self._by_id: list[tp.TileView] = []
        self._names = Names(numbered=lambda name, number: f"{name}_{number - 1}")
        self._blocks: list[list[tp.Step]] = [[]]
        self._declared: list[set[int]] = [set()]
        self._lets: list[dict[s.Scalar, s.Var]] = [{}]
        self._var_ids = itertools.count(1 + max((node.id for node in nodes(use.kernel.body) if isinstance(node, s.Var)), default=-1))

    def program(self) -> tp.TileProgram:
        """Return the finished program."""
        assert len(self._blocks) == 1
        return tp.TileProgram(self.kernel.name, self.use.core, self.kernel.params, self.use.access, tuple(self._chip_buffers),
                              tuple(self._tiles.values()), tuple(self._blocks[0]), tuple(dict.fromkeys(self.reaches)),
                              span=self.kernel.span)

    # -- on-chip buffers

    def buffer(self, size_bytes: int, name: str, space: tp.Space | None = None) -> int:
        """Return the id of a new on-chip buffer, its size rounded up to 32 bytes."""
        size = -(-size_bytes // tp.ALIGN_BYTES) * tp.ALIGN_BYTES
        self._chip_buffers.append(tp.ChipBuffer(len(self._chip_buffers), self._fresh(name), space or self.space, size))
        return len(self._chip_buffers) - 1

    def hold(self, rows: int, cols: int, dtype: DType, name: str, pitch_by: int = 1) -> ChipTile:
        """Return a value in a new on-chip buffer. `pitch_by` above 1: the pitch is a multiple of that number of elements."""
        pitch = 1 if cols == 1 and pitch_by == 1 else -(-padded_cols(cols, dtype) // pitch_by) * pitch_by
        stored = padded_cols(rows, dtype) if pitch == 1 else rows
        buffer = self.buffer(stored * pitch * dtype.nbytes, name)
        return ChipTile(buffer, self._chip_buffers[buffer].name, rows, cols, dtype, pitch, stored, self.valid_rows(rows), s.Const(cols))

    def valid_rows(self, rows: int) -> s.Scalar:
        """Return how many of `rows` rows the current statement needs."""
        return s.Const(rows) if self.rows is None or rows != self.rows.most else self.rows.valid

    def gapped(self, rows: int, dtype: DType, name: str) -> ChipTile:
        """Return a column with each element in a 32-byte row of its own, as element-wise transfers need it."""
        pitch = tp.ALIGN_BYTES // dtype.nbytes
        buffer = self.buffer(rows * tp.ALIGN_BYTES, name)
        return ChipTile(buffer, self._chip_buffers[buffer].name, rows, 1, dtype, pitch, rows, s.Const(rows), s.Const(1))

    def grown(self, held: ChipTile, rows: int) -> ChipTile:
        """Return the same value with `rows` stored rows; enlarges the on-chip buffer if needed."""
        end = held.offset + rows * held.pitch * held.dtype.nbytes
        buffer = self._chip_buffers[held.buffer]
        self._chip_buffers[held.buffer] = replace(buffer, size_bytes=max(buffer.size_bytes, -(-end // tp.ALIGN_BYTES) * tp.ALIGN_BYTES))
        return replace(held, stored_rows=rows)

    def like(self, held: ChipTile, name: str, dtype: DType | None = None) -> ChipTile:
        """Return a value of the same shape and valid part in a new on-chip buffer."""
        return self.hold(held.rows, held.cols, dtype or held.dtype, name).part(held.valid_rows, held.valid_cols)

    # -- tiles: views of on-chip buffers

    def flat(self, held: ChipTile) -> int:
        """Return the tile for most instructions: row-major, and one row for a single column."""
        if held.is_column:
            return self.tile(held, tp.Form.ROWS, 1, held.stored_rows, held.valid_cols, held.valid_rows, "row")
        return self.tile(held, tp.Form.ROWS, held.stored_rows, held.pitch, held.valid_rows, held.valid_cols)

    def column(self, held: ChipTile) -> int:
        """Return the column tile of a single column, for row reductions and row expansions."""
        assert held.is_column
        return self.tile(held, tp.Form.COLUMN, held.stored_rows, 1, held.valid_rows, held.valid_cols, "col")

    def tile(self, held: ChipTile, form: tp.Form, rows: int, cols: int, valid_rows: s.Scalar, valid_cols: s.Scalar, kind: str = "") -> int:
        """Return the id of a tile: a view of an on-chip buffer in some layout. Equal views share a tile."""
        valid_rows, valid_cols = self.named(valid_rows, "rows"), self.named(valid_cols, "cols")
        key = (held.buffer, held.offset, held.dtype, form, rows, cols, valid_rows, valid_cols)
        if key not in self._tiles:
            name = self._fresh(f"{held.name}_{kind}" if kind else held.name, again=not kind)
            tile = tp.TileView(len(self._tiles), name, held.buffer, held.dtype, rows, cols, form, valid_rows, valid_cols, held.offset)
            self._tiles[key] = tile
            self._tile_names.add(name)
            self._by_id.append(tile)
        return self._tiles[key].id

    def sliding(self, held: ChipTile, shift: s.Scalar) -> int:
        """Return the tile of a value `shift` bytes further in its on-chip buffer, valid in the current block only."""
        tile = self.flat(replace(held, name=f"{held.name}_at"))
        self._blocks[-1].append(tp.BindTile(tile, shift=shift, span=self.span))
        self._declared[-1].add(tile)
        return tile

    # -- steps

    def emit(self, name: str, *args: Operand, template: tuple[str, ...] = ()) -> None:
        """Append an instruction. The instruction table says whether an operand, given as a tile id, is read or written.

        Raises: N103 at the statement's line for a dtype that the instruction does not support on this arch.
        """
        form = find_instruction(name).form(len(args)) or unreachable(f"{name} with {len(args)} operands")
        given = tuple(tp.TileArg(arg, operand.access) if isinstance(arg, int) else arg for operand, arg in zip(form, args, strict=True))
        for operand, arg in zip(form, given, strict=True):
            if isinstance(arg, tp.TileArg) and operand.kind in (Kind.DATA, Kind.EACH):
                self.require(name, self._by_id[arg.tile].dtype)
        self.add(tp.Instr(name, given, template, self.span))

    def require(self, name: str, dtype: DType) -> None:
        """Raise N103 at the statement's line for a dtype that an instruction does not support on this arch."""
        if not legal(name, dtype, self.arch.family):
            takes = find_instruction(name).dtypes(self.arch.family)
            raise NpuOpError(f"kernel `{self.kernel.name}`: {self.arch.name} does not run this on {dtype}", self.span,
                             expected=f"{name} on {print_dtypes(takes)}", found=str(dtype),
                             help="convert the operands first: x.astype(DType.F32)")

    def number(self, value: s.Scalar | float, dtype: DType) -> tp.NumberArg:
        """Return a number as an operand."""
        return tp.NumberArg(self.scalar(value) if not isinstance(value, int | float) else s.Const(value), dtype)

    def add(self, step: tp.Step) -> None:
        """Append a step, preceded by declarations of tiles that its block uses for the first time."""
        for use in tp.uses_of(step):
            self.declare(use.tile)
        self._blocks[-1].append(step)

    def declare(self, tile: int) -> None:
        """Declare a tile here, unless an enclosing block has declared it."""
        if not any(tile in declared for declared in self._declared):
            self._declared[-1].add(tile)
            self._blocks[-1].append(tp.BindTile(tile, span=self.span))

    @contextmanager
    def inside(self) -> Iterator[list[tp.Step]]:
        """Collect the steps that the caller emits in a nested block."""
        self._blocks.append([])
        self._declared.append(set())
        self._lets.append({})
        yield self._blocks[-1]
        self._blocks.pop()
        self._declared.pop()
        self._lets.pop()

    @contextmanager
    def when(self, condition: s.Scalar) -> Iterator[None]:
        """Put the steps that the caller emits under a condition; a constant condition keeps or drops them."""
        if isinstance(condition, s.Const) and condition.value:
            yield
            return
        with self.inside() as then:
            yield
        if then and not isinstance(condition, s.Const):
            self.add(tp.If(condition, tuple(then), span=self.span))

    def choose(self, condition: s.Scalar, then: list[tp.Step], other: list[tp.Step]) -> None:
        """Append a branch of two blocks; a constant condition appends one of the blocks inline."""
        if isinstance(condition, s.Const):
            for step in then if condition.value else other:
                self._blocks[-1].append(step)
                if isinstance(step, tp.BindTile):
                    self._declared[-1].add(step.tile)
        else:
            self.add(tp.If(condition, tuple(then), tuple(other), span=self.span))

    @contextmanager
    def loop(self, name: str, stop: s.Scalar) -> Iterator[s.Var]:
        """Put the steps that the caller emits in a loop over range(stop)."""
        var = self.var(name)
        with self.inside() as body:
            yield var
        self.add(tp.For(var, s.Const(0), stop, s.Const(1), tuple(body), span=self.span))

    # -- scalars

    def var(self, name: str) -> s.Var:
        """Return a new scalar variable."""
        return s.Var(self._fresh(name), next(self._var_ids))

    def scalar(self, value: s.Scalar) -> s.Scalar:
        """Return a scalar of the kernel with the extents substituted that all tasks share, and the variables of items."""
        def known(node: s.Scalar) -> s.Scalar | None:
            if isinstance(node, s.ItemRef):
                return self.items[node]
            if not isinstance(node, s.ParamExtent):
                return None
            access = self.access[node.name]
            extent, group = (access.cols, access.col_group) if node.dim else (access.rows, access.row_group)
            if extent is None and group is not None:
                return s.ParamExtent(next(name for name, other in self.access.items()
                                          if (other.row_group, other.col_group)[node.dim] == group), node.dim)
            return None if extent is None else s.Const(extent)

        return s.substitute(value, known)

    def surely(self, value: s.Scalar, least: s.Scalar) -> bool:
        """Return whether `value` >= `least` is proven for the current statement."""
        return nonnegative(s.sub(value, least), self.ranges, self.positive)

    def named(self, value: s.Scalar, name: str) -> s.Scalar:
        """Return a scalar without operations; a computed scalar gets a variable in the current block."""
        if isinstance(value, s.Const | s.Var | s.ParamScalar | s.ParamExtent):
            return value
        for lets in self._lets:
            if value in lets:
                return lets[value]
        var = self.var(name)
        self._lets[-1][value] = var
        self._blocks[-1].append(tp.Let(var, value, self.span))
        return var

    # -- values

    def held(self, value: k.Value) -> ChipTile:
        """Return the on-chip value of a kernel value."""
        return self.values[value.id]

    def result(self, stmt: k.Compute, dtype: DType | None = None) -> ChipTile:
        """Return where an operation computes its result, in its compute dtype: the target buffer if it fits, or a new on-chip buffer."""
        type = stmt.result.type
        target = self.target
        if target is not None and (target.type, target.valid_rows) == (type.with_dtype(dtype or type.dtype), self.valid_rows(type.rows)):
            return target
        return self.hold(type.rows, type.cols, dtype or type.dtype, stmt.result.name or f"{stmt.op.rstrip('_')}_{stmt.result.id}")

    def _fresh(self, name: str, again: bool = False) -> str:
        """Return the name, with a number if it is taken; `again`: a tile may share its buffer's name."""
        if again and name not in self._tile_names:
            return name
        return self._names.take(name)
