"""Others can write to the cache folder."""

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
    cache.chmod(0o777)
    compiled()


# error[C106]: the artifact cache is not yours alone: CACHE
#   --> cache_open_to_all.py:23:12
#      |
#   23 |     return once().compile()
#      |            ^^^^^^^^^^^^^^^^
#    = expected: yours, and nobody else may write
#    = found:    mode 0777, which lets others write
#    = help:     set PTO_WSP_CACHE_DIR to a folder that is yours alone, as `mkdir -m 700` makes one
