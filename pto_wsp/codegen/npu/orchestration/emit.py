"""The orchestration of a package: what holds is checked, then tasks are submitted, in program order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pto_wsp.codegen.c import syntax as c
from pto_wsp.codegen.c.printer import print_stmts
from pto_wsp.codegen.c.strings import comment_text
from pto_wsp.codegen.c.syntax import c_ident
from pto_wsp.codegen.npu.orchestration.pipelines import PipelineLowering
from pto_wsp.codegen.npu.orchestration.scalars import FunctionScope, unless_within
from pto_wsp.codegen.render import CComment, CIdent, Unit, render
from pto_wsp.errors import raise_all
from pto_wsp.plan.model import Check, is_float_symbol
from pto_wsp.plan.npu.directions import tensor_directions
from pto_wsp.plan.npu.edges.waits import waits_of
from pto_wsp.plan.npu.guards import Guard, GuardFork, GuardLet, GuardLoop, GuardSlot, guards_of
from pto_wsp.plan.npu.late import Late
from pto_wsp.plan.npu.model import Network, NpuPlan
from pto_wsp.plan.npu.split.limits import runtime_errors
from pto_wsp.plan.npu.walk import items_of


class _OrchestrationUnit(Unit):
    """What orchestration.cpp.j2 prints."""

    name: CComment
    tensors: tuple[CComment, ...]
    features: tuple[CIdent, ...]
    headers: tuple[str, ...]
    functions: tuple[str, ...]
    n_arguments: int
    body: tuple[str, ...]


def orchestration_headers(plan: NpuPlan) -> tuple[str, ...]:
    """Return the headers of the package that its orchestration includes, in order; they lie in csrc/npu."""
    has_pipelines = any(isinstance(item, Network) for item in items_of(plan.body))
    return ("pto_wsp_abi.h", "pto_wsp_channels.h") if has_pipelines else ("pto_wsp_abi.h",)


def orchestration_path(plan: NpuPlan) -> str:
    """Return the file's place in the package."""
    return f"orchestration/{c_ident(plan.name)}.cpp"


def emit_orchestration(plan: NpuPlan, runtime: str = "tensormap_and_ringbuffer") -> str:
    """Return the C++ file that submits the tasks of a plan.

    Raises: N101 where the plan reads elements of tensors while tasks are made, and the runtime cannot.
    """
    raise_all(runtime_errors(plan, runtime))
    entry, late = FunctionScope(plan), Late(plan)
    body = PipelineLowering(entry, waits_of(plan), late).whole()
    checked = FunctionScope(plan)
    guards = tuple(_guards(guards_of(plan, late), checked))
    asked = (c.If(c.Prefix("!", c.Call("holds", (c.Name("inputs"),))), (c.Return(),)),) if guards else ()
    unit = _OrchestrationUnit(
        name=plan.name, tensors=tuple(_arguments(plan)), features=tuple(sorted(entry.features | checked.features)),
        headers=orchestration_headers(plan),
        functions=tuple(_holds(guards, checked)), n_arguments=len(plan.arguments) + len(plan.symbols),
        body=_lines((*asked, *entry.prologue(), *body)))
    return render("ascend_npu/orchestration.cpp.j2", unit)


def _arguments(plan: NpuPlan) -> Iterator[str]:
    """What the orchestration is given, a line each."""
    for position, (slot, role) in enumerate(zip(plan.arguments, tensor_directions(plan), strict=True)):
        yield f"tensor {position}: {comment_text(slot.ref.shown)} {list(slot.ref.shape)} {slot.ref.dtype} {role.value.upper()}"
    for position, symbol in enumerate(plan.symbols):
        yield f"scalar {position}: {comment_text(symbol.name)}, {'the bits of an f32' if is_float_symbol(symbol) else 'an integer'}"


def _holds(guards: Sequence[c.Stmt], scope: FunctionScope) -> Iterator[str]:
    if guards:
        lines = _lines((*scope.prologue(), *guards, c.Return(c.Name("true"))))
        says = "// What must hold for every task to stay inside its tensors."
        yield "\n".join((says, "static bool holds(const pto_wsp::Inputs &inputs) {", *lines, "}"))


def _guards(guards: Sequence[Guard], scope: FunctionScope) -> Iterator[c.Stmt]:
    for position, guard in enumerate(guards):
        match guard:
            case Check():
                yield unless_within(guard, scope, c.Return(c.Name("false")))
            case GuardLoop(var, start, stop, step, body):
                low, name = scope.scalar(start), scope.loop_variable(var)
                (before, high), (also, by) = scope.once(stop, f"{name}_stop"), scope.once(step, f"{name}_step")
                yield from (*before, *also)
                yield c.For("int64_t", name, low, high, by, tuple(_guards(body, scope)), wraps=c.may_wrap(high, by))
            case GuardLet(var, value):
                rest = tuple(_guards(guards[position + 1:], scope))
                yield from (*scope.let(var, value), *rest)
                return
            case GuardFork(condition, then, other):
                asked = scope.scalar(condition)
                yield c.If(asked, tuple(_guards(then, scope)), tuple(_guards(other, scope)))
            case GuardSlot(slot, value):
                yield c.Assign(scope.slot(slot), scope.scalar(value))


def _lines(body: Sequence[c.Stmt]) -> tuple[str, ...]:
    return tuple(print_stmts(body, 1, comment="//"))
