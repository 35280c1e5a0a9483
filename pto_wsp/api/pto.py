"""Define `pto`, the namespace that kernel bodies call, from the op table and the front end.

>>> pto.exp.__doc__
'Return e to the power x.'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Signature
from types import MappingProxyType

from pto_wsp.errors import UnknownNameError
from pto_wsp.ops.entry import Operand
from pto_wsp.ops.other_names import instead_of, similar_to
from pto_wsp.ops.spec import Op
from pto_wsp.ops.table import ENTRIES, FORMULAS, FUNCTIONS
from pto_wsp.source import here
from pto_wsp.trace.kernel import control as kernel_control
from pto_wsp.trace.kernel import memory as kernel_memory
from pto_wsp.trace.kernel import picked_rows as kernel_rows
from pto_wsp.trace.kernel.printing import print_


class OpFunction:
    """An op as a function, which traces the op when a kernel's body calls it."""

    def __init__(self, op: Op, name: str) -> None:
        self._op = op
        self.__name__ = name
        self.__qualname__ = f"pto.{name}"
        self.__doc__ = op.doc

    @property
    def __signature__(self) -> Signature:
        return self._op.signature

    def __call__(self, *args: object, **kwargs: object) -> Operand:
        return self._op(*args, **kwargs)

    def __repr__(self) -> str:
        return f"pto.{self.__name__}{self.__signature__}"


def members() -> Mapping[str, Callable[..., object]]:
    """Return every name of `pto` with its function."""
    members: dict[str, Callable[..., object]] = {}
    for op in ENTRIES:
        for name in (op.name, *op.aliases):
            members[name] = OpFunction(op, name)
    for function in FUNCTIONS:
        members[function.__name__] = function
    members |= {alias: formula.call for formula in FORMULAS for alias in formula.aliases}
    members |= {function.__name__: function for function in (kernel_rows.gather, kernel_rows.scatter, kernel_rows.scatter_add)}
    members |= {"load": kernel_memory.load, "store": kernel_memory.store, "alloc": kernel_memory.alloc, "item": kernel_memory.item,
                "range": kernel_control.range_, "when": kernel_control.when, "otherwise": kernel_control.otherwise, "print": print_}
    return MappingProxyType(members)


class PtoNamespace:
    """The operations of kernels, by name: `dir(pto)` lists them, and `help(pto.exp)` describes one."""

    __slots__ = ("_names",)
    _names: Mapping[str, Callable[..., object]]

    def __init__(self) -> None:
        object.__setattr__(self, "_names", members())

    def __getattr__(self, name: str) -> Callable[..., object]:
        function = self._names.get(name)
        if function is not None:
            return function
        if name.startswith("__"):
            raise AttributeError(name)
        raise UnknownNameError(f"`pto` has no `{name}`", here(),
                               help=instead_of(name) or similar_to(name, self._names) or "dir(pto) lists the names")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"pto.{name} cannot be set")

    def __dir__(self) -> list[str]:
        return sorted(self._names)

    def __repr__(self) -> str:
        return f"<pto: {len(self._names)} operations of kernels>"


pto = PtoNamespace()
