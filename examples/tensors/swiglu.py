"""A SwiGLU block of a language model: norm, one product for gate and value, their product, a product back, and the residual.

    python examples/tensors/swiglu.py
"""

import sys

import numpy as np
from compare import compare

from pto_wsp import DType, Tensor, jit
from pto_wsp.tt.library import rms_norm, silu

F32 = DType.F32
DIM, HIDDEN = 96, 160


@jit
def swiglu_block(x: Tensor["t", DIM, F32], g: Tensor[DIM, F32], up: Tensor[DIM, 2 * HIDDEN, F32], down: Tensor[HIDDEN, DIM, F32]):
    gate, value = np.split(rms_norm(x, g) @ up, 2, axis=-1)
    hidden = silu(gate) * value
    return x + hidden @ down


FUNCTIONS = {swiglu_block: {"tiles": {"out": {"t": 16}}}}      # with the entries of the tuned plan


def draw(t=45, seed=0):
    """Return the arguments by name."""
    rng = np.random.default_rng(seed)
    x, g, up, down = (rng.standard_normal(shape, np.float32) for shape in ((t, DIM), DIM, (DIM, 2 * HIDDEN), (HIDDEN, DIM)))
    return {"x": x, "g": g, "up": up / 10, "down": down / 12}


def expected(x, g, up, down, eps=1e-6):
    """Return the result in float64, row by row."""
    x, up, down = x.astype(np.float64), up.astype(np.float64), down.astype(np.float64)
    rows = []
    for row in x:
        both = (row * g / np.sqrt(row @ row / DIM + eps)) @ up
        gate, value = both[:HIDDEN], both[HIDDEN:]
        rows.append(row + (gate * value / (1 + np.exp(-gate))) @ down)
    return np.array(rows).reshape(x.shape)


if __name__ == "__main__":
    sys.exit(compare(FUNCTIONS, draw, expected))
