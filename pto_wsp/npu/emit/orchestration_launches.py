"""Lower the launches of a plan to C++: views, arguments, stated edges and the submit call.

`FunctionScope` gives names and scalar expressions in one function, whose prologue declares the tensors and symbols that it uses.
`LaunchLowering` emits launches in such a scope.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import assert_never

import numpy as np

from pto_wsp.c import syntax as c
from pto_wsp.c.scalars import lower_scalar
from pto_wsp.errors import InternalError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel import Role
from pto_wsp.ir.layout import TensorRef
from pto_wsp.ir.plan import Check, ScalarValue, is_float_symbol
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.waits import TrackedHandle
from pto_wsp.npu.emit.kernel_cpp import Names
from pto_wsp.npu.plan.guards import Late
from pto_wsp.npu.plan.model import Descriptor, Intermediate, Launch, NpuPlan, Passed, Reshaped, Window
from pto_wsp.npu.plan.places import IntermediateOf, Resource, TensorOf, resource_of
from pto_wsp.npu.plan.waits import WORTH_JOINING, Waits
from pto_wsp.ops.entry import Unit
from pto_wsp.values import dataclass

# Names that a user's name must not hide: the runtime's, and those that the generator numbers.
_THEIRS = re.compile(r"[A-Z][A-Z0-9_]+|PTO\w*|pto\w*|\w+_t|\w+_(?:shape|at|view|new|made|value|frame|process)|"
                     r"(?:readers|handle|slot|wait)_\w+|rt_\w+|aicpu_\w+|Chip\w*|Core\w*|Tensor\w*|DataType|MixedKernels|inputs|task|made|id|self|network|stream|token|none|run|behind|after|ends|holds|std|main|get_tensor_data")
_C_TYPES: Mapping[DType, str] = {
    DType.I8: "int8_t", DType.I16: "int16_t", DType.I32: "int32_t", DType.I64: "int64_t", DType.U8: "uint8_t", DType.U16: "uint16_t",
    DType.U32: "uint32_t", DType.U64: "uint64_t", DType.BOOL: "uint8_t", DType.F32: "float", DType.F64: "double"}


@dataclass(slots=True)
class FunctionScope:
    """The names of a function and the arguments it has used so far. `features`: parts of the ABI header that the function needs."""

    plan: NpuPlan
    names: Names = field(default_factory=lambda: Names(theirs=_THEIRS))
    features: set[str] = field(default_factory=set)
    _tensors: dict[int, str] = field(default_factory=dict)         # by tensor id
    _symbols: dict[int, str] = field(default_factory=dict)
    _vars: dict[s.Var, str] = field(default_factory=dict)
    _used: set[str] = field(default_factory=set)
    _slots: set[int] = field(default_factory=set)
    _read: set[int] = field(default_factory=set)
    _asked: set[s.Var] = field(default_factory=set)
    held: dict[s.Scalar, c.Name] = field(default_factory=dict)     # elements read already, and the variables that hold them

    def __post_init__(self) -> None:
        for slot in self.plan.tensors:
            self._tensors[slot.ref.id] = self.names.fresh(slot.ref.shown)
        for symbol in self.plan.symbols:
            self._symbols[symbol.id] = self.names.fresh(symbol.name)

    def prologue(self) -> Iterator[c.Stmt]:
        """Yield declarations of the arguments used: tensors in order, then symbols, then slots."""
        given = (*(self._tensors[slot.ref.id] for slot in self.plan.arguments), *self._symbols.values())
        if self._used.isdisjoint(given):
            yield c.Evaluate(c.Cast("void", c.Name("inputs")))
        for position, slot in enumerate(self.plan.arguments):
            name = self._tensors[slot.ref.id]
            if name in self._used:
                yield c.Declare("const pto_wsp::Tensor &", name, c.Call(f"inputs.tensor({position}).ref", ()))
        for position, symbol in enumerate(self.plan.symbols):
            name = self._symbols[symbol.id]
            if name in self._used:
                is_float = is_float_symbol(symbol)
                yield c.Declare("const double" if is_float else "const int64_t", name,
                                c.Call("pto_wsp::number" if is_float else "pto_wsp::integer", (c.Name("inputs"), c.Int(position))))
        for number in sorted(self._slots):
            yield c.Declare("int64_t", self.slot(number).text, c.Int(0))
            if number not in self._read:
                yield c.Evaluate(c.Cast("void", self.slot(number)))

    def tensor(self, slot: int) -> c.Name:
        """Return the tensor of a slot, and mark it as used."""
        return self._use(self._tensors[self.plan.tensors[slot].ref.id])

    def tensor_name(self, tensor: TensorRef) -> str:
        """Return the name of a tensor."""
        return self._tensors[tensor.id]

    def loop_variable(self, var: s.Var, owner: str = "") -> str:
        """Return the name of a loop variable; `owner`: the prefix, with a dot, if a struct holds the variable."""
        if var not in self._vars:
            self._vars[var] = owner + self.names.fresh(var.name)
        return self._vars[var]

    def slot(self, number: int) -> c.Name:
        """Return the variable of an orchestrator slot."""
        self._slots.add(number)
        return c.Name(f"slot_{number}")

    def is_used(self, var: s.Var) -> bool:
        """Return whether an expression has used the variable so far."""
        return var in self._asked

    def let(self, var: s.Var, value: s.Scalar) -> Iterator[c.Stmt]:
        """Yield the declaration of a variable if the statements lowered before have used it."""
        if self.is_used(var):
            yield c.Declare("const int64_t", self.loop_variable(var), self.scalar(value))

    def scalar(self, node: s.Scalar) -> c.Expr:
        """Return a 64-bit or boolean expression."""
        return lower_scalar(node, self._leaf, wide=False)

    def once(self, node: s.Scalar, name: str) -> tuple[tuple[c.Stmt, ...], c.Expr]:
        """Return a loop bound as (declarations before the loop, expression); declared if an iteration may change its value."""
        value = self.scalar(node)
        if not any(isinstance(leaf, s.Element | s.SlotValue) for leaf in s.leaves(node)):
            return (), value
        once = self.names.take(name)
        return (c.Declare("const int64_t", once, value),), c.Name(once)

    def extent(self, node: s.Scalar) -> c.Expr:
        """Return a 32-bit expression, as extents and offsets need."""
        match node:
            case s.Const():
                return self.scalar(node)
            case s.DimOf(tensor, dim):
                return c.Index(c.Member(self._use(self._tensors[tensor.id]), "shapes"), c.Int(dim))
            case _:
                return c.Call("pto_wsp::u32", (self.scalar(node),))

    def _use(self, name: str) -> c.Name:
        self._used.add(name)
        return c.Name(name)

    def _leaf(self, node: s.Scalar) -> c.Expr:
        match node:
            case s.Var():
                self._asked.add(node)
                return c.Name(self.loop_variable(node))
            case s.SlotValue(slot):
                self._read.add(slot)
                return self.slot(slot)
            case s.Element() if node in self.held:
                return self.held[node]
            case s.SymbolRef(_, symbol):
                return self._use(self._symbols[symbol])
            case s.DimOf(tensor, dim):
                return c.Cast("int64_t", c.Index(c.Member(self._use(self._tensors[tensor.id]), "shapes"), c.Int(dim)))
            case s.StrideOf(tensor, dim):
                return c.Cast("int64_t", c.Index(c.Member(self._use(self._tensors[tensor.id]), "strides"), c.Int(dim)))
            case s.Element(tensor, index):
                self.features.add("PTO_WSP_ELEMENTS")
                if tensor.dtype not in _C_TYPES:
                    raise InternalError(f"an element of `{tensor.shown}` is read, whose dtype is {tensor.dtype}")
                read = c.Call(f"pto_wsp::element<{_C_TYPES[tensor.dtype]}>",
                              (self._use(self._tensors[tensor.id]), *(self.scalar(i) for i in index)))
                return c.Cast("double" if tensor.dtype.is_float else "int64_t", read)
            case _:
                raise InternalError(f"{print_scalar(node)} in a plan")


def unless_within(check: Check, scope: FunctionScope, left: c.Return, *end: str) -> c.Stmt:
    """Return a statement that leaves the function with a message on stderr if a check fails. `end`: a text that says how the run ends."""
    said = (f"{check.span.short}: {check.subject}: {check.kind.value}", *end)
    bounds = (scope.scalar(node) for node in (check.value, check.lower, check.upper))
    return c.If(c.Prefix("!", c.Call("pto_wsp::within", (*bounds, *map(text_literal, said)))), (left,))


def text_literal(text: str) -> c.Name:
    """Return a C string literal of `text`."""
    def spelled(byte: int) -> str:
        plain = 32 <= byte < 127 and chr(byte) not in '"\\?'
        return chr(byte) if plain else f"\\{byte:03o}"
    return c.Name('"' + "".join(map(spelled, text.encode())) + '"')


# -- launches --------------------------------------------------------------------------------------


_IDS = "pto_wsp::Ids"
_DTYPES = {DType.BOOL: "b8", DType.FP8E4M3: "f8e4m3", DType.FP8E5M2: "u8", DType.F64: "u64"}  # dtypes whose runtime name differs from ours


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


@dataclass(slots=True)
class LaunchLowering:
    """Lowers launches in the scope of their function."""

    scope: FunctionScope
    waits: Waits
    late: Late
    created: dict[int, tuple[Intermediate, int]] = field(default_factory=dict)     # by id, with the number of loops around its scope
    made: dict[int, str] = field(default_factory=dict)                             # names of intermediates that a task has allocated
    depth: int = 0
    short: set[str] = field(default_factory=set)  # lists that surely have few ids, or one id that joins them
    handles: dict[TrackedHandle, str] = field(default_factory=dict)                # C++ names of the handles' lists

    def _launch(self, launch: Launch, after: str | None, ends: str, *, replaces: bool = False) -> Iterator[c.Stmt]:
        creates = [one for one in launch.arguments
                   if (one.allocates if isinstance(one, Descriptor) else one.intermediate not in self.made)]
        names = self.scope.names if creates else self.scope.names.inner()     # a created tensor outlives the launch's own block
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
        """Yield the declarations that an argument needs, and append its C++ to `placed`."""
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
        """Yield the declarations of a tensor that the runtime allocates for the task."""
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

    # -- edges

    def _told(self, launch: Launch, task: str, after: str | None, names: Names, placed: Sequence[_Argument]) -> Iterator[c.Stmt]:
        """Yield the calls that state the edges of a launch."""
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
        """Yield the calls that record a launch's id for later waits and its reads, and that clear the readers of what it writes."""
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
        """Return the name of a new id list."""
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
    """Yield the windows in which a launch writes a tensor, or reads it."""
    for argument, place in zip(launch.arguments, placed, strict=True):
        if resource_of(argument) == resource and (argument.role.writes if writes else argument.role is Role.IN):
            yield place


def extents_array(name: c.Name, values: Iterable[c.Expr]) -> c.Stmt:
    """Return the declaration of an array of extents or offsets, one per dimension."""
    spelled = tuple(values)
    return c.Declare("const uint32_t", name.text, c.Braces(spelled), array=(len(spelled),))


def runtime_dtype(dtype: DType) -> c.Expr:
    """Return the runtime's name of a dtype; for a dtype it lacks, a dtype of equal size."""
    return c.Name(f"pto_wsp::dtype::{_DTYPES.get(dtype, str(dtype))}")


def is_many(bound: int | None) -> bool:
    """Return whether a join saves edges if several tasks wait for a set of that size."""
    return bound is None or bound > WORTH_JOINING


def call(function: str, *args: c.Expr) -> c.Evaluate:
    """Return a call as a statement."""
    return c.Evaluate(c.Call(function, args))


def _constant(value: ScalarValue) -> float | None:
    """Return the constant of a float argument, rounded to its dtype; None if it is known only at run time."""
    if not isinstance(value.value, s.Const):
        return None
    with np.errstate(over="ignore"):
        return float(np.asarray(float(value.value.value)).astype(value.dtype.np))
