"""What comes before a lightning indexer: queries and keys in int8, rotated and spread by a Hadamard matrix, and weights of the heads.

    python examples/tensors/indexer_prolog.py
"""

import sys

import numpy as np
from compare import compare

from pto_wsp import DType, Injective, InOut, Tensor, jit
from pto_wsp.tt.library import layer_norm, quantize_rows, rope

F32, I8, I32 = DType.F32, DType.I8, DType.I32
DIM, NARROW, HEADS, HEAD, ROPE = 128, 64, 4, 32, 16


def rotated(x, cos, sin, spread):
    """Return x with its first numbers rotated, times the Hadamard matrix: a plain function, called by jit functions."""
    return np.concatenate((rope(x[..., :ROPE], cos, sin), x[..., ROPE:]), axis=-1) @ spread


@jit
def indexer_prolog(q8: Tensor["t", NARROW, I8], q_scale: Tensor["t", 1, F32], w_q: Tensor[NARROW, HEADS * HEAD, I8],
                   s_q: Tensor[1, HEADS * HEAD, F32], x: Tensor["t", DIM, F32], w_k: Tensor[DIM, HEAD, F32], gain: Tensor[HEAD, F32],
                   offset: Tensor[HEAD, F32], w_head: Tensor[DIM, HEADS, F32], spread: Tensor[HEAD, HEAD, F32],
                   cos: Tensor["t", ROPE, F32], sin: Tensor["t", ROPE, F32], slots: Injective[Tensor["t", I32]],
                   k_cache: InOut[Tensor["rows", HEAD, I8]], k_scales: InOut[Tensor["rows", 1, F32]]):
    q = ((q8 @ w_q).astype(F32) * q_scale * s_q).reshape(x.shape[0], HEADS, HEAD)
    codes, scales = quantize_rows(rotated(q, cos[:, None], sin[:, None], spread))
    k8, k_scale = quantize_rows(rotated(layer_norm(x @ w_k, gain, offset), cos, sin, spread))
    k_cache[slots] = k8
    k_scales[slots] = k_scale
    weights = x @ w_head * (HEADS * HEAD) ** -0.5
    return codes, scales, weights


FUNCTIONS = {indexer_prolog: {"tiles": {"weights": {"t": 8}}}}      # with the entries of the tuned plan


def draw(t=21, rows=40, seed=0):
    """Return the arguments by name."""
    rng = np.random.default_rng(seed)
    shapes = {"x": (t, DIM), "w_k": (DIM, HEAD), "gain": HEAD, "offset": HEAD, "w_head": (DIM, HEADS), "k_scales": (rows, 1)}
    spread, angle = np.ones((1, 1)), rng.uniform(0, 6, (t, ROPE)).astype(np.float32)
    while len(spread) < HEAD:
        spread = np.block([[spread, spread], [spread, -spread]])
    return {name: rng.standard_normal(shape, np.float32) / 4 for name, shape in shapes.items()} | {
        "q8": rng.integers(-127, 128, (t, NARROW), np.int8), "w_q": rng.integers(-127, 128, (NARROW, HEADS * HEAD), np.int8),
        "q_scale": rng.uniform(0.001, 0.002, (t, 1)).astype(np.float32), "slots": rng.permutation(rows)[:t].astype(np.int32),
        "s_q": rng.uniform(0.001, 0.002, (1, HEADS * HEAD)).astype(np.float32), "k_cache": rng.integers(-9, 9, (rows, HEAD), np.int8),
        "spread": (spread / np.sqrt(HEAD)).astype(np.float32), "cos": np.cos(angle), "sin": np.sin(angle)}


def expected(q8, q_scale, w_q, s_q, x, w_k, gain, offset, w_head, spread, cos, sin, slots, k_cache, k_scales):
    """Return the results, and the caches afterwards by name, in float64: one token at a time."""
    def coded(row, token):
        low, high = row[:ROPE // 2], row[ROPE // 2:ROPE]
        turned = np.concatenate((low, high)) * cos[token] + np.concatenate((-high, low)) * sin[token]
        row = spread.T.astype(np.float64) @ np.concatenate((turned, row[ROPE:]))
        return np.rint(row * 127 / np.abs(row).max()), np.abs(row).max() / 127

    k_cache, k_scales = k_cache.astype(np.float64), k_scales.astype(np.float64)
    codes, scales, weights = np.zeros((len(x), HEADS, HEAD)), np.zeros((len(x), HEADS, 1)), np.zeros((len(x), HEADS))
    for token, slot in enumerate(slots):
        q = q8[token].astype(np.int64) @ w_q.astype(np.int64) * float(q_scale[token, 0]) * s_q[0].astype(np.float64)
        for head in range(HEADS):
            codes[token, head], scales[token, head] = coded(q[head * HEAD:][:HEAD], token)
        k = x[token].astype(np.float64) @ w_k
        k_cache[slot], k_scales[slot] = coded((k - k.mean()) / np.sqrt(k.var() + 1e-5) * gain + offset, token)
        weights[token] = x[token].astype(np.float64) @ w_head / np.sqrt(HEADS * HEAD)
    return codes, scales, weights, {"k_cache": k_cache, "k_scales": k_scales}


if __name__ == "__main__":
    sys.exit(compare(FUNCTIONS, draw, expected))
