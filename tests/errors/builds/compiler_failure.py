"""The compiler refuses the code."""

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
    broken = cache / "broken"
    broken.write_text("#!/bin/sh\necho 'library.c:1: error: this compiler is too old' >&2\nexit 1\n")
    broken.chmod(0o755)
    environment.setenv("CC", str(broken))
    compiled()


# error[C102]: the C compiler refused the generated code
#   --> compiler_failure.py:23:12
#      |
#   23 |     return once().compile()
#      |            ^^^^^^^^^^^^^^^^
#    = found:    exit status 1 of broken
#    = help:     the sources are in CACHE/artifacts/building-…-failed
#    = note:     library.c:1: error: this compiler is too old
