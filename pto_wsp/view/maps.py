"""Small maps of tensors: which block of a tensor a task or a view uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pto_wsp.ir.kernel import Role
from pto_wsp.run.task_list import TaskRegion
from pto_wsp.view.card import RegionMap

Use = Literal["read", "written", "both", "view"]
_USES: dict[Role, Use] = {Role.IN: "read", Role.OUT: "written", Role.INOUT: "both"}
_THIN = 30       # thousandths: what is thinner would not be seen


def map_of(tensor: str, dtype: str, shape: Sequence[int], block: Sequence[tuple[int, int]], use: Use) -> RegionMap:
    """Return the map of a block: first index and end of each dimension. An empty `block` is a region without elements."""
    about = f"[{', '.join(f'{extent:,}' for extent in shape)}] {dtype}"
    share = [(high - low) / max(1, extent) for (low, high), extent in zip(block, shape, strict=True)] if block else [0.0] * len(shape)
    chosen = sorted(sorted(range(len(shape)), key=lambda dim: (share[dim], dim))[:2])
    if len(chosen) == 1:
        chosen = [-1, chosen[0]]
    sides = [_side(shape[dim], block[dim]) if block and dim >= 0 else (0, 1000 if dim < 0 and block else 0) for dim in chosen]
    (y, height), (x, width) = sides or [(0, 1000), (0, 1000)]
    names = [f"dim {dim}" if dim >= 0 else "" for dim in chosen] or ["", ""]
    region = f"[{', '.join(_range(low, high, extent) for (low, high), extent in zip(block, shape, strict=True))}]" if block else "nothing"
    return RegionMap(tensor=tensor, about=about, region=region if shape else "", use=use, down=names[0], across=names[1], x=x, y=y,
                     width=width, height=height)


def region_map(region: TaskRegion) -> RegionMap:
    """Return the map of a task's region."""
    return map_of(region.tensor, region.dtype, region.shape, region.block, _USES[region.role])


def use_of(role: Role) -> Use:
    """Return the word of a map for the role of a parameter."""
    return _USES[role]


def _side(extent: int, ends: tuple[int, int]) -> tuple[int, int]:
    """Return start and length in thousandths of the extent; a thin block is drawn thick enough to be seen."""
    extent = max(1, extent)
    start, length = 1000 * ends[0] // extent, -(-1000 * (ends[1] - ends[0]) // extent)
    length = max(length, _THIN)
    return max(0, min(start, 1000 - length)), min(length, 1000)


def _range(low: int, high: int, extent: int) -> str:
    if (low, high) == (0, extent):
        return ":"
    return f"{low:,}" if high == low + 1 else f"{low:,}:{high:,}"
