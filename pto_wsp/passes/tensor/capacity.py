"""Count the bytes that a group's task needs at least, on a machine whose memories have no bounds."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from math import prod

from pto_wsp.ir.tensor_function import Array
from pto_wsp.passes.tensor.axes import Dim, Dims
from pto_wsp.passes.tensor.groups import KernelGroup, bound_of

HOST_BYTES = 1 << 22      # what a task of a machine without bounded memories may hold: about the second cache of a core


def tile_bytes(group: KernelGroup, sizes: Mapping[Dim, int], bounds: Mapping[str, int]) -> int:
    """Return the most bytes of tiles that live at the same time: tiles of the tensors read, and tiles of the values computed.

    `sizes`: the extents of tiles; an axis without one is whole. A tile lives from its first statement to its last.
    """
    lives: dict[object, tuple[int, int]] = {}      # the first statement, and the bytes
    last: dict[object, int] = {}
    elements: dict[Dims, int] = {}
    axes, local = group.axes, group.local

    def live(key: object, at: int, array: Array, dims: Dims) -> None:
        if dims not in elements:
            elements[dims] = prod([sizes.get(axis) or bound_of(axes, axis, bounds) or 1 for axis in dims if axis is not None])
        lives[key] = at, array.dtype.nbytes * elements[dims]

    for at, statement in enumerate(group.statements):
        for view in statement.views:
            key: object = view.array.id if view.array.id in local else view
            if key not in lives:
                live(key, at, view.array, axes.of_array(view.array) if key is not view else axes.of_view(view))
            last[key] = at
        for array in statement.defines:
            if array.id not in lives:
                live(array.id, at, array, axes.of_array(array))
            last[array.id] = at
    changes = [0] * (len(group.statements) + 1)
    for key, (at, size) in lives.items():
        changes[at] += size
        changes[last[key] + 1] -= size
    return max(accumulate(changes))


def smallest_fit(group: KernelGroup, bounds: Mapping[str, int], limit: int) -> bool:
    """Tell whether the smallest tiles of a group have at most `limit` bytes.

    The smallest tiles have one position of each axis that is cut, and eight positions of the axis that is walked.
    """
    sizes = dict.fromkeys(group.tiled, 1)
    if group.walked is not None:
        sizes[group.walked] = 8
    elements: dict[Dims, int] = {}
    total = 0      # as if all tiles lived at the same time, which most groups have room for
    for value, dims in group.axes.values:
        if dims not in elements:
            elements[dims] = prod([sizes.get(axis) or bound_of(group.axes, axis, bounds) or 1 for axis in dims if axis is not None])
        total += elements[dims] * value.dtype.nbytes
    return total <= limit or tile_bytes(group, sizes, bounds) <= limit
