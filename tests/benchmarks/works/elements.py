"""Works element by element: silu(x) * y, and a chain of three operations in small tasks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pto_wsp import DType, In, Kernel, Out, P, Tensor, Tile, Workload, kernel, pto, workload
from tests.benchmarks.works.work import Array, Arrays, Bound, Sizes, Work, output, relative_error

F32 = DType.F32
SILU_TILE = (4, 4096)


# ---- silu(x) * y ----

@kernel
def silu_mul(x: In[Tile[*SILU_TILE, F32]], y: In[Tile[*SILU_TILE, F32]], out: Out[Tile[*SILU_TILE, F32]]):
    """The gate of a SwiGLU."""
    pto.store(out, pto.silu(x) * y)


def silu_workload(x: Array, y: Array, out: Array) -> Workload:
    """Return silu(x) * y over whole vectors."""
    X, Y, Z = (Tensor(a).reshape(-1, *SILU_TILE) for a in (x, y, out))

    @workload
    def gate():
        for t in P(X.shape[0]):
            silu_mul[t](x=X[t], y=Y[t], out=Z[t])

    return gate()


def silu_inputs(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    """Return two normal vectors."""
    return {name: rng.standard_normal(sizes["count"], dtype=np.float32) for name in ("x", "y")}


def silu_expected(given: Arrays) -> Array:
    """Return silu(x) * y in float64."""
    x = given["x"].astype(np.float64)
    return x / (1 + np.exp(-x)) * given["y"]


def prepare_silu(given: Arrays, threads: int) -> tuple[Callable[[], object], Array]:
    """Return our run and where its result is."""
    out = output(given["x"].shape)
    return silu_workload(given["x"], given["y"], out).compile(threads=threads).run, out


# ---- the chain ----

def chain_kernel(cols: int) -> Kernel:
    """Return relu(1.5 x + 0.5)² + x on one row."""

    @kernel
    def chain(x: In[Tile[1, cols, F32]], out: Out[Tile[1, cols, F32]]):
        clipped = pto.relu(x * 1.5 + 0.5)
        squared = clipped * clipped
        pto.store(out, squared + x)

    return chain


def chain_workload(x: Array, out: Array) -> Workload:
    """Return the chain with a task a row."""
    n_rows, cols = x.shape
    X, Y = (Tensor(a).reshape(n_rows, 1, cols) for a in (x, out))
    chain = chain_kernel(cols)

    @workload
    def chains():
        for t in P(n_rows):
            chain[t](x=X[t], out=Y[t])

    return chains()


def chain_inputs(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    """Return normal rows."""
    return {"x": rng.standard_normal((sizes["rows"], sizes["cols"]), dtype=np.float32)}


def chain_expected(given: Arrays) -> Array:
    """Return the chain in float64."""
    x = given["x"].astype(np.float64)
    return np.maximum(x * 1.5 + 0.5, 0) ** 2 + x


def prepare_chain(given: Arrays, threads: int) -> tuple[Callable[[], object], Array]:
    """Return our run and where its result is."""
    out = output(given["x"].shape)
    return chain_workload(given["x"], out).compile(threads=threads).run, out


WORKS = (
    Work("silu", "silu(x) · y, 16 Mi elements f32", Bound.TRIAD, {"count": 16 << 20}, {"count": 32 << 10}, silu_inputs, silu_expected,
         prepare_silu, lambda sizes: 3 * 4 * int(sizes["count"]), relative_error, 1e-5),
    Work("chain3", "3 operations on rows of [1024, 4096] f32, 1024 tasks", Bound.COPY, {"rows": 1024, "cols": 4096},
         {"rows": 5, "cols": 100}, chain_inputs, chain_expected, prepare_chain,
         lambda sizes: 2 * 4 * int(sizes["rows"]) * int(sizes["cols"]), relative_error, 1e-5),
)
