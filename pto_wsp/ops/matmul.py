"""Matrix product and transpose."""

from __future__ import annotations

import numpy as np

from pto_wsp.ops.dtypes import ALL, MATMUL_RESULT, Array
from pto_wsp.ops.entry import Unit, Work
from pto_wsp.ops.spec import Matmul, Transpose
from pto_wsp.types.dtype import DType


def _matmul(a: Array, b: Array, acc: Array | None = None) -> Array:
    dtype = MATMUL_RESULT[DType.from_numpy(a.dtype)].np
    product: Array = np.matmul(a.astype(dtype), b.astype(dtype))
    return product if acc is None else acc + product


matmul = Matmul(name="matmul", doc="Return a @ b, plus acc when given: [M, K] @ [K, N]; i8 accumulates in i32.",
                ref=_matmul, npu="TMATMUL", unit=Unit.CUBE, work=Work.MKN, dtypes=tuple(MATMUL_RESULT))
transpose = Transpose(name="transpose", doc="Return the tile with rows and columns exchanged; also x.T.", npu="TTRANS",
                      dtypes=ALL)

ENTRIES = (matmul, transpose)
