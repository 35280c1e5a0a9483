"""What rules write a tile program with: rooms, views of them, steps, and where values and buffers lie.

>>> out = b.hold(x.rows, x.cols, x.dtype, "out")
>>> b.emit("TADD", b.flat(out), b.flat(x), b.flat(y))
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias

from pto_wsp.arch.isa.instruction import Kind, find_instruction, legal
from pto_wsp.arch.model import Arch
from pto_wsp.errors import NpuOpError, unreachable
from pto_wsp.expr import kernel as k
from pto_wsp.expr import tile_program as tp
from pto_wsp.expr.rewrite import nodes
from pto_wsp.ops.dtypes import print_dtypes
from pto_wsp.plan.npu.model import NpuKernel
from pto_wsp.plan.npu.select.held import Held, Mask, Sorted, padded
from pto_wsp.plan.npu.select.moves.prove import nonnegative
from pto_wsp.source import Span
from pto_wsp.types import scalar as s
from pto_wsp.types.dtype import DType
from pto_wsp.values import dataclass

Operand: TypeAlias = int | tp.Arg


@dataclass(frozen=True, slots=True)
class Rows:
    """Of `most` rows the first `valid` ones, which are at least one."""

    most: int
    valid: s.Scalar


class Builder:
    """A tile program in the making. `span` is the statement that steps are made for."""

    def __init__(self, use: NpuKernel, arch: Arch, space: tp.Space = tp.Space.UB) -> None:
        self.use = use
        self.kernel = use.kernel
        self.arch = arch
        self.space = space
        self.span: Span = use.kernel.span
        self.values: dict[int, Held] = {}
        self.buffers: dict[int, Held] = {}
        self.masks: dict[int, Mask] = {}         # comparisons that stay packed
        self.sorted: dict[int, Sorted] = {}      # by the value of their columns
        self.target: Held | None = None     # the buffer that the result of the current operation is made in
        self.rows: Rows | None = None       # where the statement is about no more rows than the outputs have
        self.positive: set[s.Scalar] = set()            # extents that are at least 1 from here on
        self.ranges: dict[s.Var, tuple[s.Scalar, s.Scalar]] = {}   # of the loops around the statement
        self.access = dict(zip((p.name for p in use.kernel.memory_params), use.access, strict=True))
        self.reaches: list[tp.Reach] = []
        self._rooms: list[tp.Room] = []
        self._tiles: dict[tuple[object, ...], tp.Tile] = {}
        self._by_id: list[tp.Tile] = []
        self._names: set[str] = set()
        self._blocks: list[list[tp.Step]] = [[]]
        self._declared: list[set[int]] = [set()]
        self._lets: list[dict[s.Scalar, s.Var]] = [{}]
        self._var_ids = itertools.count(1 + max((node.id for node in nodes(use.kernel.body) if isinstance(node, s.Var)), default=-1))

    def program(self) -> tp.TileProgram:
        """Return what was built."""
        assert len(self._blocks) == 1
        return tp.TileProgram(self.kernel.name, self.use.core, self.kernel.params, self.use.access, tuple(self._rooms),
                              tuple(self._tiles.values()), tuple(self._blocks[0]), tuple(dict.fromkeys(self.reaches)),
                              span=self.kernel.span)

    # ---- rooms ----

    def room(self, size_bytes: int, name: str, space: tp.Space | None = None) -> int:
        """Return the id of a new room, its size rounded up to 32 bytes."""
        size = -(-size_bytes // tp.ALIGN_BYTES) * tp.ALIGN_BYTES
        self._rooms.append(tp.Room(len(self._rooms), self._fresh(name), space or self.space, size))
        return len(self._rooms) - 1

    def hold(self, rows: int, cols: int, dtype: DType, name: str, pitch_by: int = 1) -> Held:
        """Return a value in a room of its own. `pitch_by` above 1: its rows take a multiple of so many elements."""
        pitch = 1 if cols == 1 and pitch_by == 1 else -(-padded(cols, dtype) // pitch_by) * pitch_by
        stored = padded(rows, dtype) if pitch == 1 else rows
        room = self.room(stored * pitch * dtype.nbytes, name)
        return Held(room, self._rooms[room].name, rows, cols, dtype, pitch, stored, self.valid_rows(rows), s.Const(cols))

    def valid_rows(self, rows: int) -> s.Scalar:
        """Return how many of so many rows the statement is about."""
        return s.Const(rows) if self.rows is None or rows != self.rows.most else self.rows.valid

    def gapped(self, rows: int, dtype: DType, name: str) -> Held:
        """Return a value of one column with each element in 32 bytes of its own, as what moves element by element has it."""
        pitch = tp.ALIGN_BYTES // dtype.nbytes
        room = self.room(rows * tp.ALIGN_BYTES, name)
        return Held(room, self._rooms[room].name, rows, 1, dtype, pitch, rows, s.Const(rows), s.Const(1))

    def grown(self, held: Held, rows: int) -> Held:
        """Return the same value with so many stored rows; its room gets as large where it is smaller."""
        end = held.offset + rows * held.pitch * held.dtype.nbytes
        room = self._rooms[held.room]
        self._rooms[held.room] = replace(room, size_bytes=max(room.size_bytes, -(-end // tp.ALIGN_BYTES) * tp.ALIGN_BYTES))
        return replace(held, stored_rows=rows)

    def like(self, held: Held, name: str, dtype: DType | None = None) -> Held:
        """Return a value of the same shape and valid part in a room of its own."""
        return self.hold(held.rows, held.cols, dtype or held.dtype, name).part(held.valid_rows, held.valid_cols)

    # ---- tiles: views of rooms ----

    def flat(self, held: Held) -> int:
        """Return the tile that most instructions handle: row-major, and one row for a value of one column."""
        if held.is_column:
            return self.tile(held, tp.Form.ROWS, 1, held.stored_rows, held.valid_cols, held.valid_rows, "row")
        return self.tile(held, tp.Form.ROWS, held.stored_rows, held.pitch, held.valid_rows, held.valid_cols)

    def column(self, held: Held) -> int:
        """Return the tile of a value of one column as reductions and expansions of rows have it."""
        assert held.is_column
        return self.tile(held, tp.Form.COLUMN, held.stored_rows, 1, held.valid_rows, held.valid_cols, "col")

    def tile(self, held: Held, form: tp.Form, rows: int, cols: int, valid_rows: s.Scalar, valid_cols: s.Scalar, kind: str = "") -> int:
        """Return the id of a tile that sees the room in some form; the same view is the same tile."""
        valid_rows, valid_cols = self.named(valid_rows, "rows"), self.named(valid_cols, "cols")
        key = (held.room, held.offset, held.dtype, form, rows, cols, valid_rows, valid_cols)
        if key not in self._tiles:
            name = self._fresh(f"{held.name}_{kind}" if kind else held.name, again=not kind)
            tile = tp.Tile(len(self._tiles), name, held.room, held.dtype, rows, cols, form, valid_rows, valid_cols, held.offset)
            self._tiles[key] = tile
            self._by_id.append(tile)
        return self._tiles[key].id

    def sliding(self, held: Held, shift: s.Scalar) -> int:
        """Return the tile of a value that lies `shift` bytes further in its room, in this block only."""
        tile = self.flat(replace(held, name=f"{held.name}_at"))
        self._blocks[-1].append(tp.Declare(tile, shift=shift, span=self.span))
        self._declared[-1].add(tile)
        return tile

    # ---- steps ----

    def emit(self, name: str, *args: Operand, template: tuple[str, ...] = ()) -> None:
        """Add an instruction. What it does with a tile given by its id, the instruction table says.

        Raises: N103 at the statement's line for a dtype that the instruction does not take on this arch.
        """
        form = find_instruction(name).form(len(args)) or unreachable(f"{name} with {len(args)} operands")
        given = tuple(tp.TileArg(arg, operand.access) if isinstance(arg, int) else arg for operand, arg in zip(form, args, strict=True))
        for operand, arg in zip(form, given, strict=True):
            if isinstance(arg, tp.TileArg) and operand.kind in (Kind.DATA, Kind.EACH):
                self.require(name, self._by_id[arg.tile].dtype)
        self.add(tp.Instr(name, given, template, self.span))

    def require(self, name: str, dtype: DType) -> None:
        """Raise N103 at the statement's line for a dtype that an instruction does not take on this arch."""
        if not legal(name, dtype, self.arch.family):
            takes = find_instruction(name).dtypes(self.arch.family)
            raise NpuOpError(f"kernel `{self.kernel.name}`: {self.arch.name} does not run this on {dtype}", self.span,
                             expected=f"{name} on {print_dtypes(takes)}", found=str(dtype),
                             help="cast the operands first: pto.cast(x, DType.F32)")

    def number(self, value: s.Scalar | float, dtype: DType) -> tp.ScalarArg:
        """Return a number as an operand."""
        return tp.ScalarArg(self.scalar(value) if not isinstance(value, int | float) else s.Const(value), dtype)

    def add(self, step: tp.Step) -> None:
        """Add a step, after declaring the tiles that it uses for the first time in its block."""
        for use in tp.uses_of(step):
            self.declare(use.tile)
        self._blocks[-1].append(step)

    def declare(self, tile: int) -> None:
        """Declare a tile here, unless a block around has it."""
        if not any(tile in known for known in self._declared):
            self._declared[-1].add(tile)
            self._blocks[-1].append(tp.Declare(tile, span=self.span))

    @contextmanager
    def inside(self) -> Iterator[list[tp.Step]]:
        """Collect the steps of a block inside the current one."""
        self._blocks.append([])
        self._declared.append(set())
        self._lets.append({})
        yield self._blocks[-1]
        self._blocks.pop()
        self._declared.pop()
        self._lets.pop()

    @contextmanager
    def when(self, condition: s.Scalar) -> Iterator[None]:
        """Add what is emitted inside under a condition; as it stands where it surely holds, and not where it surely does not."""
        if isinstance(condition, s.Const) and condition.value:
            yield
            return
        with self.inside() as then:
            yield
        if then and not isinstance(condition, s.Const):
            self.add(tp.Branch(condition, tuple(then), span=self.span))

    def choose(self, condition: s.Scalar, then: list[tp.Step], other: list[tp.Step]) -> None:
        """Add one of two blocks, by a condition; as it stands where that is known."""
        if isinstance(condition, s.Const):
            for step in then if condition.value else other:
                self._blocks[-1].append(step)
                if isinstance(step, tp.Declare):
                    self._declared[-1].add(step.tile)
        else:
            self.add(tp.Branch(condition, tuple(then), tuple(other), span=self.span))

    @contextmanager
    def loop(self, name: str, stop: s.Scalar) -> Iterator[s.Var]:
        """Add a loop over range(stop) around what is emitted inside."""
        var = self.var(name)
        with self.inside() as body:
            yield var
        self.add(tp.Loop(var, s.Const(0), stop, s.Const(1), tuple(body), span=self.span))

    # ---- scalars ----

    def var(self, name: str) -> s.Var:
        """Return a new scalar variable."""
        return s.Var(self._fresh(name), next(self._var_ids))

    def scalar(self, value: s.Scalar) -> s.Scalar:
        """Return a scalar of the kernel with extents that are the same for every task put in."""
        def known(node: s.Scalar) -> s.Scalar | None:
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
        """Tell whether `value` >= `least` is known where the statement stands."""
        return nonnegative(s.sub(value, least), self.ranges, self.positive)

    def named(self, value: s.Scalar, name: str) -> s.Scalar:
        """Return a scalar without operations: what is computed gets a name in the current block."""
        if isinstance(value, s.Const | s.Var | s.ParamScalar | s.ParamExtent):
            return value
        for known in self._lets:
            if value in known:
                return known[value]
        var = self.var(name)
        self._lets[-1][value] = var
        self._blocks[-1].append(tp.Let(var, value, self.span))
        return var

    # ---- values ----

    def held(self, value: k.Value) -> Held:
        """Return where a value lies."""
        return self.values[value.id]

    def result(self, stmt: k.Compute, dtype: DType | None = None) -> Held:
        """Return where the result of an operation is made, in the dtype that it is computed in: its target, or a room of its own."""
        type = stmt.result.type
        target = self.target
        if target is not None and (target.type, target.valid_rows) == (type.with_dtype(dtype or type.dtype), self.valid_rows(type.rows)):
            return target
        return self.hold(type.rows, type.cols, dtype or type.dtype, stmt.result.name or f"{stmt.op.rstrip('_')}_{stmt.result.id}")

    def _fresh(self, name: str, again: bool = False) -> str:
        """Return the name, with a number where another thing has it; `again`: a room's own name may serve its tile."""
        if again and not any(tile.name == name for tile in self._tiles.values()):
            return name
        found = next(text for n in itertools.count() if (text := f"{name}_{n}" if n else name) not in self._names)
        self._names.add(found)
        return found
