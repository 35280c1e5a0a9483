"""Insert a check after every float result, for `check_finite=True`.

    %2 = log %0, %1          →      %2 = log %0, %1; check %2 of log, from %0, %1

The pass runs just before loops over rows are formed, so it checks the statements that run, and their numbers stay the same. A result is at
fault if it is NaN and no source element is NaN, or if it is infinite and all source elements are finite. A load is at fault if it reads
NaN. What no store, print or branch depends on, such as the rest of a tile that is bound to fewer rows, is not looked at.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce

from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel_walk import Body, map_bodies, walk
from pto_wsp.ops.entries.matmul import matmul
from pto_wsp.ops.spec import ColReduce, Convert, Elementwise, Expand, Matmul, RowReduce
from pto_wsp.ops.table import find
from pto_wsp.passes.kernel.context import KernelContext, fresh_ids
from pto_wsp.passes.kernel.kept import Extents, Key, kept_parts
from pto_wsp.passes.kernel.passes import KERNEL, PRODUCT_PASSES, ROW_PASSES, TILE_PASSES, KernelPass
from pto_wsp.passes.kernel.products import SHORT_ROWS
from pto_wsp.passes.pipeline import Pass
from pto_wsp.source import Span

FIRST_CHECK = 1 << 20     # a kernel's checks are numbered from here, past its guards


def check_finite(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with a check after every statement that computes floats."""
    return replace(kernel, body=_Checks(kernel).body(kernel.body))


CHECKED_PASSES: tuple[KernelPass, ...] = (
    *TILE_PASSES,
    *PRODUCT_PASSES,
    Pass("check_finite", KERNEL, check_finite,    # floats are checked where they are computed
         required="check_finite=True asks for it"),
    *ROW_PASSES,
)


class _Checks:
    """Numbers checks in program order; the values that checks read have new ids."""

    def __init__(self, kernel: k.Kernel) -> None:
        self.numbers = itertools.count(FIRST_CHECK)
        self.ids = fresh_ids(kernel)
        self.kept = kept_parts(kernel)
        self.variables: frozenset[s.Scalar] = frozenset()      # of the loops around

    def body(self, body: Body) -> Body:
        """Return a body with its checks."""
        return tuple(checked for stmt in body for checked in self._statement(stmt))

    def _inside(self, loop: k.For) -> k.Stmt:
        outside, self.variables = self.variables, self.variables | {loop.var}
        made = map_bodies(loop, self.body)
        self.variables = outside
        return made

    def _statement(self, stmt: k.Stmt) -> Iterator[k.Stmt]:
        if isinstance(stmt, k.Compute | k.Accumulate):      # a check reads the rows that a product alone may leave out
            stmt = replace(stmt, attrs=tuple(attr for attr in stmt.attrs if attr[0] != SHORT_ROWS))
        match stmt:
            case k.Compute(result, op, operands) if result.type.dtype.is_real:
                yield stmt
                yield self._check(result, op, _sources(stmt.op, operands, stmt.attrs), stmt.span)
            case k.Accumulate(buffer, lhs, rhs, attrs) if buffer.type.dtype.is_float:
                before, after = self._value(buffer), self._value(buffer)
                yield k.Read(before, buffer, stmt.span)
                yield stmt
                yield k.Read(after, buffer, stmt.span)
                yield self._check(after, matmul.name, _sources(matmul.name, (lhs, rhs, before), attrs), stmt.span, ("buffer", buffer.id))
            case k.Load(result, param) if result.type.dtype.is_real:
                yield stmt
                if not math.isnan(stmt.fill):    # a NaN fill is indistinguishable from a loaded NaN
                    yield self._check(result, f"load {param}", (_infinities(result.type.dtype),), stmt.span)
            case k.Gather(result, param) if result.type.dtype.is_real:
                yield stmt
                if not math.isnan(stmt.fill):
                    yield self._check(result, f"load {param}", (_infinities(result.type.dtype),), stmt.span)
            case k.For():
                yield self._inside(stmt)
            case _:
                yield map_bodies(stmt, self.body)

    def _check(self, value: k.Value, what: str, sources: tuple[k.Source, ...], span: Span, of: Key | None = None) -> k.FiniteCheck:
        """Return the check of a value; `of`: what the value is of, where it is a buffer's."""
        rows, cols = map(self._largest, self.kept.get(of or ("value", value.id), (None, None)))
        return k.FiniteCheck(next(self.numbers), value, what, sources, rows, cols, span)

    def _largest(self, extents: Extents) -> s.Scalar | None:
        """Return the largest of extents; None, for the whole, where one of them is not known at this place."""
        known = [extent for extent in extents or () if all(isinstance(leaf, s.ParamScalar | s.ParamExtent) or leaf in self.variables
                                                            for leaf in s.leaves(extent))]
        return reduce(s.maximum, sorted(known, key=s.print_scalar)) if known and len(known) == len(extents or ()) else None

    def _value(self, buffer: k.Buffer) -> k.Value:
        return k.Value(next(self.ids), buffer.type)


def checks_of(kernel: k.Kernel) -> dict[int, k.FiniteCheck]:
    """Return the checks of a kernel by number."""
    return {stmt.number: stmt for stmt in walk(kernel.body) if isinstance(stmt, k.FiniteCheck)}


def _infinities(dtype: DType) -> k.Source:
    """Return a source that excuses infinities in memory, which serve as masks."""
    return k.Source(k.ScalarOperand(s.Const(math.inf), dtype), k.Reach.ELEMENT)


def _sources(op: str, operands: tuple[k.Operand, ...], attrs: tuple[tuple[str, k.Attr], ...]) -> tuple[k.Source, ...]:
    """Return which elements of which operands determine an element of the result; only float operands can excuse a fault."""
    match find(op):
        case Elementwise() | Convert() | Expand():
            reaches = [k.Reach.ELEMENT] * len(operands)
        case RowReduce():
            reaches = [k.Reach.ROW]
        case ColReduce():
            reaches = [k.Reach.COLUMN]
        case Matmul():
            turned = dict(attrs)
            reaches = [k.Reach.TURNED_ROW if turned.get("transpose_a") else k.Reach.ROW,
                       k.Reach.TURNED_COLUMN if turned.get("transpose_b") else k.Reach.COLUMN, k.Reach.ELEMENT]
        case _:
            reaches = [k.Reach.ALL] * len(operands)
    return tuple(k.Source(operand, reach) for operand, reach in zip(operands, reaches, strict=False) if _dtype(operand).is_real)


def _dtype(operand: k.Operand) -> DType:
    return operand.type.dtype if isinstance(operand, k.Value) else operand.dtype
