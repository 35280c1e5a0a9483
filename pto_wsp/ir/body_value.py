"""Define, for type checkers alone, what a body may do with a parameter: everything that an array can, without a type of the result.

A parameter's annotation names a class, `Tensor["t", 64, F32]` or `InOut[...]`, and in the body the value is one of the trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy.typing as npt

if TYPE_CHECKING:
    class BodyValue:
        """A value of a body."""

        def __getattr__(self, name: str) -> Any: ...

        def __getitem__(self, item: Any, /) -> Any: ...

        def __setitem__(self, item: Any, value: Any, /) -> None: ...

        def __array__(self, dtype: Any = None, copy: bool | None = None, /) -> npt.NDArray[Any]: ...

        def _by_itself(self) -> Any: ...

        def _beside(self, other: Any, /) -> Any: ...

        __neg__ = __abs__ = __invert__ = __pos__ = _by_itself
        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _beside
        __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __matmul__ = __rmatmul__ = __pow__ = __rpow__ = _beside
        __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _beside
        __lt__ = __le__ = __gt__ = __ge__ = _beside
else:
    BodyValue = object
