"""Trace pto.print: show a value while a kernel runs."""

from __future__ import annotations

from pto_wsp.calls import user_call
from pto_wsp.errors import ArgumentKindError, ArityError
from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.source import here
from pto_wsp.trace.kernel.tile_value import is_tile
from pto_wsp.trace.kernel.trace import KernelTrace, current_kernel


@user_call("pto.print")
def print_(*values: object) -> None:
    """Print a tile or scalar as it is at this point of the task: pto.print(v), or pto.print("label", v).

    The text appears when the run is synchronized, in program order of the tasks; `k.run` prints at once. Large tiles are shortened
    as NumPy shortens them.
    Raises: T101, T213, T205 for anything else.
    """
    trace = current_kernel("print")
    if len(values) not in (1, 2):
        raise ArityError("`pto.print` takes one value", here(), expected="pto.print(value) or pto.print(\"label\", value)",
                         found=f"{len(values)} arguments")
    label, value = values if len(values) == 2 else ("", values[0])
    if not isinstance(label, str):
        raise ArgumentKindError("`pto.print`: the label is not a string", here(), expected="pto.print(\"label\", value)",
                                found=repr(label))
    trace.append(k.Print(trace.next_print(), label, _operand(trace, value), here()))


def _operand(trace: KernelTrace, value: object) -> k.Operand:
    if is_tile(value):
        return trace.read(value).value
    node = trace.number("`pto.print`", value)
    return k.ScalarOperand(node, s.scalar_dtype(node))
