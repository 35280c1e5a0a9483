"""Comparisons, which give masks (BOOL tiles), and the choice by a mask. A comparison with NaN is False, `ne` True."""

from __future__ import annotations

import numpy as np

from pto_wsp.ops.dtypes import ALL, COMPUTED
from pto_wsp.ops.entry import Function, Operator
from pto_wsp.ops.spec import Elementwise

_XY = ("x", "y")

eq = Elementwise(name="eq", doc="Return the mask x == y.", params=_XY, ref=np.equal, c=Operator("=="), npu="TCMP", to_mask=True,
                 dtypes=COMPUTED)
ne = Elementwise(name="ne", doc="Return the mask x != y.", params=_XY, ref=np.not_equal, c=Operator("!="), npu="TCMP",
                 to_mask=True, dtypes=COMPUTED)
lt = Elementwise(name="lt", doc="Return the mask x < y.", params=_XY, ref=np.less, c=Operator("<"), npu="TCMP", to_mask=True)
le = Elementwise(name="le", doc="Return the mask x <= y.", params=_XY, ref=np.less_equal, c=Operator("<="), npu="TCMP",
                 to_mask=True)
gt = Elementwise(name="gt", doc="Return the mask x > y.", params=_XY, ref=np.greater, c=Operator(">"), npu="TCMP", to_mask=True)
ge = Elementwise(name="ge", doc="Return the mask x >= y.", params=_XY, ref=np.greater_equal, c=Operator(">="), npu="TCMP",
                 to_mask=True)
where = Elementwise(name="where", doc="Return `then` where the mask `condition` holds, else `other`.\n\nOf two Python "
                    "numbers it is a tile of F32 where one is a float, else of I32.",
                    params=("condition", "then", "other"), ref=np.where, c=Function("pto_where_{t}"), npu="TSEL", mask_first=True,
                    rounds=False, dtypes=ALL, aliases=("select",))

ENTRIES = (eq, ne, lt, le, gt, ge, where)
