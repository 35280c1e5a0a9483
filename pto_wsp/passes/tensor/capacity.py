"""Count the bytes that a group's task needs at least, on a machine whose memories have no bounds."""

from __future__ import annotations

from collections.abc import Mapping

from pto_wsp.ir.tensor_function import ArrayView
from pto_wsp.passes.tensor.axes import Dim
from pto_wsp.passes.tensor.groups import KernelGroup, bound_of

HOST_BYTES = 1 << 22      # what a task of a machine without bounded memories may hold: about the second cache of a core


def tile_bytes(group: KernelGroup, sizes: Mapping[Dim, int], bounds: Mapping[str, int]) -> int:
    """Return the most bytes of tiles that live at the same time: tiles of the tensors read, and tiles of the values computed.

    `sizes`: the extents of tiles; an axis without one is whole. A tile lives from its first statement to its last.
    """
    lives: dict[object, tuple[int, int, int]] = {}      # the first statement, the last, and the bytes
    for at, statement in enumerate(group.statements):
        made = [ArrayView(array) for array in statement.defines]
        for view in (*statement.views, *made):
            key: object = view.array.id if view.array.id in group.local else view
            size = view.dtype.nbytes
            axes = group.axes.of_array(view.array) if view.array.id in group.local else group.axes.of_view(view)
            for axis in axes:
                if axis is not None:
                    size *= sizes.get(axis) or bound_of(group.axes, axis, bounds) or 1
            lives[key] = lives.get(key, (at,))[0], at, size
    found = lives.values()
    return max([sum([size for first, last, size in found if first <= at <= last]) for at in {first for first, _, _ in found}], default=0)


def least_bytes(group: KernelGroup, bounds: Mapping[str, int]) -> int:
    """Return the bytes of the smallest tiles: one position of each axis that is cut, eight positions of each axis that is walked."""
    sizes = dict.fromkeys(group.tiled, 1)
    if group.walked is not None:
        sizes[group.walked] = 8
    return tile_bytes(group, sizes, bounds)
