"""The names, scalar expressions and variables of an orchestration's functions in C++, and its guards.

`FunctionScope` gives names and scalar expressions in one function, whose prologue declares the tensors and symbols that it uses.
`LoweringState` adds what is known of the plan's body at the statement being lowered, with the frame of its process.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from pto_wsp.c import syntax as c
from pto_wsp.c.resume import ResumableFrame
from pto_wsp.c.scalars import lower_scalar
from pto_wsp.errors import InternalError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.flow import Choice, Do, Loop, assignments
from pto_wsp.ir.layout import TensorRef
from pto_wsp.ir.names import Names
from pto_wsp.ir.plan import Check, is_float_symbol
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.waits import TrackedHandle
from pto_wsp.npu.emit.kernel_cpp import cpp_ident
from pto_wsp.npu.plan.guards import Guard, GuardLet, Late
from pto_wsp.npu.plan.model import Intermediate, NpuPlan
from pto_wsp.npu.plan.places import IntermediateOf, Resource, TensorOf
from pto_wsp.npu.plan.waits import Waits
from pto_wsp.values import dataclass

# Names that a user's name must not hide: the runtime's, and those that the generator numbers.
_THEIRS = re.compile(r"[A-Z][A-Z0-9_]+|PTO\w*|pto\w*|\w+_t|\w+_(?:shape|at|view|new|made|value|frame|process)|"
                     r"(?:readers|handle|slot|wait)_\w+|rt_\w+|aicpu_\w+|Chip\w*|Core\w*|Tensor\w*|DataType|MixedKernels|inputs|task|made|id|self|network|stream|token|none|run|behind|after|ends|holds|std|main|get_tensor_data")
_C_TYPES: Mapping[DType, str] = {
    DType.I8: "int8_t", DType.I16: "int16_t", DType.I32: "int32_t", DType.I64: "int64_t", DType.U8: "uint8_t", DType.U16: "uint16_t",
    DType.U32: "uint32_t", DType.U64: "uint64_t", DType.BOOL: "uint8_t", DType.F32: "float", DType.F64: "double"}
_DTYPES = {DType.BOOL: "b8", DType.FP8E4M3: "f8e4m3", DType.FP8E5M2: "u8", DType.F64: "u64"}  # dtypes whose runtime name differs from ours
_IDS = "pto_wsp::Ids"
SELF = "self."


def cpp_name(wanted: str) -> str:
    """Return a C++ identifier close to the user's name `wanted` that neither the runtime nor the generator owns."""
    return cpp_ident(wanted, _THEIRS)


@dataclass(slots=True)
class FunctionScope:
    """The names of a function and the arguments it has used so far. `features`: parts of the ABI header that the function needs."""

    plan: NpuPlan
    names: Names = field(default_factory=Names)
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
            self._tensors[slot.ref.id] = self.names.take(cpp_name(slot.ref.shown))
        for symbol in self.plan.symbols:
            self._symbols[symbol.id] = self.names.take(cpp_name(symbol.name))

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
            self._vars[var] = owner + self.names.take(cpp_name(var.name))
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


def extents_array(name: c.Name, values: Iterable[c.Expr]) -> c.Stmt:
    """Return the declaration of an array of extents or offsets, one per dimension."""
    spelled = tuple(values)
    return c.Declare("const uint32_t", name.text, c.Braces(spelled), array=(len(spelled),))


def runtime_dtype(dtype: DType) -> c.Expr:
    """Return the runtime's name of a dtype; for a dtype it lacks, a dtype of equal size."""
    return c.Name(f"pto_wsp::dtype::{_DTYPES.get(dtype, str(dtype))}")


def call(function: str, *args: c.Expr) -> c.Evaluate:
    """Return a call as a statement."""
    return c.Evaluate(c.Call(function, args))


# -- the state of a body ---------------------------------------------------------------------------


