"""Sanitize native runs: find races, reads of unwritten elements and stray accesses, and render them as the user's errors.

A sanitized run records both structural and data edges, whatever the schedule asks for. The runtime library looks for pairs of tasks that
only data orders, drops the edges that the schedule did not ask for, and runs the tasks in a seeded random order of the rest. `Watch` drives
the library's sanitizer; the rest of the module names tasks and elements.

>>> shown_elements("Y", (4, 8), (8, 1), np.array([8, 9, 10]))
'Y[1, 0:3]'
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from pto_wsp.artifact.build import Runtime
from pto_wsp.check.races.check import apart_in_pieces
from pto_wsp.errors import PtoError, RunRaceError, StrayAccessError, UnwrittenError
from pto_wsp.ir import plan as pm
from pto_wsp.ir import scalar as s
from pto_wsp.ir.flow import Do, Loop, Pipeline, Sides, children
from pto_wsp.ir.kernel import COMBINES, TileParam
from pto_wsp.ir.layout import Layout
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.ir.plan_walk import sizes_made, submits
from pto_wsp.ir.scalar import Var
from pto_wsp.run.bound import Array, Bindings, RunMemory
from pto_wsp.run.failures import replay_text, task_name
from pto_wsp.run.record import EdgeReason
from pto_wsp.source import UNKNOWN, Span, argument_span
from pto_wsp.values import dataclass

Offsets = npt.NDArray[np.int64]
MAX_ELEMENTS = 1 << 22    # of a region, for naming shared elements


# -- regions and elements ----------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class MemoryBox:
    """A strided box in memory: the address of its first element, extents and strides in elements."""

    address: int
    extent: tuple[int, int]
    stride: tuple[int, int]
    elem_bytes: int

    @staticmethod
    def of(raw: Any, address: int) -> MemoryBox:
        """Return the region of a pto_arg. `address`: the address of its data."""
        return MemoryBox(address, (raw.extent[0], raw.extent[1]), (raw.stride[0], raw.stride[1]), raw.elem_bytes)

    def addresses(self) -> Offsets:
        """Return the addresses of the first MAX_ELEMENTS elements, row by row."""
        cols = min(self.extent[1], MAX_ELEMENTS)
        rows = min(self.extent[0], max(1, MAX_ELEMENTS // max(cols, 1)))
        steps = (np.arange(rows, dtype=np.int64)[:, None] * self.stride[0] + np.arange(cols, dtype=np.int64) * self.stride[1])
        addresses: Offsets = (self.address + steps * self.elem_bytes).ravel()
        return addresses


def shared_addresses(first: MemoryBox, second: MemoryBox) -> Offsets:
    """Return the addresses of the elements of `second` that overlap `first` in some byte."""
    mine, other = second.addresses(), np.sort(first.addresses())
    if not other.size or not mine.size:
        return mine[:0]
    below = np.searchsorted(other, mine + second.elem_bytes, side="left") - 1    # the last element of `first` that starts before mine ends
    touches = (below >= 0) & (other[np.maximum(below, 0)] + first.elem_bytes > mine)
    return np.unique(mine[touches])


def shown_elements(name: str, shape: Sequence[int], strides: Sequence[int], offsets: Offsets) -> str:
    """Return the smallest block of a tensor that contains the elements at `offsets`, as index text.

    Strides and offsets are in elements; offsets count from the tensor's lowest address.
    """
    if not offsets.size:
        return name
    block = element_block(shape, strides, offsets)
    parts = [str(low) if high == low + 1 else f"{low}:{high}" for low, high in block]
    return f"{name}[{', '.join(parts)}]" if parts else name


def element_block(shape: Sequence[int], strides: Sequence[int], offsets: Offsets) -> tuple[tuple[int, int], ...]:
    """Return the smallest block of a tensor that contains the elements at `offsets`: of each dimension the first index and the end.

    Strides and offsets are in elements; offsets count from the tensor's lowest address, and there is at least one.
    """
    rest = offsets.astype(np.int64)
    index: dict[int, Offsets] = {}
    for dim in sorted(range(len(shape)), key=lambda d: -abs(strides[d])):
        step = abs(strides[dim])
        at = np.zeros_like(rest) if step == 0 or shape[dim] == 1 else np.minimum(rest // step, shape[dim] - 1)
        rest = rest - at * step
        index[dim] = shape[dim] - 1 - at if strides[dim] < 0 else at
    return tuple((int(index[dim].min()), int(index[dim].max()) + 1) for dim in range(len(shape)))


# -- the library's report ----------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class RaceSide:
    """One side of a race: a task by call site and indices, or the orchestrator at mark `site` if `is_mark`."""

    site: int
    index: tuple[int, ...]
    arg: int
    region: MemoryBox | None
    is_mark: bool = False


@dataclass(frozen=True, slots=True)
class Race:
    """Two unordered accesses, and the base address of the second one's tensor."""

    first: RaceSide
    second: RaceSide
    base: int

    @staticmethod
    def of(raw: Any, ffi: Any) -> Race:
        """Return a pto_race as a value."""
        def address(pointer: Any) -> int:
            return int(ffi.cast("intptr_t", pointer))

        first = MemoryBox.of(raw.first_region, address(raw.first_region.data)) if raw.has_regions else None
        is_mark = raw.second_task < 0
        second = None if is_mark else MemoryBox.of(raw.second_region, address(raw.second_region.data))
        return Race(RaceSide(raw.first_site, tuple(raw.first_index)[:raw.n_first_index], raw.first_arg, first),
                    RaceSide(raw.second_site, tuple(raw.second_index)[:raw.n_second_index], raw.second_arg, second, is_mark),
                    address(raw.base))


