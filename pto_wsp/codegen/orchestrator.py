"""Lower a plan's body to the C orchestrator: loops stay loops, each task is bound, checked, ordered and submitted.

Program order, where the plan asks for it, travels in a C variable: `after` holds the node that whatever comes next must wait for
(-1: nothing). A task waits for it and becomes it; the iterations of an unordered loop all start from it and end in a join.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from pto_wsp.codegen.c import syntax as c
from pto_wsp.codegen.c.dtypes import loaded, memory_type
from pto_wsp.codegen.c.scalars import lower_scalar
from pto_wsp.errors import InternalError
from pto_wsp.plan.handles import HandleUses, handle_uses
from pto_wsp.plan.model import Check, Item, Loop, Place, Sequence, Sides, Submit, TaskPlan, is_float_symbol
from pto_wsp.types import scalar as s
from pto_wsp.types.dtype import DType

_Parts: TypeAlias = Callable[[str | None, str | None], Iterator[c.Stmt]]
# Types, macros and functions that the generated text may see, and what it numbers itself: loop variables, joins, handles.
_OURS = re.compile(r"\w+_t|\w+_\d+|mem\w+")
_STATUS = c.Member(c.Name("sink"), "status", arrow=True)


def lower_orchestrator(plan: TaskPlan) -> tuple[c.Stmt, ...]:
    """Return the statements of the orchestrator's body; it has `bound` and `sink` for parameters."""
    return _Lowering(plan).whole()


