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
from pto_wsp.plan.kernel.values import use_counts
from pto_wsp.plan.npu.model import NpuKernel
from pto_wsp.plan.npu.select.builder import Builder
from pto_wsp.plan.npu.select.carried import carried, converted
from pto_wsp.plan.npu.select.held import Held
from pto_wsp.plan.npu.select.memory import load, store
from pto_wsp.plan.npu.select.rules.registry import RULES
from pto_wsp.plan.npu.select.state import state_of
from pto_wsp.types import scalar as s


def select_vector(use: NpuKernel, arch: Arch) -> tp.TileProgram:
    """Return the tile program of a kernel for vector cores.

    Raises: N103 at the line of an op that the arch has no instruction for.
    """
    b = Builder(use, arch)
    _leave_early(b)
    _Selection(b).body(use.kernel.body)
    return b.program()


def _leave_early(b: Builder) -> None:
    """End the kernel at once where all that it would write is empty."""
    body = b.kernel.body
    if any(isinstance(stmt, k.Print) for stmt in walk(body)):
        return
    written = dict.fromkeys(stmt.param for stmt in walk(body) if isinstance(stmt, k.Store | k.Scatter))
    condition: s.Scalar = s.Const(True)
    for param in written:
        empty: s.Scalar = s.Const(False)
        for dim in (0, 1):
            extent = b.scalar(s.ParamExtent(param, dim))
            if not isinstance(extent, s.Const):
                none = s.binary(s.Op.EQ, extent, s.Const(0))
                empty = none if empty == s.Const(False) else s.binary(s.Op.OR, empty, none)
        if empty == s.Const(False):
            return
        condition = empty if condition == s.Const(True) else s.binary(s.Op.AND, condition, empty)
    if condition != s.Const(True):
        b.add(tp.Leave(condition, b.span))


class _Selection:
    """Selects one kernel, body by body."""

    def __init__(self, b: Builder) -> None:
        self.b = b
        self.uses = use_counts(b.kernel.body)
        self.state = state_of(b.kernel)

    def body(self, stmts: Sequence[k.Stmt]) -> None:
        """Add the steps of a body to the current block."""
        for stmt in stmts:
            if not isinstance(stmt, k.Rows | k.Columns):
                self.b.span = stmt.span
            self._statement(stmt)

    def _statement(self, stmt: k.Stmt) -> None:
        b = self.b
        match stmt:
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
                b.values[result.id] = self._copied(held, result.name or f"{buffer.name}_then") if result.id in self.state.copied else held
            case k.Write(buffer, value):
                into, held = b.buffers[buffer.id], b.held(value)
                if held.room != into.room:
                    b.emit("TMOV", b.flat(into), b.flat(held))
            case k.For():
                with b.inside() as body:
                    self.body(stmt.body)
                b.span = stmt.span
                start, stop, step = (b.scalar(bound) for bound in (stmt.start, stmt.stop, stmt.step))
                b.add(tp.Loop(stmt.var, start, stop, step, tuple(body), stmt.span))
            case k.If():
                with b.inside() as then:
                    self.body(stmt.then)
                with b.inside() as other:
                    self.body(stmt.other)
                b.add(tp.Branch(b.scalar(stmt.condition), tuple(then), tuple(other), stmt.span))
            case k.Gather() | k.Scatter() | k.Print():
                raise NpuOpError(f"kernel `{b.kernel.name}`: `pto.{type(stmt).__name__.lower()}` does not run on vector cores", stmt.span,
                                 expected="an op with tile instructions", found=f"{type(stmt).__name__.lower()} for {b.arch.name}",
                                 help="compile for cpu_sim, or leave it out of kernels for the NPU")
            case k.Accumulate() | k.Check() | k.Rows() | k.Columns():
                unreachable(f"{type(stmt).__name__} in a kernel for vector cores")
            case _:
                assert_never(stmt)

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
        held = converted(b, held, carried(stmt.result.type.dtype))
        kept = {other.room for other in b.buffers.values()} - ({into.room} if into is not None else set())
        return self._copied(held, f"{held.name}_then") if held.room in kept else held

    def _copied(self, held: Held, name: str) -> Held:
        out = self.b.like(held, name)
        self.b.emit("TMOV", self.b.flat(out), self.b.flat(held))
        return out
