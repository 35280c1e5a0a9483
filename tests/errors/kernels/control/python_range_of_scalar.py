# ruff: noqa: E501
"""Python's range over a run-time scalar."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import Out, Scalar


def mistake(n: Scalar[DType.I32], y: Out[Tile[4, 8, DType.F32]]) -> None:
    for _ in range(n):
        pto.store(y, 0)


# error[K103]: index() of a value known only at run time: n
#   --> python_range_of_scalar.py:11:14
#      |
#   11 |     for _ in range(n):
#      |              ^^^^^^^^
#    = expected: a number that is known while the body is traced
#    = found:    n
#    = help:     Python's range, lists and NumPy arrays need a number now; loop with P(...), pto.range(...) or tt.loop(...), wrap an array as a Tensor to read its elements, and make tensors of a function by tt.zeros and kin
