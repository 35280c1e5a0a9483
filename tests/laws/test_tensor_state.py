"""State that loops, statements and branches update one after the other stays in one kernel, and has the numbers of the NumPy program.

Bodies are drawn as phases that update an accumulator and an extreme of blocks of queries, from blocks of keys: loops in order, statements
on all or on parts of the state, `tt.when`, loops over blocks that a table names. Blocks may be short: what lies behind their ends is no
number of the state.
"""

from __future__ import annotations

import random
from itertools import takewhile
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, Monotone, Tensor, jit, tt

F32, I32 = DType.F32, DType.I32
BLOCK, WIDTH = 6, 8


def _meet(state: tuple[Any, Any], q: Any, keys: Any, factor: float, masked: bool) -> None:
    """Update the state with a block of keys: each phase by another factor, so that no two may change places."""
    total, top = state
    score = q @ keys.T + factor
    if masked:
        score = np.where(tt.arange(keys.shape[0]) <= tt.arange(q.shape[0])[:, None], score, -4.0)
    peak = np.maximum(top, np.max(score, axis=-1, keepdims=True))
    weight = np.exp2(score - peak)
    total[:] = total * np.exp2(top - peak) * factor + weight @ keys
    top[:] = peak


def _update(state: tuple[Any, Any], q: Any, k: Any, table: Any, block: Any, draw: random.Random, phase: str) -> None:
    total, top = state
    factor, masked = draw.choice((0.5, 0.75, -1.0)), draw.random() < 0.5      # the body of a loop is run once here, often by NumPy
    if phase == "loop":
        step = draw.choice((2, 3, BLOCK))
        for j in tt.loop(0, np.maximum(block, 1) * step, step):
            _meet(state, q, k[j:j + step], factor, masked)
    elif phase == "pages":
        step = draw.choice((1, 3, 4))
        for j in tt.loop(np.minimum(block + 1, table.shape[0])):
            first = table[j] + block
            _meet(state, q, k[first:first + step], factor, masked)
    elif phase == "statement":
        _meet(state, q, k[:5], factor, masked)
    elif phase == "parts":
        for p in range(0, BLOCK, 3):      # Python: a statement a part
            _meet((total[p:p + 3], top[p:p + 3]), q[p:p + 3], k[:p + 3], factor, masked)
    else:
        with tt.when(block > 0):
            total[:] = total * 0.5 + q
        with tt.otherwise():
            top[:] = np.maximum(top, np.max(q, axis=-1, keepdims=True))


