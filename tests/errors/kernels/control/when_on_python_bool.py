"""A branch on what is known while the body is traced."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out, Scalar


def mistake(x: In[Tile[4, 8, DType.F32]], n: Scalar[DType.I32], y: Out[Tile[4, 8, DType.F32]]) -> None:
    with pto.when(x.shape[0] > 2):
        pto.store(y, x)


# error[T210]: `pto.when` takes a condition that is known only when the kernel runs
#   --> when_on_python_bool.py:10:10
#      |
#   10 |     with pto.when(x.shape[0] > 2):
#      |          ^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a comparison of scalars, e.g. n > 4
#    = found:    bool: True
#    = help:     what is known while the body is traced is decided by a plain `if`
