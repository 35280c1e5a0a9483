"""How a tensor lies in memory, and the value that stands for a tensor in every IR."""

from __future__ import annotations

from enum import Enum

from pto_wsp.types.dtype import DType
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Layout:
    """Strides in elements, outermost first. `unit_inner`: neighbours along the last dimension are neighbours in memory."""

    strides: tuple[int, ...]

    @property
    def unit_inner(self) -> bool:
        """True when the last dimension has stride 1, or there is none."""
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
    """What the user promises of an index tensor's elements, for every run; checked when an array is bound."""

    INJECTIVE = "injective"      # no two elements >= 0 are equal
    MONOTONE = "monotone"        # along the last dimension no element is less than the one before it

    def __repr__(self) -> str:
        return f"Contract.{self.name}"


@dataclass(frozen=True, slots=True)
class TensorRef:
    """A tensor as the IR knows it: no buffer. Shape and strides are those declared; a run may bind others (DimOf, StrideOf)."""

    id: int
    shape: tuple[int, ...]
    dtype: DType
    name: str = ""
    layout: Layout = Layout(())
    contracts: tuple[Contract, ...] = ()

    @property
    def shown(self) -> str:
        """The user's name for it, or a made-up one."""
        return self.name or f"tensor{self.id}"

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)
