"""The compiler says that all is well and has written nothing."""

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
    lying = cache / "lying"
    lying.write_text("#!/bin/sh\nexit 0\n")
    lying.chmod(0o755)
    environment.setenv("CC", str(lying))
    compiled()


# error[C102]: the C compiler left no library of the generated code
#   --> compiler_that_leaves_nothing.py:23:12
#      |
#   23 |     return once().compile()
#      |            ^^^^^^^^^^^^^^^^
#    = expected: a shared library for this machine
#    = found:    libonce.so: No such file or directory, and exit status 0 of lying
#    = help:     see that CC is a C compiler for this machine, and that its disk has room
