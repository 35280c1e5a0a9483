"""Comparisons, which give masks (BOOL tiles), and the choice by a mask. A comparison with NaN is False, `ne` True."""

from __future__ import annotations

import numpy as np

from pto_wsp.ir.dtype import DType
from pto_wsp.ops.entry import CFunction, Operator
from pto_wsp.ops.rounding import ALL, COMPUTED, INTEGERS, NUMBERS
from pto_wsp.ops.spec import Elementwise


def _comparison(name: str, text: str, ref: np.ufunc, dtypes: tuple[DType, ...] = NUMBERS) -> Elementwise:
    return Elementwise(name=name, aliases=(ref.__name__,), doc=f"Return the mask x {text} y.",
                       params=("x", "y"), ref=ref, c=Operator(text), npu="TCMP",
                       to_mask=True, dtypes=dtypes, numpy=f"{{0}} {text} {{1}}")


eq = _comparison("eq", "==", np.equal, COMPUTED)
ne = _comparison("ne", "!=", np.not_equal, COMPUTED)
lt = _comparison("lt", "<", np.less)
le = _comparison("le", "<=", np.less_equal)
gt = _comparison("gt", ">", np.greater)
ge = _comparison("ge", ">=", np.greater_equal)
where = Elementwise(name="where", doc="Return `then` where the mask `condition` holds, else `other`.\n\nOf two Python "
                    "numbers it is a tile of F32 where one is a float, else of I32.",
                    params=("condition", "then", "other"), ref=np.where, c=CFunction("pto_where_{t}", simple=True), npu="TSEL",
                    mask_first=True, rounds=False, dtypes=ALL, aliases=("select",), numpy="np.where({0}, {1}, {2})", selects=ALL,
                    scales=ALL, keeps_range=INTEGERS)

ENTRIES = (eq, ne, lt, le, gt, ge, where)
