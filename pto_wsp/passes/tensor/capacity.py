"""Count the bytes that a group's task needs at least, and the bytes that an arch has for them."""

from __future__ import annotations

from collections.abc import Mapping

from pto_wsp.arch.model import Arch
from pto_wsp.ir.tensor_function import Apply, Array, ArrayView, Put, views_read
from pto_wsp.passes.tensor.axes import Dim
from pto_wsp.passes.tensor.groups import KernelGroup, bound_of

HOST_BYTES = 1 << 22      # what a task of a machine without bounded memories may hold: about the second cache of a core


def room_of(arch: Arch) -> int:
    """Return the bytes that the tiles of a task may take: of the smallest memory that vectors work in, else what caches hold well."""
    for name in ("UB", "L1"):
        for memory in arch.memories:
            if memory.name == name and memory.usable_bytes is not None:
                return memory.usable_bytes
    return HOST_BYTES


def tile_bytes(group: KernelGroup, sizes: Mapping[Dim, int], bounds: Mapping[str, int]) -> int:
    """Return the bytes of a tile of each view that a group reads from memory, and of each value that it computes.

    `sizes`: the extents of tiles; an axis without one is whole.
    """
    total = 0
    seen: set[object] = set()
    for statement in group.statements:
        views = [view for view in views_read(statement) if view.array.id not in group.local]
        if isinstance(statement, Put) and statement.target.array.id not in group.local:
            views.append(statement.target)
        results = statement.results if isinstance(statement, Apply) else ()
        values: tuple[ArrayView | Array, ...] = (*views, *results)
        for value in values:
            if value in seen:
                continue
            seen.add(value)
            axes = group.axes.of_view(value) if isinstance(value, ArrayView) else group.axes.of_array(value)
            n_bytes = value.dtype.nbytes
            for axis in axes:
                if axis is not None:
                    n_bytes *= sizes.get(axis) or bound_of(group.axes, axis, bounds) or 1
            total += n_bytes
    return total


def least_bytes(group: KernelGroup, bounds: Mapping[str, int]) -> int:
    """Return the bytes of the smallest tiles: one position of each axis that is cut or walked, eight of the innermost."""
    sizes = dict.fromkeys(group.tiled, 1)
    if group.tiled:
        sizes[group.tiled[-1]] = 8
    if group.walked is not None:
        sizes[group.walked] = 8
    return tile_bytes(group, sizes, bounds)
