"""Flash attention: over all keys, over the keys before each query, and the latter for requests of different lengths."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pto_wsp import DType, In, Kernel, Out, P, Scalar, Tensor, Tile, Workload, ceildiv, kernel, minimum, pto, workload
from tests.benchmarks.works.work import Array, Arrays, Bound, Sizes, Work, output, relative_error

F32, I32 = DType.F32, DType.I32
DIM = 64
SCALE = 1 / math.sqrt(DIM)
BLOCK = 256      # of queries and of keys
PARTS = 8        # of a block on the diagonal


def meet(state: tuple[Any, Any, Any], score: Any, v: Any) -> tuple[Any, Any, Any]:
    """Return sums of values, the largest score and the sum of weights seen from it, with one more block of keys of these scores."""
    acc, row_max, row_sum = state
    new_max = pto.maximum(row_max, pto.rowmax(score))
    shrink = pto.exp(row_max - new_max)
    weight = pto.exp(score - new_max)
    return acc * shrink + weight @ v, new_max, row_sum * shrink + pto.rowsum(weight)


def attention_kernel(block: int) -> Kernel:
    """Return attention of a block of queries over all keys."""

    @kernel
    def attend(q: In[Tile[block, DIM, F32]], keys: In[Tensor], values: In[Tensor], out: Out[Tile[block, DIM, F32]]):
        acc = pto.alloc((block, DIM), F32, init=0)
        row_max = pto.alloc((block, 1), F32, init=-math.inf)
        row_sum = pto.alloc((block, 1), F32, init=0)
        scaled = q * SCALE
        for start in pto.range(0, keys.shape[0], block):
            k = pto.load(keys, (start, 0), shape=(block, DIM))
            v = pto.load(values, (start, 0), shape=(block, DIM))
            acc[:], row_max[:], row_sum[:] = meet((acc, row_max, row_sum), scaled @ k.T, v)
        pto.store(out, acc / row_sum)

    return attend


def causal_kernel(block: int) -> Kernel:
    """Return attention of a block of queries over the keys up to each of them.

    `first`: which token row 0 of `q` is, a multiple of `block`. The last block of queries may be short.
    """
    part = block // PARTS

    @kernel
    def attend_before(q: In[Tile[block, DIM, F32]], keys: In[Tensor], values: In[Tensor], first: Scalar[I32],
                      out: Out[Tile[block, DIM, F32]]):
        on_diagonal = []                            # in parts, each up to the key of its last query: less is computed in vain
        for start in range(0, block, part):         # Python: one part after the other is traced
            end = start + part
            there = (minimum(end, q.valid[0]), None)
            k = pto.load(keys, (first, 0), shape=(end, DIM), valid=there)
            v = pto.load(values, (first, 0), shape=(end, DIM), valid=there)
            sees = pto.iota((1, end), I32, axis=1) <= pto.iota((part, 1), I32, axis=0) + start
            score = pto.where(sees, (q[start:end] * SCALE) @ k.T, -math.inf)
            largest = pto.rowmax(score)
            weight = pto.exp(score - largest)
            on_diagonal.append((weight @ v, largest, pto.rowsum(weight)))
        acc, row_max, row_sum = pto.alloc((block, DIM), F32), pto.alloc((block, 1), F32), pto.alloc((block, 1), F32)
        acc[:], row_max[:], row_sum[:] = (pto.concat(*parts, axis=0) for parts in zip(*on_diagonal, strict=True))
        scaled = q * SCALE
        for start in pto.range(0, first, block):    # every query sees them
            k = pto.load(keys, (start, 0), shape=(block, DIM))
            v = pto.load(values, (start, 0), shape=(block, DIM))
            acc[:], row_max[:], row_sum[:] = meet((acc, row_max, row_sum), scaled @ k.T, v)
        pto.store(out, acc / row_sum)

    return attend_before


def attention_workload(q: Array, k: Array, v: Array, out: Array, *, causal: bool) -> Workload:
    """Return attention of arrays [heads, tokens, DIM]; tokens is a multiple of a block."""
    Q, K, V, Y = (Tensor(a) for a in (q, k, v, out))
    n_heads, n_tokens, _ = q.shape
    attend, attend_before = attention_kernel(BLOCK), causal_kernel(BLOCK)

    @workload
    def attention():
        for h, i in P(n_heads, n_tokens // BLOCK):
            mine = slice(i * BLOCK, (i + 1) * BLOCK)
            if causal:
                attend_before[h, i](q=Q[h, mine], keys=K[h], values=V[h], first=i * BLOCK, out=Y[h, mine])
            else:
                attend[h, i](q=Q[h, mine], keys=K[h], values=V[h], out=Y[h, mine])

    return attention()


def attention_inputs(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    """Return normal queries, keys and values."""
    shape = (sizes["heads"], sizes["tokens"], DIM)
    return {name: rng.standard_normal(shape, dtype=np.float32) for name in ("q", "k", "v")}


def attention_expected(q: Array, k: Array, v: Array, *, causal: bool) -> Array:
    """Return attention of [heads, tokens, DIM] in float64, one head after the other."""
    out = np.empty(q.shape)
    for h in range(q.shape[0]):
        score = q[h].astype(np.float64) @ k[h].T * SCALE
        if causal:
            score[~np.tri(score.shape[0], dtype=bool)] = -np.inf
        weight = np.exp(score - score.max(axis=1, keepdims=True))
        out[h] = weight @ v[h] / weight.sum(axis=1, keepdims=True)
    return out


def attention_work(key: str, *, causal: bool) -> Work:
    """Return attention as a work; causal attention counts the products with keys up to each query."""

    def prepare(given: Arrays, threads: int) -> tuple[Callable[[], object], Array]:
        out = output(given["q"].shape)
        program = attention_workload(given["q"], given["k"], given["v"], out, causal=causal).compile(threads=threads)
        return program.run, out

    def operations(sizes: Sizes) -> int:
        pairs = sizes["tokens"] * (sizes["tokens"] + 1) // 2 if causal else sizes["tokens"] ** 2
        return 2 * 2 * int(sizes["heads"]) * DIM * int(pairs)

    return Work(key, f"{'causal ' * causal}attention, 8 heads, 1024 tokens, 64 wide, f32", Bound.FMA, {"heads": 8, "tokens": 1024},
                {"heads": 2, "tokens": 512}, attention_inputs,
                lambda given: attention_expected(given["q"], given["k"], given["v"], causal=causal), prepare, operations, relative_error,
                1e-5)


# ---- requests of different lengths ----

def ragged_workload(q: Array, k: Array, v: Array, lens: Array, n_heads: int, out: Array) -> Workload:
    """Return causal attention of requests one after the other: the rows of head h of request b are lens[b] rows in a line."""
    Q, K, V, Y = (Tensor(a) for a in (q, k, v, out))
    lengths, starts = Tensor(lens), Tensor(n_heads * (np.cumsum(lens) - lens))
    attend_before = causal_kernel(BLOCK)

    @workload
    def ragged_attention():
        for b, h in P(len(lens), n_heads):
            first = starts[b] + h * lengths[b]
            mine = slice(first, first + lengths[b])
            n_blocks = ceildiv(lengths[b], BLOCK)
            for later in P(n_blocks):       # the last block has most to do: it comes first
                i = n_blocks - 1 - later
                attend_before[b, h, i](q=Q[mine][i * BLOCK:].clip(BLOCK, DIM), keys=K[mine], values=V[mine], first=i * BLOCK,
                                       out=Y[mine][i * BLOCK:].clip(BLOCK, DIM))

    return ragged_attention()


def ragged_inputs(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    """Return normal queries, keys and values of all requests, and the lengths."""
    requests = [[rng.standard_normal((sizes["heads"], n, DIM), dtype=np.float32).reshape(-1, DIM) for _ in range(3)]
                for n in sizes["lens"]]
    q, k, v = (np.concatenate(parts) for parts in zip(*requests, strict=True))
    return {"q": q, "k": k, "v": v, "lens": np.array(sizes["lens"], np.int64), "heads": np.array(sizes["heads"])}


def requests_of(rows: Array, given: Arrays) -> list[Array]:
    """Return each request's part of an array of rows: [heads, tokens, DIM]."""
    n_heads = int(given["heads"])
    ends = np.cumsum(given["lens"] * n_heads)
    return [part.reshape(n_heads, -1, DIM) for part in np.split(rows, ends[:-1])]


def ragged_expected(given: Arrays) -> Array:
    """Return causal attention of every request in float64."""
    parts = (requests_of(given[name], given) for name in ("q", "k", "v"))
    return np.concatenate([attention_expected(*request, causal=True).reshape(-1, DIM) for request in zip(*parts, strict=True)])


def prepare_ragged(given: Arrays, threads: int) -> tuple[Callable[[], object], Array]:
    """Return our run and where its result is."""
    out = output(given["q"].shape)
    made = ragged_workload(given["q"], given["k"], given["v"], given["lens"], int(given["heads"]), out)
    return made.compile(threads=threads).run, out


def _ragged_operations(sizes: Sizes) -> int:
    return sum(2 * int(sizes["heads"]) * DIM * n * (n + 1) for n in sizes["lens"])


WORKS = (
    attention_work("attn", causal=False),
    attention_work("attnc", causal=True),
    Work("ragged", "causal attention of 4 requests, 128 to 4096 tokens, 4 heads, 64 wide, f32", Bound.FMA,
         {"heads": 4, "lens": (128, 512, 2048, 4096)}, {"heads": 2, "lens": (3, 64, 300)}, ragged_inputs, ragged_expected, prepare_ragged,
         _ragged_operations, relative_error, 1e-5),
)
