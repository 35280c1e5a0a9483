"""Elements of tensors by their addresses: which ones two regions share, and how a range of them is written.

>>> shown_elements("Y", (4, 8), (8, 1), np.array([8, 9, 10]))
'Y[1, 0:3]'
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pto_wsp.values import dataclass

Offsets = npt.NDArray[np.int64]
MAX_ELEMENTS = 1 << 22    # of a region that are looked at to name those that it shares


@dataclass(frozen=True, slots=True)
class Region:
    """A strided box in memory: the address of its first element, extents and strides in elements."""

    address: int
    extent: tuple[int, int]
    stride: tuple[int, int]
    elem_bytes: int

    @staticmethod
    def of(raw: Any, address: int) -> Region:
        """Return a pto_arg as values; `address`: of its data."""
        return Region(address, (raw.extent[0], raw.extent[1]), (raw.stride[0], raw.stride[1]), raw.elem_bytes)

    def addresses(self) -> Offsets:
        """Return the addresses of its elements, row by row, of the first MAX_ELEMENTS."""
        cols = min(self.extent[1], MAX_ELEMENTS)
        rows = min(self.extent[0], max(1, MAX_ELEMENTS // max(cols, 1)))
        steps = (np.arange(rows, dtype=np.int64)[:, None] * self.stride[0] + np.arange(cols, dtype=np.int64) * self.stride[1])
        found: Offsets = (self.address + steps * self.elem_bytes).ravel()
        return found


def shared_addresses(first: Region, second: Region) -> Offsets:
    """Return the addresses of the elements of `second` of which `first` has a byte."""
    mine, other = second.addresses(), np.sort(first.addresses())
    if not other.size or not mine.size:
        return mine[:0]
    below = np.searchsorted(other, mine + second.elem_bytes, side="left") - 1    # the last that starts before mine ends
    touches = (below >= 0) & (other[np.maximum(below, 0)] + first.elem_bytes > mine)
    return np.unique(mine[touches])


def shown_elements(name: str, shape: Sequence[int], strides: Sequence[int], offsets: Offsets) -> str:
    """Return the smallest block of a tensor that holds these elements, as an index.

    Strides and offsets are in elements; offsets count from the lowest address of the tensor.
    """
    if not offsets.size:
        return name
    rest = offsets.astype(np.int64)
    index: dict[int, Offsets] = {}
    for dim in sorted(range(len(shape)), key=lambda d: -abs(strides[d])):
        step = abs(strides[dim])
        at = np.zeros_like(rest) if step == 0 or shape[dim] == 1 else np.minimum(rest // step, shape[dim] - 1)
        rest = rest - at * step
        index[dim] = shape[dim] - 1 - at if strides[dim] < 0 else at
    parts = []
    for dim in range(len(shape)):
        low, high = int(index[dim].min()), int(index[dim].max())
        parts.append(str(low) if low == high else f"{low}:{high + 1}")
    return f"{name}[{', '.join(parts)}]" if parts else name
