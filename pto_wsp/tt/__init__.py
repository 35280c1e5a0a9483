"""What functions on whole tensors have beside NumPy: loops, state, branches, places, and every op of the table by its name.

    from pto_wsp import jit, tt
    from pto_wsp.tt.library import softmax

    out = tt.zeros((n, 64))
    for b in tt.each(n): ...

`dir(tt)` lists the names; those that are NumPy's too mean NumPy's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pto_wsp.trace.tensor.compiling import no_compile
from pto_wsp.trace.tensor.namespace import MEMBERS, member

if TYPE_CHECKING:
    from pto_wsp.trace.tensor.control import each, group, loop, otherwise, when
    from pto_wsp.trace.tensor.namespace import arange, assume, cast, empty, full, ones, random, rows_of, topk, zeros
    from pto_wsp.trace.tensor.namespace import print_ as print
else:      # a type checker would take any name for one of the module's
    def __getattr__(name: str) -> object:
        """Return an op of the table by its name."""
        if name.startswith("__"):
            raise AttributeError(name)
        return member(name)

__all__ = ["arange", "assume", "cast", "each", "empty", "full", "group", "loop", "no_compile", "ones", "otherwise", "print", "random",
           "rows_of", "topk", "when", "zeros"]


def __dir__() -> list[str]:
    """Return the names: the functions above, and the ops of the table."""
    return sorted({*__all__, *MEMBERS})
