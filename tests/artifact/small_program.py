"""A program of two kernels and a symbol, in this process or in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pto_wsp import DType, In, Out, P, Program, Tensor, Tile, kernel, pto, workload

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = '''
import sys
import numpy as np
from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload

@kernel
def shift(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]):
    pto.store(y, pto.sqrt(x) + 1)

X, Y = Tensor(np.full((3, 4, 8), 4, np.float32)), Tensor(np.zeros((3, 4, 8), np.float32))

@workload
def scripted():
    for b in P(3):
        shift[b](x=X[b], y=Y[b])

program = scripted().compile(*sys.argv[1:2]).run()
assert (Y.data == 3).all()
print(program.artifact_dir or "none")
'''


def small(target: str = "cpu_sim", *, value: float = 4.0, factor: int = 2, **options: Any) -> tuple[Program, Any]:
    """Return a compiled program and the array that it writes: sqrt(value) * factor in every element."""
    @kernel
    def scaled(x: In[Tile[2, 8, DType.F32]], y: Out[Tile[2, 8, DType.F32]]) -> None:
        pto.store(y, pto.sqrt(x) * factor)

    X, Y = Tensor(np.full((4, 8), value, np.float32)), Tensor(np.zeros((4, 8), np.float32))

    @workload
    def small_one() -> None:
        for i in P(2):
            scaled[i](x=X[i * 2:i * 2 + 2], y=Y[i * 2:i * 2 + 2])

    return small_one().compile(target, **options), Y.data


def start(script: Path, cache: Path, *args: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Start a script in its own folder, with its own cache."""
    given = {**os.environ, "PYTHONPATH": str(ROOT), "PTO_WSP_CACHE_DIR": str(cache), **(env or {})}
    return subprocess.Popen([sys.executable, str(script), *args], cwd=script.parent, env=given, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def finish(process: subprocess.Popen[str]) -> Path:
    """Wait for a script and return the artifact's folder that it prints."""
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return Path(out.strip())


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder by its path."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