class MisuseKind(Enum):
    """The ways in which a task may misuse memory."""

    REGION = "region"
    UNWRITTEN = "unwritten"
    WRITE = "write"
    READ = "read"
    SCRATCH = "scratch"


@dataclass(frozen=True, slots=True)
class Misuse:
    """One misuse of memory: the task, its argument, and the element relative to the region's first."""

    kind: MisuseKind
    site: int
    index: tuple[int, ...]
    arg: int
    row: int
    col: int
    n_elements: int

    @staticmethod
    def of(raw: Any, lib: Any) -> Misuse:
        """Return a pto_misuse as a value."""
        kinds = {lib.PTO_MISUSE_REGION: MisuseKind.REGION, lib.PTO_MISUSE_UNWRITTEN: MisuseKind.UNWRITTEN,
                 lib.PTO_MISUSE_WRITE: MisuseKind.WRITE, lib.PTO_MISUSE_READ: MisuseKind.READ,
                 lib.PTO_MISUSE_SCRATCH: MisuseKind.SCRATCH}
        return Misuse(kinds[raw.kind], raw.site, tuple(raw.index)[:raw.n_index], raw.arg, raw.row, raw.col, raw.n_elements)


# -- races -------------------------------------------------------------------------------------------------------------

def race_errors(plan: pm.TaskPlan, bindings: Bindings, races: Sequence[Race], n_races: int) -> list[PtoError]:
    """Return an error for each race; the first error notes the total number of unordered pairs."""
    errors = [_race_error(plan, bindings, race) for race in races]
    if errors and n_races > 1:
        errors[0].notes += (f"{n_races} pairs of tasks are without an order in this run",)
    return errors


def _race_error(plan: pm.TaskPlan, bindings: Bindings, race: Race) -> PtoError:
    sites = {task.site: task for task in submits(plan)}
    first = sites[race.first.site]
    place = first.places[race.first.arg]
    slot = plan.tensors[place.slot]
    one = task_name(plan, first, race.first.index)
    where, ways = _meeting(plan, race)
    if race.second.is_mark:
        return RunRaceError(f"`{slot.ref.shown}` is read where tasks are made, and nothing orders that and the task {one} that writes it",
                            argument_span(first.span, _param(plan, first, race.first.arg)), expected=_EXPECTED, found=where, help=ways,
                            notes=(f"{one} was made at {first.span}",))
    second = sites[race.second.site]
    other = task_name(plan, second, race.second.index)
    elements = slot.ref.shown if race.second.region is None else _shared(plan, bindings, second, race)
    did = (_verb(place), _verb(second.places[race.second.arg]))
    what = f"both {'write' if did[0] == 'writes' else 'update'} {elements}" if did[0] == did[1] else \
        f"use {elements}: the first {did[0]} it, the second {did[1]} it"
    return RunRaceError(f"nothing orders the tasks {one} and {other}, and they {what}",
                        argument_span(second.span, _param(plan, second, race.second.arg)), expected=_EXPECTED, found=where, help=ways,
                        notes=(f"{one} was made at {first.span}", f"{other} was made at {second.span}"))


