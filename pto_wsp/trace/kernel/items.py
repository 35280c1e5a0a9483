"""Trace pto.item: one element of a tile or of a Tensor parameter as a scalar of the kernel.

>>> page = pto.item(table, 0, j)
>>> keys = pto.load(cache, (page * 64, 0), shape=(64, 128))
"""

from __future__ import annotations

from pto_wsp.calls import user_call
from pto_wsp.errors import OperandKindError
from pto_wsp.ir.symbolic import Symbolic
from pto_wsp.source import here
from pto_wsp.trace.kernel import memory
from pto_wsp.trace.kernel.tile_value import TensorParamRef, is_tile
from pto_wsp.trace.kernel.trace import current_kernel


@user_call("pto.item")
def item(x: object, row: object = None, col: object = None) -> Symbolic:
    """Return the element (row, col) of a tile, or of a Tensor parameter, as a scalar: an offset, a bound, a condition, a number.

    Row and column are numbers or integer scalars; a tile of one row or column takes one index, a tile [1, 1] none. The scalar has
    the tile's dtype: whole numbers, floats and truth values. A loop that it bounds needs a limit, e.g. n.min(64).
    Raises: T213 for what is no tile, T204 for fp8, T209 for an index that is missing or no whole number, T301 for one outside.
    One that is found outside when the task runs stops the task.
    """
    trace = current_kernel("item")
    row, col = row if isinstance(row, tuple | list) and len(row) == 2 and col is None else (row, col)
    if isinstance(x, TensorParamRef):
        row, col = (Symbolic(trace.whole(f"`pto.item`: the {what}", at)) for what, at in (("row", row), ("column", col)))
        return trace.element(memory.load(x, (row, col), shape=(1, 1)), 0, 0)
    if not is_tile(x):
        raise OperandKindError("`pto.item` reads an element of a tile or of a Tensor parameter", here(),
                               expected="a tile, or a Tensor parameter", found=repr(x),
                               help="a scalar is used as it is" if isinstance(x, Symbolic) else None)
    return trace.element(x, row, col)
