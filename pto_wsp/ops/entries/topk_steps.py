"""The steps of a top-k, as programs for the device's sorting instruction write them, from the ops that `index` and `create` define.

>>> best = pto.extract_topk_indices(pto.tsort32(scores), k)        # the columns that pto.topk(scores, k)[1] gives
"""

from __future__ import annotations

from pto_wsp.errors import OptionValueError
from pto_wsp.ir.dtype import DType
from pto_wsp.ops import typing
from pto_wsp.ops.entries.create import iota
from pto_wsp.ops.entries.elementwise import add, mod, mul
from pto_wsp.ops.entries.index import argsort, gather, topk
from pto_wsp.ops.entries.movement import reshape
from pto_wsp.ops.entry import Operand, active, user_call
from pto_wsp.source import here

_BLOCK = 32      # columns that one sorting instruction puts in order


@user_call("pto.iota_u32")
def iota_u32(shape: tuple[int, int]) -> Operand:
    """Return a tile of u32 whose element is the number of its column: `pto.iota(shape, DType.U32, 1)`."""
    active("iota_u32")
    return iota(shape, DType.U32, 1)


@user_call("pto.tsort32")
def tsort32(x: Operand, index: Operand | None = None) -> tuple[Operand, Operand]:
    """Return each row with every block of 32 columns in descending order, and the index of each element there.

    `index`: numbers of the elements, in the shape of x; without it their columns, i32. A row of at most 32 columns is one block.
    Raises: T207 for more columns that are no multiple of 32.
    """
    active("tsort32")
    x = typing.require_tile("tsort32", x)
    rows, cols = x.shape
    if cols > _BLOCK and cols % _BLOCK:
        raise OptionValueError("`pto.tsort32`: the columns are no whole blocks", here(), expected=f"at most {_BLOCK} columns, or a "
                                f"multiple of {_BLOCK}", found=f"{cols} columns", help="pto.pad fills up the last block; pto.topk takes "
                                "any number of columns")
    columns = _in_order(x, rows, cols)
    return gather(x, columns, 1), columns if index is None else gather(typing.require_tile("tsort32", index), columns, 1)


def _in_order(x: Operand, rows: int, cols: int) -> Operand:
    """Return the columns of x, those of each block in descending order of the elements there."""
    if cols <= _BLOCK:
        return argsort(x, True)
    n_blocks = cols // _BLOCK
    within = argsort(reshape(x, (rows * n_blocks, _BLOCK)), True)
    block = mod(iota((rows * n_blocks, _BLOCK), DType.I32, 0), n_blocks)
    return reshape(add(within, mul(block, _BLOCK)), (rows, cols))


@user_call("pto.extract_topk_indices")
def extract_topk_indices(sorted: tuple[Operand, Operand], k: int) -> Operand:
    """Return the indices of the k largest elements of each row, the best first, of what `tsort32` returned."""
    active("extract_topk_indices")
    values, index = sorted
    return gather(index, topk(values, k)[1], 1)


FUNCTIONS = (iota_u32, tsort32, extract_topk_indices)
