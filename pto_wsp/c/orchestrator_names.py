"""Name the variables of an orchestrator's C text, decide their storage, and lower scalars and checks in terms of them.

A process returns whenever it waits, so variables that outlive a wait are fields of its frame (`self->x`). Variables of the main program
that processes read are fields of the shared struct (`run->x`). All other variables are local.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field

from pto_wsp.c import syntax as c
from pto_wsp.c.resume import ResumableFrame
from pto_wsp.c.scalars import as_it_is, load_element, lower_scalar, memory_type
from pto_wsp.errors import InternalError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.flow import Pipeline, walk
from pto_wsp.ir.layout import TensorRef
from pto_wsp.ir.names import Names
from pto_wsp.ir.plan import Check, TaskPlan, is_float_symbol
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.waits import Reads
from pto_wsp.values import dataclass

SELF = c.Name("self")
PROCESS = c.Member(SELF, "process", arrow=True)
RUN = c.Name("run")
ALL_TASKS = "all_tasks"     # open join of a process whose event waits for all of its tasks


@dataclass(slots=True)
class Frame(ResumableFrame):
    """The frame of the process being lowered, which begins with what all processes have."""

    fields: dict[str, str] = field(default_factory=lambda: {"process": "pto_process"})
    locals: set[str] = field(default_factory=set)
    is_local: bool = False         # the current statement never waits: its variables end with it
    records: bool = False          # an event of this process waits for all of its tasks


@dataclass(slots=True)
class Variables:
    """The variables of one orchestrator. `shared`: variables of the main program that processes read."""

    shared: frozenset[str] = frozenset()
    run: dict[str, str] = field(default_factory=dict)         # types of the shared variables declared so far, by name
    wanted: set[str] = field(default_factory=set)             # variables of the main program that processes have read
    frame: Frame | None = None

    def declare(self, type_: str, name: str, value: c.Expr) -> Iterator[c.Stmt]:
        """Yield the declaration or assignment that gives a variable its value."""
        if self._lives_on(type_, name):
            yield c.Assign(self.ref(name), value)
        else:
            yield c.Declare(type_, name, value)

    def counter(self, name: str) -> tuple[str, str]:
        """Return the type of a loop variable, empty if it needs no declaration, and its C text."""
        if not self._lives_on("int64_t", name):
            return "int64_t", name
        return "", f"{'run' if self.frame is None else 'self'}->{name}"

    def ref(self, name: str) -> c.Expr:
        """Return the expression of a declared variable."""
        if self.frame is None:
            return c.Member(RUN, name, arrow=True) if name in self.shared else c.Name(name)
        if name == "after":
            return c.Member(PROCESS, "after", arrow=False)
        if name in self.frame.fields:
            return c.Member(SELF, name, arrow=True)
        if name in self.frame.locals:
            return c.Name(name)
        self.wanted.add(name)
        return c.Member(RUN, name, arrow=True)

    def keep(self, name: str) -> None:
        """Add an integer variable to the frame of the process, 0 at its start."""
        if self.frame is not None:
            self.frame.fields.setdefault(name, "int64_t")

    def _lives_on(self, type_: str, name: str) -> bool:
        kept = type_.removeprefix("const ")
        if self.frame is None:
            if name in self.shared:
                self.run[name] = kept
            return name in self.shared
        if self.frame.is_local:
            self.frame.locals.add(name)
            return False
        self.frame.fields[name] = kept
        return True


# -- names -----------------------------------------------------------------------------------------


STATUS = c.Member(c.Name("sink"), "status", arrow=True)
# Types, macros and functions that are visible to the generated text, and names with the generator's numbers.
_OURS = re.compile(r"\w+_t|\w+_\d+|mem\w+")
_TAKEN = frozenset((
    "bound", "sink", "args", "task", "index", "scalars", "order", "after", "behind", "node", "task_index", "reads", "waited", "run", "self",
    "pipeline", "process", "channels", "events", "kinds", "payload", "before", "token", "all_tasks", "shared", "nothing"))


@dataclass(slots=True)
class CNames:
    """The names of one orchestrator. A variable is declared with `declare` and read with `ref`."""

    plan: TaskPlan
    tensors: Mapping[int, str] = field(init=False)      # by tensor id: pointers; the struct itself for a tensor of a body
    symbols: Mapping[int, str] = field(init=False)
    fresh: frozenset[int] = field(init=False)           # ids of the tensors that bodies allocate
    reads: Reads = field(init=False)
    variables: Variables = field(default_factory=Variables)
    touched: set[int | str] = field(default_factory=set)      # tensors by id and symbols by name that the text uses
    positions: Mapping[tuple[str, int], int] = field(init=False)    # positions of channels and events in their pipeline, by kind and number
    loops: list[s.Var] = field(default_factory=list)    # variables of the loops around the current statement
    n_checks: int = 0
    n_names: int = 0

    def __post_init__(self) -> None:
        given = Names(_TAKEN, numbered="{}_v{}".format)
        self.tensors = {slot.ref.id: given.take(_ident(slot.ref.shown)) for slot in self.plan.tensors}
        self.fresh = frozenset(slot.ref.id for slot in self.plan.tensors if slot.fresh)
        self.reads = Reads.of(self.plan)
        pipelines = tuple(item for item in walk(self.plan.body) if isinstance(item, Pipeline))
        self.positions = {(kind, number): position for pipeline in pipelines
                          for kind, numbers in (("channel", pipeline.channels), ("event", pipeline.events))
                          for position, number in enumerate(numbers)}
        self.symbols = {symbol.id: given.take(_ident(symbol.name)) for symbol in self.plan.symbols}

    # -- variables

    def declare(self, type_: str, name: str, value: c.Expr) -> Iterator[c.Stmt]:
        """Yield the declaration or assignment that gives a variable its value."""
        return self.variables.declare(type_, name, value)

    def ref(self, name: str) -> c.Expr:
        """Return the expression of a declared variable."""
        return self.variables.ref(name)

    @property
    def stream(self) -> c.Expr:
        """Return the stream that submits."""
        return c.Int(0) if self.variables.frame is None else c.Member(PROCESS, "stream")

    @property
    def task_index(self) -> c.Expr:
        """Return the number of tasks submitted so far by all streams."""
        return c.Member(RUN, "task_index", arrow=True) if self.plan.n_streams > 1 else c.Name("task_index")

    def new(self, stem: str) -> str:
        """Return a new name."""
        self.n_names += 1
        return f"{stem}_{self.n_names}"

    def var(self, var: s.Var) -> str:
        """Return the C name of a loop variable."""
        stem = c.c_ident(var.name)
        own = stem in ("after", "join", "slot", "stop", "step") or stem.startswith(("handle_", "pto_"))   # `new` and handles number these
        return f"{stem}_{'v' * own}{var.id}"

    def prologue(self, *, touched: bool = False) -> Iterator[c.Stmt]:
        """Yield declarations of the bound tensors and symbols; `touched`: only those that the text uses."""
        bound = c.Name("bound")
        for k, slot in enumerate(self.plan.tensors):
            if slot.fresh or (touched and slot.ref.id not in self.touched):
                continue
            place = c.Prefix("&", c.Index(c.Member(bound, "tensors", arrow=True), c.Int(k)))
            yield c.Declare("const pto_tensor *", self.tensors[slot.ref.id], place)
        for k, symbol in enumerate(self.plan.symbols):
            if touched and self.symbols[symbol.id] not in self.touched:
                continue
            raw = c.Index(c.Member(bound, "symbols", arrow=True), c.Int(k))
            is_float = is_float_symbol(symbol)
            yield c.Declare("const double" if is_float else "const int64_t", self.symbols[symbol.id],
                            c.Call("pto_slot_f64", (raw,)) if is_float else raw)

    # -- tensors

    def tensor(self, ref: TensorRef) -> c.Expr:
        """Return the pointer to a tensor."""
        self.touched.add(ref.id)
        return c.Prefix("&", self.ref(self.tensors[ref.id])) if ref.id in self.fresh else c.Name(self.tensors[ref.id])

    def field(self, ref: TensorRef, name: str) -> c.Expr:
        """Return a field of a tensor."""
        self.touched.add(ref.id)
        if ref.id in self.fresh:
            return c.Member(self.ref(self.tensors[ref.id]), name)
        return c.Member(c.Name(self.tensors[ref.id]), name, arrow=True)

    # -- scalars and checks

    def scalar(self, node: s.Scalar) -> c.Expr:
        """Return the C expression of a scalar."""
        return lower_scalar(node, self._leaf)

    def slot(self, value: s.Scalar, dtype: DType) -> c.Expr:
        """Return a scalar as a 64-bit slot: a float as the bits of a double, rounded to its dtype."""
        spelled = self.scalar(value)
        if not dtype.is_float:
            return spelled
        spelled = as_it_is(value, spelled)
        number: c.Expr = c.Cast("double", spelled)
        if dtype.is_float and not dtype.is_half and not dtype.is_double:
            number = c.Cast("double", c.Cast("float", spelled))
        elif dtype.is_half:
            number = c.Cast("double", c.Call(f"pto_cast_f64_{dtype}", (number,)))
        return c.Call("pto_f64_slot", (number,))

    def checks(self, checks: tuple[Check, ...]) -> Iterator[c.Stmt]:
        """Yield the comparison of each check, with a return of the failure's status."""
        for check in checks:
            number, self.n_checks = self.n_checks, self.n_checks + 1
            bounds = tuple(self.scalar(node) for node in (check.value, check.lower, check.upper))
            loops = tuple(self.ref(self.var(var)) for var in self.loops)
            where: c.Expr = c.Braces(loops, "const int64_t[]") if loops else c.Int(0)
            failed = c.Call("pto_fail", (c.Name("sink"), c.Int(number), *bounds, where, c.Int(len(loops))))
            yield c.If(c.Prefix("!", c.Call("pto_within", bounds)), (c.Return(failed),))

    def _leaf(self, node: s.Scalar) -> c.Expr:
        match node:
            case s.Var():
                return self.ref(self.var(node))
            case s.TaskIndex():
                return self.task_index
            case s.CalendarEntry(column):
                return c.Index(c.Index(c.Name("pto_calendar"), self.task_index), c.Int(column))
            case s.ReplicaIndex():
                return c.Member(PROCESS, "replica")
            case s.SlotValue(slot):
                return self.ref(f"slot_{slot}")
            case s.SymbolRef(_, symbol):
                self.touched.add(self.symbols[symbol])
                return c.Name(self.symbols[symbol])
            case s.DimOf(tensor, dim):
                return c.Index(self.field(tensor, "dim"), c.Int(dim))
            case s.StrideOf(tensor, dim):
                return c.Index(self.field(tensor, "stride"), c.Int(dim))
            case s.Element(tensor):
                data = c.Cast(f"const {memory_type(tensor.dtype)} *", self.field(tensor, "data"))
                wide = "double" if tensor.dtype.is_float else "int64_t"
                return c.Cast(wide, load_element(c.Index(data, self.scalar(self.reads.offset(node))), tensor.dtype))
            case _:
                raise InternalError(f"{print_scalar(node)} in a plan")


def _ident(name: str) -> str:
    """Return a C identifier close to `name` that neither C nor the generator owns."""
    stem = c.c_ident(name)
    if stem.lower().startswith("pto_"):
        stem = "user_" + stem
    return f"{stem}_" if _OURS.fullmatch(stem) else stem
