# ruff: noqa: E501
"""Python decides on a run-time scalar."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import Out, Scalar


def mistake(n: Scalar[DType.I32], y: Out[Tile[4, 8, DType.F32]]) -> None:
    if n > 2:
        pto.store(y, 1)


# error[K103]: bool() of a value known only at run time: n > 2
#   --> if_on_scalar.py:11:8
#      |
#   11 |     if n > 2:
#      |        ^^^^^
#    = expected: a number that is known while the body is traced
#    = found:    n > 2
#    = help:     if, while, and, or, not, in, min() and max() decide while the body is traced, once for all iterations; branch with `with P.when(c):` in a workload, `with pto.when(c):` in a kernel, `with tt.when(c):` in a function on tensors, choose with c.where(a, b), join conditions with &, | and ~, and take .min() and .max()
