"""Lower the launches of a plan to C++: views, arguments, stated edges and the submit call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import assert_never

import numpy as np

from pto_wsp.c import syntax as c
from pto_wsp.errors import InternalError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel import Role
from pto_wsp.ir.names import Names
from pto_wsp.ir.plan import ScalarValue
from pto_wsp.npu.emit.orchestration_scope import LoweringState, call, cpp_name, extents_array, runtime_dtype
from pto_wsp.npu.plan.model import Descriptor, Launch, Passed, Reshaped, Window
from pto_wsp.npu.plan.places import IntermediateOf, Resource, TensorOf, resource_of
from pto_wsp.npu.plan.waits import WORTH_JOINING
from pto_wsp.ops.entry import Unit
from pto_wsp.values import dataclass

_ADD = {Role.IN: "add_input", Role.OUT: "add_output", Role.INOUT: "add_inout"}


@dataclass(frozen=True, slots=True)
class _Argument:
    """The C++ of an argument and its window in the tensor: extents, and offsets unless it is the whole tensor."""

    value: c.Name
    shape: c.Expr
    at: c.Expr | None
    is_exact: bool               # the window is exactly what the task accesses

    @property
    def box(self) -> tuple[c.Expr, ...]:
        """Return the window as arguments of a call."""
        return (self.shape,) if self.at is None else (self.shape, self.at)


def launch_task(state: LoweringState, launch: Launch, after: str | None, ends: str, *, replaces: bool = False) -> Iterator[c.Stmt]:
    """Yield the statements that submit a launch.

    `after`: the id list that the launch waits for; `ends`: the list to which its id is added, or whose ids it `replaces`; empty for none.
    """
    creates = [one for one in launch.arguments
               if (one.allocates if isinstance(one, Descriptor) else one.intermediate not in state.made)]
    names = state.scope.names if creates else state.scope.names.inner()     # a created tensor outlives the launch's own block
    body = tuple(_submit(state, launch, after, names, creates, ends, replaces=replaces))
    yield from body if creates else (c.Block(body),)


def _submit(state: LoweringState, launch: Launch, after: str | None, names: Names, creates: Sequence[Descriptor | Passed], ends: str, *,
            replaces: bool) -> Iterator[c.Stmt]:
    use = state.scope.plan.kernels[launch.kernel]
    placed: list[_Argument] = []
    for argument, param in zip(launch.arguments, use.kernel.memory_params, strict=True):
        yield from _place(state, argument, param.name, launch, names, placed)
    task = names.take("task")
    yield c.Construct("pto_wsp::Arguments", task)
    for position, (argument, place) in enumerate(zip(launch.arguments, placed, strict=True)):
        role = Role.INOUT if argument not in creates and state.waits.looks_up(launch, position) else argument.role
        yield call(f"{task}.{_ADD[role]}", place.value)
    for value in launch.scalars:
        yield _scalar(state, task, value)
    yield from _state_edges(state, launch, task, after, names, placed)
    submitted = c.Call("pto_wsp::submit_aic" if use.core is Unit.CUBE else "pto_wsp::submit_aiv", (c.Int(launch.kernel), c.Name(task)))
    made = names.take("made")
    kept = bool(creates or ends or state.waits.is_named(launch))
    yield c.Declare("auto", made, submitted) if kept else c.Evaluate(submitted)
    for position, one in enumerate(creates):
        if isinstance(one, Passed):
            state.made[one.intermediate] = state.scope.names.take(cpp_name(state.created[one.intermediate][0].name))
        name = state.made[one.intermediate] if isinstance(one, Passed) else state.scope.tensor(one.slot).text
        yield c.Declare("const pto_wsp::Tensor &", name, c.Call(f"{made}.get_ref", (c.Int(position),)))
    if replaces:
        state.short.add(ends)
        yield call(f"{ends}.clear")
    yield from _record_launch(state, launch, made, ends, placed)


def _place(state: LoweringState, argument: Descriptor | Passed, param: str, launch: Launch, names: Names,
           placed: list[_Argument]) -> Iterator[c.Stmt]:
    """Yield the declarations that an argument needs, and append its C++ to `placed`."""
    if isinstance(argument, Passed):
        if argument.intermediate in state.made:
            name = c.Name(state.made[argument.intermediate])
            placed.append(_Argument(name, name, None, True))
            return
        own, depth = state.created[argument.intermediate]
        if argument.role is not Role.OUT or depth != state.depth:
            raise InternalError(f"intermediate `{own.name}` is not made by the first task that is given it", repr(launch))
        yield from _new(state, c.c_ident(own.name), own.dtype, tuple(map(state.scope.extent, own.shape)), names, placed)
        return
    value = state.scope.tensor(argument.slot)
    if argument.allocates:
        ref = state.scope.plan.tensors[argument.slot].ref
        yield from _new(state, value.text, ref.dtype, tuple(map(c.Int, ref.shape)), names, placed)
        return
    found = _Argument(value, c.Member(value, "shapes"), None, True)
    stem = c.c_ident(param)
    for position, step in enumerate(argument.steps):
        shape, view = c.Name(names.take(f"{stem}_shape")), c.Name(names.take(f"{stem}_view"))
        match step:
            case Window(offset, sizes):
                yield extents_array(shape, map(state.scope.extent, sizes))
                at = c.Name(names.take(f"{stem}_at"))
                yield extents_array(at, map(state.scope.extent, offset))
                viewed = c.Call(f"{value.text}.view", (shape, at))
                found = _Argument(view, shape, at, True) if position == 0 else replace(found, value=view, is_exact=False)
            case Reshaped(whole):
                state.scope.features.add("PTO_WSP_RESHAPES")
                yield extents_array(shape, map(c.Int, whole))
                viewed = c.Call("pto_wsp::reshape", (value, shape))
                found = replace(found, value=view)
            case _:
                assert_never(step)
        value = view
        yield c.Declare("const pto_wsp::Tensor", view.text, viewed)
    placed.append(found)


def _new(state: LoweringState, name: str, dtype: DType, shape: Sequence[c.Expr], names: Names, placed: list[_Argument]) -> Iterator[c.Stmt]:
    """Yield the declarations of a tensor that the runtime allocates for the task."""
    extents, new = c.Name(names.take(f"{name}_shape")), c.Name(names.take(f"{name}_new"))
    state.scope.features.add("PTO_WSP_NEW_TENSORS")
    yield extents_array(extents, shape)
    yield c.Construct("pto_wsp::NewTensor", new.text, (extents, c.Int(len(shape)), runtime_dtype(dtype)))
    placed.append(_Argument(new, extents, None, True))


def _scalar(state: LoweringState, task: str, value: ScalarValue) -> c.Stmt:
    if not value.dtype.is_float:
        return call("pto_wsp::add_integer", c.Name(task), state.scope.scalar(value.value))
    constant = _constant(value)
    if constant is not None:
        spelled: c.Expr = c.Float(constant, single=True)
        return call(f"{task}.add_scalar", spelled if np.isfinite(constant) else c.Cast("float", spelled))
    lowered = state.scope.scalar(value.value)
    if value.dtype in (DType.F16, DType.BF16):
        state.scope.features.add("PTO_WSP_HALVES")
        return call(f"{task}.add_scalar", c.Call(f"pto_wsp::round_{value.dtype}", (lowered,)))
    return call(f"{task}.add_scalar", c.Cast("float", lowered))


def _state_edges(state: LoweringState, launch: Launch, task: str, after: str | None, names: Names,
                 placed: Sequence[_Argument]) -> Iterator[c.Stmt]:
    """Yield the calls that state the edges of a launch."""
    if not state.waits.tells(launch):
        return
    lists = [after] if launch.source in state.waits.order.waits and after is not None else []
    for handle in state.waits.handles.waits(launch.source):
        lists.append(state.handles[handle])
        if handle in state.waits.shared and is_many(state.waits.sizes[handle]):
            yield from join(state, lists[-1])
    readers = state.waits.reads.waits(launch)
    if len(lists) == 1 and not readers:
        yield call("pto_wsp::wait_for", c.Name(task), c.Name(lists[0]))
        return
    behind = names.take("behind")
    yield state.ids(behind)
    for name in lists:
        yield call(f"{behind}.add", c.Name(name))
    for resource in readers:
        match resource:
            case IntermediateOf():
                yield call(f"{behind}.add", c.Name(state.readers(resource)))
            case TensorOf():
                for place in _places(launch, placed, resource, writes=True):
                    yield call(f"{state.readers(resource)}.find", c.Name(behind), *place.box)
    yield call("pto_wsp::wait_for", c.Name(task), c.Name(behind))


def _record_launch(state: LoweringState, launch: Launch, made: str, ends: str, placed: Sequence[_Argument]) -> Iterator[c.Stmt]:
    """Yield the calls behind a launch: keep the id for later waits, add the id to readers, clear the readers of what the launch writes."""
    task = c.Call(f"{made}.task_id", ())
    for name in (*((ends,) if ends else ()), *(state.handles[handle] for handle in state.waits.handles.collects(launch.source))):
        yield call(f"{name}.add", task)
    for resource in dict.fromkeys(resource_of(argument) for argument in launch.arguments if argument.role.writes):
        if resource not in state.waits.reads.tensors:
            continue
        match resource:
            case IntermediateOf():
                yield call(f"{state.readers(resource)}.clear")
            case TensorOf():
                for place in _places(launch, placed, resource, writes=True):
                    if place.is_exact:
                        yield call(f"{state.readers(resource)}.written", *place.box)
    for resource in state.waits.reads.remembered(launch):
        match resource:
            case IntermediateOf():
                yield call(f"{state.readers(resource)}.add", task)
            case TensorOf():
                for place in _places(launch, placed, resource, writes=False):
                    yield call(f"{state.readers(resource)}.add", task, *place.box)


def join(state: LoweringState, ids: str) -> Iterator[c.Stmt]:
    """Yield the call that replaces the ids of a long list by the id of one join."""
    if ids not in state.short:
        state.short.add(ids)
        yield call("pto_wsp::join", c.Name(ids))


def _places(launch: Launch, placed: Sequence[_Argument], resource: Resource, *, writes: bool) -> Iterator[_Argument]:
    """Yield the windows in which a launch writes a tensor, or reads it."""
    for argument, place in zip(launch.arguments, placed, strict=True):
        if resource_of(argument) == resource and (argument.role.writes if writes else argument.role is Role.IN):
            yield place


def is_many(bound: int | None) -> bool:
    """Return whether a join saves edges if several tasks wait for a set of that size."""
    return bound is None or bound > WORTH_JOINING


def _constant(value: ScalarValue) -> float | None:
    """Return the constant of a float argument, rounded to its dtype; None if it is known only at run time."""
    if not isinstance(value.value, s.Const):
        return None
    with np.errstate(over="ignore"):
        return float(np.asarray(float(value.value.value)).astype(value.dtype.np))
