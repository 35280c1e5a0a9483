"""The cache folder cannot be written."""

from pathlib import Path

import numpy as np
import pytest

from pto_wsp import DType, In, Out, Program, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[1, 4, DType.F32]], y: Out[Tile[1, 4, DType.F32]]) -> None:
    pto.store(y, x * 2)


def compiled() -> Program:
    X, Y = Tensor(np.zeros((1, 4), np.float32)), Tensor(np.zeros((1, 4), np.float32))

    @workload
    def once() -> None:
        scale(x=X, y=Y)

    return once().compile()


def mistake(cache: Path, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("PTO_WSP_CACHE_DIR", __file__ if "__file__" in globals() else "/dev/null")
    compiled()


# error[C106]: the artifact cache in /dev/null cannot be used
#   --> cache_that_is_a_file.py:23:12
#      |
#   23 |     return once().compile()
#      |            ^^^^^^^^^^^^^^^^
#    = found:    /dev/null: Not a directory
#    = help:     set PTO_WSP_CACHE_DIR to a folder that can be written; target="interp" needs none
