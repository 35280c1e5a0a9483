"""Define `ptoisa`, the namespace of PTO ISA instructions that the body of a `@ptoisa_kernel` calls; destinations are the first operand.

In lower case an instruction declares its destination itself and returns it: `y = ptoisa.texp(x)`.

>>> ptoisa.TADD.__doc__
'Return x + y. dst = add(src0, src1), tiles of one shape.'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pto_wsp.errors import UnknownNameError
from pto_wsp.ops.other_names import instead_of
from pto_wsp.source import here
from pto_wsp.trace.kernel.instructions import CmpMode, Intrinsic, ValueForm, declare, instructions
from pto_wsp.wording import nearest


class IsaNamespace:
    """The instructions by name: `dir(ptoisa)` lists them, and `help(ptoisa.TADD)` describes one."""

    __slots__ = ("CmpMode", "_names")
    _names: Mapping[str, Callable[..., object]]
    CmpMode: type[CmpMode]

    def __init__(self) -> None:
        object.__setattr__(self, "_names", {"Tile": declare, **instructions()})
        object.__setattr__(self, "CmpMode", CmpMode)

    def __getattr__(self, name: str) -> Callable[..., object]:
        function = self._names.get(name)
        if function is not None:
            return function
        if name.startswith("__"):
            raise AttributeError(name)
        upper = self._names.get(name.upper()) if name.islower() else None
        if isinstance(upper, Intrinsic):
            return ValueForm(upper)
        near = nearest(name.upper(), self._names)
        raise UnknownNameError(f"`ptoisa` has no instruction `{name}`", here(), help=instead_of(name) or (
            f"did you mean ptoisa.{near}?" if near else "dir(ptoisa) lists the instructions"))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"ptoisa.{name} cannot be set")

    def __dir__(self) -> list[str]:
        return sorted([*self._names, "CmpMode"])

    def __repr__(self) -> str:
        return f"<ptoisa: {len(self._names)} instructions>"


ptoisa = IsaNamespace()