def drawn_body(seed: int) -> Any:
    @jit
    def body(q: Tensor["r", WIDTH, F32], k: Tensor["n", WIDTH, F32], table: Tensor["m", I32]):
        tt.assume(k.shape[0] >= 5)
        draw = random.Random(seed)
        whole = draw.random() < 0.5      # blocks of a number of rows, of which a statement may update parts
        phases = [draw.choice(("statement", "when", "loop", *("parts",) * whole)) for _ in range(draw.choice((1, 2)))]
        phases.insert(draw.randrange(len(phases) + 1), "loop")
        phases += ["pages"] * (seed % 3)
        out, tops = tt.zeros(q.shape), tt.zeros((q.shape[0], 1))
        for i in tt.each(q.shape[0] // BLOCK if whole else (q.shape[0] + BLOCK - 1) // BLOCK):
            rows = slice(i * BLOCK, (i + 1) * BLOCK)
            mine = q[rows] * 0.5
            state = tt.zeros(mine.shape), tt.full((mine.shape[0], 1), -4.0)
            for number, phase in enumerate(phases):
                _update(state, mine, k, table, i, random.Random(seed + number), phase)
            out[rows] = state[0]
            tops[rows] = state[1]
        return out, tops
    return body


def arguments(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    q, k = ((rng.integers(-4, 5, (int(rng.integers(low, 20)), WIDTH)) / 4).astype(np.float32) for low in (1, 5))
    return q, k, rng.integers(0, len(k) - 4, 4).astype(np.int32)       # the last block of queries is the third


@pytest.mark.parametrize(("seed", "target"), [*((seed, "interp") for seed in range(5)), *(
    pytest.param(seed, target, marks=pytest.mark.slow)
    for target, seeds in (("interp", range(5, 20)), ("cpu_sim", range(1, 20, 2))) for seed in seeds)])
def test_state_stays_in_one_kernel_and_keeps_its_numbers(seed: int, target: str) -> None:
    body, given = drawn_body(seed).using(target=target), arguments(seed)
    plan = body.plan(*given)
    assert {entry.value for entry in plan.entries if entry.key == "loops"} == {"kernel"}
    wanted = body.python(*given)
    results = body(*given)
    if seed >= 5 and target == "interp":
        by_tasks = plan.but(loops={entry.name: "tasks" for entry in plan.entries if entry.key == "loops"})
        for found, same in zip(body(*given, plan=by_tasks), results, strict=True):
            np.testing.assert_array_equal(found, same)
    for found in (body.reference(*given), results):
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4 * max(1.0, float(np.max(np.abs(other), initial=0))))


@jit(target="interp")
def two_loops(q: Tensor["r", 8, F32], k: Tensor["n", 8, F32]):
    out = tt.zeros(q.shape)
    for i in tt.each((q.shape[0] + 3) // 4):
        mine = q[i * 4:i * 4 + 4]
        total = tt.zeros(mine.shape)
        for j in tt.loop(k.shape[0]):
            total[:] = total * 0.5 + k[j]
        score = mine @ k[:4].T
        total[:] = total - score @ k[:4]
        for m in tt.loop(k.shape[0]):
            total[:] = total * mine + k[m]
        out[i * 4:i * 4 + 4] = total
    return out


@pytest.mark.parametrize("entries", [
    pytest.param(entries, marks=pytest.mark.slow)
    for entries in ({"loops": {"m": "tasks"}}, {"loops": {"j": "tasks"}}, {"groups": {"apart": ("score",)}})])
def test_what_a_person_wants_apart_keeps_the_state_out_of_a_kernel(entries: dict[str, Any]) -> None:
    q, k, _ = arguments(3)
    given = q, np.concatenate([k, k])[:9]
    plan = two_loops.plan(*given).but(**entries)
    np.testing.assert_allclose(two_loops(*given, plan=plan), two_loops.python(*given), rtol=1e-5, atol=1e-5)
    source = two_loops.lower(plan).source()
    assert "for j in P.seq(" in source and "for m in P.seq(" in source
    assert "for j in pto.range(" in two_loops.lower().source()


@jit(target="interp")
def ragged(q: Tensor["t", 8, F32], k: Tensor["t", 8, F32], starts: Monotone[Tensor["b", I32]]):
    """Causal attention of requests, with the diagonal block apart."""
    out = tt.zeros(q.shape)
    for b in tt.each(starts.shape[0] - 1):
        rows = slice(starts[b], starts[b + 1])
        keys = k[rows]
        for i in tt.each((keys.shape[0] + 3) // 4):
            block = q[rows][i * 4:i * 4 + 4]
            state = tt.zeros(block.shape), tt.full((block.shape[0], 1), -4.0)
            for j in tt.loop(0, i * 4, 4):
                _meet(state, block, keys[j:j + 4], 0.5, False)
            _meet(state, block, keys[i * 4:i * 4 + 4], 0.5, True)
            out[rows][i * 4:i * 4 + 4] = state[0]
    return out


@pytest.mark.slow
def test_a_diagonal_block_of_ragged_rows_is_in_the_kernel_of_the_blocks_before() -> None:
    """Rows and columns of the block have one extent, which data tell, and are two axes. Only this block is masked."""
    q, k = np.random.default_rng(0).standard_normal((2, 23, 8)).astype(np.float32)
    starts = np.array([0, 0, 3, 11, 23], np.int32)
    np.testing.assert_allclose(ragged(q, k, starts), ragged.python(q, k, starts), rtol=1e-5, atol=1e-5)
    source = ragged.lower().source()
    _, behind = source.split("for j in pto.range(")
    loop = "\n".join(takewhile(lambda line: line.startswith(" " * 8), behind.splitlines()[1:]))
    assert "pto.rowmax(" in loop and "pto.where(" not in loop and "valid=(" not in loop
    assert "pto.where(" in behind


def test_large_state_that_is_used_in_parts_is_cut() -> None:
    @jit
    def halves(x: Tensor[4, 512, 64, F32]):
        total = tt.zeros((512, 64))
        for j in tt.loop(4):
            total[:] = total * 0.5 + x[j]
        half = np.exp(x[0, :256])
        total[:256] = total[:256] - half
        return total * 2

    loop = halves.plan(arch="ascend_910b").said("loops", "j")
    assert loop is not None and loop.value == "tasks"
