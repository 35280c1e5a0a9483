"""Programs of LLM serving that combine features, against references in float64: odd sizes, other sizes without compiling, drawn plans."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, Monotone, Scalar, Tensor, TilePlan, jit, tt
from pto_wsp.tt.library import softmax
from tests.laws.generated_plans import changed

F32, I32 = DType.F32, DType.I32
CASES: dict[str, tuple[Any, Callable[..., tuple[Any, ...]], Callable[..., Any], tuple[tuple[int, ...], ...]]] = {}


def case(draw: Callable[..., tuple[Any, ...]], reference: Callable[..., Any], *sizes: tuple[int, ...]) -> Callable[[Any], Any]:
    """Add a function to the cases: what draws its arguments from a generator and sizes, and what they give in float64."""
    def add(function: Any) -> Any:
        CASES[function.__name__] = (function, draw, reference, sizes)
        return function
    return add


def normal(rng: np.random.Generator, *shape: int) -> Any:
    return rng.standard_normal(shape, np.float32)


def shares(x: Any) -> Any:
    weight = np.exp(x - x.max(-1, keepdims=True))
    return weight / weight.sum(-1, keepdims=True)


# -- speculative decoding ----------------------------------------------------------------------------------------------
def draw_drafts(rng: np.random.Generator, t: int) -> tuple[Any, ...]:
    draft, logits = rng.integers(0, 40, (t, 5)).astype(np.int32), normal(rng, t, 6, 40)
    logits[np.arange(t)[:, None], np.arange(5)[None], draft] += np.where(rng.random((t, 5)) < 0.7, 9, 0)
    return draft, logits


def accepted_drafts(draft: Any, logits: Any) -> Any:
    best = logits.argmax(-1)
    count = np.cumprod(best[:, :5] == draft, -1).sum(-1)
    return count, best[np.arange(len(draft)), count]


@case(draw_drafts, accepted_drafts, (7,), (77,), (0,))
@jit
def accepts_drafts(draft: Tensor["t", 5, I32], logits: Tensor["t", 6, 40, F32]):
    best = np.argmax(logits, axis=-1)
    misses = np.cumsum(np.where(best[:, :5] == draft, 0, 1), axis=-1)
    count = np.sum(misses == 0, axis=-1)
    return count, np.take_along_axis(best, count[:, None], axis=1)[:, 0]


# -- a prefix that all requests share ----------------------------------------------------------------------------------
def draw_prefix(rng: np.random.Generator, b: int, p: int) -> tuple[Any, ...]:
    starts = np.concatenate([[0], np.cumsum(rng.integers(1, 9, b))]).astype(np.int32)
    n = int(starts[-1])
    return normal(rng, b, 8, 16), normal(rng, p, 16), normal(rng, p, 16), normal(rng, n, 16), normal(rng, n, 16), starts


def attended_at_once(q: Any, pk: Any, pv: Any, k: Any, v: Any, starts: Any) -> Any:
    parts = [slice(*pair) for pair in pairwise(starts)]
    return np.stack([shares(one @ np.concatenate([pk, k[part]]).T) @ np.concatenate([pv, v[part]])
                     for one, part in zip(q, parts, strict=True)])


@jit
def part_of_attention(q: Tensor["h", 16, F32], k: Tensor["n", 16, F32], v: Tensor["n", 16, F32]):
    score = q @ k.T
    top = np.max(score, axis=-1, keepdims=True)
    weight = np.exp(score - top)
    total = np.sum(weight, axis=-1, keepdims=True)
    return weight @ v / total, np.log(total) + top


@case(draw_prefix, attended_at_once, (3, 50), (9, 130), (1, 7))
@jit
def shares_a_prefix(q: Tensor["b", 8, 16, F32], pk: Tensor["p", 16, F32], pv: Tensor["p", 16, F32],
                    k: Tensor["n", 16, F32], v: Tensor["n", 16, F32], starts: Monotone[Tensor["b1", I32]]):
    n = q.shape[0]
    tt.assume(starts.shape[0] == n + 1)
    out = tt.empty(q.shape)
    first, first_sum = part_of_attention(q.reshape(n * 8, 16), pk, pv)
    first, first_sum = first.reshape(n, 8, 16), first_sum.reshape(n, 8, 1)
    for b in tt.each(n):
        own, own_sum = part_of_attention(q[b], k[starts[b]:starts[b + 1]], v[starts[b]:starts[b + 1]])
        top = np.maximum(own_sum, first_sum[b])
        here, there = np.exp(own_sum - top), np.exp(first_sum[b] - top)
        out[b] = (own * here + first[b] * there) / (here + there)
    return out


# -- experts of limited capacity ---------------------------------------------------------------------------------------
def with_dropped_tokens(x: Any, gate: Any, w: Any) -> Any:
    p = shares(x @ gate)
    expert, out, dropped = p.argmax(-1), x.copy(), np.zeros(5, int)
    for e in range(5):
        mine = np.flatnonzero(expert == e)
        kept, dropped[e] = mine[:4], max(len(mine) - 4, 0)
        out[kept] += p[kept, e][:, None] * np.maximum(x[kept] @ w[e], 0)
    return out, dropped


@case(lambda rng, t: (normal(rng, t, 16), normal(rng, 16, 5), normal(rng, 5, 16, 16) / 3), with_dropped_tokens, (13,), (77,), (0,))
@jit
def drops_tokens(x: Tensor["t", 16, F32], gate: Tensor[16, 5, F32], w: Tensor[5, 16, 16, F32], capacity: int = 4):
    tt.assume(x.shape[0] <= 1024)
    p = softmax(x @ gate)
    expert, share = np.argmax(p, axis=-1), np.max(p, axis=-1)
    chosen = np.where(expert[:, None] == tt.arange(5), 1, 0)
    place = np.sum(np.cumsum(chosen, axis=0) * chosen, axis=-1)
    rows = tt.rows_of(np.where(place <= capacity, expert, 5), 6)          # 5: of no expert
    out = x * 1.0
    for e in tt.each(5):
        out[rows[e]] = x[rows[e]] + share[rows[e]][:, None] * np.maximum(x[rows[e]] @ w[e], 0)
    return out, np.maximum(np.sum(chosen, axis=0) - capacity, 0)


# -- gated linear attention, chunk by chunk ----------------------------------------------------------------------------
def step_by_step(q: Any, k: Any, v: Any, gate: Any) -> Any:
    out = np.zeros(v.shape)
    for h in range(2):
        state = np.zeros((8, 8))
        for i in range(q.shape[1]):
            state = np.exp(gate[h, i]) * state + np.outer(k[h, i], v[h, i])
            out[h, i] = q[h, i] @ state
    return out


@case(lambda rng, t: (*(normal(rng, 2, t, 8) for _ in range(3)), -rng.random((2, t), np.float32) / 5), step_by_step, (33,), (77,), (0,))
@jit
def in_chunks(q: Tensor[2, "t", 8, F32], k: Tensor[2, "t", 8, F32], v: Tensor[2, "t", 8, F32], gate: Tensor[2, "t", F32], chunk: int = 16):
    out = tt.empty(v.shape)
    for h in tt.each(2):
        state = tt.zeros((8, 8))
        for j in tt.loop(0, q.shape[1], chunk):
            part = slice(j, j + chunk)
            qc, kc, vc, c = q[h, part], k[h, part], v[h, part], np.cumsum(gate[h, part])
            sees = tt.arange(qc.shape[0])[:, None] >= tt.arange(qc.shape[0])
            fade = np.where(sees, np.exp(np.where(sees, c[:, None] - c[None, :], 0.0)), 0.0)
            out[h, part] = (qc @ kc.T * fade) @ vc + (qc * np.exp(c)[:, None]) @ state
            total = np.sum(gate[h, part])
            state[:] = state * np.exp(total) + (kc * np.exp(total - c)[:, None]).T @ vc
    return out


# -- a window on pages -------------------------------------------------------------------------------------------------
def draw_pages(rng: np.random.Generator, b: int) -> tuple[Any, ...]:
    table = rng.permutation(b * 4 + 2)[:b * 4].reshape(b, 4).astype(np.int32)
    pages = normal(rng, 2, b * 4 + 2, 16, 16)
    return normal(rng, b, 4, 16), pages[0], pages[1], table, rng.integers(1, 65, b).astype(np.int32)


def last_20(q: Any, k: Any, v: Any, table: Any, lengths: Any) -> Any:
    out = np.zeros(q.shape)
    for b, n in enumerate(lengths):
        seen = slice(max(0, n - 20), n)
        out[b] = shares(q[b] @ k[table[b]].reshape(64, 16)[seen].T / 4) @ v[table[b]].reshape(64, 16)[seen]
    return out


@case(draw_pages, last_20, (3,), (9,), (0,))
@jit
def sees_a_window(q: Tensor["b", 4, 16, F32], k: Tensor["pages", 16, 16, F32], v: Tensor["pages", 16, 16, F32],
                  table: Tensor["b", 4, I32], lengths: Tensor["b", I32], window: int = 20):
    out = tt.empty(q.shape)
    for b in tt.each(q.shape[0]):
        acc, seen, top = tt.zeros((4, 16)), tt.zeros((4, 1)), tt.full((4, 1), -1e30)
        for j in tt.loop(np.maximum(lengths[b] - window, 0) // 16, (lengths[b] + 15) // 16):
            at = tt.arange(16)[None] + j * 16
            score = np.where((at < lengths[b]) & (at >= lengths[b] - window), q[b] @ k[table[b, j]].T * 0.25, -1e30)
            peak = np.maximum(top, np.max(score, axis=-1, keepdims=True))
            weight, fade = np.exp(score - peak), np.exp(top - peak)
            acc[:] = acc * fade + weight @ v[table[b, j]]
            seen[:] = seen * fade + np.sum(weight, axis=-1, keepdims=True)
            top[:] = peak
        out[b] = acc / seen
    return out


# -- guidance without a classifier -------------------------------------------------------------------------------------
def guided(x: Any, w: Any, scale: float, share: float) -> Any:
    free, bound = np.split(np.tanh(x @ w), 2)
    both = free + scale * (bound - free)
    return share * both * bound.std((1, 2), keepdims=True) / both.std((1, 2), keepdims=True) + (1 - share) * both


@case(lambda rng, b, s: (normal(rng, 2 * b, s, 24), normal(rng, 24, 24), 4.0, 0.7), guided, (2, 7), (3, 33))
@jit
def guides(x: Tensor["b", "s", 24, F32], w: Tensor[24, 24, F32], scale: Scalar[F32], share: Scalar[F32]):
    y, half = np.tanh(x @ w), x.shape[0] // 2
    free, bound = y[:half], y[half:half * 2]
    both = free + scale * (bound - free)
    spread = np.std(bound, axis=(1, 2), keepdims=True) / np.std(both, axis=(1, 2), keepdims=True)
    return share * both * spread + (1 - share) * both


def arguments(name: str, sizes: tuple[int, ...]) -> tuple[tuple[Any, ...], list[Any]]:
    """The arguments of a case, and its results in float64."""
    _, draw, reference, _ = CASES[name]
    given = draw(np.random.default_rng(sizes[0]), *sizes)
    if 0 in sizes:
        return given, []
    wide = [one.astype(np.float64) if isinstance(one, np.ndarray) and one.dtype.kind == "f" else one for one in copy.deepcopy(given)]
    wanted = reference(*wide)
    return given, [*wanted] if isinstance(wanted, tuple) else [wanted]


def check(name: str, made: Any, wanted: list[Any]) -> None:
    results = made if isinstance(made, tuple) else (made,)
    for one, other in zip(results, wanted or [np.zeros(one.shape) for one in results], strict=True):
        np.testing.assert_allclose(one.astype(np.float64), other, rtol=2e-4, atol=2e-4, err_msg=name)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CASES)
def test_the_body_its_traced_form_and_its_kernels_give_the_reference(name: str) -> None:
    function, given = CASES[name][0], arguments(name, CASES[name][3][0])
    for meaning in (function.python, function.reference, function.using(target="interp")):
        check(name, meaning(*copy.deepcopy(given[0])), given[1])


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_program_gives_the_reference_for_each_size_and_plan(name: str, tmp_path: Path) -> None:
    function, _, _, sizes = CASES[name]
    for number, each in enumerate(sizes):
        given, wanted = arguments(name, each)
        if number == 0:
            check(name, function(*given), wanted)
        with tt.no_compile():
            check(name, function(*given), wanted)
    given, wanted = arguments(name, sizes[0])
    slow = function.using(target="interp")
    plan = slow.plan(*given)
    plans = [TilePlan.load(plan.save(tmp_path / "plan.json")), *(changed(plan, random.Random(seed)) for seed in range(2))]
    for one in plans:
        check(name, slow(*given, plan=one), wanted)
