"""Find the dimensions of tensors whose declared extent is frozen into a plan: tasks reach all of it, and as much whatever a run binds.

>>> for i in P(3): twice[i](X[i * 4:].clip(4, 8), Y[i])       # X has 12 rows
>>> frozen_dims(plan)
frozenset({(0, 0)})

A longer array would be computed in part, in silence. An index is followed where it is made of numbers and of variables of loops between
numbers; a symbol, an element of a tensor or an extent in it means that a run says how far tasks reach.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isinf
from typing import TypeAlias

from pto_wsp.ir import scalar as s
from pto_wsp.ir.flow import Loop
from pto_wsp.ir.intervals import Interval, interval
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.ir.plan_walk import submits
from pto_wsp.ir.rewrite import nodes
from pto_wsp.ir.view import Clip, Cut, Permute, Pick, Reshape, View
from pto_wsp.values import dataclass

Range: TypeAlias = tuple[int, int]      # the least and the largest value


def frozen_dims(plan: TaskPlan) -> frozenset[tuple[int, int]]:
    """Return the tensor slots and dimensions of which tasks reach all rows that are declared, and never another row."""
    ranges = _loop_ranges(plan)
    ends: dict[tuple[int, int], int | None] = {}      # how far tasks reach; None: as far as a run says
    for submit in submits(plan):
        for place in submit.places:
            for dim, end in enumerate(_reach(place.view, ranges)):
                key = place.slot, dim
                before = ends.get(key, 0)
                ends[key] = None if end is None or before is None else max(before, end)
    return frozenset((slot, dim) for (slot, dim), end in ends.items()
                     if not plan.tensors[slot].scalars and end == plan.tensors[slot].ref.shape[dim])


def _loop_ranges(plan: TaskPlan) -> Mapping[s.Scalar, Interval]:
    """Return the values of each loop variable whose loop has bounds of numbers; outer loops come first."""
    ranges: dict[s.Scalar, Interval] = {}
    for loop in nodes(plan.body):
        if isinstance(loop, Loop) and loop.through is None:
            start, stop, step = (_range_of(bound, ranges) for bound in (loop.start, loop.stop, loop.step))
            if start is not None and stop is not None and step is not None and start[0] < stop[1]:
                ranges[loop.var] = start[0], stop[1] - 1 - (stop[1] - 1 - start[0]) % step[1]
    return ranges


def _range_of(node: s.Scalar, ranges: Mapping[s.Scalar, Interval]) -> Range | None:
    """Return the least and the largest value of a scalar; None where a run decides."""
    if not all(leaf in ranges for leaf in s.leaves(node)):
        return None
    least, greatest = interval(node, ranges.get)
    return None if isinf(least) or isinf(greatest) else (int(least), int(greatest))


@dataclass(slots=True)
class _ReachedDim:
    """A dimension of a view: the tensor's dimension (-1: several, reshaped), and begin, end and step of the view within that dimension.

    `end` None: the end of the array that a run binds; `begin` None: known only in a run.
    """

    dim: int
    begin: Range | None
    end: Range | None
    step: int


def _reach(view: View, ranges: Mapping[s.Scalar, Interval]) -> tuple[int | None, ...]:
    """Return, for each dimension of the tensor, one past the last position that a view may touch; None where a run decides."""
    rank = view.tensor.rank
    axes = [_ReachedDim(dim, (0, 0), None, 1) for dim in range(rank)]
    ends: list[int | None] = [None] * rank
    for step in view.steps:
        match step:
            case Pick(dim, index):
                axis, place = axes.pop(dim), _range_of(index, ranges)
                if axis.begin is not None and place is not None:
                    ends[axis.dim] = axis.begin[1] + place[1] * axis.step + 1
            case Cut(dim, start, stop, by):
                axis, first, last = axes[dim], _range_of(start, ranges), _range_of(stop, ranges)
                begin, end = (None if axis.begin is None or at is None else _moved(axis.begin, at, axis.step) for at in (first, last))
                axes[dim] = _ReachedDim(axis.dim, begin, end, axis.step * by)
            case Clip(limits):
                axes = [_clipped(axis, limit, view.tensor.shape[axis.dim]) for axis, limit in zip(axes, limits, strict=True)]
            case Permute(order):
                axes = [axes[k] for k in order]
            case Reshape(shape):
                begin_dim, end_dim = step.span(len(axes))     # a guard checks that these have the extents declared
                axes[begin_dim:end_dim] = [_ReachedDim(-1, None, None, 1) for _ in shape]
    for axis in axes:
        if axis.dim >= 0:
            ends[axis.dim] = None if axis.end is None else axis.end[1]
    return tuple(ends)


def _moved(begin: Range, by: Range, step: int) -> Range:
    return begin[0] + by[0] * step, begin[1] + by[1] * step


def _clipped(axis: _ReachedDim, limit: int | None, extent: int) -> _ReachedDim:
    """Return an axis of at most `limit` positions: its end is known where its begin is, up to the declared extent."""
    if axis.begin is None or limit is None:
        return axis
    end = min(axis.begin[1] + limit * axis.step, extent)
    return _ReachedDim(axis.dim, axis.begin, (0, end if axis.end is None else min(end, axis.end[1])), axis.step)
