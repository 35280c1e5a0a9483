"""What a sanitizer found, as the user's errors: which tasks, which elements, what to do."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np

from pto_wsp.errors import PtoError, RunRaceError, StrayAccessError, UnwrittenError
from pto_wsp.plan import model as pm
from pto_wsp.plan.walk import inner_items, submits
from pto_wsp.runtime.bound.binding import Bindings
from pto_wsp.runtime.failures.errors import task_name
from pto_wsp.runtime.sanitize.elements import Region, shared_addresses, shown_elements
from pto_wsp.source import UNKNOWN, Span, argument_span
from pto_wsp.types.layout import Layout
from pto_wsp.types.scalar import Var
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Access:
    """One side of a race: a task by its call and indices, or the orchestrator at mark `site` where `is_mark`."""

    site: int
    index: tuple[int, ...]
    arg: int
    region: Region | None
    is_mark: bool = False


@dataclass(frozen=True, slots=True)
class Race:
    """Two accesses without an order, and where the tensor of the second begins."""

    first: Access
    second: Access
    base: int

    @staticmethod
    def of(raw: Any, ffi: Any) -> Race:
        """Return a pto_race as values."""
        def address(pointer: Any) -> int:
            return int(ffi.cast("intptr_t", pointer))

        first = Region.of(raw.first_region, address(raw.first_region.data)) if raw.has_regions else None
        is_mark = raw.second_task < 0
        second = None if is_mark else Region.of(raw.second_region, address(raw.second_region.data))
        return Race(Access(raw.first_site, tuple(raw.first_index)[:raw.n_first_index], raw.first_arg, first),
                    Access(raw.second_site, tuple(raw.second_index)[:raw.n_second_index], raw.second_arg, second, is_mark),
                    address(raw.base))


class MisuseKind(Enum):
    """How a task used memory as it may not."""

    REGION = "region"
    UNWRITTEN = "unwritten"
    WRITE = "write"
    READ = "read"
    SCRATCH = "scratch"


@dataclass(frozen=True, slots=True)
class Misuse:
    """One use of memory: the task, its argument, the element counted from the region's first."""

    kind: MisuseKind
    site: int
    index: tuple[int, ...]
    arg: int
    row: int
    col: int
    n_elements: int

    @staticmethod
    def of(raw: Any, lib: Any) -> Misuse:
        """Return a pto_misuse as values."""
        kinds = {lib.PTO_MISUSE_REGION: MisuseKind.REGION, lib.PTO_MISUSE_UNWRITTEN: MisuseKind.UNWRITTEN,
                 lib.PTO_MISUSE_WRITE: MisuseKind.WRITE, lib.PTO_MISUSE_READ: MisuseKind.READ,
                 lib.PTO_MISUSE_SCRATCH: MisuseKind.SCRATCH}
        return Misuse(kinds[raw.kind], raw.site, tuple(raw.index)[:raw.n_index], raw.arg, raw.row, raw.col, raw.n_elements)


# ---- races ----

def race_errors(plan: pm.TaskPlan, bindings: Bindings, races: Sequence[Race], n_races: int) -> list[PtoError]:
    """Return an error for each race; the first says how many pairs of tasks there are in all."""
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


def _verb(place: pm.Place) -> str:
    return "updates" if place.role.reads and place.role.writes else "writes" if place.role.writes else "reads"


def _shared(plan: pm.TaskPlan, bindings: Bindings, second: pm.Submit, race: Race) -> str:
    """Return the elements that both use, as far as they are known: those of the second task's region when the first is gone."""
    region = race.second.region
    assert region is not None
    found = region.addresses() if race.first.region is None else shared_addresses(race.first.region, region)
    return element_text(plan, bindings, second.places[race.second.arg].slot, found, race.base)


def element_text(plan: pm.TaskPlan, bindings: Bindings, slot: int, addresses: np.ndarray[Any, Any], base: int) -> str:
    """Return the elements at these addresses of the tensor of a slot that begins at `base`."""
    ref, fresh = plan.tensors[slot].ref, plan.tensors[slot].fresh
    shape: Sequence[int] = ref.shape
    strides: Sequence[int] = Layout.contiguous(ref.shape).strides
    if not fresh:
        array = bindings.arrays[slot]
        shape, strides = array.shape, [stride // array.itemsize for stride in array.strides]
    return shown_elements(ref.shown, shape, strides, (addresses - base) // ref.dtype.nbytes)


def _meeting(plan: pm.TaskPlan, race: Race) -> tuple[str, str]:
    """Return what leaves two tasks without an order, and what would order them."""
    paths: dict[int, tuple[pm.Item, ...]] = {}

    def walk(item: pm.Item, around: tuple[pm.Item, ...]) -> None:
        if isinstance(item, pm.Submit):
            paths[item.site] = (*around, item)
        for inner in inner_items(item):
            walk(inner, (*around, item))

    walk(plan.body, ())
    one = paths[race.first.site]
    other = one if race.second.is_mark else paths[race.second.site]
    common = [a for a, b in zip(one, other, strict=False) if a is b]
    for item in common:
        if isinstance(item, pm.Loop) and not item.ordered and _differ(item, one[-1], race.first, other[-1], race.second):
            name = item.known_var.name
            return (f"different iterations of the loop over `{name}` at {item.span}",
                    f"loop over `{name}` with P.seq, or index what is written by `{name}`")
    match common[-1]:
        case pm.Sides():
            return "two sides of combine, or of `|`", "put the one after the other: `>>` or sequential(...)"
        case pm.Pipeline(span=span):
            return f"two processes of the pipeline at {span}", "order them through a channel or an event"
        case _:
            processes = (process for item in common if isinstance(item, pm.Pipeline) for process in item.processes)
            for process in processes:
                if process.replicas > 1 and any(item is process.body for item in common):
                    return f"replicas of process `{process.name}`", "give each token a place of its own, or run the process once"
            return "tasks that no statement orders", "wait for the first: after=[handle]"


def _differ(loop: pm.Loop, one: pm.Item, first: Access, other: pm.Item, second: Access) -> bool:
    """Tell whether two tasks are of different iterations of a loop, as far as their indices say."""
    assert isinstance(one, pm.Submit) and isinstance(other, pm.Submit)
    mine, its = (_value_of(loop, task, access) for task, access in ((one, first), (other, second)))
    return second.is_mark or mine is None or its is None or mine != its


def _value_of(loop: pm.Loop, task: pm.Submit, access: Access) -> int | None:
    variables = {var.id for var in pm.inner_vars(loop)}
    for node, value in zip(task.index, access.index, strict=False):
        if isinstance(node, Var) and node.id in variables:
            return value
    return None


# ---- memory ----

def misuse_error(plan: pm.TaskPlan, bindings: Bindings, misuse: Misuse) -> PtoError:
    """Return the error for a task that used memory as it may not."""
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
