"""No C compiler is there."""

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
    environment.setenv("PATH", str(cache))
    environment.delenv("CC", raising=False)
    compiled()


# error[C101]: no C compiler was found
#   --> no_compiler.py:23:12
#      |
#   23 |     return once().compile()
#      |            ^^^^^^^^^^^^^^^^
#    = expected: one of cc, gcc, clang on PATH, or CC
#    = found:    none, and the ziglang wheel is not installed
#    = help:     install gcc or clang, or pip install 'pto-wsp[zig]'; target="interp" needs no compiler
