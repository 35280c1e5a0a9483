"""Softmax along the last axis of an array of four dimensions.

    python examples/tensors/softmax.py
"""

import sys

import numpy as np
from compare import compare

from pto_wsp import DType, Tensor, jit

F32 = DType.F32
HEADS, COLS = 8, 100


@jit
def softmax(x: Tensor["b", HEADS, "s", COLS, F32]):
    weight = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return weight / np.sum(weight, axis=-1, keepdims=True)


FUNCTIONS = {softmax: {"tiles": {"out": {"s": 8}}}}      # with the entries of the tuned plan


def draw(b=3, s=12, seed=0):
    """Return the arguments by name."""
    return {"x": np.random.default_rng(seed).standard_normal((b, HEADS, s, COLS), np.float32) * 10}


def expected(x):
    """Return the result in float64."""
    x = x.astype(np.float64)
    return np.exp(x - np.logaddexp.reduce(x, axis=-1)[..., None])


if __name__ == "__main__":
    sys.exit(compare(FUNCTIONS, draw, expected))
