"""Replace writes to parts of buffers by whole ones, which every core has.

    acc[2 : 4, 0 : 8] = %1      →      %2 = read acc
                                       %3 = slice %2, rows=(0, 2, 1), cols=(0, 8, 1)
                                       %4 = slice %2, rows=(4, 4, 1), cols=(0, 8, 1)
                                       %5 = concat %3, %1, %4, axis=0
                                       acc[:] = %5
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pto_wsp.errors import NpuOpError
from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.kernel_walk import Body, map_bodies, walk
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ops.entries.movement import concat, slice_
from pto_wsp.ops.table import find
from pto_wsp.passes.kernel.context import KernelContext, fresh_ids


def widen_part_writes(kernel: k.Kernel, context: KernelContext) -> k.Kernel:
    """Return the kernel with each write to a part of a buffer as a write of the whole buffer.

    Raises: N103 at the line of a part that starts where only the run tells.
    """
    ids = fresh_ids(kernel)

    def widened(body: Body) -> Body:
        out: list[k.Stmt] = []
        for stmt in body:
            out += _widened(kernel, stmt, ids) if isinstance(stmt, k.WritePart) else (map_bodies(stmt, widened),)
        return tuple(out)

    return replace(kernel, body=widened(kernel.body))


def verify_after_widen_part_writes(kernel: k.Kernel) -> None:
    """No part of a buffer is written."""
    assert not any(isinstance(stmt, k.WritePart) for stmt in walk(kernel.body))


def _widened(kernel: k.Kernel, stmt: k.WritePart, ids: Iterator[int]) -> Iterator[k.Stmt]:
    if not (isinstance(stmt.row, s.Const) and isinstance(stmt.col, s.Const)):
        raise NpuOpError(f"kernel `{kernel.name}`: a part of a buffer starts where only the run tells", stmt.span,
                         expected="constant starts", found=f"[{print_scalar(stmt.row)}, {print_scalar(stmt.col)}] of `{stmt.buffer.name}`",
                         help="store each part to an Out Tensor parameter: pto.store(out, value, (row, col))")
    whole, (rows, cols) = stmt.buffer.type, stmt.value.type.shape
    row, col = int(stmt.row.value), int(stmt.col.value)
    old = k.Value(next(ids), whole)
    yield k.Read(old, stmt.buffer, stmt.span)

    def made(op: str, operands: tuple[k.Value, ...], attrs: tuple[tuple[str, k.Attr], ...]) -> k.Compute:
        return k.Compute(k.Value(next(ids), find(op).infer([o.type for o in operands], attrs)), op, operands, attrs, stmt.span)

    value = stmt.value
    for axis, (first, count, extent) in ((1, (col, cols, whole.cols)), (0, (row, rows, whole.rows))):
        around: list[k.Value] = []
        for start, end in ((0, first), (first + count, extent)):
            if start < end:
                along, across = (start, end - start, 1), (0, whole.cols, 1) if axis == 0 else (row, rows, 1)
                beside = made(slice_.name, (old,), (("rows", along if axis == 0 else across), ("cols", across if axis == 0 else along)))
                yield beside
                around.append(beside.result)
            if start == 0:
                around.append(value)
        if len(around) > 1:
            joined = made(concat.name, tuple(around), (("axis", axis),))
            yield joined
            value = joined.result
    yield k.Write(stmt.buffer, value, stmt.span)
