# ruff: noqa: E501
"""A branch is left by continue."""

from pto_wsp.api.pto import pto
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import Tile
from pto_wsp.trace.kernel.annotations import In, Out, Scalar


def mistake(x: In[Tile[4, 8, DType.F32]], n: Scalar[DType.I32], y: Out[Tile[4, 8, DType.F32]]) -> None:
    for j in pto.range(n):
        with pto.when(j == 2):
            continue
        pto.store(y, x * j)


# error[K103]: the branch on `j == 2` was left early
#   --> continue_in_branch.py:12:9
#      |
#   12 |         with pto.when(j == 2):
#      |         ^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a body that runs to its end
#    = found:    break, continue or return
#    = help:     both sides are traced, so break, continue, return and exceptions have no meaning in them; put what is not to run into `with pto.otherwise():`
