"""Check tensors, and the steps that lead to a part of them, in a workload that was read as data."""

from __future__ import annotations

import math

from pto_wsp.frontend.data.refuse import check_text, refuse
from pto_wsp.types import scalar as s
from pto_wsp.types.brackets import cut, pick
from pto_wsp.types.layout import TensorRef
from pto_wsp.types.symbolic import Symbolic
from pto_wsp.types.tensor import MAX_RANK, Tensor, TensorView
from pto_wsp.types.view import Clip, Cut, Permute, Pick, Reshape, View, place_of

_MOST = 1 << 62


class Tensors:
    """The tensors of a workload by id, each as it was seen first."""

    def __init__(self) -> None:
        self._known: dict[int, TensorRef] = {}

    def check(self, ref: TensorRef) -> None:
        """Raise W102 for a tensor that no array is like, or that is another one elsewhere in the workload."""
        known = self._known.get(ref.id)
        if known is None:
            check_tensor(ref)
            self._known[ref.id] = ref
        elif (known.shape, known.dtype, known.layout, known.name) != (ref.shape, ref.dtype, ref.layout, ref.name):
            refuse(f"two tensors with the id {ref.id}: {known!r:.200} and {ref!r:.200}")


def check_tensor(ref: TensorRef) -> None:
    """Raise W102 for a tensor that no array is like."""
    check_text("a tensor's name", ref.name)
    strides = ref.layout.strides
    if len(ref.shape) > MAX_RANK or len(strides) != len(ref.shape):
        refuse(f"tensor {ref.shown!r:.60} of shape {ref.shape} and strides {strides}",
               expected=f"at most {MAX_RANK} dimensions, a stride each")
    if any(n < 0 for n in ref.shape) or math.prod(ref.shape) >= _MOST or any(abs(n) >= _MOST for n in strides):
        refuse(f"tensor {ref.shown!r:.60} of shape {ref.shape} and strides {strides}", expected="extents >= 0 that fit a memory")
    if len(set(ref.contracts)) < len(ref.contracts):
        refuse(f"tensor {ref.shown!r:.60} with a promise twice")


def check_view(view: View) -> None:
    """Raise W102 for steps that indexing does not give; what indexing itself refuses raises as it does there."""
    made = View(view.tensor)
    for position, step in enumerate(view.steps):
        rank = len(place_of(made).dims)
        match step:
            case Pick(dim, index) if 0 <= dim < rank:
                made = pick(made, dim, Symbolic(index))
            case Cut(dim, start, stop, by) if 0 <= dim < rank:
                made = cut(made, dim, slice(Symbolic(start), Symbolic(stop), by))
            case Clip(limits):
                made = _handled(made).clip(*limits).view
            case Reshape(shape):
                made = _handled(made).reshape(*shape).view
            case Permute(order) if sorted(order) == list(range(rank)):
                made = View(made.tensor, (*made.steps, step))
            case _:
                refuse(f"{step!r:.80} of a view with {rank} dimensions")
        if len(made.steps) != position + 1 or made.steps[-1] != step:
            refuse(f"{step!r:.200}", expected="a step that changes the view, as indexing writes it")


def _handled(view: View) -> TensorView:
    return TensorView(Tensor(shape=view.tensor.shape, dtype=view.tensor.dtype), view)


def check_place(node: s.Element | s.DimOf | s.StrideOf) -> None:
    """Raise W102 for an element without one index a dimension, and for an extent or stride of a dimension that there is not."""
    match node:
        case s.Element(tensor, index):
            if len(index) != tensor.rank or not all(s.scalar_dtype(each).is_integer for each in index):
                refuse(f"an element of {tensor.shown!r:.60} with the indices {index!r:.200}", expected="one whole number a dimension")
        case s.DimOf(tensor, dim) | s.StrideOf(tensor, dim):
            if not 0 <= dim < tensor.rank:
                refuse(f"dimension {dim} of {tensor.shown!r:.60}", expected=f"0 .. {tensor.rank - 1}")
