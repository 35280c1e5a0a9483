"""Groups in a column: what stands before each place in its group. Tasks of a stream, of a lane, of an executor are groups."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def before_in_group(group: Array, order: Array | None = None, *, none: int = -1) -> Array:
    """Return the place before each one in its group, -1 for the first and for those of the group `none`, which is no group.

    `order`: what tells which comes first, of equals the lower place; without it places come as they stand.

    >>> before_in_group(np.array([7, 4, 7, -1, 4, 7]))
    array([-1, -1,  0, -1,  1,  2])
    """
    by_group = np.argsort(group, kind="stable") if order is None else np.lexsort((order, group))
    sorted_group = group[by_group]
    same = (sorted_group[1:] == sorted_group[:-1]) & (sorted_group[1:] != none)
    before = np.full(len(group), -1, np.int64)
    before[by_group[1:][same]] = by_group[:-1][same]
    return before
