"""What comes before multi-head latent attention: queries of each head in the space of latents, and a new row of both caches.

Queries go through a narrow product that is quantised to int8 by row. A cached token is a latent and a rotated key; both are written to
the row that `slots` names. No two tokens have a row in common, which the annotation promises and each call checks.

    python examples/tensors/mla_prolog.py
"""

import sys

import numpy as np
from compare import compare

from pto_wsp import DType, Injective, InOut, Tensor, jit
from pto_wsp.tt.library import quantize_rows, rms_norm, rope

F32, I8, I32 = DType.F32, DType.I8, DType.I32
DIM, NARROW, HEADS, NOPE, ROPE, LATENT = 128, 64, 4, 32, 16, 48


@jit
def mla_prolog(x: Tensor["t", DIM, F32], w_dq: Tensor[DIM, NARROW, F32], g_q: Tensor[NARROW, F32],
               w_uq: Tensor[NARROW, HEADS * (NOPE + ROPE), I8], s_uq: Tensor[1, HEADS * (NOPE + ROPE), F32],
               w_uk: Tensor[HEADS, NOPE, LATENT, F32], w_dkv: Tensor[DIM, LATENT + ROPE, F32], g_kv: Tensor[LATENT, F32],
               cos: Tensor["t", ROPE, F32], sin: Tensor["t", ROPE, F32], slots: Injective[Tensor["t", I32]],
               kv_cache: InOut[Tensor["rows", LATENT, F32]], kr_cache: InOut[Tensor["rows", ROPE, F32]]):
    heads, nope, latent = w_uk.shape
    c8, c_scale = quantize_rows(rms_norm(x @ w_dq, g_q))
    q = ((c8 @ w_uq).astype(F32) * c_scale * s_uq).reshape(x.shape[0], heads, -1)      # int8 @ int8 is int32, as in kernels
    q_nope = np.einsum("thd,hdc->thc", q[..., :nope], w_uk)
    q_rope = rope(q[..., nope:], cos[:, None], sin[:, None])
    kv = x @ w_dkv
    kv_cache[slots] = rms_norm(kv[:, :latent], g_kv)
    kr_cache[slots] = rope(kv[:, latent:], cos, sin)
    return q_nope, q_rope


FUNCTIONS = {mla_prolog: {"tiles": {"kv": {"t": 8}}}}      # with the entries of the tuned plan


def draw(t=21, rows=40, seed=0):
    """Return the arguments by name."""
    rng, wide = np.random.default_rng(seed), HEADS * (NOPE + ROPE)
    shapes = {"x": (t, DIM), "w_dq": (DIM, NARROW), "g_q": NARROW, "w_uk": (HEADS, NOPE, LATENT), "w_dkv": (DIM, LATENT + ROPE),
              "g_kv": LATENT, "kv_cache": (rows, LATENT), "kr_cache": (rows, ROPE)}
    angle = rng.uniform(0, 6, (t, ROPE)).astype(np.float32)
    return {name: rng.standard_normal(shape, np.float32) / 4 for name, shape in shapes.items()} | {
        "w_uq": rng.integers(-127, 128, (NARROW, wide), np.int8), "s_uq": rng.uniform(0.001, 0.002, (1, wide)).astype(np.float32),
        "cos": np.cos(angle), "sin": np.sin(angle), "slots": rng.permutation(rows)[:t].astype(np.int32)}


def expected(x, w_dq, g_q, w_uq, s_uq, w_uk, w_dkv, g_kv, cos, sin, slots, kv_cache, kr_cache):
    """Return the results, and the caches afterwards by name, in float64: one token at a time."""
    wide = {name: value.astype(np.float64) for name, value in locals().items()}

    def norm(row, gain):
        return row * gain / np.sqrt((row * row).mean() + 1e-6)

    def turn(row, token):
        return row * cos[token] + np.roll(row, ROPE // 2, -1) * sin[token] * np.repeat((-1, 1), ROPE // 2)

    kv_cache, kr_cache, results = wide["kv_cache"].copy(), wide["kr_cache"].copy(), ([], [])
    for token, slot in enumerate(slots):
        row = norm(wide["x"][token] @ wide["w_dq"], wide["g_q"])
        most = np.abs(row).max() / 127
        q = (np.rint(row / most) * most @ (wide["w_uq"] * wide["s_uq"])).reshape(HEADS, NOPE + ROPE)
        results[0].append([head[:NOPE] @ up for head, up in zip(q, wide["w_uk"], strict=True)])
        results[1].append(turn(q[:, NOPE:], token))
        kv = wide["x"][token] @ wide["w_dkv"]
        kv_cache[slot], kr_cache[slot] = norm(kv[:LATENT], wide["g_kv"]), turn(kv[LATENT:], token)
    return np.array(results[0]), np.array(results[1]), {"kv_cache": kv_cache, "kr_cache": kr_cache}


if __name__ == "__main__":
    sys.exit(compare(FUNCTIONS, draw, expected))
