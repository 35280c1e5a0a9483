"""Parse the brackets of a part whose start may be known only when the kernel runs: b[i:i + 2, 0:4] of a tile or buffer.

>>> part_of("buffer `b`", (slice(i, i + 2), slice(0, 4)), (8, 4), whole)
((i, Const(0)), (2, 4))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeAlias

from pto_wsp.errors import ViewBoundsError, ViewIndexError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.symbolic import Symbolic
from pto_wsp.ops.slices import axes_of, pick, print_item
from pto_wsp.source import here
from pto_wsp.trace.kernel.tile_value import is_tile

Whole: TypeAlias = Callable[[str, object], s.Scalar]
Part: TypeAlias = tuple[tuple[s.Scalar, s.Scalar], tuple[int, int]]     # first row and column, extents


def part_of(what: str, item: object, shape: tuple[int, int], whole: Whole) -> Part:
    """Return where the part starts, and its extents. `whole`: gives an index as a scalar, or raises T209.

    Raises: T301 for a constant selection outside, T302 for a step, a mask, or an extent that is not known when the kernel is traced.
    """
    if any(is_tile(each) for each in (item if isinstance(item, tuple) else (item,))):
        _refuse(what, item, "elements are not selected by a tile", "choose element by element: b[:] = pto.where(mask, value, b)")
    rows, cols = axes_of(item)
    (row, n_rows), (col, n_cols) = (_along(what, name, one, extent, whole, item)
                                    for name, one, extent in (("row", rows, shape[0]), ("column", cols, shape[1])))
    return (row, col), (n_rows, n_cols)


def _along(what: str, name: str, one: object, extent: int, whole: Whole, item: object) -> tuple[s.Scalar, int]:
    """Return the first row or column of a selection, and how many it has."""
    if not _is_run_time(one):
        first, count, step = pick(one, extent, name)
        if step != 1:
            _refuse(what, item, "a part that is written has no step", "write its rows or columns one by one")
        return s.Const(first), count
    if not isinstance(one, slice):
        return whole(f"{what}: the {name}", one), 1
    if one.step not in (None, 1):
        _refuse(what, item, "a part with a start of the run has no step", "gather picks rows and columns one by one")
    start = s.Const(0) if one.start is None else whole(f"{what}: the first {name}", one.start)
    stop = s.Const(extent) if one.stop is None else whole(f"{what}: the end of the {name}s", one.stop)
    extents = s.sub(stop, start)
    if not isinstance(extents, s.Const) or extents.value < 1:
        _refuse(what, item, f"the part has {print_scalar(extents)} {name}s, and their number is >= 1 and known when the kernel is traced",
                "give it a fixed extent: b[i * 16:(i + 1) * 16], b[i:i + 4]")
    if extents.value > extent:
        raise ViewBoundsError(f"{what}: the part leaves it", here(), expected=f"at most {extent} {name}s", found=str(extents.value))
    return start, int(extents.value)


def _is_run_time(one: object) -> bool:
    return any(isinstance(part, Symbolic) for part in ((one.start, one.stop, one.step) if isinstance(one, slice) else (one,)))


def _refuse(what: str, item: object, why: str, help: str) -> NoReturn:
    raise ViewIndexError(f"{what}: {why}", here(), found=f"[{print_item(item)}]", help=help)
