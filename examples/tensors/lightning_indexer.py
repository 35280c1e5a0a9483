"""The cached tokens that each query attends to: int8 scores of all heads, weighted and added up, and the places of the best.

    python examples/tensors/lightning_indexer.py
"""

import math
import sys

import numpy as np
from compare import compare

from pto_wsp import DType, Tensor, jit, tt

F32, I8, I32 = DType.F32, DType.I8, DType.I32
HEADS, HEAD = 4, 32


@jit
def lightning_indexer(q8: Tensor["t", HEADS, HEAD, I8], q_scale: Tensor["t", HEADS, F32], weights: Tensor["t", HEADS, F32],
                      k8: Tensor["n", HEAD, I8], k_scale: Tensor["n", F32], lengths: Tensor["t", I32], top: int = 24):
    tt.assume(k8.shape[0] <= 512)                 # topk has the whole row in a tile
    per_head = np.maximum((q8 @ k8.T).astype(F32), 0) * (q_scale * weights)[..., None]
    score = np.sum(per_head, axis=1) * k_scale
    score = np.where(tt.arange(k8.shape[0]) < lengths[:, None], score, -math.inf)
    best, places = tt.topk(score, top)
    return best, places


FUNCTIONS = {lightning_indexer: {"tiles": {"score": {"n": 64}}}}      # with the entries of the tuned plan


def draw(t=9, n=150, seed=0):
    """Return the arguments by name."""
    rng = np.random.default_rng(seed)
    return {"q8": rng.integers(-127, 128, (t, HEADS, HEAD), np.int8), "q_scale": rng.uniform(0.005, 0.01, (t, HEADS)).astype(np.float32),
            "weights": rng.standard_normal((t, HEADS), np.float32), "k8": rng.integers(-127, 128, (n, HEAD), np.int8),
            "k_scale": rng.uniform(0.005, 0.01, n).astype(np.float32), "lengths": rng.integers(n // 2, n + 1, t, np.int32)}


def expected(q8, q_scale, weights, k8, k_scale, lengths, top=24):
    """Return the results in float64, from sorted rows of each length."""
    best, places = np.zeros((len(q8), top)), np.zeros((len(q8), top), np.int64)
    for token, n in enumerate(lengths):
        dots = np.einsum("hd,nd->hn", q8[token].astype(np.int64), k8[:n].astype(np.int64))
        score = (weights[token].astype(np.float64) * q_scale[token]) @ np.where(dots > 0, dots, 0) * k_scale[:n]
        places[token] = np.lexsort((np.arange(n), -score))[:top]
        best[token] = score[places[token]]
    return best, places


if __name__ == "__main__":
    sys.exit(compare(FUNCTIONS, draw, expected))
