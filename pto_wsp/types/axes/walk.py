"""How a loop walks anything that is an axis."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from pto_wsp.errors import WorkloadStructureError
from pto_wsp.source import here
from pto_wsp.types import scalar as s
from pto_wsp.types.axes.dense import DenseAxis, DenseDyn, DenseOf, extent_of, whole
from pto_wsp.types.axes.ragged import Ragged, RaggedRow, RaggedRows
from pto_wsp.types.axes.sparse import Sparse, SparseRow
from pto_wsp.types.scalar_text import print_scalar
from pto_wsp.types.symbolic import Symbolic, as_scalar
from pto_wsp.types.tensor import Tensor
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Walk:
    """What a loop does with an axis: start, stop, step, and how the axis is called in types. `source` finds its name.

    `tensors` are the axis's own, with what each is for in `roles`; `rows` is how many rows it has in all; `leads_to`: the loop walks
    positions of it, and the user's variable is what stands there.
    """

    start: s.Scalar
    stop: s.Scalar
    step: s.Scalar
    label: str
    source: object = field(compare=False, repr=False, default=None)
    tensors: tuple[Tensor, ...] = ()
    roles: tuple[str, ...] = ()
    rows: s.Scalar | None = None
    leads_to: Tensor | None = None


def walk_of(axis: object) -> Walk:
    """Return how to loop over anything that is an axis.

    Raises: W102 for what is none.
    """
    zero, one = s.Const(0), s.Const(1)
    match axis:
        case DenseAxis(extent):
            return Walk(zero, s.Const(extent), one, repr(axis), axis)
        case DenseDyn():
            return Walk(zero, axis.extent, one, "DenseDyn", axis)
        case RaggedRow(ragged, extent):
            return Walk(zero, extent, one, "Ragged", ragged, ragged.tensors, ragged.roles, extent_of(ragged.first))
        case SparseRow(sparse, start, stop):
            return Walk(start, stop, one, "Sparse", sparse, sparse.tensors, sparse.roles, extent_of(sparse.outer), sparse.indices)
        case range():
            if axis.step < 1:
                raise WorkloadStructureError("a loop's range goes upwards", here(), found=repr(axis))
            if axis.start < -(1 << 63) or max(axis.start, axis.stop) - 1 + axis.step >= 1 << 63:
                raise WorkloadStructureError("a loop's range does not fit 64 bits", here(), found=repr(axis),
                                             expected="a start from -2**63 on, and a last number that a step leads from below 2**63")
            return Walk(s.Const(axis.start), s.Const(max(axis.start, axis.stop)), s.Const(axis.step), repr(axis), axis)
        case bool() | float() | str():
            pass
        case int() | np.integer():
            return Walk(zero, s.Const(whole(int(axis), "P(n)")), one, f"Dense[{int(axis)}]", axis)
        case Symbolic():
            if s.scalar_dtype(axis.node).is_integer:
                return Walk(zero, as_scalar(axis), one, print_scalar(axis.node), axis)
        case RaggedRows():
            raise WorkloadStructureError("rows of rows are no axis yet", here(), found=repr(axis),
                                         help="give one index more, e.g. rows[b][t]")
        case Ragged():
            raise WorkloadStructureError("a Ragged axis is walked row by row", here(), found=repr(axis),
                                         help="loop over the outer axis first: for b in P(batch): for i in P(ragged[b])")
        case Sparse():
            raise WorkloadStructureError("a row of a Sparse is an axis, the whole is two", here(), found=repr(axis),
                                         help="for b, e in P(sparse), or for b in P(batch): for e in P(sparse[b])")
        case DenseOf():
            raise WorkloadStructureError("the axis is not made yet", here(), expected="Dense[N]()", found=repr(axis))
        case _:
            pass
    raise WorkloadStructureError("this is not an axis", here(), found=f"{type(axis).__name__}: {axis!r:.60}",
                                 expected="Dense[N](), DenseDyn(n), a row of a Ragged or Sparse, a range, a whole number, or a scalar "
                                          "expression")
