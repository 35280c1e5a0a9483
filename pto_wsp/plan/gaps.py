"""Room between stretches of memory that are taken."""

from __future__ import annotations

from collections.abc import Sequence


def best_gap(size: int, taken: Sequence[tuple[int, int]]) -> int:
    """Return the start of the smallest gap between taken stretches that fits, else where they end."""
    best: tuple[int, int] | None = None
    free = 0
    for start, end in taken:
        if start - free >= size and (best is None or start - free < best[0]):
            best = (start - free, free)
        free = max(free, end)
    return free if best is None else best[1]
