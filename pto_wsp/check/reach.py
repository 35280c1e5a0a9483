"""Find the dimensions of tensors whose declared extent is frozen into a plan: tasks reach all of it, and no further whatever a run binds.

>>> for i in P(3): twice[i](X[i * 4:].clip(4, 8), Y[i])       # X has 10 rows
>>> frozen_dims(plan)
mappingproxy({(0, 0): 12})

Of a longer array the rest would not be computed, in silence. An index is followed where it is made of numbers and of variables of loops
between numbers; a symbol, an element of a tensor or an extent in it means that a run says how far tasks reach.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isinf
from types import MappingProxyType
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


def frozen_dims(plan: TaskPlan) -> Mapping[tuple[int, int], int]:
    """Return how far tasks reach at most, by tensor slot and dimension, where they reach all positions that are declared."""
    ranges = _loop_ranges(plan)
    ends: dict[tuple[int, int], int | None] = {}      # how far tasks reach; None: as far as a run says
    for submit in submits(plan):
        for place in submit.places:
            for dim, end in enumerate(_reach(place.view, ranges)):
                key = place.slot, dim
                before = ends.get(key, 0)
                ends[key] = None if end is None or before is None else max(before, end)
    return MappingProxyType({(slot, dim): end for (slot, dim), end in ends.items()
                             if end is not None and not plan.tensors[slot].scalars and end >= plan.tensors[slot].ref.shape[dim]})


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

    `end` None: the end of the array that a run binds, or of a part that a run says; `begin` None: known only in a run.
    """

    dim: int
    begin: Range | None
    end: Range | None
    step: int
    is_part_of_run: bool = False      # a run says where the part ends, so that a clip to more positions changes nothing


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
                of_run = axis.is_part_of_run or (last is None and _is_of_run(stop))
                axes[dim] = _ReachedDim(axis.dim, begin, end, axis.step * by, of_run)
            case Clip(limits):
                axes = [_clipped(axis, limit) for axis, limit in zip(axes, limits, strict=True)]
            case Permute(order):
                axes = [axes[k] for k in order]
            case Reshape(shape):
                begin_dim, end_dim = step.span(len(axes))     # a guard checks that these have the extents declared
                axes[begin_dim:end_dim] = [_ReachedDim(-1, None, None, 1) for _ in shape]
    for axis in axes:
        if axis.dim >= 0:
            ends[axis.dim] = None if axis.end is None else axis.end[1]
    return tuple(ends)


def _is_of_run(stop: s.Scalar) -> bool:
    """Tell whether the end of a part depends on more than the extents of arrays and the variables of loops."""
    return any(isinstance(leaf, s.SymbolRef | s.Element) for leaf in s.leaves(stop))


def _moved(begin: Range, by: Range, step: int) -> Range:
    return begin[0] + by[0] * step, begin[1] + by[1] * step


def _clipped(axis: _ReachedDim, limit: int | None) -> _ReachedDim:
    """Return an axis of at most `limit` positions: how far it reaches is known where its begin is, unless a run says its end."""
    if axis.begin is None or limit is None or axis.is_part_of_run:
        return axis
    end = axis.begin[1] + limit * axis.step
    return _ReachedDim(axis.dim, axis.begin, (0, end if axis.end is None else min(end, axis.end[1])), axis.step)