_EXPECTED = "an order between them in the workload, or elements of their own"


def _param(plan: pm.TaskPlan, task: pm.Submit, arg: int) -> str:
    return plan.kernels[task.kernel].kernel.memory_params[arg].name


def _combines(plan: pm.TaskPlan, task: pm.Submit) -> tuple[int, ...]:
    """Return how each memory argument of a task accumulates: 1 + the position of its `combine` in COMBINES, 0 for others."""
    params = plan.kernels[task.kernel].kernel.memory_params
    return tuple(1 + COMBINES.index(param.combine) if isinstance(param, TileParam) and param.accumulates else 0 for param in params)


def _verb(place: pm.Place) -> str:
    return "updates" if place.role.reads and place.role.writes else "writes" if place.role.writes else "reads"


def _shared(plan: pm.TaskPlan, bindings: Bindings, second: pm.Submit, race: Race) -> str:
    """Return the elements that both tasks use, as text; all of the second task's region if the first task's is no longer recorded."""
    region = race.second.region
    assert region is not None
    addresses = region.addresses() if race.first.region is None else shared_addresses(race.first.region, region)
    return element_text(plan, bindings, second.places[race.second.arg].slot, addresses, race.base)


def shape_and_strides(plan: pm.TaskPlan, bindings: Bindings, slot: int) -> tuple[Sequence[int], Sequence[int]]:
    """Return the shape of a tensor and its strides in elements, to name elements by.

    Of a tensor that a body makes in a size of the run, the first extent is one that is never reached, if the others are constants; if they
    are not, the elements are numbered in memory order.
    """
    known = plan.tensors[slot]
    if not known.fresh:
        array = bindings.arrays[slot]
        return array.shape, [stride // array.itemsize for stride in array.strides]
    sizes = sizes_made(plan)[known.ref.id]
    if all(isinstance(size, s.Const) for size in sizes):
        return known.ref.shape, Layout.contiguous(known.ref.shape).strides
    inner = tuple(int(size.value) for size in sizes[1:] if isinstance(size, s.Const))
    if len(inner) + 1 < len(sizes):
        return (_UNREACHED,), (1,)
    return (_UNREACHED, *inner), Layout.contiguous((_UNREACHED, *inner)).strides


_UNREACHED = 1 << 62


def element_text(plan: pm.TaskPlan, bindings: Bindings, slot: int, addresses: np.ndarray[Any, Any], base: int) -> str:
    """Return the elements at these addresses as index text. `base`: the address of the slot's tensor."""
    ref = plan.tensors[slot].ref
    shape, strides = shape_and_strides(plan, bindings, slot)
    return shown_elements(ref.shown, shape, strides, (addresses - base) // ref.dtype.nbytes)


def _meeting(plan: pm.TaskPlan, race: Race) -> tuple[str, str]:
    """Return which construct leaves two tasks unordered, and how to order them."""
    paths: dict[int, tuple[pm.Item, ...]] = {}

    def walk(item: pm.Item, around: tuple[pm.Item, ...]) -> None:
        if isinstance(item, Do):
            paths[item.leaf.site] = (*around, item)
        for inner in children(item):
            walk(inner, (*around, item))

    walk(plan.body, ())
    one = paths[race.first.site]
    other = one if race.second.is_mark else paths[race.second.site]
    common = [a for a, b in zip(one, other, strict=False) if a is b]
    for item in common:
        if isinstance(item, Loop) and not item.ordered and _differ(item, one[-1], race.first, other[-1], race.second):
            name = item.known_var.name
            return (f"different iterations of the loop over `{name}` at {item.span}",
                    f"loop over `{name}` with P.seq, or index what is written by `{name}`")
    match common[-1]:
        case Sides():
            return "two sides of combine, or of `|`", "put the one after the other: `>>` or sequential(...)"
        case Pipeline(span=span):
            return f"two processes of the pipeline at {span}", "order them through a channel or an event"
        case _:
            processes = (process for item in common if isinstance(item, Pipeline) for process in item.processes)
            for process in processes:
                if process.replicas > 1 and any(item is process.body for item in common):
                    return f"replicas of process `{process.name}`", "give each token a place of its own, or run the process once"
            return "tasks that no statement orders", "wait for the first: after=[handle]"


def _differ(loop: pm.PlanLoop, one: pm.Item, first: RaceSide, other: pm.Item, second: RaceSide) -> bool:
    """Tell whether two tasks are of different iterations of a loop, as far as their indices say."""
    assert isinstance(one, Do) and isinstance(other, Do)
    mine, its = (_value_of(loop, task, access) for task, access in ((one.leaf, first), (other.leaf, second)))
    return second.is_mark or mine is None or its is None or mine != its


def _value_of(loop: pm.PlanLoop, task: pm.Submit, access: RaceSide) -> int | None:
    variables = {var.id for var in loop.bound}
    for node, value in zip(task.index, access.index, strict=False):
        if isinstance(node, Var) and node.id in variables:
            return value
    return None


# -- memory ------------------------------------------------------------------------------------------------------------

def misuse_error(plan: pm.TaskPlan, bindings: Bindings, misuse: Misuse) -> PtoError:
    """Return the error for a task that misused memory."""
    task = next(task for task in submits(plan) if task.site == misuse.site)
    name, kernel = task_name(plan, task, misuse.index), plan.kernels[task.kernel].kernel
    notes = (f"the task was made at {task.span}",)
    if misuse.kind is MisuseKind.SCRATCH:
        return StrayAccessError(f"task {name}: its own C body writes outside its scratch memory", _body_span(plan, task),
                                expected=f"at most scratch_bytes={0 if kernel.c_body is None else kernel.c_body.scratch_bytes} bytes",
                                notes=notes)
    param, place = kernel.memory_params[misuse.arg], task.places[misuse.arg]
    tensor = plan.tensors[place.slot].ref.shown
    at = f"row {misuse.row}, column {misuse.col}"
    match misuse.kind:
        case MisuseKind.REGION:
            return StrayAccessError(f"task {name}: what `{param.name}` is bound to is not inside `{tensor}`",
                                    argument_span(task.span, param.name), expected=f"a part of `{tensor}` as it is bound", notes=notes)
        case MisuseKind.UNWRITTEN if not place.role.reads:
            return UnwrittenError(f"task {name}: what it gives depends on what `{param.name}` holds before it, and it is an Out",
                                  _body_span(plan, task), expected="stores to an Out, or InOut for what is read", notes=notes)
        case MisuseKind.UNWRITTEN:
            count = f"{misuse.n_elements} elements of `{param.name}` that nobody has written" if misuse.n_elements > 1 else \
                f"an element of `{param.name}` that nobody has written"
            return UnwrittenError(f"task {name}: what it gives depends on {at} of `{param.name}`, an element of `{tensor}` that nobody "
                                  "has written", argument_span(task.span, param.name), expected="elements that earlier tasks have written",
                                  found=count, help=f"write all of `{tensor}` that is read, or bind an array with contents", notes=notes)
        case MisuseKind.WRITE:
            return StrayAccessError(f"task {name}: its own C body writes outside its regions, at {at} of `{param.name}`",
                                    _body_span(plan, task), expected=f"rows and columns below {param.name}_rows and {param.name}_cols"
                                    f" of parameters that the kernel writes", notes=notes)
        case MisuseKind.READ:
            return StrayAccessError(f"task {name}: what its own C body gives depends on memory outside the region of `{param.name}`",
                                    _body_span(plan, task),
                                    expected=f"rows and columns below {param.name}_rows and {param.name}_cols", notes=notes)


def _body_span(plan: pm.TaskPlan, task: pm.Submit) -> Span:
    own = plan.kernels[task.kernel].kernel.c_body
    return UNKNOWN if own is None else own.span


# -- sanitized runs ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Sanitized:
    """The figures of a sanitized run.

    `pairs`: pairs of tasks on the same elements that are neighbours in the graph; `races`: those without an order; `unchecked`: those left
    undecided within the bound. `unwatched`: tasks with C bodies whose regions are too large to copy.
    """

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
        """What the run could not check, one line each."""
        unchecked = f"sanitize: {self.unchecked} of {self.pairs} pairs of tasks on the same elements were not checked for races"
        unwatched = f"sanitize: {self.unwatched} tasks with own bodies ran unwatched: their regions are too large to copy"
        return (unchecked,) * (self.unchecked > 0) + (unwatched,) * (self.unwatched > 0)


class Watch:
    """A sanitizer of the runtime library. `undefined`: by tensor slot, memory that starts without contents."""

    def __init__(self, runtime: Runtime, plan: TaskPlan, undefined: Mapping[int, Array]) -> None:
        self._runtime, self._plan, self._undefined = runtime, plan, undefined
        self._apart = apart_in_pieces(plan)
        self._alive: tuple[Any, ...] = ()
        self._bindings: Bindings | None = None
        self.raw: Any = None

    def new_seed(self) -> int:
        """Return a nonzero seed for a run's order and print it on standard error, so that a run that never ends can be repeated."""
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
        apart = sorted((begins[site] + arg) << 32 | (begins[other] + its) for (site, arg), (other, its) in self._apart)
        arrays = {
            "elem_bytes": ffi.new("int32_t[]", [array.itemsize for array in bindings.arrays] or [0]),
            "undefined": ffi.new("uint8_t[]", [self._is_undefined(bindings, k) for k in range(len(bindings.arrays))] or [False]),
            "site_begin": ffi.new("int32_t[]", begins),
            "site_tensors": ffi.new("int32_t[]", [slot for places in slots for slot in places] or [0]),
            "site_combines": ffi.new("uint8_t[]", [code for task in sorted(submits(plan), key=lambda task: task.site)
                                                   for code in _combines(plan, task)] or [0]),
            "own_body": ffi.new("uint8_t[]", [use.kernel.c_body is not None for use in plan.kernels] or [False]),
            "apart": ffi.new("int64_t[]", apart or [0]),
        }
        options = ffi.new("pto_sanitizer_options *", {
            "keep": _requested_edges(plan), "n_sites": len(slots), "n_tensors": len(bindings.arrays), "n_kernels": len(plan.kernels),
            "tensors": tensors, "n_apart": len(apart), **arrays})
        raw = lib.pto_sanitizer_new(options)
        if raw == ffi.NULL:
            raise MemoryError("no memory for the sanitizer")
        self._alive = (tensors, arrays)
        self._bindings = bindings
        self.raw = ffi.gc(raw, lib.pto_sanitizer_free)
        return self.raw

    def _is_undefined(self, bindings: Bindings, slot: int) -> bool:
        array = bindings.arrays[slot]
        return ((array is self._undefined.get(slot) or isinstance(array, RunMemory)) and array.flags.c_contiguous and array.size > 0
                and bindings.groups.count(bindings.groups[slot]) == 1)

    def found(self, seed: int) -> Sanitized:
        """Return the figures of the last run."""
        report = self._report()
        return Sanitized(seed, report.n_pairs, report.n_races, report.n_unchecked, report.n_unwatched)

    def races(self) -> list[PtoError]:
        """Return the errors of the last run's races, one for each pair of arguments."""
        report = self._report()
        rows = [Race.of(report.races[k], self._runtime.ffi) for k in range(report.n_rows)]
        assert self._bindings is not None
        return race_errors(self._plan, self._bindings, rows, report.n_races)

    def misuse(self) -> PtoError:
        """Return the error of the task that misused memory in the last run."""
        assert self._bindings is not None
        return misuse_error(self._plan, self._bindings, Misuse.of(self._report().misuse, self._runtime.lib))

    def _report(self) -> Any:
        report = self._runtime.ffi.new("pto_sanitizer_report *")
        self._runtime.lib.pto_sanitizer_read(self.raw, report)
        return report


def _requested_edges(plan: TaskPlan) -> int:
    """Return the edge reasons that the schedule asks for, as bits."""
    kept = ~EdgeReason(0)
    if not plan.structure:
        kept &= ~EdgeReason.ORDER
    if not plan.infer:
        kept &= ~(EdgeReason.RAW | EdgeReason.WAR | EdgeReason.WAW | EdgeReason.READ)
    return kept.value