@dataclass(slots=True)
class _Lowering:
    plan: TaskPlan
    tensors: Mapping[int, str] = field(init=False)
    symbols: Mapping[int, str] = field(init=False)
    handles: HandleUses = field(init=False)
    loops: list[s.Var] = field(default_factory=list)
    n_checks: int = 0
    n_names: int = 0

    def __post_init__(self) -> None:
        taken = {"bound", "sink", "args", "task", "index", "scalars", "order", "after", "behind", "node", "task_index"}
        self.tensors = {slot.ref.id: _fresh(slot.ref.shown, taken) for slot in self.plan.tensors}
        self.symbols = {symbol.id: _fresh(symbol.name, taken) for symbol in self.plan.symbols}
        self.handles = handle_uses(self.plan)

    def whole(self) -> tuple[c.Stmt, ...]:
        return (*self._prologue(), *self._sequence(self.plan.body, "after" if self.plan.structure else None, needed=False),
                c.Return(_STATUS))

    def _prologue(self) -> Iterator[c.Stmt]:
        bound = c.Name("bound")
        for k, slot in enumerate(self.plan.tensors):
            place = c.Prefix("&", c.Index(c.Member(bound, "tensors", arrow=True), c.Int(k)))
            yield c.Declare("const pto_tensor *", self.tensors[slot.ref.id], place)
        for k, symbol in enumerate(self.plan.symbols):
            raw = c.Index(c.Member(bound, "symbols", arrow=True), c.Int(k))
            is_float = is_float_symbol(symbol)
            yield c.Declare("const double" if is_float else "const int64_t", self.symbols[symbol.id],
                            c.Call("pto_slot_f64", (raw,)) if is_float else raw)
        yield c.Declare("int64_t", "task_index", c.Int(0))
        yield c.Evaluate(c.Cast("void", c.Name("task_index")))
        if self.plan.structure:
            yield c.Declare("int64_t", "after", c.Int(-1))
        if not self.plan.tensors and not self.plan.symbols:
            yield c.Evaluate(c.Cast("void", bound))

    # ---- structure ----

    def _sequence(self, body: Sequence, after: str | None, *, needed: bool) -> Iterator[c.Stmt]:
        """Items in order. `needed`: somebody waits for what `after` holds at the end."""
        for position, item in enumerate(body.items):
            later = needed or position + 1 < len(body.items)
            yield from self._collecting(body, position, self._item(item, after, needed=later))

    def _collecting(self, body: Sequence | Sides, position: int, item: Iterable[c.Stmt]) -> Iterator[c.Stmt]:
        """One item of a body, with joins around it for the handles that tasks behind it wait for."""
        closing = self.handles.closed_after(body, position)
        for handle in closing:
            yield from self._join_open(handle.variable)
        yield from item
        for handle in closing:
            yield from self._join_close(handle.variable, c.Int(-1), handle.variable)

    def _item(self, item: Item, after: str | None, *, needed: bool) -> Iterator[c.Stmt]:
        match item:
            case Submit():
                yield c.Comment(f"{item.span.short}: {self.plan.kernels[item.kernel].kernel.name}[{', '.join(item.labels)}]")
                yield c.Block(tuple(self._submit(item, after)))
            case Loop():
                yield from self._loop(item, after, needed=needed)
            case Sequence():
                yield from self._sequence(item, after, needed=needed)
            case Sides():
                yield from self._free(after, needed, lambda inner, join: self._sides(item, after, inner, join))
            case _:
                raise InternalError(f"{type(item).__name__} in a plan")

    def _loop(self, loop: Loop, after: str | None, *, needed: bool) -> Iterator[c.Stmt]:
        yield from self._checks(loop.checks)
        name = self._var(loop.var)
        start, stop, step = self._scalar(loop.start), self._scalar(loop.stop), self._scalar(loop.step)

        def around(body: tuple[c.Stmt, ...]) -> c.For:
            return c.For("int64_t", name, start, stop, step, body, wraps=c.may_wrap(stop, step))

        yield c.Comment(f"{loop.span.short}: for {loop.var.name}")
        self.loops.append(loop.var)
        if loop.ordered:
            body = tuple(self._sequence(loop.body, after, needed=True))
            self.loops.pop()
            yield around(body)
            return

        def iteration(inner: str | None, join: str | None) -> Iterator[c.Stmt]:
            yield around(tuple(self._side(loop.body, after, inner, join)))
        yield from self._free(after, needed, iteration)
        self.loops.pop()

    def _free(self, after: str | None, needed: bool, body: _Parts) -> Iterator[c.Stmt]:
        """Unordered parts: each starts from `after`; when somebody needs their end, it is a join of all of theirs."""
        if after is None:
            yield from body(None, None)
            return
        inner = self._name("after")
        if not needed:
            yield from body(inner, None)
            return
        join = self._name("join")
        yield from self._join_open(join)
        yield from body(inner, join)
        yield from self._join_close(join, c.Name(after), after)

    def _side(self, body: Sequence, after: str | None, inner: str | None, join: str | None) -> Iterator[c.Stmt]:
        """One unordered part: its own `after`, added to the join if it made a task."""
        if after is None or inner is None:
            yield from self._sequence(body, None, needed=False)
            return
        yield c.Declare("int64_t", inner, c.Name(after))
        yield from self._sequence(body, inner, needed=join is not None)
        if join is not None:
            moved = c.Infix("!=", c.Name(inner), c.Name(after))
            added = c.Call("sink->join_add", (c.Name("sink"), c.Name(join), c.Name(inner)))
            yield c.If(c.Infix("&&", moved, added), (c.Return(_STATUS),))

    def _sides(self, whole: Sides, after: str | None, inner: str | None, join: str | None) -> Iterator[c.Stmt]:
        for position, side in enumerate(whole.sides):
            yield from self._collecting(whole, position, (c.Block(tuple(self._side(side, after, inner, join))),))

    # ---- tasks ----

    def _submit(self, task: Submit, after: str | None) -> Iterator[c.Stmt]:
        yield from self._checks(task.checks)
        use = self.plan.kernels[task.kernel]
        n_args = len(task.places)
        if n_args:
            yield c.Declare("pto_arg", "args", array=(n_args,))
        for k, (place, param) in enumerate(zip(task.places, use.kernel.memory_params, strict=True)):
            dtype = self.plan.tensors[place.slot].ref.dtype
            yield c.Evaluate(self._bind(k, place, dtype, param.role.reads, param.role.writes))
        scalars = tuple(self._slot(value.value, value.dtype) for value in task.scalars)
        order = () if after is None else (c.Name(after),)
        behind = tuple(c.Name(handle.variable) for handle in self.handles.waits(task.site))
        arrays: list[tuple[str, c.Expr]] = []
        for name, values in (("scalars", scalars), ("index", tuple(self._scalar(i) for i in task.index)), ("order", order),
                             ("behind", behind)):
            if values:
                yield c.Declare("const int64_t", name, c.Braces(values), array=(len(values),))
            arrays.append((name, c.Name(name) if values else c.Int(0)))
        pointers = dict(arrays)
        fields: tuple[c.Expr, ...] = (
            c.Int(task.kernel), c.Int(task.site), self._scalar(task.worker), self._scalar(task.cost), c.Int(n_args),
            c.Int(len(scalars)), c.Int(len(task.index)), c.Int(len(order)), c.Name("args") if n_args else c.Int(0),
            pointers["scalars"], pointers["index"], pointers["order"], c.Int(len(behind)), c.Int(0), pointers["behind"])
        yield c.Declare("const pto_task", "task", c.Braces(fields))
        yield c.Declare("const int64_t", "node", c.Call("sink->submit", (c.Name("sink"), c.Prefix("&", c.Name("task")))))
        yield c.If(c.Infix("<", c.Name("node"), c.Int(0)), (c.Return(_STATUS),))
        yield c.Assign(c.Name("task_index"), c.Int(1), "+=")
        if after is not None:
            yield c.Assign(c.Name(after), c.Name("node"))
        for handle in self.handles.collects(task.site):
            added = c.Call("sink->join_add", (c.Name("sink"), c.Name(handle.variable), c.Name("node")))
            yield c.If(added, (c.Return(_STATUS),))

    def _bind(self, position: int, place: Place, dtype: DType, reads: bool, writes: bool) -> c.Expr:
        flags = " | ".join(flag for flag, on in (("PTO_READ", reads), ("PTO_WRITE", writes)) if on)
        target = c.Prefix("&", c.Index(c.Name("args"), c.Int(position)))
        name = self.tensors[self.plan.tensors[place.slot].ref.id]
        return c.Call("pto_bind", (target, c.Name(name), self._scalar(place.offset), *(self._scalar(n) for n in place.extent),
                                   *(self._scalar(n) for n in place.stride), c.Name(flags), c.Int(dtype.nbytes)))

    def _slot(self, value: s.Scalar, dtype: DType) -> c.Expr:
        spelled = self._scalar(value)
        if not dtype.is_float:
            return spelled
        number: c.Expr = c.Cast("double", spelled)
        if dtype is DType.F32:
            number = c.Cast("double", c.Cast("float", spelled))
        elif dtype is not DType.F64:
            number = c.Cast("double", c.Call(f"pto_cast_f64_{dtype}", (number,)))
        return c.Call("pto_f64_slot", (number,))

    def _checks(self, checks: tuple[Check, ...]) -> Iterator[c.Stmt]:
        for check in checks:
            number, self.n_checks = self.n_checks, self.n_checks + 1
            bounds = tuple(self._scalar(node) for node in (check.value, check.lower, check.upper))
            loops = tuple(c.Name(self._var(var)) for var in self.loops)
            where: c.Expr = c.Braces(loops, "const int64_t[]") if loops else c.Int(0)
            failed = c.Call("pto_fail", (c.Name("sink"), c.Int(number), *bounds, where, c.Int(len(loops))))
            yield c.If(c.Prefix("!", c.Call("pto_within", bounds)), (c.Return(failed),))

    # ---- names and scalars ----

    def _scalar(self, node: s.Scalar) -> c.Expr:
        return lower_scalar(node, self._leaf)

    def _leaf(self, node: s.Scalar) -> c.Expr:
        match node:
            case s.Var():
                return c.Name(self._var(node))
            case s.TaskIndex():
                return c.Name("task_index")
            case s.SymbolRef(_, symbol):
                return c.Name(self.symbols[symbol])
            case s.DimOf(tensor, dim):
                return c.Index(c.Member(c.Name(self.tensors[tensor.id]), "dim", arrow=True), c.Int(dim))
            case s.StrideOf(tensor, dim):
                return c.Index(c.Member(c.Name(self.tensors[tensor.id]), "stride", arrow=True), c.Int(dim))
            case s.Element(tensor, index):
                offset: s.Scalar = s.Const(0)
                for dim, position in enumerate(index):
                    offset = s.add(offset, s.mul(position, s.StrideOf(tensor, dim)))
                data = c.Cast(f"const {memory_type(tensor.dtype)} *", c.Member(c.Name(self.tensors[tensor.id]), "data", arrow=True))
                wide = "double" if tensor.dtype.is_float else "int64_t"
                return c.Cast(wide, loaded(c.Index(data, self._scalar(offset)), tensor.dtype))
            case _:
                raise InternalError(f"{s.print_scalar(node)} in a plan")

    def _var(self, var: s.Var) -> str:
        stem = c.c_ident(var.name)
        own = stem in ("after", "join") or stem.startswith(("handle_", "pto_"))   # numbered by `_name` and handles
        return f"{stem}_{'v' * own}{var.id}"

    def _name(self, stem: str) -> str:
        self.n_names += 1
        return f"{stem}_{self.n_names}"

    def _join_open(self, name: str) -> Iterator[c.Stmt]:
        yield c.Declare("int64_t", name, c.Call("sink->join_open", (c.Name("sink"),)))
        yield c.If(c.Infix("<", c.Name(name), c.Int(0)), (c.Return(_STATUS),))

    def _join_close(self, join: str, empty: c.Expr, into: str) -> Iterator[c.Stmt]:
        yield c.Assign(c.Name(into), c.Call("sink->join_close", (c.Name("sink"), c.Name(join), empty)))
        yield c.If(_STATUS, (c.Return(_STATUS),))


def _fresh(name: str, taken: set[str]) -> str:
    """Return a C identifier like `name` that is not taken and not one of C's or the generator's own, and take it."""
    stem = c.c_ident(name)
    if stem.lower().startswith("pto_"):
        stem = "user_" + stem
    if _OURS.fullmatch(stem):
        stem += "_"
    found, count = stem, 2
    while found in taken:
        found, count = f"{stem}_v{count}", count + 1
    taken.add(found)
    return found
