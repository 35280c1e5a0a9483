"""Selection for vector cores: kernel IR to a tile program, statement by statement.

>>> program = select_vector(use, builtin_arch("ascend_910b"))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from pto_wsp.arch.model import Arch
from pto_wsp.errors import NpuOpError, unreachable
from pto_wsp.expr import kernel as k
from pto_wsp.expr import tile_program as tp
from pto_wsp.expr.kernel_walk import walk
from pto_wsp.ops.table import find
from pto_wsp.plan.kernel.values import use_counts
from pto_wsp.plan.npu.model import NpuKernel
from pto_wsp.plan.npu.select.builder import Builder, Rows
from pto_wsp.plan.npu.select.carried import carried, settled
from pto_wsp.plan.npu.select.facts.limit import keeps_rows, whole_values
from pto_wsp.plan.npu.select.facts.state import state_of
from pto_wsp.plan.npu.select.held import Held
from pto_wsp.plan.npu.select.layout.copies import copied, copy
from pto_wsp.plan.npu.select.moves.memory import load, store
from pto_wsp.plan.npu.select.moves.piece import valid_part
from pto_wsp.plan.npu.select.moves.prove import turns_of
from pto_wsp.plan.npu.select.moves.rows import gather, scatter
from pto_wsp.plan.npu.select.refusal import check_statement
from pto_wsp.plan.npu.select.rules.elements.masks import packed, packed_masks
from pto_wsp.plan.npu.select.rules.registry import RULES, WRAPPED
from pto_wsp.plan.npu.select.tidy import tidy
from pto_wsp.types import scalar as s


def select_vector(use: NpuKernel, arch: Arch) -> tp.TileProgram:
    """Return the tile program of a kernel for vector cores.

    Raises: N103 at the line of an op that the arch has no instruction for.
    """
    b = Builder(use, arch)
    _Selection(b, leave_early(b)).body(use.kernel.body)
    return tidy(b.program())


def leave_early(b: Builder) -> Rows | None:
    """End the kernel at once where all that it would write is empty; return the rows that outputs have where they all have as many."""
    body = tuple(walk(b.kernel.body))
    conditions: dict[s.Scalar, None] = {}
    written = dict.fromkeys(stmt.param for stmt in body if isinstance(stmt, k.Store | k.Scatter))
    for param in written:
        unknown = [extent for dim in (0, 1) if not isinstance(extent := b.scalar(s.ParamExtent(param, dim)), s.Const)]
        empty = [s.binary(s.Op.EQ, extent, s.Const(0)) for extent in unknown]
        if not empty:
            return None
        conditions[empty[0] if len(empty) == 1 else s.binary(s.Op.OR, *empty)] = None
    if not conditions:
        return None
    first, *others = conditions
    for other in others:
        first = s.binary(s.Op.AND, first, other)
    b.add(tp.Leave(first, b.span))
    if others:
        return None
    b.positive.update(unknown)
    return _rows_of_stores(b, [stmt for stmt in body if isinstance(stmt, k.Store | k.Scatter)])


def _rows_of_stores(b: Builder, stores: Sequence[k.Store | k.Scatter]) -> Rows | None:
    """Return the rows that stores have, where they all have equally many, at least one, and known only at run time."""
    found: set[tuple[int, s.Scalar]] = set()
    for stmt in stores:
        if isinstance(stmt, k.Scatter):
            return None
        found.add((stmt.value.type.rows, valid_part(b, stmt)[0]))
    most, valid = found.pop()
    if found or most == 1 or isinstance(valid, s.Const) or any(isinstance(leaf, s.Var) for leaf in s.leaves(valid)) \
            or not b.surely(valid, s.Const(1)):
        return None
    return Rows(most, b.named(valid, "rows"))


class _Selection:
    """Selects one kernel, body by body."""

    def __init__(self, b: Builder, rows: Rows | None) -> None:
        self.b = b
        self.rows = rows
        self.whole, self.whole_buffers = whole_values(b.kernel)
        self.uses = use_counts(b.kernel.body)
        self.packed = packed_masks(b.kernel)
        self.state = state_of(b.kernel)

    def body(self, stmts: Sequence[k.Stmt]) -> None:
        """Add the steps of a body to the current block."""
        for stmt in stmts:
            if not isinstance(stmt, k.Rows | k.Columns):
                self.b.span = stmt.span
            self._statement(stmt)

    def _statement(self, stmt: k.Stmt) -> None:
        b = self.b
        check_statement(b.kernel, stmt, b.arch)
        b.rows = self._rows_of(stmt)
        match stmt:
            case k.Compute() if stmt.result.id in self.packed:
                b.masks[stmt.result.id] = packed(b, stmt)
            case k.Compute():
                b.values[stmt.result.id] = self._computed(stmt)
            case k.Load():
                if self.uses[stmt.result.id]:   # else only its guard is left
                    b.values[stmt.result.id] = load(b, stmt)
            case k.Store():
                store(b, stmt)
            case k.Alloc():
                self._alloc(stmt)
            case k.Read(result, buffer):
                held = b.buffers[buffer.id]
                b.values[result.id] = copied(b, held, result.name or f"{buffer.name}_then") if result.id in self.state.copied else held
            case k.Write(buffer, value):
                into, held = b.buffers[buffer.id], b.held(value)
                if held.room != into.room:
                    copy(b, into, held.part(into.valid_rows, into.valid_cols))
            case k.For():
                start, stop, step = (b.scalar(bound) for bound in (stmt.start, stmt.stop, stmt.step))
                b.ranges[stmt.var] = turns_of(start, stop, step)
                with b.inside() as body:
                    self.body(stmt.body)
                b.span = stmt.span
                b.add(tp.Loop(stmt.var, start, stop, step, tuple(body), stmt.span))
            case k.If():
                with b.inside() as then:
                    self.body(stmt.then)
                with b.inside() as other:
                    self.body(stmt.other)
                b.add(tp.Branch(b.scalar(stmt.condition), tuple(then), tuple(other), stmt.span))
            case k.Gather():
                b.values[stmt.result.id] = gather(b, stmt)
            case k.Scatter():
                scatter(b, stmt)
            case k.Print():
                raise NpuOpError(f"kernel `{b.kernel.name}`: a vector core has nowhere to print to", stmt.span,
                                 expected="kernels without `pto.print`", found=f"`pto.print` for {b.arch.name}",
                                 help="take it out, or look at the value with target=\"cpu_sim\"")
            case k.Accumulate() | k.Check() | k.Rows() | k.Columns():
                unreachable(f"{type(stmt).__name__} in a kernel for vector cores")
            case _:
                assert_never(stmt)

    def _rows_of(self, stmt: k.Stmt) -> Rows | None:
        """Return the rows that a statement is about, None for all of its result."""
        match stmt:
            case k.Compute(result):
                return self.rows if result.id not in self.whole and keeps_rows(stmt) else None
            case k.Load(result) | k.Read(result):
                return self.rows if result.id not in self.whole else None
            case k.Alloc(buffer):
                return self.rows if buffer.id not in self.whole_buffers else None
            case _:
                return None

    def _alloc(self, stmt: k.Alloc) -> None:
        b, buffer = self.b, stmt.buffer
        if buffer.id not in b.buffers:
            b.buffers[buffer.id] = b.hold(buffer.type.rows, buffer.type.cols, carried(buffer.type.dtype), buffer.name)
        held = b.buffers[buffer.id]
        if stmt.init is not None:
            b.emit("TEXPANDS", b.flat(held), b.number(stmt.init, held.dtype))

    def _computed(self, stmt: k.Compute) -> Held:
        b = self.b
        rule = RULES.get(stmt.op)
        if rule is None:
            raise NpuOpError(f"kernel `{b.kernel.name}`: `pto.{stmt.op}` does not run on vector cores", stmt.span,
                             expected="an op with tile instructions", found=f"{stmt.op} for {b.arch.name}")
        buffer = self.state.direct.get(stmt.result.id)
        b.target = None if buffer is None else b.buffers[buffer.id]
        held = rule(b, stmt)
        into, b.target = b.target, None
        dtype = stmt.result.type.dtype
        held = settled(b, held, dtype, in_range=stmt.op in WRAPPED or dtype in find(stmt.op).keeps_range)
        kept = {other.room for other in b.buffers.values()} - ({into.room} if into is not None else set())
        return copied(b, held, f"{held.name}_then") if held.room in kept else held
