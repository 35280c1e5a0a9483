"""Layer normalisation of tokens: mean 0 and variance 1 across the features, then a weight and a bias for each feature.

Two kernels one after the other, as in a transformer block: the residual is added, and its sum is normalised. The second task of a
block of tokens reads what the first wrote; that edge is inferred from the regions, nobody writes it down.

    python examples/layernorm/layernorm.py
    python examples/layernorm/layernorm.py --tokens 1000 --features 768
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from pto_wsp import DType, In, InOut, Kernel, Out, P, Tensor, Tile, Workload, ceildiv, kernel, pto, workload

F32 = DType.F32
TOKENS = 16           # of a task
EPSILON = 1e-5
TOLERANCE = 1e-5      # of f32 against a float64 reference; results are of size 1


# ---- the reference ----

def reference(x: np.ndarray, residual: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Return the layer norm of x + residual in float64."""
    total = x.astype(np.float64) + residual
    centred = total - total.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=1, keepdims=True) + EPSILON) * weight + bias


# ---- the kernels ----

def add_kernel(features: int) -> Kernel:
    """Return x += y on 16 tokens."""

    @kernel
    def add(x: InOut[Tile[TOKENS, features, F32]], y: In[Tile[TOKENS, features, F32]]):
        x += y

    return add


def layernorm_kernel(features: int) -> Kernel:
    """Return layer normalisation of 16 tokens."""

    @kernel
    def layernorm(x: In[Tile[TOKENS, features, F32]], weight: In[Tile[1, features, F32]], bias: In[Tile[1, features, F32]],
                  out: Out[Tile[TOKENS, features, F32]]):
        centred = x - pto.rowmean(x)              # [16, features] - [16, 1]
        variance = pto.rowmean(centred * centred)
        inverse = pto.rsqrt(variance + EPSILON)
        pto.store(out, centred * inverse * weight + bias)

    return layernorm


# ---- the workload ----

def layernorm_workload(x: np.ndarray, residual: np.ndarray, weight: np.ndarray, bias: np.ndarray, y: np.ndarray) -> Workload:
    """Return y = layernorm(x += residual) * weight + bias, two tasks for each 16 tokens."""
    X, R, W, B, Y = (Tensor(a) for a in (x, residual, weight, bias, y))
    n_tokens, features = x.shape
    add, layernorm = add_kernel(features), layernorm_kernel(features)

    @workload
    def add_and_normalise():
        for t in P(ceildiv(n_tokens, TOKENS)):
            mine = X[t * TOKENS:].clip(TOKENS, features)      # the last block may be short
            add[t](x=mine, y=R[t * TOKENS:].clip(TOKENS, features))
            layernorm[t](x=mine, weight=W, bias=B, out=Y[t * TOKENS:].clip(TOKENS, features))

    return add_and_normalise()


def main() -> int:
    """Run it on random tokens and compare with NumPy."""
    parser = argparse.ArgumentParser(description="Layer normalisation of tokens.")
    parser.add_argument("--tokens", type=int, default=100, help="default %(default)s")
    parser.add_argument("--features", type=int, default=512, help="default %(default)s")
    options = parser.parse_args()
    if options.tokens < 1 or options.features < 1:
        parser.error("--tokens and --features are at least 1")
    rng = np.random.default_rng(0)
    shape = (options.tokens, options.features)
    x, residual = (rng.standard_normal(shape, dtype=np.float32) for _ in range(2))
    weight, bias = (rng.standard_normal(options.features, dtype=np.float32) for _ in range(2))
    expected = reference(x, residual, weight, bias)      # before the run: it adds to x
    y = np.full(shape, np.nan, np.float32)
    program = layernorm_workload(x, residual, weight, bias, y).compile().run()
    error = float(np.abs(y - expected).max())
    right = error <= TOLERANCE      # not so for NaN
    print(f"[{options.tokens}, {options.features}]: {program.stats.task_count} tasks, {len(program.graph.edges)} edges, "
          f"max |error| {error:.1e}: {'agrees with NumPy' if right else f'FAILED, more than {TOLERANCE:.0e}'}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
