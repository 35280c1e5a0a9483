"""Conversion between dtypes.

A float becomes an integer by dropping its fraction, then saturating; NaN becomes 0. An integer that does not fit wraps. A
number becomes a mask by being unequal to 0; a mask becomes 0 and 1.
"""

from __future__ import annotations

import numpy as np

from pto_wsp.ops.dtypes import ALL, Array
from pto_wsp.ops.entry import Function
from pto_wsp.ops.spec import Cast
from pto_wsp.types.dtype import DType


def _cast(x: Array, dtype: DType) -> Array:
    if dtype is DType.BOOL:
        return np.not_equal(x, 0)
    if x.dtype.kind != "f" or dtype.is_float:
        return x.astype(dtype.np)
    limits = np.iinfo(dtype.np)
    whole = np.trunc(x.astype(np.float64))
    inside = np.where((whole >= limits.min) & (whole < float(limits.max) + 1.0), whole, 0.0).astype(dtype.np)
    above = np.where(whole >= float(limits.max) + 1.0, dtype.np.type(limits.max), inside)
    return np.where(whole < limits.min, dtype.np.type(limits.min), above)


cast = Cast(name="cast", doc="Return x in another dtype; float to int drops the fraction and saturates, int to int wraps.",
            ref=_cast, c=Function("pto_cast_{from}_{t}"), npu="TCVT", dtypes=ALL)

ENTRIES = (cast,)
