"""With the plugin, mypy takes the annotations of functions on tensors, and still finds mistakes of types."""

from __future__ import annotations

from pathlib import Path

import pytest
from mypy import api

PROGRAM = """
import numpy as np
from pto_wsp import DType, In, InOut, Injective, Out, Scalar, Tensor, Tile, tt
from pto_wsp.tt.library import softmax

F32, T = DType.F32, "t"

def f(x: Tensor[T, 4096, F32], c: InOut[Tensor[T, F32]], s: Injective[Tensor[T, DType.I64]], k: Scalar[F32], n: int = 3) -> object:
    c += np.sum(x, axis=1)
    return softmax(x) @ x.T * n

def g(a: In[Tile[16, 64, F32]], b: Out[Tile[16, 64, F32]]) -> None: ...

def h(x: Tensor) -> str:
    return x.name
"""


@pytest.mark.slow
def test_mypy_takes_the_annotations(tmp_path: Path) -> None:
    """Both programs in one test: the second run of mypy takes what it found out about the package from the first."""
    program, config = tmp_path / "program.py", tmp_path / "mypy.ini"
    config.write_text("[mypy]\nplugins = pto_wsp.mypy_plugin\nstrict = True\n")
    for more, error in (("", ""), ("h(3)\n", "arg-type")):
        program.write_text(PROGRAM + more)
        report, _, _ = api.run(["--config-file", str(config), "--cache-dir", str(tmp_path / "cache"), str(program)])
        mine = [line for line in report.splitlines() if line.startswith(str(program)) or "program.py" in line]
        assert (error in report if error else not mine), report
