"""`read_ir`: the IR that a text prints, held to the rules of what a trace gives."""

from __future__ import annotations

from typing import NoReturn

from pto_wsp.errors import DataFormatError, IrTextError, OwnBodyError, PtoError
from pto_wsp.ir.codec import check_types
from pto_wsp.ir.kernel import Kernel
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.ir.plan_tags import PLAN_TAGS
from pto_wsp.ir.workload import Workload
from pto_wsp.source import Span
from pto_wsp.trace.kernel_data import RefusedKernelError, check_as_traced
from pto_wsp.trace.plan_data import check_plan
from pto_wsp.trace.text.kernel import read_kernel
from pto_wsp.trace.text.lexer import Reader
from pto_wsp.trace.text.nodes import read_level
from pto_wsp.trace.workload_data import check_workload

_KINDS: dict[str, type[Workload] | type[TaskPlan] | None] = {"kernel": None, "workload": Workload, "plan": TaskPlan}


def read_ir(text: str, *, bodies: bool) -> Kernel | Workload | TaskPlan:
    """Return the IR that `text` prints. `bodies`: kernels may have bodies in C and C++.

    Raises: W116 for text that is no IR, or says what no trace gives; K107 for a body that is not allowed.
    """
    reader = Reader(text)
    start = reader.next
    try:
        if not start.text or start.text not in _KINDS:
            reader.fail("no IR begins like this" if start.text else "the text is empty", expected=f"one of {', '.join(_KINDS)}",
                        known=_KINDS)
        kind = _KINDS[start.text]
        made, kernels = read_level(reader, kind) if kind else ((kernel := read_kernel(reader)[1]), (kernel,))
        if reader.next.kind != "end":
            reader.fail(f"the {start.text} has ended, and the text goes on", expected="the end of the text")
        for kernel in kernels:
            _check_kernel(kernel, bodies=bodies)
        _check_level(reader, made, bodies=bodies)
        return made
    except RecursionError:
        raise IrTextError("this text is nested too deep", reader.span(start), expected="what str() of an IR writes") from None


def _check_kernel(kernel: Kernel, *, bodies: bool) -> None:
    """Raise W116, at the statement, for a kernel that no trace gives.

    Raises: K107 for a body that is not allowed.
    """
    try:
        check_as_traced(kernel, bodies=bodies, door="parse")
    except RefusedKernelError as refused:
        _refuse(f"kernel `{kernel.name}`", refused.problem, refused.span)


def _check_level(reader: Reader, made: Kernel | Workload | TaskPlan, *, bodies: bool) -> None:
    """Raise W116 for a workload or plan that is none.

    Raises: K107 for a body that is not allowed.
    """
    try:
        match made:
            case Workload():
                check_types(made)
                check_workload(made, bodies=bodies)
            case TaskPlan():
                check_types(made, PLAN_TAGS)
                check_plan(made)
            case Kernel():
                pass
    except OwnBodyError:
        raise
    except PtoError as problem:
        _refuse(f"this {'workload' if isinstance(made, Workload) else 'plan'}", problem, Span(reader.file, 1))


def _refuse(what: str, problem: PtoError, span: Span) -> NoReturn:
    if isinstance(problem, DataFormatError):
        raise IrTextError(f"{what}: no trace gives this", span, expected=problem.expected, found=problem.found,
                          notes=problem.notes) from None
    raise IrTextError(f"{what}: {problem.message}", span, expected=problem.expected, found=problem.found, help=problem.help,
                      notes=(f"of a trace, this is {problem.code}",)) from None
