"""Reductions along rows ([R, C] -> [R, 1]) and columns ([R, C] -> [1, C]).

The result has the tile's dtype: an i8 sum wraps in i8, so cast first where it may not. NaN propagates. The mean is the sum
divided by the count, both in the dtype.
"""

from __future__ import annotations

import numpy as np

from pto_wsp.ops.entries.elementwise import add, maximum, minimum, mul
from pto_wsp.ops.entry import Finish, Identity
from pto_wsp.ops.rounding import FLOATS, INTEGERS, Array
from pto_wsp.ops.spec import ColReduce, RowReduce


def _sum(x: Array, axis: int) -> Array:
    result: Array = np.sum(x, axis=axis, keepdims=True, dtype=x.dtype)
    return result


def _prod(x: Array, axis: int) -> Array:
    result: Array = np.prod(x, axis=axis, keepdims=True, dtype=x.dtype)
    return result


def _mean(x: Array, axis: int) -> Array:
    result: Array = _sum(x, axis) / x.dtype.type(x.shape[axis])
    return result


def _max(x: Array, axis: int) -> Array:
    result: Array = np.max(x, axis=axis, keepdims=True)
    return result


def _min(x: Array, axis: int) -> Array:
    result: Array = np.min(x, axis=axis, keepdims=True)
    return result


rowsum = RowReduce(name="rowsum", synonyms=("row_sum", "nansum"),
                   doc="Return the sum of each row, [R, 1]; integers wrap in their dtype. Of a mask: how many hold, i32.", ref=_sum,
                   identity=Identity.ZERO, combine=add.c, counts_masks=True, npu="TROWSUM", numpy="_sum({0}, 1)")
rowmax = RowReduce(name="rowmax", synonyms=("row_max",), doc="Return the largest element of each row, [R, 1].", ref=_max,
                   identity=Identity.LOWEST,
                   combine=maximum.c, npu="TROWMAX", numpy="{0}.max(axis=1, keepdims=True)", keeps_range=INTEGERS,
                   exact_in_f16=True)
rowmin = RowReduce(name="rowmin", synonyms=("row_min",), doc="Return the smallest element of each row, [R, 1].", ref=_min,
                   identity=Identity.HIGHEST,
                   combine=minimum.c, npu="TROWMIN", numpy="{0}.min(axis=1, keepdims=True)", keeps_range=INTEGERS,
                   exact_in_f16=True)
rowprod = RowReduce(name="rowprod", synonyms=("product",), doc="Return the product of each row, [R, 1]; integers wrap in their dtype.",
                    ref=_prod,
                    identity=Identity.ONE, combine=mul.c, npu="TROWPROD", numpy="_prod({0}, 1)")
rowmean = RowReduce(name="rowmean", synonyms=("average",), doc="Return the mean of each row, [R, 1]; floats only.", ref=_mean,
                    identity=Identity.ZERO, combine=add.c, finish=Finish.DIVIDE_BY_COUNT, dtypes=FLOATS,
                    numpy="_mean({0}, 1)")
colsum = ColReduce(name="colsum",
                   doc="Return the sum of each column, [1, C]; integers wrap in their dtype. Of a mask: how many hold, i32.", ref=_sum,
                   identity=Identity.ZERO, combine=add.c, counts_masks=True, npu="TCOLSUM", numpy="_sum({0}, 0)")
colmax = ColReduce(name="colmax", doc="Return the largest element of each column, [1, C].", ref=_max,
                   identity=Identity.LOWEST, combine=maximum.c, npu="TCOLMAX", numpy="{0}.max(axis=0, keepdims=True)",
                   keeps_range=INTEGERS, exact_in_f16=True)
colmin = ColReduce(name="colmin", doc="Return the smallest element of each column, [1, C].", ref=_min,
                   identity=Identity.HIGHEST, combine=minimum.c, npu="TCOLMIN", numpy="{0}.min(axis=0, keepdims=True)",
                   keeps_range=INTEGERS, exact_in_f16=True)
colmean = ColReduce(name="colmean", doc="Return the mean of each column, [1, C]; floats only.", ref=_mean,
                    identity=Identity.ZERO, combine=add.c, finish=Finish.DIVIDE_BY_COUNT, dtypes=FLOATS,
                    numpy="_mean({0}, 0)")

ENTRIES = (rowsum, rowmax, rowmin, rowprod, rowmean, colsum, colmax, colmin, colmean)
