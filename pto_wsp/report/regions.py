"""Which elements of which tensor make one task wait for another, in the user's terms.

>>> regions.conflicts(0, 1)
(Conflict(reasons=('RAW',), elements='X[0, 0:4, 0:8]', source='y', target='x'),)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from pto_wsp.plan.model import Place, Submit, TaskPlan
from pto_wsp.plan.walk import submits
from pto_wsp.report.edges import Edge
from pto_wsp.runtime.bound.binding import Bindings
from pto_wsp.runtime.native.recorder import Recorder
from pto_wsp.runtime.record.columns import RecordColumns, RecordedArg
from pto_wsp.runtime.sanitize.elements import Region, shared_addresses
from pto_wsp.runtime.sanitize.reports import element_text
from pto_wsp.types import scalar as s
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Conflict:
    """Elements on which two tasks conflict, and the parameters through which they use them."""

    reasons: tuple[str, ...]
    elements: str
    source: str
    target: str


class Regions:
    """The regions of a record's tasks. They are read from its memory: once the record holds another run, only tensors are named."""

    def __init__(self, plan: TaskPlan, columns: RecordColumns, recorder: Recorder | None = None,
                 bindings: Bindings | None = None) -> None:
        self._plan, self._columns, self._recorder, self._bindings = plan, columns, recorder, bindings
        self._generation = 0 if recorder is None else recorder.generation

    def conflicts(self, source: int, target: int) -> tuple[Conflict, ...]:
        """Return on what two tasks conflict, by the parameters of both."""
        return tuple(self._conflicts(source, target))

    def tensor(self, edge: Edge) -> str:
        """Return the tensor of an edge's arguments, "" for an edge without."""
        return "" if edge.arg < 0 else self._plan.tensors[self._task(edge.target).places[edge.arg & 0xFFFF].slot].ref.shown

    def _conflicts(self, source: int, target: int) -> Iterator[Conflict]:
        if self._recorder is None or self._recorder.generation != self._generation:
            return
        first, second = self._task(source), self._task(target)
        params = [[param.name for param in self._plan.kernels[task.kernel].kernel.memory_params] for task in (first, second)]
        given = self._recorder.args_of(target)
        for i, mine in enumerate(self._recorder.args_of(source)):
            for k, its in enumerate(given):
                reasons = _reasons(first.places[i], second.places[k])
                if mine.buffer != its.buffer or not reasons:
                    continue
                shared = shared_addresses(_region(mine), _region(its))
                if shared.size:
                    yield Conflict(reasons, self._shown(target, second, k, its, shared), params[0][i], params[1][k])

    def _shown(self, task: int, submit: Submit, arg: int, raw: RecordedArg, shared: np.ndarray[Any, Any]) -> str:
        place = submit.places[arg]
        slot = self._plan.tensors[place.slot]
        if self._bindings is None:
            return slot.ref.shown
        if not slot.fresh:
            array = self._bindings.arrays[place.slot]
            base = int(array.__array_interface__["data"][0])
            lowest = sum(min(0, stride) * (extent - 1) for stride, extent in zip(array.strides, array.shape, strict=True))
            return element_text(self._plan, self._bindings, place.slot, shared, base + lowest)
        offset = self._offset(task, submit, place)
        if offset is None:
            return slot.ref.shown
        return element_text(self._plan, self._bindings, place.slot, shared, raw.address - offset * raw.elem_bytes)

    def _offset(self, task: int, submit: Submit, place: Place) -> int | None:
        """Return where a place begins in its tensor, if the task's indices tell."""
        index = dict(zip(submit.index, self._columns.index_of(task), strict=False))
        leaves = tuple(s.leaves(place.offset))
        if any(not isinstance(leaf, s.Const) and leaf not in index for leaf in leaves):
            return None
        return int(s.evaluate(place.offset, lambda leaf: leaf.value if isinstance(leaf, s.Const) else index[leaf]))

    def _task(self, task: int) -> Submit:
        return self._sites[int(self._columns.task_site[task])]

    @cached_property
    def _sites(self) -> tuple[Submit, ...]:
        return submits(self._plan)


def _reasons(first: Place, second: Place) -> tuple[str, ...]:
    """Return what an order of two places on the same elements is for."""
    one, other = first.role, second.role
    found = (("RAW", one.writes and other.reads), ("WAR", one.reads and other.writes), ("WAW", one.writes and other.writes))
    return tuple(reason for reason, holds in found if holds)


def _region(arg: RecordedArg) -> Region:
    return Region(arg.address, arg.extent, arg.stride, arg.elem_bytes)
