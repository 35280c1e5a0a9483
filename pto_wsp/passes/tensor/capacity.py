"""Count the bytes that a group's task needs at least, on a machine whose memories have no bounds."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from math import prod

from pto_wsp.ir.tensor_function import Array, ArrayView
from pto_wsp.passes.tensor.axes import Dim, Dims
from pto_wsp.passes.tensor.groups import KernelGroup, bound_of

HOST_BYTES = 1 << 22      # what a task of a machine without bounded memories may hold: about the second cache of a core


def tile_bytes(group: KernelGroup, sizes: Mapping[Dim, int], bounds: Mapping[str, int]) -> int:
    """Return the most bytes of tiles that live at the same time: tiles of the tensors read, and tiles of the values computed.

    `sizes`: the extents of tiles; an axis without one is whole. A tile lives from its first statement to its last.
    """
    lives: dict[object, tuple[int, int, int]] = {}      # the first statement, the last, and the bytes
    elements: dict[Dims, int] = {}
    for at, statement in enumerate(group.statements):
        values: tuple[ArrayView | Array, ...] = (*statement.views, *statement.defines)
        for value in values:
            array = value.array if isinstance(value, ArrayView) else value
            own = array.id in group.local
            key: object = array.id if own else value
            axes = group.axes.of_array(array) if own or isinstance(value, Array) else group.axes.of_view(value)
            if axes not in elements:
                elements[axes] = prod([sizes.get(axis) or bound_of(group.axes, axis, bounds) or 1 for axis in axes if axis is not None])
            lives[key] = lives[key][0] if key in lives else at, at, array.dtype.nbytes * elements[axes]
    changes = [0] * (len(group.statements) + 1)
    for first, last, size in lives.values():
        changes[first] += size
        changes[last + 1] -= size
    return max(accumulate(changes))


def least_bytes(group: KernelGroup, bounds: Mapping[str, int]) -> int:
    """Return the bytes of the smallest tiles: one position of each axis that is cut, eight positions of each axis that is walked."""
    sizes = dict.fromkeys(group.tiled, 1)
    if group.walked is not None:
        sizes[group.walked] = 8
    return tile_bytes(group, sizes, bounds)
