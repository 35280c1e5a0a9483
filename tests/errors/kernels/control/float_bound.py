"""A loop bound is a float."""

from pto_wsp.api.kernels.pto_namespace import pto
from pto_wsp.frontend.kernel.annotations import Out
from pto_wsp.types.dtype import DType
from pto_wsp.types.tile import Tile


def mistake(y: Out[Tile[4, 8, DType.F32]]) -> None:
    for _ in pto.range(4.0):
        pto.store(y, 0)


# error[T205]: `pto.range`: the stop: not a whole number
#   --> float_bound.py:10:14
#      |
#   10 |     for _ in pto.range(4.0):
#      |              ^^^^^^^^^^^^^^
#    = expected: a number or integer scalar
#    = found:    4.0
