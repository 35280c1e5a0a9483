"""Works on the rows of a matrix: rmsnorm and softmax. A task takes 16 rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pto_wsp import DType, In, Kernel, Out, P, Tensor, Tile, Workload, kernel, pto, workload
from tests.benchmarks.works.work import Array, Arrays, Bound, Sizes, Work, output, relative_error

F32 = DType.F32
ROWS = 16
EPSILON = 1e-6


# ---- rmsnorm ----

def rmsnorm_kernel(cols: int) -> Kernel:
    """Return rmsnorm of 16 rows, scaled by a weight a column."""

    @kernel
    def rmsnorm(x: In[Tile[ROWS, cols, F32]], weight: In[Tile[1, cols, F32]], out: Out[Tile[ROWS, cols, F32]]):
        inverse = pto.rsqrt(pto.rowmean(x * x) + EPSILON)
        pto.store(out, x * inverse * weight)

    return rmsnorm


def rmsnorm_workload(x: Array, weight: Array, out: Array) -> Workload:
    """Return rmsnorm of the rows of `x`."""
    n_rows, cols = x.shape
    X, Y = (Tensor(a).reshape(-1, ROWS, cols) for a in (x, out))
    W = Tensor(weight)
    rmsnorm = rmsnorm_kernel(cols)

    @workload
    def normalise():
        for t in P(n_rows // ROWS):
            rmsnorm[t](x=X[t], weight=W, out=Y[t])

    return normalise()


def rmsnorm_inputs(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    """Return normal rows and weights."""
    return {"x": rng.standard_normal((sizes["rows"], sizes["cols"]), dtype=np.float32),
            "weight": rng.standard_normal(sizes["cols"], dtype=np.float32)}


def rmsnorm_expected(given: Arrays) -> Array:
    """Return rmsnorm in float64."""
    x = given["x"].astype(np.float64)
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + EPSILON) * given["weight"]


def prepare_rmsnorm(given: Arrays, threads: int) -> tuple[Callable[[], object], Array]:
    """Return our run and where its result is."""
    out = output(given["x"].shape)
    return rmsnorm_workload(given["x"], given["weight"], out).compile(threads=threads).run, out


# ---- softmax ----

def softmax_kernel(cols: int) -> Kernel:
    """Return softmax of 16 rows."""

    @kernel
    def softmax(x: In[Tile[ROWS, cols, F32]], out: Out[Tile[ROWS, cols, F32]]):
        weight = pto.exp(x - pto.rowmax(x))
        pto.store(out, weight * pto.recip(pto.rowsum(weight)))

    return softmax


def softmax_workload(x: Array, out: Array) -> Workload:
    """Return softmax of the rows of `x`."""
    n_rows, cols = x.shape
    X, Y = (Tensor(a).reshape(-1, ROWS, cols) for a in (x, out))
    softmax = softmax_kernel(cols)

    @workload
    def weigh():
        for t in P(n_rows // ROWS):
            softmax[t](x=X[t], out=Y[t])

    return weigh()


def softmax_inputs(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    """Return normal rows, of deviation 3."""
    return {"x": rng.standard_normal((sizes["rows"], sizes["cols"]), dtype=np.float32) * np.float32(3)}


def softmax_expected(given: Arrays) -> Array:
    """Return softmax in float64."""
    x = given["x"].astype(np.float64)
    weight = np.exp(x - x.max(axis=1, keepdims=True))
    return weight / weight.sum(axis=1, keepdims=True)


def prepare_softmax(given: Arrays, threads: int) -> tuple[Callable[[], object], Array]:
    """Return our run and where its result is."""
    out = output(given["x"].shape)
    return softmax_workload(given["x"], out).compile(threads=threads).run, out


# ---- both ----

def _bytes(sizes: Sizes) -> int:
    return 2 * 4 * int(sizes["rows"]) * int(sizes["cols"])


FULL, SMALL = {"rows": 4096, "cols": 1024}, {"rows": 32, "cols": 192}
WORKS = (
    Work("rmsnorm", "rmsnorm with weights, [4096, 1024] f32", Bound.COPY, FULL, SMALL, rmsnorm_inputs, rmsnorm_expected, prepare_rmsnorm,
         _bytes, relative_error, 1e-5),
    Work("softmax", "softmax of the rows of [4096, 1024] f32", Bound.COPY, FULL, SMALL, softmax_inputs, softmax_expected, prepare_softmax,
         _bytes, relative_error, 1e-5),
)
