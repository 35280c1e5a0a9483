"""Tensors of more dimensions than the device runtime has, with their leading ones as one.

    X [2, 3, 4, 5, 16, 16], X[a, b, c, d]      →      X [6, 4, 5, 16, 16], X[a * 3 + b, c, d]

Tasks must take one position of each dimension that goes. Arrays that are bound later have as many elements in those.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import assert_never

from pto_wsp.arch.isa.runtime import limit
from pto_wsp.errors import DeviceLimitError, raise_all
from pto_wsp.expr.rewrite import rewrite
from pto_wsp.plan.model import Check, CheckKind, Place, Submit, TaskPlan, TensorSlot
from pto_wsp.plan.walk import map_submits
from pto_wsp.source import Span
from pto_wsp.types import scalar as s
from pto_wsp.types.layout import Layout, TensorRef
from pto_wsp.types.view import Clip, Cut, Permute, Pick, Reshape, Step, View, print_view

MAX_DIMS = limit("dims")


def merge_dims(plan: TaskPlan) -> TaskPlan:
    """Return the plan with tensors of at most five dimensions.

    Raises: N101 for a view that takes more than one position of a dimension that goes.
    """
    merged = {slot.ref.id: _merged(slot.ref) for slot in plan.tensors if slot.ref.rank > MAX_DIMS}
    if not merged:
        return plan
    errors: list[DeviceLimitError] = []

    def task(one: Submit) -> Submit:
        places: list[Place] = []
        checks: list[Check] = []
        for place in one.places:
            if place.view.tensor.id in merged:
                try:
                    place = replace(place, view=_merged_view(place.view, merged[place.view.tensor.id], one.span))
                except DeviceLimitError as error:
                    errors.append(error)
                whole = place.view.tensor
                checks.append(Check(CheckKind.TILE, s.DimOf(whole, 0), s.Const(whole.shape[0]), s.Const(whole.shape[0]), whole.shown,
                                    span=one.span))
            places.append(place)
        return replace(one, places=tuple(places), checks=(*one.checks, *dict.fromkeys(checks)))

    changed = map_submits(plan, task)
    raise_all(errors)
    return rewrite(changed, _changer(merged))


def _merged(ref: TensorRef) -> TensorRef:
    """Return a tensor with its leading dimensions as one. It lies contiguously on a device."""
    n_leading = ref.rank - MAX_DIMS + 1
    shape = (math.prod(ref.shape[:n_leading]), *ref.shape[n_leading:])
    return replace(ref, shape=shape, layout=Layout.contiguous(shape))


def _merged_view(view: View, whole: TensorRef, span: Span) -> View:
    return View(whole, tuple(_steps(view, whole, span)))


def _steps(view: View, whole: TensorRef, span: Span) -> Iterator[Step]:
    """Yield the steps of a view on the merged tensor: one position of the leading dimensions where the last of them is taken."""
    shape = view.tensor.shape
    n_leading = view.tensor.rank - whole.rank + 1
    left = list(range(n_leading))                # leading dimensions that are still there, in front of all others
    index: s.Scalar = s.Const(0)
    for step in view.steps:
        if not left:
            yield step
            continue
        match step:
            case Pick(dim, position) if dim < len(left):
                index = s.add(index, s.mul(position, s.Const(math.prod(shape[left.pop(dim) + 1:n_leading]))))
                if not left:
                    yield Pick(0, index)
            case Pick(dim) | Cut(dim) if dim >= len(left):
                yield replace(step, dim=dim - len(left) + 1)
            case Pick() | Cut() | Clip() | Permute() | Reshape():
                break
            case _:
                assert_never(step)
    if left:
        raise DeviceLimitError(f"`{print_view(view)}` has too many dimensions for the device runtime", span,
                               expected=f"at most {MAX_DIMS}, or one position of each of the first {n_leading} of them",
                               found=f"{view.tensor.rank}: {list(shape)}",
                               help="wrap the array with its leading dimensions as one: Tensor(array.reshape(-1, ...))")


def _changer(merged: Mapping[int, TensorRef]) -> Callable[[object], object | None]:
    """Return what puts the merged tensors into slots and scalars."""
    def old(ref: TensorRef) -> bool:
        return ref.id in merged and ref.rank != merged[ref.id].rank

    def change(node: object) -> object | None:
        match node:
            case TensorSlot(ref) if old(ref):
                return replace(node, ref=merged[ref.id])
            case s.DimOf(ref, dim) if old(ref):
                n_leading = ref.rank - MAX_DIMS + 1
                return s.Const(ref.shape[dim]) if dim < n_leading else s.DimOf(merged[ref.id], dim - n_leading + 1)
            case s.StrideOf(ref, dim) if old(ref):
                n_leading = ref.rank - MAX_DIMS + 1
                inside = math.prod(ref.shape[dim + 1:n_leading])
                stride = s.StrideOf(merged[ref.id], max(dim - n_leading + 1, 0))
                return s.mul(stride, s.Const(inside)) if dim < n_leading else stride
            case s.Element(ref, index) if old(ref):
                n_leading = ref.rank - MAX_DIMS + 1
                first: s.Scalar = s.Const(0)
                for dim, position in enumerate(index[:n_leading]):
                    first = s.add(first, s.mul(position, s.Const(math.prod(ref.shape[dim + 1:n_leading]))))
                return s.Element(merged[ref.id], (first, *index[n_leading:]))
            case _:
                return None

    return change
