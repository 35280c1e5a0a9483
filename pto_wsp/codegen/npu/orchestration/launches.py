"""Lower the launches of a plan to C++: each gets its views, its arguments and what it waits for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from typing import assert_never

import numpy as np

from pto_wsp.codegen.c import syntax as c
from pto_wsp.codegen.npu.names import Names
from pto_wsp.codegen.npu.orchestration.scalars import FunctionScope
from pto_wsp.errors import InternalError
from pto_wsp.expr.kernel import Role
from pto_wsp.ops.entry import Unit
from pto_wsp.plan.model import ScalarValue
from pto_wsp.plan.npu.edges.places import IntermediateOf, Resource, TensorOf, resource_of
from pto_wsp.plan.npu.edges.waits import WORTH_JOINING, Waits
from pto_wsp.plan.npu.late import Late
from pto_wsp.plan.npu.model import Descriptor, Intermediate, Launch, Passed, Reshaped, Window
from pto_wsp.plan.waits.handles import TrackedHandle
from pto_wsp.types import scalar as s
from pto_wsp.types.dtype import DType
from pto_wsp.values import dataclass

_IDS = "pto_wsp::Ids"
_DTYPES = {DType.BOOL: "b8", DType.FP8E4M3: "f8e4m3", DType.FP8E5M2: "u8", DType.F64: "u64"}    # the others are called as they are here


@dataclass(frozen=True, slots=True)
class _Argument:
    """How an argument is spelled, and where it lies in its tensor: extents and offsets, no offsets for all of it."""

    value: c.Name
    shape: c.Expr
    at: c.Expr | None
    is_exact: bool               # the place is what the task is given, and not more

    @property
    def box(self) -> tuple[c.Expr, ...]:
        """The place as arguments of a call."""
        return (self.shape,) if self.at is None else (self.shape, self.at)


@dataclass(slots=True)
class LaunchLowering:
    """Lowers launches in the scope of their function."""

    scope: FunctionScope
    waits: Waits
    late: Late
    created: dict[int, tuple[Intermediate, int]] = field(default_factory=dict)     # by id, with how many loops are around its scope
    made: dict[int, str] = field(default_factory=dict)                             # names of those that a task has made
    depth: int = 0
    short: set[str] = field(default_factory=set)                                   # lists that surely hold few ids, or one that joins them
    handles: dict[TrackedHandle, str] = field(default_factory=dict)                # how lists of handles are spelled

    def _launch(self, launch: Launch, after: str | None, ends: str, *, replaces: bool = False) -> Iterator[c.Stmt]:
        creates = [one for one in launch.arguments
                   if (one.allocates if isinstance(one, Descriptor) else one.intermediate not in self.made)]
        names = self.scope.names if creates else self.scope.names.inner()     # what is created is known behind the launch
        body = tuple(self._submit(launch, after, names, creates, ends, replaces=replaces))
        yield from body if creates else (c.Block(body),)

    def _submit(self, launch: Launch, after: str | None, names: Names, creates: Sequence[Descriptor | Passed], ends: str, *,
                replaces: bool) -> Iterator[c.Stmt]:
        use = self.scope.plan.kernels[launch.kernel]
        placed: list[_Argument] = []
        for argument, param in zip(launch.arguments, use.kernel.memory_params, strict=True):
            yield from self._place(argument, param.name, launch, names, placed)
        task = names.take("task")
        yield c.Construct("pto_wsp::Arguments", task)
        for position, (argument, place) in enumerate(zip(launch.arguments, placed, strict=True)):
            role = Role.INOUT if argument not in creates and self.waits.looks_up(launch, position) else argument.role
            yield call(f"{task}.{_ADD[role]}", place.value)
        for value in launch.scalars:
            yield self._scalar(task, value)
        yield from self._told(launch, task, after, names, placed)
        submitted = c.Call("pto_wsp::submit_aic" if use.core is Unit.CUBE else "pto_wsp::submit_aiv", (c.Int(launch.kernel), c.Name(task)))
        made = names.take("made")
        kept = bool(creates or ends or self.waits.is_named(launch))
        yield c.Declare("auto", made, submitted) if kept else c.Evaluate(submitted)
        for position, one in enumerate(creates):
            if isinstance(one, Passed):
                self.made[one.intermediate] = self.scope.names.fresh(self.created[one.intermediate][0].name)
            name = self.made[one.intermediate] if isinstance(one, Passed) else self.scope.tensor(one.slot).text
            yield c.Declare("const pto_wsp::Tensor &", name, c.Call(f"{made}.get_ref", (c.Int(position),)))
        if replaces:
            self.short.add(ends)
            yield call(f"{ends}.clear")
        yield from self._remembered(launch, made, ends, placed)

    def _place(self, argument: Descriptor | Passed, param: str, launch: Launch, names: Names, placed: list[_Argument]) -> Iterator[c.Stmt]:
        """Declare what an argument needs, and add how it is spelled to `placed`."""
        if isinstance(argument, Passed):
            if argument.intermediate in self.made:
                name = c.Name(self.made[argument.intermediate])
                placed.append(_Argument(name, name, None, True))
                return
            own, depth = self.created[argument.intermediate]
            if argument.role is not Role.OUT or depth != self.depth:
                raise InternalError(f"intermediate `{own.name}` is not made by the first task that is given it", repr(launch))
            yield from self._new(c.c_ident(own.name), own.dtype, tuple(map(self.scope.extent, own.shape)), names, placed)
            return
        value = self.scope.tensor(argument.slot)
        if argument.allocates:
            ref = self.scope.plan.tensors[argument.slot].ref
            yield from self._new(value.text, ref.dtype, tuple(map(c.Int, ref.shape)), names, placed)
            return
        found = _Argument(value, c.Member(value, "shapes"), None, True)
        stem = c.c_ident(param)
        for position, step in enumerate(argument.steps):
            shape, view = c.Name(names.take(f"{stem}_shape")), c.Name(names.take(f"{stem}_view"))
            match step:
                case Window(offset, sizes):
                    yield extents_array(shape, map(self.scope.extent, sizes))
                    at = c.Name(names.take(f"{stem}_at"))
                    yield extents_array(at, map(self.scope.extent, offset))
                    viewed = c.Call(f"{value.text}.view", (shape, at))
                    found = _Argument(view, shape, at, True) if position == 0 else replace(found, value=view, is_exact=False)
                case Reshaped(whole):
                    self.scope.features.add("PTO_WSP_RESHAPES")
                    yield extents_array(shape, map(c.Int, whole))
                    viewed = c.Call("pto_wsp::reshape", (value, shape))
                    found = replace(found, value=view)
                case _:
                    assert_never(step)
            value = view
            yield c.Declare("const pto_wsp::Tensor", view.text, viewed)
        placed.append(found)

    def _new(self, name: str, dtype: DType, shape: Sequence[c.Expr], names: Names, placed: list[_Argument]) -> Iterator[c.Stmt]:
        """Declare a tensor that the runtime makes for the task."""
        extents, new = c.Name(names.take(f"{name}_shape")), c.Name(names.take(f"{name}_new"))
        self.scope.features.add("PTO_WSP_NEW_TENSORS")
        yield extents_array(extents, shape)
        yield c.Construct("pto_wsp::NewTensor", new.text, (extents, c.Int(len(shape)), runtime_dtype(dtype)))
        placed.append(_Argument(new, extents, None, True))

    def _scalar(self, task: str, value: ScalarValue) -> c.Stmt:
        if not value.dtype.is_float:
            return call("pto_wsp::add_integer", c.Name(task), self.scope.scalar(value.value))
        constant = _constant(value)
        if constant is not None:
            spelled: c.Expr = c.Float(constant, single=True)
            return call(f"{task}.add_scalar", spelled if np.isfinite(constant) else c.Cast("float", spelled))
        lowered = self.scope.scalar(value.value)
        if value.dtype in (DType.F16, DType.BF16):
            self.scope.features.add("PTO_WSP_HALVES")
            return call(f"{task}.add_scalar", c.Call(f"pto_wsp::round_{value.dtype}", (lowered,)))
        return call(f"{task}.add_scalar", c.Cast("float", lowered))

    # ---- edges ----

    def _told(self, launch: Launch, task: str, after: str | None, names: Names, placed: Sequence[_Argument]) -> Iterator[c.Stmt]:
        """Tell the runtime what the launch waits for beyond what its data says."""
        if not self.waits.tells(launch):
            return
        lists = [after] if launch.source in self.waits.order.waits and after is not None else []
        for handle in self.waits.handles.waits(launch.source):
            lists.append(self.handles[handle])
            if handle in self.waits.shared and is_many(self.waits.sizes[handle]):
                yield from self._join(lists[-1])
        readers = self.waits.reads.waits(launch)
        if len(lists) == 1 and not readers:
            yield call("pto_wsp::wait_for", c.Name(task), c.Name(lists[0]))
            return
        behind = names.take("behind")
        yield self._ids(behind)
        for name in lists:
            yield call(f"{behind}.add", c.Name(name))
        for resource in readers:
            match resource:
                case IntermediateOf():
                    yield call(f"{behind}.add", c.Name(self._readers(resource)))
                case TensorOf():
                    for place in _places(launch, placed, resource, writes=True):
                        yield call(f"{self._readers(resource)}.find", c.Name(behind), *place.box)
        yield call("pto_wsp::wait_for", c.Name(task), c.Name(behind))

    def _remembered(self, launch: Launch, made: str, ends: str, placed: Sequence[_Argument]) -> Iterator[c.Stmt]:
        """Keep a launch's id for those who wait for it, and what it has read; what it has written is no longer waited for."""
        task = c.Call(f"{made}.task_id", ())
        for name in (*((ends,) if ends else ()), *(self.handles[handle] for handle in self.waits.handles.collects(launch.source))):
            yield call(f"{name}.add", task)
        for resource in dict.fromkeys(resource_of(argument) for argument in launch.arguments if argument.role.writes):
            if resource not in self.waits.reads.tensors:
                continue
            match resource:
                case IntermediateOf():
                    yield call(f"{self._readers(resource)}.clear")
                case TensorOf():
                    for place in _places(launch, placed, resource, writes=True):
                        if place.is_exact:
                            yield call(f"{self._readers(resource)}.written", *place.box)
        for resource in self.waits.reads.remembered(launch):
            match resource:
                case IntermediateOf():
                    yield call(f"{self._readers(resource)}.add", task)
                case TensorOf():
                    for place in _places(launch, placed, resource, writes=False):
                        yield call(f"{self._readers(resource)}.add", task, *place.box)

    def _join(self, ids: str) -> Iterator[c.Stmt]:
        if ids not in self.short:
            self.short.add(ids)
            yield call("pto_wsp::join", c.Name(ids))

    def _list_name(self, stem: str) -> str:
        """Return the name of another list of ids."""
        return self.scope.names.take(stem)

    def _ids(self, name: str, value: str | None = None) -> c.Stmt:
        self.scope.features.add("PTO_WSP_EDGES")
        self.short.discard(name)
        return c.Construct(_IDS, name) if value is None else c.Declare(_IDS, name, c.Name(value))

    def _readers(self, resource: Resource) -> str:
        match resource:
            case TensorOf(slot):
                return f"readers_{self.scope.tensor(slot).text}"
            case IntermediateOf(intermediate):
                return f"readers_of_{intermediate}"