@dataclass(slots=True)
class LoweringState:
    """What is known at the statement being lowered. A variable that outlives a wait is a field of `frame`; all others are local."""

    scope: FunctionScope
    waits: Waits
    late: Late
    leave: c.Return = field(default_factory=c.Return)                              # ends the function
    created: dict[int, tuple[Intermediate, int]] = field(default_factory=dict)     # by id, with the number of loops around its scope
    made: dict[int, str] = field(default_factory=dict)                             # names of intermediates that a task has allocated
    depth: int = 0
    short: set[str] = field(default_factory=set)  # lists that surely have few ids, or one id that joins them
    handles: dict[TrackedHandle, str] = field(default_factory=dict)                # C++ names of the handles' lists
    frame: ResumableFrame | None = None                 # of the current process; None outside, and in statements that never wait
    channels: dict[int, str] = field(default_factory=dict)
    events: dict[int, str] = field(default_factory=dict)
    nothing: str = ""                             # id list of a process without program order

    # -- lists of task ids

    def list_name(self, stem: str) -> str:
        """Return the name of a new id list."""
        name = self.scope.names.take(stem)
        return name if self.frame is None else SELF + name

    def ids(self, name: str, value: str | None = None) -> c.Stmt:
        """Return the statement that starts an id list, empty or with the ids of the list `value`."""
        self.scope.features.add("PTO_WSP_EDGES")
        self.short.discard(name)
        if self.frame is None:
            return c.Construct(_IDS, name) if value is None else c.Declare(_IDS, name, c.Name(value))
        self.keep(name, _IDS)
        return call(f"{name}.clear") if value is None else c.Assign(c.Name(name), c.Name(value))

    def readers(self, resource: Resource) -> str:
        """Return the name of the list of a tensor's readers."""
        match resource:
            case TensorOf(slot):
                return f"readers_{self.scope.tensor(slot).text}"
            case IntermediateOf(intermediate):
                return f"readers_of_{intermediate}"

    # -- variables

    def keep(self, name: str, type_: str) -> str:
        """Add a variable to the frame of the process, if there is one, and return its name."""
        if self.frame is not None:
            self.frame.fields[name.removeprefix(SELF)] = type_
        return name

    def frame_variable(self, var: s.Var) -> str:
        """Return the C++ name of a variable in the frame."""
        return self.keep(self.scope.loop_variable(var, SELF), "int64_t")

    def counter(self, var: s.Var) -> tuple[str, str]:
        """Return the type of a loop variable, empty if it is declared already, and its name."""
        return ("int64_t", self.scope.loop_variable(var)) if self.frame is None else ("", self.frame_variable(var))

    def once(self, node: s.Scalar, name: str) -> tuple[tuple[c.Stmt, ...], c.Expr]:
        """Return the statements that compute a loop bound before the loop, and its expression."""
        before, value = self.scope.once(node, name)
        if self.frame is None or not isinstance(value, c.Name) or not before:
            return before, value
        kept = c.Name(self.keep(SELF + value.text, "int64_t"))
        return tuple(c.Assign(kept, one.init) for one in before if isinstance(one, c.Declare) and one.init is not None), kept

    def let(self, var: s.Var, value: s.Scalar) -> Iterator[c.Stmt]:
        """Yield the declaration of the variable of a sparse lead, in each iteration."""
        if self.frame is None:
            yield from self.scope.let(var, value)
        elif self.scope.is_used(var):
            yield c.Assign(c.Name(self.scope.loop_variable(var, SELF)), self.scope.scalar(value))
            self.frame_variable(var)


# -- guards ---------------------------------------------------------------------------------------


def lower_guards(guards: Sequence[Guard], scope: FunctionScope) -> Iterator[c.Stmt]:
    """Yield the statements of a function that returns false, with a message, if a guard fails."""
    for position, guard in enumerate(guards):
        match guard:
            case Do(Check() as check):
                yield unless_within(check, scope, c.Return(c.Name("false")))
            case Loop(var, start, stop, step, body=body):
                low, name = scope.scalar(start), scope.loop_variable(var)
                (before, high), (also, by) = scope.once(stop, f"{name}_stop"), scope.once(step, f"{name}_step")
                yield from (*before, *also)
                yield c.For("int64_t", name, low, high, by, tuple(lower_guards(body.items, scope)), wraps=c.may_wrap(high, by))
            case Do(GuardLet(var, value)):
                rest = tuple(lower_guards(guards[position + 1:], scope))
                yield from (*scope.let(var, value), *rest)
                return
            case Choice((way,), other):
                asked = scope.scalar(way.condition)
                yield c.If(asked, tuple(lower_guards(way.body.items, scope)), tuple(lower_guards(other.items, scope)))
            case _:
                yield from (c.Assign(scope.slot(place.slot), scope.scalar(value)) for place, value in assignments(guard))
