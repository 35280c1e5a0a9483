"""Steps of generated kernels that move, order and pick elements. Each takes one tile, so that any tile will do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from pto_wsp import DType, pto

Shape = tuple[int, int]
MOVES = ("slice", "concat", "interleave", "halves", "pad", "reshape", "sort", "argsort", "topk", "rowarg", "pick", "pick_rows", "scatter",
         "scatter_add")
_LARGEST = 64     # tiles that these steps make larger stay below it


def draw_move(draw: Callable[..., Any], shape: Shape, dtype: DType) -> tuple[str, tuple[Any, ...], Shape, DType]:
    """Draw a step that fits a tile: its name, what it needs, and the type of what it makes."""
    rows, cols = shape
    names = [name for name in MOVES if name not in ("concat", "interleave", "pad") or max(shape) <= _LARGEST // 2]
    names = [name for name in names if name != "halves" or cols % 2 == 0]
    name = draw(st.sampled_from([n for n in names if n != "scatter_add" or dtype is not DType.BOOL]))
    match name:
        case "slice":
            picked = _axis(draw, rows), _axis(draw, cols)
            return name, picked, (len(range(rows)[picked[0]]), len(range(cols)[picked[1]])), dtype
        case "concat":
            axis = draw(st.integers(0, 1))
            return name, (axis,), (rows, 2 * cols) if axis else (2 * rows, cols), dtype
        case "interleave":
            return name, (), (rows, 2 * cols), dtype
        case "pad":
            (above, below), (left, right) = widths = tuple((draw(st.integers(0, 3)), draw(st.integers(0, 3))) for _ in range(2))
            return name, (widths, dtype is DType.BOOL), (rows + above + below, cols + left + right), dtype
        case "reshape":
            return name, (), (cols, rows), dtype
        case "sort" | "argsort":
            return name, (draw(st.booleans()),), shape, dtype if name == "sort" else DType.I32
        case "topk":
            k = draw(st.integers(1, cols))
            return name, (k, draw(st.booleans())), (rows, k), DType.I32
        case "rowarg":
            return name, (draw(st.booleans()),), (rows, 1), DType.I32
        case "scatter" | "scatter_add":
            return name, (draw(st.integers(1, cols)), draw(st.integers(1, 3))), shape, dtype
        case _:
            return name, (), shape, dtype


def apply_move(name: str, x: Any, extra: tuple[Any, ...]) -> Any:
    """Trace one step."""
    match name:
        case "slice":
            return x[extra[0], extra[1]]
        case "concat":
            return pto.concat(x, x, axis=extra[0])
        case "interleave":
            return pto.interleave(x, pto.load(x))
        case "halves":
            return pto.concat(pto.slice_odd(x), pto.slice_even(x))
        case "pad":
            return pto.pad(x, value=True if extra[1] else 1, widths=extra[0])
        case "reshape":
            return pto.reshape(x, x.shape[::-1])
        case "sort" | "argsort":
            return getattr(pto, name)(x, extra[0])
        case "topk":
            return pto.topk(x, *extra)[1]
        case "rowarg":
            return pto.rowargmin(x) if extra[0] else pto.rowargmax(x)
        case "pick":
            return pto.gather(x, pto.argsort(x))
        case "pick_rows":
            return pto.gather(x, order_of_rows(x), axis=0)
        case "scatter" | "scatter_add":
            count, apart = extra
            return getattr(pto, name)(x, pto.argsort(x)[:, :count] // apart, x[:, :count])   # several at one place where apart > 1
        case _:
            raise AssertionError(name)


def order_of_rows(x: Any) -> Any:
    """Return the rows of x in the order of their first elements, [R, 1]."""
    return pto.argsort(x[:, 0].T).T


def _axis(draw: Callable[..., Any], extent: int) -> slice:
    start, step = draw(st.integers(0, extent - 1)), draw(st.sampled_from((1, 2, 3, -1, -2)))
    if step < 0:
        return slice(start, draw(st.sampled_from((None, *range(start)))), step)
    return slice(start, draw(st.integers(start + 1, extent)), step)