_ADD = {Role.IN: "add_input", Role.OUT: "add_output", Role.INOUT: "add_inout"}


def _places(launch: Launch, placed: Sequence[_Argument], resource: Resource, *, writes: bool) -> Iterator[_Argument]:
    """Yield where a launch writes a tensor, or where it reads it."""
    for argument, place in zip(launch.arguments, placed, strict=True):
        if resource_of(argument) == resource and (argument.role.writes if writes else argument.role is Role.IN):
            yield place


def extents_array(name: c.Name, values: Iterable[c.Expr]) -> c.Stmt:
    """Return the declaration of extents or offsets, as many as a tensor has dimensions."""
    spelled = tuple(values)
    return c.Declare("const uint32_t", name.text, c.Braces(spelled), array=(len(spelled),))


def runtime_dtype(dtype: DType) -> c.Expr:
    """What the runtime calls a dtype; elements of as many bytes where it has no word for it."""
    return c.Name(f"pto_wsp::dtype::{_DTYPES.get(dtype, str(dtype))}")


def is_many(bound: int | None) -> bool:
    """Tell whether a join needs fewer edges than naming each task does, where several tasks wait for the same ones."""
    return bound is None or bound > WORTH_JOINING


def call(function: str, *args: c.Expr) -> c.Evaluate:
    """Return a call as a statement."""
    return c.Evaluate(c.Call(function, args))


def _constant(value: ScalarValue) -> float | None:
    """Return the number that a float parameter is given, rounded to its dtype; None where it is known only at run time."""
    if not isinstance(value.value, s.Const):
        return None
    with np.errstate(over="ignore"):
        return float(np.asarray(float(value.value.value)).astype(value.dtype.np))
