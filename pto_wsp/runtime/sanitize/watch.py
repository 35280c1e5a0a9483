"""What a sanitized engine has beside its record: the runtime library's sanitizer, told what the run works on.

Such a run gives both kinds of edges, those of the workload's structure and those found in the data, whatever the schedule asks for.
The library looks for pairs that only the data orders, drops the edges that the schedule did not ask for, and runs the tasks in a
seeded random order of those that are left.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Mapping
from typing import Any

from pto_wsp.artifact.build import Runtime
from pto_wsp.errors import PtoError
from pto_wsp.plan.model import TaskPlan
from pto_wsp.plan.walk import submits
from pto_wsp.runtime.bound.binding import Array, Bindings
from pto_wsp.runtime.failures.errors import replay_text
from pto_wsp.runtime.record.marks import EdgeReason
from pto_wsp.runtime.sanitize.reports import Misuse, Race, misuse_error, race_errors
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Sanitized:
    """What a sanitized run looked at. `pairs`: tasks on the same elements, neighbours in the graph; `races`: those of them without an
    order; `unchecked`: those whose order was not found out within the bound; `unwatched`: tasks with an own body whose regions are too
    large to copy."""

    seed: int
    pairs: int
    races: int
    unchecked: int
    unwatched: int

    def __str__(self) -> str:
        text = f"sanitize: seed {self.seed:#x}, pairs of tasks on the same elements: {self.pairs}, races: {self.races}"
        text += f", not checked: {self.unchecked}" if self.unchecked else ""
        return text + (f", tasks with own bodies not watched: {self.unwatched}" if self.unwatched else "")

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the run did not look at, a line each."""
        unchecked = f"sanitize: {self.unchecked} of {self.pairs} pairs of tasks on the same elements were not checked for races"
        unwatched = f"sanitize: {self.unwatched} tasks with own bodies ran unwatched: their regions are too large to copy"
        return (unchecked,) * (self.unchecked > 0) + (unwatched,) * (self.unwatched > 0)


class Watch:
    """A sanitizer of the runtime library. `undefined`: by tensor slot, the memory that a run finds without contents."""

    def __init__(self, runtime: Runtime, plan: TaskPlan, undefined: Mapping[int, Array]) -> None:
        self._runtime, self._plan, self._undefined = runtime, plan, undefined
        self._alive: tuple[Any, ...] = ()
        self._bindings: Bindings | None = None
        self.raw: Any = None

    def new_seed(self) -> int:
        """Return a seed for a run's order, not 0, and say it on standard error: a run that does not come back is repeated with it."""
        seed = 1 + secrets.randbelow((1 << 32) - 1)
        print(f"sanitize: seed {seed:#x}; repeat with {replay_text(seed)}", file=sys.stderr)
        return seed

    def open(self, bindings: Bindings, tensors: Any) -> Any:
        """Return a pto_sanitizer for one run on these tensors (pto_tensor[])."""
        ffi, lib, plan = self._runtime.ffi, self._runtime.lib, self._plan
        slots = [[place.slot for place in task.places] for task in sorted(submits(plan), key=lambda task: task.site)]
        begins = [0]
        for places in slots:
            begins.append(begins[-1] + len(places))
        arrays = {
            "elem_bytes": ffi.new("int32_t[]", [array.itemsize for array in bindings.arrays] or [0]),
            "undefined": ffi.new("uint8_t[]", [self._is_undefined(bindings, k) for k in range(len(bindings.arrays))] or [False]),
            "site_begin": ffi.new("int32_t[]", begins),
            "site_tensors": ffi.new("int32_t[]", [slot for places in slots for slot in places] or [0]),
            "own_body": ffi.new("uint8_t[]", [use.kernel.c_body is not None for use in plan.kernels] or [False]),
        }
        options = ffi.new("pto_sanitizer_options *", {
            "keep": _asked_for(plan), "n_sites": len(slots), "n_tensors": len(bindings.arrays), "n_kernels": len(plan.kernels),
            "tensors": tensors, **arrays})
        raw = lib.pto_sanitizer_new(options)
        if raw == ffi.NULL:
            raise MemoryError("no memory for the sanitizer")
        self._alive = (tensors, arrays)
        self._bindings = bindings
        self.raw = ffi.gc(raw, lib.pto_sanitizer_free)
        return self.raw

    def _is_undefined(self, bindings: Bindings, slot: int) -> bool:
        array = bindings.arrays[slot]
        return (array is self._undefined.get(slot) and array.flags.c_contiguous and array.size > 0
                and bindings.groups.count(bindings.groups[slot]) == 1)

    def found(self, seed: int) -> Sanitized:
        """Return what the last run looked at."""
        report = self._report()
        return Sanitized(seed, report.n_pairs, report.n_races, report.n_unchecked, report.n_unwatched)

    def races(self) -> list[PtoError]:
        """Return the races that the last run ended with, each pair of arguments once."""
        report = self._report()
        rows = [Race.of(report.races[k], self._runtime.ffi) for k in range(report.n_rows)]
        assert self._bindings is not None
        return race_errors(self._plan, self._bindings, rows, report.n_races)

    def misuse(self) -> PtoError:
        """Return the task that used memory as it may not."""
        assert self._bindings is not None
        return misuse_error(self._plan, self._bindings, Misuse.of(self._report().misuse, self._runtime.lib))

    def _report(self) -> Any:
        report = self._runtime.ffi.new("pto_sanitizer_report *")
        self._runtime.lib.pto_sanitizer_read(self.raw, report)
        return report


def _asked_for(plan: TaskPlan) -> int:
    """Return the reasons of edges that the schedule asked for."""
    kept = ~EdgeReason(0)
    if not plan.structure:
        kept &= ~EdgeReason.ORDER
    if not plan.infer:
        kept &= ~(EdgeReason.RAW | EdgeReason.WAR | EdgeReason.WAW | EdgeReason.READ)
    return kept.value
