# ruff: noqa: E501
"""A branch is left by return."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out, Scalar


def mistake(x: In[Tile[4, 8, DType.F32]], n: Scalar[DType.I32], y: Out[Tile[4, 8, DType.F32]]) -> None:
    with pto.when(n > 2):
        pto.store(y, x)
        return
    pto.store(y, 0)


# error[K103]: the branch on `n > 2` was left early
#   --> return_in_branch.py:11:5
#      |
#   11 |     with pto.when(n > 2):
#      |     ^^^^^^^^^^^^^^^^^^^^^
#    = expected: a body that runs to its end
#    = found:    break, continue or return
#    = help:     both sides are traced, so break, continue, return and exceptions have no meaning in them; put what is not to run into `with pto.otherwise():`
