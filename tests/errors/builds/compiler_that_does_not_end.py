"""The compiler takes longer than it may."""

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
    compiled()   # builds the runtime library
    slow = cache / "slow"
    slow.write_text("#!/bin/sh\nsleep 60\n")
    slow.chmod(0o755)
    environment.setenv("CC", str(slow))
    environment.setenv("PTO_WSP_COMPILE_TIMEOUT", "0.2")
    compiled()


# error[C102]: the C compiler did not end compiling the generated code in 0.2 s
#   --> compiler_that_does_not_end.py:23:12
#      |
#   23 |     return once().compile()
#      |            ^^^^^^^^^^^^^^^^
#    = found:    CACHE/slow
#    = help:     set PTO_WSP_COMPILE_TIMEOUT to more seconds, or CC to another compiler
