"""The matrix product."""

from __future__ import annotations

import numpy as np

from pto_wsp.ir.dtype import DType
from pto_wsp.ops.entry import Unit, Work
from pto_wsp.ops.rounding import MATMUL_RESULT, Array
from pto_wsp.ops.spec import Matmul

STEP_TERMS = 256     # PTO_MATMUL_WORDS: so many terms are summed from zero, and then added


def _matmul(a: Array, b: Array, acc: Array | None = None) -> Array:
    dtype = MATMUL_RESULT[DType.from_numpy(a.dtype)].np
    lhs, rhs = a.astype(dtype), b.astype(dtype)
    product: Array = np.matmul(lhs, rhs)
    if dtype == np.float32:
        _in_order(lhs, rhs, product)
    return product if acc is None else acc + product


def _in_order(lhs: Array, rhs: Array, product: Array) -> None:
    """Sum the terms of elements that have overflowed as docs/kernels.md orders them: NumPy's library takes an order of its own, and
    whether an infinity or a NaN comes out of terms of both signs depends on which overflows first.
    """
    rows, cols = np.nonzero(~np.isfinite(product))
    if rows.size:
        known: Array = np.asarray(np.isfinite(lhs).all(axis=1))[rows] & np.asarray(np.isfinite(rhs).all(axis=0))[cols]
        rows, cols = rows[known], cols[known]
        total: Array = np.zeros(rows.shape, np.float32)
        with np.errstate(all="ignore"):
            for begin in range(0, lhs.shape[1], STEP_TERMS):
                step: Array = np.zeros_like(total)
                for k in range(begin, min(begin + STEP_TERMS, lhs.shape[1])):    # f64 holds a product of two f32 as it is
                    term = lhs[rows, k].astype(np.float64) * rhs[k, cols].astype(np.float64)
                    step = (term + step.astype(np.float64)).astype(np.float32)
                total = step if begin == 0 else total + step
        product[rows, cols] = total


matmul = Matmul(name="matmul", synonyms=("bmm", "einsum", "inner", "tensordot", "vdot", "matvec"),
                doc="Return a @ b, plus acc when given: [M, K] @ [K, N]; f16 and bf16 accumulate in f32, i8 in i32.",
                ref=_matmul, npu="TMATMUL", unit=Unit.CUBE, work=Work.MKN, dtypes=tuple(MATMUL_RESULT),
                numpy="_matmul({all})")

ENTRIES = (matmul,)
