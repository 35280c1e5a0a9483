"""Names and scalar expressions of an orchestration's function: what of the tensors and symbols it uses is declared at its top."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field

from pto_wsp.codegen.c import syntax as c
from pto_wsp.codegen.c.scalars import lower_scalar
from pto_wsp.codegen.npu.names import Names
from pto_wsp.errors import InternalError
from pto_wsp.plan.model import Check, is_float_symbol
from pto_wsp.plan.npu.model import NpuPlan
from pto_wsp.types import scalar as s
from pto_wsp.types.dtype import DType
from pto_wsp.types.layout import TensorRef
from pto_wsp.types.scalar_text import print_scalar
from pto_wsp.values import dataclass

# What a user's name must not hide: the runtime's, and what the generator numbers itself.
_THEIRS = re.compile(r"[A-Z][A-Z0-9_]+|PTO\w*|pto\w*|\w+_t|\w+_(?:shape|at|view|new|made|value|frame|process)|"
                     r"(?:readers|handle|slot|wait)_\w+|rt_\w+|aicpu_\w+|Chip\w*|Core\w*|Tensor\w*|DataType|MixedKernels|inputs|task|made|id|self|network|stream|token|none|run|behind|after|ends|holds|std|main|get_tensor_data")
_C_TYPES: Mapping[DType, str] = {
    DType.I8: "int8_t", DType.I16: "int16_t", DType.I32: "int32_t", DType.I64: "int64_t", DType.U8: "uint8_t", DType.U16: "uint16_t",
    DType.U32: "uint32_t", DType.U64: "uint64_t", DType.BOOL: "uint8_t", DType.F32: "float", DType.F64: "double"}


@dataclass(slots=True)
class FunctionScope:
    """What a function of the file calls things, and what it has used so far. `features`: parts of the ABI header that it needs."""

    plan: NpuPlan
    names: Names = field(default_factory=lambda: Names(theirs=_THEIRS))
    features: set[str] = field(default_factory=set)
    _tensors: dict[int, str] = field(default_factory=dict)         # by the tensor's id
    _symbols: dict[int, str] = field(default_factory=dict)
    _vars: dict[s.Var, str] = field(default_factory=dict)
    _used: set[str] = field(default_factory=set)
    _slots: set[int] = field(default_factory=set)
    _read: set[int] = field(default_factory=set)
    _asked: set[s.Var] = field(default_factory=set)
    held: dict[s.Scalar, c.Name] = field(default_factory=dict)     # elements that were read already, and what holds them

    def __post_init__(self) -> None:
        for slot in self.plan.tensors:
            self._tensors[slot.ref.id] = self.names.fresh(slot.ref.shown)
        for symbol in self.plan.symbols:
            self._symbols[symbol.id] = self.names.fresh(symbol.name)

    def prologue(self) -> Iterator[c.Stmt]:
        """What was used of the function's arguments: tensors in order, then symbols."""
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
        """Return the tensor in a slot."""
        return self._use(self._tensors[self.plan.tensors[slot].ref.id])

    def tensor_name(self, tensor: TensorRef) -> str:
        """Return what a tensor is called."""
        return self._tensors[tensor.id]

    def loop_variable(self, var: s.Var, owner: str = "") -> str:
        """Return the name of a loop's variable; `owner` is what holds it, with a dot, where it is declared elsewhere."""
        if var not in self._vars:
            self._vars[var] = owner + self.names.fresh(var.name)
        return self._vars[var]

    def slot(self, number: int) -> c.Name:
        """Return what holds a slot of the orchestrator."""
        self._slots.add(number)
        return c.Name(f"slot_{number}")

    def is_used(self, var: s.Var) -> bool:
        """Tell whether a variable was asked for so far."""
        return var in self._asked

    def let(self, var: s.Var, value: s.Scalar) -> Iterator[c.Stmt]:
        """Yield the declaration of a variable, where what stands behind it has asked for it."""
        if self.is_used(var):
            yield c.Declare("const int64_t", self.loop_variable(var), self.scalar(value))

    def scalar(self, node: s.Scalar) -> c.Expr:
        """Return an expression of 64 bits, or a truth value."""
        return lower_scalar(node, self._leaf, wide=False)

    def once(self, node: s.Scalar, name: str) -> tuple[tuple[c.Stmt, ...], c.Expr]:
        """Return an expression that is evaluated in every turn of a loop, declared before it where a turn may change it."""
        value = self.scalar(node)
        if not any(isinstance(leaf, s.Element | s.SlotValue) for leaf in s.leaves(node)):
            return (), value
        once = self.names.take(name)
        return (c.Declare("const int64_t", once, value),), c.Name(once)

    def extent(self, node: s.Scalar) -> c.Expr:
        """Return an expression of 32 bits, as extents and offsets are."""
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
    """Return a statement that leaves the function where a check does not hold, and says so on stderr, and how that ends."""
    said = (f"{check.span.short}: {check.subject}: {check.kind.value}", *end)
    bounds = (scope.scalar(node) for node in (check.value, check.lower, check.upper))
    return c.If(c.Prefix("!", c.Call("pto_wsp::within", (*bounds, *map(text_literal, said)))), (left,))


def text_literal(text: str) -> c.Name:
    """Return a C string that holds `text`."""
    def spelled(byte: int) -> str:
        plain = 32 <= byte < 127 and chr(byte) not in '"\\?'
        return chr(byte) if plain else f"\\{byte:03o}"
    return c.Name('"' + "".join(map(spelled, text.encode())) + '"')
