"""Root mean square norm of rows, then a matrix product: the first half of every block of a language model.

    python examples/tensors/rmsnorm_linear.py
"""

import sys

import numpy as np
from compare import compare

from pto_wsp import DType, Tensor, jit

F32 = DType.F32
DIM, WIDE = 192, 160


@jit
def rmsnorm_linear(x: Tensor["t", DIM, F32], g: Tensor[DIM, F32], w: Tensor[DIM, WIDE, F32], eps: float = 1e-6):
    normed = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * g
    return normed @ w


FUNCTIONS = {rmsnorm_linear: {"tiles": {"out": {"t": 32, 1: 80}}}}      # with the entries of the tuned plan


def draw(t=77, seed=0):
    """Return the arguments by name."""
    rng = np.random.default_rng(seed)
    x, g, w = (rng.standard_normal(shape, np.float32) for shape in ((t, DIM), (DIM,), (DIM, WIDE)))
    return {"x": x, "g": g, "w": w / 8}


def expected(x, g, w, eps=1e-6):
    """Return the result in float64."""
    x = x.astype(np.float64)
    size = np.einsum("tk,tk->t", x, x) / DIM
    return np.einsum("tk,k,kn->tn", x, g, w) * ((size + eps) ** -0.5)[:, None]


if __name__ == "__main__":
    sys.exit(compare(FUNCTIONS, draw, expected))
