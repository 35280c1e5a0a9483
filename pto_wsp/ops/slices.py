"""Parse the brackets of a tile, `x[2:6, 0::2]`, into a first element, a count and a step per axis.

>>> pick(slice(2, None, 2), 8, "row")
(2, 3, 2)
"""

from __future__ import annotations

from types import EllipsisType
from typing import TypeAlias

from pto_wsp.errors import ViewBoundsError, ViewIndexError
from pto_wsp.ir.indexing import whole_number
from pto_wsp.ir.symbolic import Symbolic
from pto_wsp.ops.entry import is_tile
from pto_wsp.source import here

Picked: TypeAlias = tuple[int, int, int]   # first, count, step
WHOLE = slice(None)
_RUN_TIME = "offsets into a tile are constants; pto.load(T, (row, col), shape=(r, c)) and pto.item(x, row, col) read anywhere"


def pick(item: object, extent: int, what: str) -> Picked:
    """Return the first, count and step of `item` among `extent` rows or columns; an integer selects one.

    Raises: T301 for a selection that is out of bounds or empty, T302 for one that is not constant.
    """
    if isinstance(item, slice):
        step = 1 if item.step is None else _constant(item.step, what)
        if step == 0:
            raise ViewIndexError(f"the {what}s of a tile: the step of a slice is 0", here(), found=print_item(item))
        first = _edge(item.start, extent, what, 0 if step > 0 else extent - 1, step < 0, item)
        stop = _edge(item.stop, extent, what, extent if step > 0 else -1, False, item)
        count = len(range(first, stop, step))
        if count == 0:
            raise ViewBoundsError(f"the {what}s of a tile: the slice is empty", here(), expected=f"at least one of {extent} {what}s",
                                  found=print_item(item))
        return first, count, step if count > 1 else 1      # a step to nowhere may be any number
    index = _constant(item, what)
    if not -extent <= index < extent:
        raise ViewBoundsError(f"the tile has no {what} {index}", here(), expected=f"{-extent} .. {extent - 1}", found=str(index))
    return index % extent, 1, 1


def axes_of(item: object) -> tuple[object, object]:
    """Return the selections of rows and of columns in `x[item]`; an axis that is not mentioned is selected completely.

    Raises: T302 for more than two axes.
    """
    items = list(item) if isinstance(item, tuple) else [item]
    if sum(isinstance(i, EllipsisType) for i in items) == 1:
        ellipsis_index = next(k for k, i in enumerate(items) if isinstance(i, EllipsisType))
        items[ellipsis_index:ellipsis_index + 1] = [WHOLE] * (3 - len(items))
    if len(items) > 2 or any(isinstance(i, EllipsisType) for i in items):
        raise ViewIndexError("a tile has two axes", here(), expected="x[rows, cols]", found=f"[{print_item(item)}]")
    rows, cols = [*items, WHOLE, WHOLE][:2]
    return rows, cols


def print_item(item: object) -> str:
    """Return the text of the brackets: `2:6, 0::2`."""
    if isinstance(item, tuple):
        return ", ".join(map(print_item, item))
    if isinstance(item, slice):
        parts = [item.start, item.stop, *([] if item.step is None else [item.step])]
        return ":".join("" if part is None else repr(part) for part in parts)
    return "..." if item is Ellipsis else repr(item)


def _edge(value: object, extent: int, what: str, default: int, below: bool, item: slice) -> int:
    """Return a bound of a slice, counted from the front; `below` marks the first element of a slice that runs backwards."""
    if value is None:
        return default
    bound = _constant(value, what)
    if not -extent <= bound <= extent - below:
        raise ViewBoundsError(f"the {what}s of a tile: the slice leaves it", here(), expected=f"bounds in {-extent} .. {extent - below}",
                              found=print_item(item))
    return bound + extent if bound < 0 else bound


def _constant(value: object, what: str) -> int:
    if isinstance(value, Symbolic):
        raise ViewIndexError(f"a {what} of a tile that is known only at run time", here(), expected="a whole number", found=repr(value),
                             help=_RUN_TIME)
    number = whole_number(value)
    if number is None:
        raise ViewIndexError(f"a {what} of a tile is picked by a whole number or a slice", here(),
                             expected="x[2:6, 0::2]", found=repr(value), help=_help(value))
    return number


def _help(value: object) -> str | None:
    if value is None:
        return "a tile has two dimensions, and keeps them: x[:, 0:1] is a column"
    return "a tile has one shape: pto.where(mask, x, 0) keeps it, pto.gather(x, index) picks" if is_tile(value) else None
