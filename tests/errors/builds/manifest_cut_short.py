"""The manifest of a cached artifact is cut short."""

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
    folder = compiled().artifact_dir
    assert folder is not None
    manifest = folder / "manifest.json"
    manifest.write_bytes(manifest.read_bytes()[:100])
    compiled()


# error[C103]: the artifact in CACHE/artifacts/once-DIGEST is damaged
#   --> manifest_cut_short.py:23:12
#      |
#   23 |     return once().compile()
#      |            ^^^^^^^^^^^^^^^^
#    = expected: files as the manifest lists them
#    = found:    manifest.json: Invalid JSON: EOF while parsing a value at line 7 column 15
#    = help:     remove CACHE/artifacts/once-DIGEST; it is built again
