"""Layer norm of rows: mean 0, variance 1, then a gain and an offset by column.

    python examples/tensors/layernorm.py
"""

import sys

import numpy as np
from compare import compare

from pto_wsp import DType, Tensor, jit

F32 = DType.F32
DIM = 300


@jit
def layernorm(x: Tensor["t", DIM, F32], gain: Tensor[DIM, F32], offset: Tensor[DIM, F32], eps: float = 1e-5):
    centred = x - np.mean(x, axis=-1, keepdims=True)
    variance = np.mean(centred * centred, axis=-1, keepdims=True)
    return centred / np.sqrt(variance + eps) * gain + offset


FUNCTIONS = {layernorm: {"tiles": {"out": {"t": 4}}}}      # with the entries of the tuned plan


def draw(t=50, seed=0):
    """Return the arguments by name."""
    rng = np.random.default_rng(seed)
    x, gain, offset = (rng.standard_normal(shape, np.float32) for shape in ((t, DIM), DIM, DIM))
    return {"x": x * 3 + 5, "gain": gain, "offset": offset}


def expected(x, gain, offset, eps=1e-5):
    """Return the result in float64, from the first two moments."""
    x = x.astype(np.float64).T
    first, second = x.sum(0) / DIM, (x * x).sum(0) / DIM
    return ((x - first) * (second - first ** 2 + eps) ** -0.5).T * gain + offset


if __name__ == "__main__":
    sys.exit(compare(FUNCTIONS, draw, expected))
