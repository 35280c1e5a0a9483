"""Lower the body of a plan to C++: loops stay loops, each launch gets its views, its arguments and what it waits for.

Program order, where it has to be told, travels in a list of ids, `after`: what the next statement waits for. The turns of an unordered
loop all start from it, and what they end with takes its place behind the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from typing import assert_never

import numpy as np

from pto_wsp.codegen.c import syntax as c
from pto_wsp.codegen.npu.names import Names
from pto_wsp.codegen.npu.orchestration.scalars import FunctionScope
from pto_wsp.errors import InternalError
from pto_wsp.expr.kernel import Role
from pto_wsp.ops.entry import Unit
from pto_wsp.plan.model import ScalarValue
from pto_wsp.plan.npu.between_tasks import allocated_by_launches
from pto_wsp.plan.npu.edges.order import last_tasks
from pto_wsp.plan.npu.edges.readers import IntermediateOf, Resource, TensorOf, resource_of
from pto_wsp.plan.npu.edges.statements import Statement, Task, n_launches, statements
from pto_wsp.plan.npu.edges.waits import MOST_DEPENDENCIES, Waits
from pto_wsp.plan.npu.model import Block, Descriptor, Intermediate, Launch, NpuItem, Passed, Repeat, Reshaped, Scope, Unordered, Window
from pto_wsp.plan.npu.walk import launches_of
from pto_wsp.types import scalar as s
from pto_wsp.types.dtype import DType

_IDS = "pto_wsp::Ids"
_DTYPES = {DType.BOOL: "b8", DType.FP8E4M3: "u8", DType.FP8E5M2: "u8", DType.F64: "u64"}    # the others are called as they are here


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
class BodyLowering:
    """Lowers a plan's body in the scope of its function."""

    scope: FunctionScope
    waits: Waits
    created: dict[int, tuple[Intermediate, int]] = field(default_factory=dict)     # by id, with how many loops are around its scope
    made: dict[int, str] = field(default_factory=dict)                             # names of those that a task has made
    depth: int = 0
    short: set[str] = field(default_factory=set)                                   # lists that surely hold no more ids than a task can name

    def whole(self) -> tuple[c.Stmt, ...]:
        """Return the statements of the body."""
        plan = self.scope.plan
        after = self.scope.names.take("after") if self.waits.order.waits else None
        body = tuple(self._block(plan.body, after))
        opening: list[c.Stmt] = []
        for resource in self.waits.reads.bounds:
            if isinstance(resource, TensorOf):
                self.scope.features.add("PTO_WSP_EDGES")
                opening.append(c.Construct(f"pto_wsp::Readers<{plan.tensors[resource.slot].ref.rank}>", self._readers(resource)))
        if after is not None:
            opening.append(self._ids(after))
        return (*opening, *body)

    # ---- structure ----

    def _block(self, block: Block, after: str | None) -> Iterator[c.Stmt]:
        parts = statements(block)
        for position, statement in enumerate(parts):
            for handle in self.waits.handles.closed_after(block, position):
                yield self._ids(handle.variable)
            yield from self._statement(statement, after, alone=block is self.scope.plan.body and len(parts) == 1)

    def _statement(self, statement: Statement, after: str | None, *, alone: bool) -> Iterator[c.Stmt]:
        match statement:
            case Task():
                yield from self._task(statement, after, alone=alone)
            case Repeat():
                yield from self._repeat(statement, after)
            case Scope(body=body):
                yield from self._scope(statement, partial(self._block, body, after), implicit=alone)
            case Block():
                yield from self._block(statement, after)
            case Unordered():
                yield from self._sides(statement, after)
            case _:
                assert_never(statement)

    def _repeat(self, loop: Repeat, after: str | None) -> Iterator[c.Stmt]:
        yield c.Comment(f"{loop.span.short}: for {loop.var.name}")
        yield from self._joined(after, loop.body)
        if after is None or not self._is_named(loop.body):
            yield from self._for(loop, partial(self._block, loop.body, after), {after})
        elif loop.ordered:
            yield from self._for(loop, partial(self._block, loop.body, after), set())
        else:
            ends = self.scope.names.take("ends") if self._is_waited_for(loop.body) else ""
            if ends:
                yield self._ids(ends)
            yield from self._for(loop, partial(self._turn, loop.body, after, ends), {after})
            if ends:
                yield self._replaced(after, ends)

    def _sides(self, whole: Unordered, after: str | None) -> Iterator[c.Stmt]:
        for side in whole.sides:
            yield from self._joined(after, side)
        ends = self.scope.names.take("ends") if after is not None and any(map(self._is_waited_for, whole.sides)) else ""
        if ends:
            yield self._ids(ends)
        for position, side in enumerate(whole.sides):
            for handle in self.waits.handles.closed_after(whole, position):
                yield self._ids(handle.variable)
            yield from self._block(side, None) if after is None else self._turn(side, after, ends)
        if ends and after is not None:
            yield self._replaced(after, ends)

    def _turn(self, body: Block, after: str, ends: str) -> Iterator[c.Stmt]:
        """One of several parts without an order: it starts from `after` and adds what it ends with to `ends`, where that is asked for."""
        if not self._is_named(body):
            yield from self._block(body, after)
            return
        parts = statements(body)
        if len(parts) == 1 and isinstance(parts[0], Task) and not self.waits.handles.closed_after(body, 0):
            yield from self._task(parts[0], after, alone=False, ends=ends)
            return
        inner = self.scope.names.take("after")
        yield self._ids(inner, after)
        if after in self.short:
            self.short.add(inner)
        yield from self._block(body, inner)
        if ends:
            yield _call(f"{ends}.add", c.Name(inner))

    def _replaced(self, after: str, ends: str) -> c.Stmt:
        """What came last is what comes next waits for; where nothing came, it waits as before."""
        self.short.discard(after)
        return c.If(c.Infix(">", c.Call(f"{ends}.size", ()), c.Int(0)), (c.Assign(c.Name(after), c.Name(ends)),))

    def _joined(self, after: str | None, body: Block) -> Iterator[c.Stmt]:
        """Several tasks wait for the same others: many of those are joined once, before."""
        bounds = [self.waits.order.waits.get(launch.source, 0) for launch in launches_of(body)]
        if after is not None and any(map(_is_many, bounds)):
            yield from self._join(after)

    def _is_waited_for(self, body: Block) -> bool:
        """Tell whether something is told to wait for what a body ends with."""
        return not self.waits.order.counts.isdisjoint(last_tasks(body))

    def _is_named(self, body: Block) -> bool:
        """Tell whether something is told to wait for anything in a body."""
        return any(launch.source in self.waits.order.counts for launch in launches_of(body))

    def _for(self, loop: Repeat, body: Callable[[], Iterator[c.Stmt]], unchanged: AbstractSet[str | None]) -> Iterator[c.Stmt]:
        """A loop. `unchanged`: lists that its turns leave alone, of those that this function knows about."""
        names, short = self.scope.names, self.short
        self.scope.names, self.short = names.inner(), {name for name in short if name in unchanged}
        start, stop, step = (self.scope.scalar(bound) for bound in (loop.start, loop.stop, loop.step))
        name = self.scope.loop_variable(loop.var)
        if any(isinstance(leaf, s.Element) for leaf in s.leaves(loop.stop)):      # read once, and not in every turn
            once = names.take(f"{name}_stop")
            yield c.Declare("const int64_t", once, stop)
            stop = c.Name(once)
        self.depth += 1
        inner = tuple(body())
        self.depth -= 1
        self.scope.names, self.short = names, {name for name in short if name in unchanged}
        yield c.For("int64_t", name, start, stop, step, inner, wraps=c.may_wrap(stop, step))

    def _scope(self, scope: Scope, body: Callable[[], Iterator[c.Stmt]], *, implicit: bool) -> Iterator[c.Stmt]:
        """A scope of the runtime, where anything is allocated in it that does not live to the end anyway."""
        self.created.update({own.id: (own, self.depth) for own in scope.intermediates})
        opening = tuple(self._ids(self._readers(IntermediateOf(own.id))) for own in scope.intermediates
                        if IntermediateOf(own.id) in self.waits.reads.bounds)
        if implicit or not (scope.intermediates or scope.tensors):
            yield from (*self._allocated(scope), *opening, *body())
            return
        names = self.scope.names
        self.scope.names = names.inner()
        yield c.Block((*self._allocated(scope), *opening, *body()), "PTO_WSP_SCOPE")
        self.scope.names = names

    def _allocated(self, scope: Scope) -> Iterator[c.Stmt]:
        """Tasks that make the workload's intermediate tensors: who writes one has to wait for its own."""
        plan, known = self.scope.plan, allocated_by_launches(scope.body)
        for slot in scope.tensors:
            if slot in known:
                continue
            if plan.allocate is None:
                raise InternalError("a tensor is no argument, and the plan has no kernel that makes it")
            self.scope.features.add("PTO_WSP_NEW_TENSORS")
            ref, tensor = plan.tensors[slot].ref, self.scope.tensor(slot)
            shape, made = (c.Name(self.scope.names.take(f"{tensor.text}_{what}")) for what in ("shape", "made"))
            yield c.Comment(f"{ref.dtype} {list(ref.shape)}, from task to task")
            yield _extents(shape, map(c.Int, ref.shape))
            yield c.Declare("auto", made.text, c.Call("pto_wsp::allocate", (c.Int(plan.allocate), shape, _dtype(ref.dtype))))
            yield c.Declare("const pto_wsp::Tensor &", tensor.text, c.Call(f"{made.text}.get_ref", (c.Int(0),)))

    # ---- tasks ----

    def _task(self, task: Task, after: str | None, *, alone: bool, ends: str = "") -> Iterator[c.Stmt]:
        """A task; where somebody waits for it, its ids are added to `ends`, or take the place of those in `after`."""
        first = task.launches[0]
        kernel = self.scope.plan.kernels[first.kernel].kernel.name
        yield c.Comment(f"{first.span.short}: {kernel}[{', '.join(first.labels)}]")
        if ends or after is None or task.source not in self.waits.order.counts:
            yield from self._parts(task.items, after, ends if task.source in self.waits.order.counts else "", alone=alone)
        elif len(task.items) == 1 and isinstance(task.items[0], Launch):
            yield from self._launch(task.items[0], after, after, replaces=True)
        else:
            own = self.scope.names.take("ends")
            yield self._ids(own)
            yield from self._parts(task.items, after, own, alone=alone)
            always = any(n_launches(item) not in (None, 0) for item in task.items)
            self.short.discard(after)
            yield c.Assign(c.Name(after), c.Name(own)) if always else self._replaced(after, own)

    def _parts(self, items: tuple[NpuItem, ...], after: str | None, ends: str, *, alone: bool) -> Iterator[c.Stmt]:
        for item in items:
            match item:
                case Launch():
                    yield from self._launch(item, after, ends)
                case Scope(body=inside):
                    yield from self._scope(item, partial(self._parts, inside.items, after, ends, alone=False),
                                           implicit=alone and len(items) == 1)
                case Repeat(body=body):
                    yield from self._for(item, partial(self._parts, body.items, after, ends, alone=False), {after})
                case Unordered(parts) | Block(parts):
                    yield from self._parts(parts, after, ends, alone=False)

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
        for argument, place in zip(launch.arguments, placed, strict=True):
            yield _call(f"{task}.{_ADD[argument.role]}", place.value)
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
            yield _call(f"{ends}.clear")
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
                    yield _extents(shape, map(self.scope.extent, sizes))
                    at = c.Name(names.take(f"{stem}_at"))
                    yield _extents(at, map(self.scope.extent, offset))
                    viewed = c.Call(f"{value.text}.view", (shape, at))
                    found = _Argument(view, shape, at, True) if position == 0 else replace(found, value=view, is_exact=False)
                case Reshaped(whole):
                    self.scope.features.add("PTO_WSP_RESHAPES")
                    yield _extents(shape, map(c.Int, whole))
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
        yield _extents(extents, shape)
        yield c.Construct("pto_wsp::NewTensor", new.text, (extents, c.Int(len(shape)), _dtype(dtype)))
        placed.append(_Argument(new, extents, None, True))

    def _scalar(self, task: str, value: ScalarValue) -> c.Stmt:
        if not value.dtype.is_float:
            return _call("pto_wsp::add_integer", c.Name(task), self.scope.scalar(value.value))
        constant = _constant(value)
        if constant is not None:
            spelled: c.Expr = c.Float(constant, single=True)
            return _call(f"{task}.add_scalar", spelled if np.isfinite(constant) else c.Cast("float", spelled))
        lowered = self.scope.scalar(value.value)
        if value.dtype in (DType.F16, DType.BF16):
            self.scope.features.add("PTO_WSP_HALVES")
            return _call(f"{task}.add_scalar", c.Call(f"pto_wsp::round_{value.dtype}", (lowered,)))
        return _call(f"{task}.add_scalar", c.Cast("float", lowered))

    # ---- edges ----

    def _told(self, launch: Launch, task: str, after: str | None, names: Names, placed: Sequence[_Argument]) -> Iterator[c.Stmt]:
        """Tell the runtime what the launch waits for beyond what its data says."""
        if not self.waits.tells(launch):
            return
        lists: list[tuple[str, int | None]] = []
        if launch.source in self.waits.order.waits and after is not None:
            lists.append((after, self.waits.order.waits[launch.source]))
        lists += [(handle.variable, self.waits.sizes[handle]) for handle in self.waits.handles.waits(launch.source)]
        for name, bound in lists:
            if _is_many(bound):
                yield from self._join(name)
        readers = self.waits.reads.waits(launch)
        if len(lists) == 1 and not readers:
            yield _call("pto_wsp::wait_for", c.Name(task), c.Name(lists[0][0]))
            return
        behind = names.take("behind")
        yield self._ids(behind)
        for name, _ in lists:
            yield _call(f"{behind}.add", c.Name(name))
        for resource in readers:
            match resource:
                case IntermediateOf():
                    yield _call(f"{behind}.add", c.Name(self._readers(resource)))
                case TensorOf():
                    for place in _places(launch, placed, resource, writes=True):
                        yield _call(f"{self._readers(resource)}.find", c.Name(behind), *place.box)
        if _is_many(self.waits.bound(launch)):
            yield from self._join(behind)
        yield _call("pto_wsp::wait_for", c.Name(task), c.Name(behind))

    def _remembered(self, launch: Launch, made: str, ends: str, placed: Sequence[_Argument]) -> Iterator[c.Stmt]:
        """Keep a launch's id for those who wait for it, and what it has read; what it has written is no longer waited for."""
        task = c.Call("pto_wsp::id_of", (c.Name(made),))
        for name in (*((ends,) if ends else ()), *(handle.variable for handle in self.waits.handles.collects(launch.source))):
            yield _call(f"{name}.add", task)
        for resource in dict.fromkeys(resource_of(argument) for argument in launch.arguments if argument.role.writes):
            if resource not in self.waits.reads.bounds:
                continue
            match resource:
                case IntermediateOf():
                    yield _call(f"{self._readers(resource)}.clear")
                case TensorOf():
                    for place in _places(launch, placed, resource, writes=True):
                        if place.is_exact:
                            yield _call(f"{self._readers(resource)}.written", *place.box)
        for resource in self.waits.reads.remembered(launch):
            match resource:
                case IntermediateOf():
                    yield _call(f"{self._readers(resource)}.add", task)
                case TensorOf():
                    for place in _places(launch, placed, resource, writes=False):
                        yield _call(f"{self._readers(resource)}.add", task, *place.box)

    def _join(self, ids: str) -> Iterator[c.Stmt]:
        if self.scope.plan.join is None:
            raise InternalError("a task may have to wait for many others, and the plan has no kernel to join them")
        if ids not in self.short:
            self.short.add(ids)
            yield _call("pto_wsp::join", c.Name(ids), c.Int(self.scope.plan.join))

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


def _extents(name: c.Name, values: Iterable[c.Expr]) -> c.Stmt:
    spelled = tuple(values)
    return c.Declare("const uint32_t", name.text, c.Braces(spelled), array=(len(spelled),))


def _dtype(dtype: DType) -> c.Expr:
    """What the runtime calls a dtype; elements of as many bytes where it has no word for it."""
    return c.Call(f"pto_wsp::dtype::{_DTYPES.get(dtype, str(dtype))}", ())


def _is_many(bound: int | None) -> bool:
    return bound is None or bound > MOST_DEPENDENCIES


def _call(function: str, *args: c.Expr) -> c.Evaluate:
    return c.Evaluate(c.Call(function, args))


def _constant(value: ScalarValue) -> float | None:
    """Return the number that a float parameter is given, rounded to its dtype; None where it is known only at run time."""
    if not isinstance(value.value, s.Const):
        return None
    with np.errstate(over="ignore"):
        return float(np.asarray(float(value.value.value)).astype(value.dtype.np))
