"""CC names a compiler that is not there."""

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
    environment.setenv("CC", "no-such-compiler -O2")
    compiled()


# error[C101]: CC names a compiler that is not there
#   --> compiler_that_is_not_there.py:23:12
#      |
#   23 |     return once().compile()
#      |            ^^^^^^^^^^^^^^^^
#    = expected: a command on PATH, or a path
#    = found:    CC=no-such-compiler -O2
#    = help:     unset CC, or install it; target="interp" needs no compiler
