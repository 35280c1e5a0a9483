"""The matrix product."""

from __future__ import annotations

import numpy as np

from pto_wsp.ops.dtypes import MATMUL_RESULT, Array
from pto_wsp.ops.entry import Unit, Work
from pto_wsp.ops.spec import Matmul
from pto_wsp.types.dtype import DType


def _matmul(a: Array, b: Array, acc: Array | None = None) -> Array:
    dtype = MATMUL_RESULT[DType.from_numpy(a.dtype)].np
    product: Array = np.matmul(a.astype(dtype), b.astype(dtype))
    return product if acc is None else acc + product


matmul = Matmul(name="matmul", doc="Return a @ b, plus acc when given: [M, K] @ [K, N]; f16 and bf16 accumulate in f32, i8 in i32.",
                ref=_matmul, npu="TMATMUL", unit=Unit.CUBE, work=Work.MKN, dtypes=tuple(MATMUL_RESULT))

ENTRIES = (matmul,)
