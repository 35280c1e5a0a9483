"""What passes did, as files for `ir/`: a plan or a kernel before and after each, numbered in the order of the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pto_wsp.ir.kernel import Kernel
from pto_wsp.ir.kernel_text import print_kernel
from pto_wsp.ir.names import Names

Value = TypeVar("Value")
Dumps = dict[str, str]


def observer(dumps: Dumps, folder: str, show: Callable[[Value], str]) -> Callable[[str, Value, Value], None]:
    """Return an observer of passes that writes what it is told into `dumps`, under `ir/` and `folder`."""
    first = len(dumps)

    def observe(name: str, before: Value, after: Value) -> None:
        number = (len(dumps) - first) // 2
        for moment, value in (("before", before), ("after", after)):
            text = show(value)
            dumps[f"ir/{folder}{number:02}_{moment}_{name}.wsp"] = text if text.endswith("\n") else text + "\n"
    return observe


def kernels_observer(dumps: Dumps) -> Callable[[str, Kernel, Kernel], None]:
    """Return an observer of one kernel's passes after another's: a folder each, by name, and numbered where names repeat."""
    seen: set[str] = set()
    folders = Names()
    current: Callable[[str, Kernel, Kernel], None] | None = None

    def observe(name: str, before: Kernel, after: Kernel) -> None:
        nonlocal current
        if current is None or name in seen:
            seen.clear()
            current = observer(dumps, f"{folders.take(before.name)}/", print_kernel)
        seen.add(name)
        current(name, before, after)
    return observe
