"""A program of several parts, saved by a process of its own: ragged loops, a symbol, an intermediate, a schedule that orders tasks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from pto_wsp.artifact.store import cache_root
from tests.artifact.small_program import finish, start

SCRIPT = '''
import sys
import numpy as np
from pto_wsp import DType, DenseDyn, DispatchPolicy, In, InOut, Out, P, Scalar, Symbol, Tensor, Tile, kernel, pto, workload
F32, I32 = DType.F32, DType.I32

@kernel
def twice(x: In[Tile[4, 8, F32]], by: Scalar[F32], y: Out[Tile[4, 8, F32]]):
    pto.store(y, x * by)

@kernel
def add_to(x: In[Tile[4, 8, F32]], total: InOut[Tile[4, 8, F32]]):
    total[:] = total + x

X, Lens = Tensor(shape=(6, 4, 8), dtype=F32), Tensor(shape=(6,), dtype=I32)
Sums = Tensor(shape=(6, 4, 8), dtype=F32)
Half = Tensor.empty((6, 4, 8), F32)
rows, scale = DenseDyn(6), Symbol("scale")

@workload
def totals():
    for b in P(rows):
        twice[b](x=X[b], by=scale, y=Half[b])
        for i in P.seq(Lens[b]):
            add_to[b, i](x=Half[b], total=Sums[b])

program = totals().dispatch(DispatchPolicy.affinity("b", 2)).compile(*sys.argv[2:3])
print(program.save(sys.argv[1]))
'''


def save(folder: Path, seed: str = "0", *target: str) -> Path:
    """Have a process of its own, with the cache of this one, save the program to `folder`/saved, and return that."""
    script = folder / "model.py"
    script.write_text(SCRIPT)
    saved = finish(start(script, cache_root(), str(folder / "saved"), *target, env={"PYTHONHASHSEED": seed}))
    script.unlink()
    return saved


def inputs() -> dict[str, npt.NDArray[np.generic]]:
    """Return arrays for its tensors."""
    x = np.random.default_rng(5).standard_normal((6, 4, 8)).astype(np.float32)
    return {"X": x, "Lens": np.array([0, 3, 1, 2, 0, 4], np.int32), "Sums": np.ones((6, 4, 8), np.float32)}


def expected(scale: float, rows: int = 6) -> npt.NDArray[np.generic]:
    """Return what Sums holds after a run on `inputs()`: added up in the order of the loop."""
    given = inputs()
    sums, lens = given["Sums"].copy(), given["Lens"]
    for b in range(rows):
        for _ in range(int(lens[b])):
            sums[b] = sums[b] + given["X"][b] * np.float32(scale)
    return sums
