"""CC has a flag that changes what programs compute."""

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
    environment.setenv("CC", "cc -O2 -ffast-math")
    compiled()


# error[C112]: CC has flags that change what programs compute: -ffast-math
#   --> compiler_flag.py:23:12
#      |
#   23 |     return once().compile()
#      |            ^^^^^^^^^^^^^^^^
#    = expected: the numbers that the program says, those of target interp
#    = found:    CC=cc -O2 -ffast-math
#    = help:     take them out of CC, which may name a compiler and where it finds what it needs
