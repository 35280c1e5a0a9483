"""Trace pto.print: show a value while a kernel runs. Python's `print` of a tile or scalar in a kernel's body means the same.

While a kernel is traced, `builtins.print` is a function that hands calls with such a value to pto.print, and passes all others on:
those of other threads too, in which no kernel is traced. A `print` that a module keeps under a name of its own is not seen; the tile then
refuses to become text, and its error names pto.print.
"""

from __future__ import annotations

import builtins
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from pto_wsp.calls import user_call
from pto_wsp.errors import ArgumentKindError, ArityError
from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.symbolic import Symbolic
from pto_wsp.ir.tile import indices, part_name
from pto_wsp.ops.entry import is_active
from pto_wsp.source import here
from pto_wsp.trace.kernel.memory import valid_part
from pto_wsp.trace.kernel.stack import TileStack
from pto_wsp.trace.kernel.tile_value import TensorParamRef, is_tile
from pto_wsp.trace.kernel.trace import KernelTrace, current_kernel


@user_call("pto.print")
def print_(*values: object, valid: object = None) -> None:
    """Print a tile or scalar as it is at this point of the task: pto.print(v), or pto.print("label", v).

    The text appears when the run is synchronized, in program order of the tasks; `k.run` prints at once. Large tiles are shortened
    as NumPy shortens them. `valid`: only the first (rows, cols) of a tile are shown, scalars of the kernel or None for all.
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
    if isinstance(value, TileStack):
        extents = valid_part(trace, "print", valid)
        for index, part in zip(indices(value.leading), value.parts, strict=True):
            trace.append(k.Print(trace.next_print(), part_name(label, index), _operand(trace, part), *extents, span=here()))
        return
    trace.append(k.Print(trace.next_print(), label, _operand(trace, value), *valid_part(trace, "print", valid), span=here()))


def _operand(trace: KernelTrace, value: object) -> k.Operand:
    if is_tile(value):
        return trace.read(value).value
    node = trace.number("`pto.print`", value)
    return k.ScalarOperand(node, s.scalar_dtype(node))


# -- Python's print ----------------------------------------------------------------------------------------------------
_LOCK = threading.Lock()
_installed: list[tuple[Callable[..., None], Callable[..., None]]] = []      # (print of a trace, the print it stands for), one a trace


@contextmanager
def python_print_traced() -> Iterator[None]:
    """Make Python's `print` trace pto.print of tiles and scalars, inside a `with` block in which a kernel is traced."""
    with _LOCK:
        passed_on = _installed[-1][1] if _installed else builtins.print
        hook = _installed[-1][0] if _installed else _hook(passed_on)
        _installed.append((hook, passed_on))
        if len(_installed) == 1:
            builtins.print = hook
    try:
        yield
    finally:
        with _LOCK:
            _installed.pop()
            if not _installed and builtins.print is hook:
                builtins.print = passed_on


def _hook(passed_on: Callable[..., None]) -> Callable[..., None]:
    def print(*values: object, **options: object) -> None:
        if is_active() and any(_is_traced(value) for value in values):
            _print_traced(values, options)
        else:
            passed_on(*values, **options)
    return print


def _is_traced(value: object) -> bool:
    return is_tile(value) or isinstance(value, TileStack | Symbolic | TensorParamRef)


def _print_traced(values: tuple[object, ...], options: Mapping[str, object]) -> None:
    """Trace one pto.print a value, whose label is the text before it; text behind the last value belongs to that one.

    Raises: T101 for an option of print, which would have to act when the kernel runs.
    """
    if options:
        raise ArityError("`print` of a tile has no options: the text appears when the run is synchronized", here(),
                         expected="print(\"label\", value)", found=", ".join(f"{name}={value!r}" for name, value in options.items()))
    label: list[str] = []
    last = max(place for place, value in enumerate(values) if _is_traced(value))
    for place, value in enumerate(values):
        if not _is_traced(value):
            label.append(str(value))
            continue
        behind = map(str, values[last + 1:]) if place == last else ()
        print_(" ".join((*label, *behind)), value)
        label.clear()
