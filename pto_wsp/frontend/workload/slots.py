"""Slots: 64-bit numbers that the orchestrator keeps from one statement to the next.

>>> slot_load_u64(0, counts, b, 0)               # slot 0 holds counts[b, 0]
>>> with P.when(slot_u64(0) > 4): ...
"""

from __future__ import annotations

import numpy as np

from pto_wsp.errors import ArgumentKindError, WorkloadStructureError
from pto_wsp.expr import workload as wl
from pto_wsp.frontend.workload.trace import current_trace
from pto_wsp.source import here, user_frame
from pto_wsp.types import scalar as s
from pto_wsp.types.scalar_text import print_scalar
from pto_wsp.types.symbolic import Symbolic, as_scalar
from pto_wsp.types.tensor import TensorView

N_SLOTS = 64


def slot_set_u64(slot: int, value: object) -> None:
    """Let a slot hold a number from here on, in program order: a scalar expression, a tensor's element or a Python number.

    Raises: W102 for a slot that is none of 0 .. 63, T205 for what is no whole number; K105 outside a workload.
    """
    trace = current_trace("slot_set_u64(...)")
    frame, span = user_frame(), here()
    number = _number(slot, "slot_set_u64")
    node = trace.use(as_scalar(value), frame, span)
    if s.scalar_dtype(node).is_float:
        raise ArgumentKindError("a slot holds a whole number", span, found=f"a float: {print_scalar(node)}")
    trace.append(wl.SetSlot(number, node, span))


def slot_load_u64(slot: int, view: TensorView, row: object = 0, col: object = 0) -> None:
    """Let a slot hold the element at `row` and `col` of an integer view of two dimensions, or of one, which is a single row.

    Raises: as `slot_set_u64`; W102 for a view of another rank.
    """
    if not isinstance(view, TensorView) or view.rank not in (1, 2):
        found = f"{view.rank} dimensions" if isinstance(view, TensorView) else f"{type(view).__name__}: {view!r:.60}"
        raise WorkloadStructureError("slot_load_u64 reads a view of one or two dimensions", here(), found=found,
                                     help="slot_set_u64(slot, X.item(i, j, k)) takes any one element")
    if view.rank == 1 and as_scalar(row) != s.Const(0):
        raise WorkloadStructureError("slot_load_u64: a view of one dimension is a single row", here(), expected="row 0",
                                     found=f"row {row!r}")
    slot_set_u64(slot, view.item(col) if view.rank == 1 else view.item(row, col))


def slot_u64(slot: int) -> Symbolic:
    """Return what a slot holds, as a scalar: that of the place where it is used. A slot that was never set holds 0.

    Raises: W102 for a slot that is none of 0 .. 63.
    """
    return Symbolic(s.SlotValue(_number(slot, "slot_u64")))


def _number(slot: object, where: str) -> int:
    if isinstance(slot, bool) or not isinstance(slot, int | np.integer) or not 0 <= int(slot) < N_SLOTS:
        raise WorkloadStructureError(f"{where}: there is no such slot", here(), expected=f"a number, 0 .. {N_SLOTS - 1}", found=repr(slot))
    return int(slot)
