"""Define the memory layout of tensors, and `TensorRef`, the tensor in every IR."""

from __future__ import annotations

from enum import Enum

from pto_wsp.ir.dtype import DType
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Layout:
    """Strides in elements, outermost first."""

    strides: tuple[int, ...]

    @property
    def unit_inner(self) -> bool:
        """True if the last dimension has stride 1, or there is no dimension."""
        return not self.strides or self.strides[-1] == 1

    @staticmethod
    def contiguous(shape: tuple[int, ...]) -> Layout:
        """Return the row-major layout of `shape`."""
        strides: list[int] = []
        step = 1
        for extent in reversed(shape):
            strides.append(step)
            step *= max(extent, 1)
        return Layout(tuple(reversed(strides)))


class Contract(Enum):
    """A property of an index tensor's elements that the user declares for every run; checked when an array is bound."""

    INJECTIVE = "injective"      # no two nonnegative elements are equal
    MONOTONE = "monotone"        # elements never decrease along the last dimension

    def __repr__(self) -> str:
        return f"Contract.{self.name}"


@dataclass(frozen=True, slots=True)
class TensorRef:
    """A tensor in the IR, without a buffer. Shape and strides are the declared ones; a run may bind others (DimOf, StrideOf)."""

    id: int
    shape: tuple[int, ...]
    dtype: DType
    name: str = ""
    layout: Layout = Layout(())
    contracts: tuple[Contract, ...] = ()

    @property
    def shown(self) -> str:
        """The user's name, or a generated one."""
        return self.name or f"tensor{self.id}"

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)
