"""Copies of what a run works on, which share memory, and lie in it, as the originals do.

>>> copied(bindings).groups == bindings.groups
True
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pto_wsp.runtime.bound.binding import Array, Bindings, byte_bounds, layout_of

_PAGE = 4096     # a copy begins where its original does in a page: what depends on alignment stays as it is


def copied(bindings: Bindings) -> Bindings:
    """Return the same bindings on memory of their own: arrays that overlap are copied as one piece."""
    arrays = list(bindings.arrays)
    for group in set(bindings.groups):
        members = [k for k, own in enumerate(bindings.groups) if own == group and bindings.arrays[k].size]
        for k, copy in zip(members, _copied_together([bindings.arrays[k] for k in members]), strict=True):
            arrays[k] = copy
    return Bindings(tuple(arrays), bindings.symbols, bindings.groups, tuple(map(layout_of, arrays)))


def _copied_together(arrays: list[Array]) -> Iterable[Array]:
    if not arrays:
        return     # nothing in it, or made by bodies
    bounds = [byte_bounds(array) for array in arrays]
    low, high = min(first for first, _ in bounds), max(end for _, end in bounds)
    memory = np.empty(high - low + _PAGE, np.uint8)
    memory = memory[(low - int(memory.__array_interface__["data"][0])) % _PAGE:][:high - low]
    for array in arrays:
        offset = int(array.__array_interface__["data"][0]) - low
        copy: Array = np.ndarray(array.shape, array.dtype, memory, offset, array.strides)
        copy[...] = array
        copy.flags.writeable = array.flags.writeable
        yield copy
