"""One decoding step of a whole layer of a llama-like model: norms, rotary positions, a paged cache, grouped heads, SwiGLU, residuals.

    python examples/tensors/decode_layer.py
"""

import math
import sys
from typing import NamedTuple

import numpy as np
from compare import compare

from pto_wsp import DType, Injective, InOut, Tensor, jit, tt
from pto_wsp.tt.library import rms_norm, rope, silu

F32, I32 = DType.F32, DType.I32
DIM, HIDDEN, GROUPS, HEADS, HEAD, PAGE = 64, 96, 2, 2, 16, 8       # heads of keys, query heads of each, numbers of a head, rows of a page


class Layer(NamedTuple):
    """The weights of a layer."""

    norm: Tensor[DIM, F32]
    qkv: Tensor[DIM, GROUPS * (HEADS + 2) * HEAD, F32]
    out: Tensor[GROUPS * HEADS * HEAD, DIM, F32]
    norm_2: Tensor[DIM, F32]
    up: Tensor[DIM, 2 * HIDDEN, F32]
    down: Tensor[HIDDEN, DIM, F32]


@jit
def decode_layer(x: Tensor["b", DIM, F32], w: Layer, cos: Tensor["b", HEAD, F32], sin: Tensor["b", HEAD, F32],
                 slots: Injective[Tensor["b", I32]], table: Tensor["b", "m", I32], lengths: Tensor["b", I32],
                 k_cache: InOut[Tensor["rows", GROUPS, HEAD, F32]], v_cache: InOut[Tensor["rows", GROUPS, HEAD, F32]]):
    batch, scale = x.shape[0], 1 / math.sqrt(HEAD)
    qkv = (rms_norm(x, w.norm) @ w.qkv).reshape(batch, GROUPS, HEADS + 2, HEAD)
    k_cache[slots] = rope(qkv[:, :, HEADS], cos[:, None], sin[:, None])
    v_cache[slots] = qkv[:, :, HEADS + 1]
    q = rope(qkv[:, :, :HEADS], cos[:, None, None], sin[:, None, None]) * scale
    mixed = tt.empty((batch, GROUPS, HEADS, HEAD))
    for b, g in tt.each(batch, GROUPS):
        acc, seen, top = tt.zeros((HEADS, HEAD)), tt.zeros((HEADS, 1)), tt.full((HEADS, 1), -math.inf)
        for j in tt.loop((lengths[b] + PAGE - 1) // PAGE):
            first = table[b, j] * PAGE
            rows = slice(first, first + np.minimum(PAGE, lengths[b] - j * PAGE))
            score = q[b, g] @ k_cache[rows, g].T
            peak = np.maximum(top, np.max(score, axis=-1, keepdims=True))
            weight, fade = np.exp(score - peak), np.exp(top - peak)
            acc[:] = acc * fade + weight @ v_cache[rows, g]
            seen[:] = seen * fade + np.sum(weight, axis=-1, keepdims=True)
            top[:] = peak
        mixed[b, g] = acc / seen
    attended = x + mixed.reshape(batch, -1) @ w.out
    gate, lift = np.split(rms_norm(attended, w.norm_2) @ w.up, 2, axis=-1)
    return attended + silu(gate) * lift @ w.down


FUNCTIONS = {decode_layer: {"tiles": {"q": {"b": 4}}}}      # with the entries of the tuned plan


def draw(lengths=(20, 1, 8, 17, 5), seed=0):
    """Return the arguments by name; `lengths` counts the token of this step too."""
    rng, lengths = np.random.default_rng(seed), np.array(lengths, np.int32)
    counts, batch = -(-lengths // PAGE), len(lengths)
    pages, table = int(counts.sum()) + 2, np.zeros((batch, int(counts.max())), np.int32)
    table[np.arange(table.shape[1]) < counts[:, None]] = rng.permutation(pages)[:counts.sum()]
    last = lengths - 1
    angle = (last[:, None] * 100.0 ** -np.tile(np.linspace(0, 1, HEAD // 2), 2)).astype(np.float32)
    shapes = {"norm": DIM, "qkv": (DIM, GROUPS * (HEADS + 2) * HEAD), "out": (GROUPS * HEADS * HEAD, DIM), "norm_2": DIM,
              "up": (DIM, 2 * HIDDEN), "down": (HIDDEN, DIM)}
    k_cache, v_cache = rng.standard_normal((2, pages * PAGE, GROUPS, HEAD), np.float32)
    return {"x": rng.standard_normal((batch, DIM), np.float32),
            "w": Layer(**{name: rng.standard_normal(shape, np.float32) / 8 for name, shape in shapes.items()}),
            "cos": np.cos(angle), "sin": np.sin(angle), "table": table,
            "slots": table[np.arange(batch), last // PAGE] * PAGE + last % PAGE,
            "lengths": lengths, "k_cache": k_cache, "v_cache": v_cache}


def expected(x, w, cos, sin, slots, table, lengths, k_cache, v_cache):
    """Return the result, and the caches afterwards by name, in float64: one request and one head at a time."""
    def norm(row, gain):
        return row * gain / np.sqrt((row * row).mean() + 1e-6)

    def turn(row, b):
        pair = row[:HEAD // 2] + 1j * row[HEAD // 2:]
        pair *= cos[b, :HEAD // 2] + 1j * sin[b, :HEAD // 2]
        return np.concatenate((pair.real, pair.imag))

    x, k_cache, v_cache = x.astype(np.float64), k_cache.astype(np.float64), v_cache.astype(np.float64)
    rows = []
    for b, row in enumerate(x):
        heads, mixed = (norm(row, w.norm) @ w.qkv).reshape(GROUPS, HEADS + 2, HEAD), []
        mine = (table[b][:, None] * PAGE + np.arange(PAGE)).ravel()[:lengths[b]]
        for g in range(GROUPS):
            k_cache[slots[b], g], v_cache[slots[b], g] = turn(heads[g, HEADS], b), heads[g, HEADS + 1]
            for h in range(HEADS):
                weight = np.exp(k_cache[mine, g] @ turn(heads[g, h], b) / np.sqrt(HEAD))
                mixed.append(weight @ v_cache[mine, g] / weight.sum())
        row = row + np.concatenate(mixed) @ w.out
        gate, lift = np.split(norm(row, w.norm_2) @ w.up, 2)
        rows.append(row + gate / (1 + np.exp(-gate)) * lift @ w.down)
    return np.array(rows), {"k_cache": k_cache, "v_cache": v_cache}


if __name__ == "__main__":
    sys.exit(compare(FUNCTIONS, draw, expected))
