# ruff: noqa: E501
"""Python joins two run-time conditions."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out, Scalar


def mistake(x: In[Tile[4, 8, DType.F32]], n: Scalar[DType.I32], y: Out[Tile[4, 8, DType.F32]]) -> None:
    with pto.when(n > 0 and n < 3):
        pto.store(y, x)


# error[K103]: bool() of a value known only at run time: n > 0
#   --> and_on_scalars.py:11:19
#      |
#   11 |     with pto.when(n > 0 and n < 3):
#      |                   ^^^^^^^^^^^^^^^
#    = expected: a number that is known while the body is traced
#    = found:    n > 0
#    = help:     if, while, and, or, not, in, min() and max() decide while the body is traced, once for all iterations; branch with `with P.when(c):` in a workload, `with pto.when(c):` in a kernel, `with tt.when(c):` in a function on tensors, choose with c.where(a, b), join conditions with &, | and ~, and take .min() and .max()
