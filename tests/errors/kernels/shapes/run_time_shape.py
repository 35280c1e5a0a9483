"""The shape of a tile depends on a scalar."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import Out, Scalar


def mistake(n: Scalar[DType.I32], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, pto.zeros((n, 8), DType.F32))


# error[T207]: `pto.zeros`: not the shape of a tile
#   --> run_time_shape.py:10:18
#      |
#   10 |     pto.store(y, pto.zeros((n, 8), DType.F32))
#      |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: (rows, cols): two whole numbers >= 1, known when the kernel is traced
#    = found:    (Symbolic(n), 8)
#    = help:     take a shape that a caller chooses from a Constexpr[int] parameter
