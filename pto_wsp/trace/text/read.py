"""`read_ir`: the IR that a text prints, held to the rules of what a trace gives."""

from __future__ import annotations

from typing import NoReturn

from pto_wsp.errors import DataFormatError, IrTextError, PtoError
from pto_wsp.ir.kernel import Kernel
from pto_wsp.source import Span
from pto_wsp.trace.kernel_data import RefusedKernelError, check_as_traced
from pto_wsp.trace.text.kernel import read_kernel
from pto_wsp.trace.text.lexer import Reader

_KINDS = ("kernel",)


def read_ir(text: str, *, bodies: bool) -> Kernel:
    """Return the IR that `text` prints. `bodies`: kernels may have bodies in C and C++.

    Raises: W116 for text that is no IR, or says what no trace gives; K107 for a body that is not allowed.
    """
    try:
        reader = Reader(text)
        if not reader.next.text:
            reader.fail("the text is empty", expected="a kernel")
        if reader.next.text not in _KINDS:
            reader.fail("no IR begins like this", expected=f"one of {', '.join(_KINDS)}", known=_KINDS)
        start = reader.next
        _, kernel = read_kernel(reader)
        if reader.next.kind != "end":
            reader.fail("the kernel has ended, and the text goes on", expected="the end of the text")
        check_kernel_text(kernel, bodies=bodies)
        return kernel
    except RecursionError:
        raise IrTextError("this text is nested too deep", Span(reader.file, start.line, start.column),
                          expected="what str() of an IR writes") from None


def check_kernel_text(kernel: Kernel, *, bodies: bool) -> None:
    """Raise W116, at the statement, for a kernel that no trace gives.

    Raises: K107 for a body that is not allowed.
    """
    try:
        check_as_traced(kernel, bodies=bodies, door="parse")
    except RefusedKernelError as refused:
        _refuse(kernel, refused.problem, refused.span)


def _refuse(kernel: Kernel, problem: PtoError, span: Span) -> NoReturn:
    if isinstance(problem, DataFormatError):
        raise IrTextError(f"kernel `{kernel.name}`: no trace gives this", span, expected=problem.expected, found=problem.found) from None
    raise IrTextError(f"kernel `{kernel.name}`: {problem.message}", span, expected=problem.expected, found=problem.found,
                      help=problem.help, notes=(f"of a trace, this is {problem.code}",)) from None
