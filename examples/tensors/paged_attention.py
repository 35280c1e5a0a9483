"""One decoding step of attention over a paged cache: each request has a row of page numbers, and a length.

Query heads that share keys are one tile. The last page is short: the slice ends where the request does.

    python examples/tensors/paged_attention.py
"""

import math
import sys

import numpy as np
from compare import compare

from pto_wsp import DType, Tensor, jit, tt

F32, I32 = DType.F32, DType.I32
GROUPS, HEADS, HEAD, PAGE = 2, 4, 32, 16        # heads of keys, query heads of each, numbers of a head, rows of a page


@jit
def paged_attention(q: Tensor["b", GROUPS, HEADS, HEAD, F32], k_pages: Tensor["pages", GROUPS, PAGE, HEAD, F32],
                    v_pages: Tensor["pages", GROUPS, PAGE, HEAD, F32], table: Tensor["b", "m", I32], lengths: Tensor["b", I32]):
    out, scale = tt.empty(q.shape), 1 / math.sqrt(HEAD)
    for b, g in tt.each(q.shape[0], GROUPS):
        qg = q[b, g] * scale
        acc, seen, top = tt.zeros((HEADS, HEAD)), tt.zeros((HEADS, 1)), tt.full((HEADS, 1), -math.inf)
        for j in tt.loop((lengths[b] + PAGE - 1) // PAGE):
            rows = slice(0, lengths[b] - j * PAGE)            # clips at the end of the page
            score = qg @ k_pages[table[b, j], g][rows].T
            peak = np.maximum(top, np.max(score, axis=-1, keepdims=True))
            weight, fade = np.exp(score - peak), np.exp(top - peak)
            acc[:] = acc * fade + weight @ v_pages[table[b, j], g][rows]
            seen[:] = seen * fade + np.sum(weight, axis=-1, keepdims=True)
            top[:] = peak
        out[b, g] = acc / seen
    return out


FUNCTIONS = {paged_attention: {"tiles": {"top": {0: 2}}}}      # with the entries of the tuned plan


def draw(lengths=(40, 1, 16, 33), seed=0):
    """Return the arguments by name."""
    rng, lengths = np.random.default_rng(seed), np.array(lengths, np.int32)
    counts = -(-lengths // PAGE)
    pages, table = int(counts.sum()) + 2, np.zeros((len(lengths), int(counts.max(initial=1))), np.int32)
    table[np.arange(table.shape[1]) < counts[:, None]] = rng.permutation(pages)[:counts.sum()]
    k_pages, v_pages = rng.standard_normal((2, pages, GROUPS, PAGE, HEAD), np.float32)
    q = rng.standard_normal((len(lengths), GROUPS, HEADS, HEAD), np.float32)
    return {"q": q, "k_pages": k_pages, "v_pages": v_pages, "table": table, "lengths": lengths}


def expected(q, k_pages, v_pages, table, lengths):
    """Return the result in float64, with all rows of a request side by side."""
    out = np.zeros(q.shape)
    for b, n in enumerate(lengths):
        k, v = (np.concatenate(pages[table[b]].astype(np.float64), axis=1)[:, :n] for pages in (k_pages, v_pages))
        weight = np.exp(np.einsum("ghd,gnd->ghn", q[b], k) / np.sqrt(HEAD))
        out[b] = np.einsum("ghn,gnd->ghd", weight / weight.sum(-1, keepdims=True), v)
    return out


if __name__ == "__main__":
    sys.exit(compare(FUNCTIONS, draw, expected))
