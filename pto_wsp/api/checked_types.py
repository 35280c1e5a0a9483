"""Define what type checkers take for Tensor, Injective, Monotone and Tunable: `pto_wsp` exports these names from here to them alone.

A parameter `x: Tensor["t", 64, F32]` is a value of a body, on which operators, methods and NumPy's functions work; a Tensor outside of
bodies refuses them, which a checker then does not see. `rows: int = Tunable(16, 32)` is an int.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from pto_wsp.ir import tensor
from pto_wsp.ir.body_value import BodyValue
from pto_wsp.ir.dtype import DTypeLike
from pto_wsp.ir.tensor_layout import TensorLayout
from pto_wsp.ir.tensor_type import TensorType

_Value = TypeVar("_Value")

if TYPE_CHECKING:
    class CheckedTensor(BodyValue, tensor.Tensor):  # type: ignore[misc]      # which refuses what a body may do
        """An array in global memory; with brackets, the type of a parameter."""

        @staticmethod
        def empty(shape: Sequence[object], dtype: DTypeLike, name: str | None = None,
                  layout: TensorLayout | None = None) -> CheckedTensor: ...

    class Injective(CheckedTensor):
        """A table without two equal nonnegative elements."""

        def __init__(self, table: object) -> None: ...

        def __class_getitem__(cls, item: object) -> TensorType: ...

    class Monotone(CheckedTensor):
        """Offsets that never decrease."""

        def __init__(self, offsets: object) -> None: ...

        def __class_getitem__(cls, item: object) -> TensorType: ...

    def Tunable(*values: _Value) -> _Value:
        """Return the values that a parameter may have, the default first."""
        ...
