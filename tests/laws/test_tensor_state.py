"""State that loops, statements and branches update one after the other stays in one kernel, and has the numbers of the NumPy program.

Bodies are drawn as phases that update an accumulator and an extreme of blocks of queries, from blocks of keys: loops in order, statements
on all or on parts of the state, `tt.when`. Blocks may be short: what lies behind their ends is no number of the state.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, Tensor, jit, tt

F32 = DType.F32
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


def _update(state: tuple[Any, Any], q: Any, k: Any, block: Any, draw: random.Random, phase: str) -> None:
    total, top = state
    factor, masked = draw.choice((0.5, 0.75, -1.0)), draw.random() < 0.5      # the body of a loop is run once here, often by NumPy
    if phase == "loop":
        step = draw.choice((2, 3, BLOCK))
        for j in tt.loop(0, np.maximum(block, 1) * step, step):
            _meet(state, q, k[j:j + step], factor, masked)
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
    def body(q: Tensor["r", WIDTH, F32], k: Tensor["n", WIDTH, F32]):
        tt.assume(k.shape[0] >= 5)
        draw = random.Random(seed)
        whole = draw.random() < 0.5      # blocks of a number of rows, of which a statement may update parts
        phases = [draw.choice(("statement", "when", "loop", *("parts",) * whole)) for _ in range(draw.choice((1, 2)))]
        phases.insert(draw.randrange(len(phases) + 1), "loop")
        out = tt.zeros(q.shape)
        for i in tt.each(q.shape[0] // BLOCK if whole else (q.shape[0] + BLOCK - 1) // BLOCK):
            rows = slice(i * BLOCK, (i + 1) * BLOCK)
            mine = q[rows] * 0.5
            state = tt.zeros(mine.shape), tt.full((mine.shape[0], 1), -4.0)
            for number, phase in enumerate(phases):
                _update(state, mine, k, i, random.Random(seed + number), phase)
            out[rows] = state[0] - state[1]
        return out
    return body


def arguments(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return tuple((rng.integers(-4, 5, (int(rng.integers(low, 20)), WIDTH)) / 4).astype(np.float32) for low in (1, 5))


@pytest.mark.parametrize("target", ["interp", pytest.param("cpu_sim", marks=pytest.mark.slow)])
@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 40))])
def test_state_stays_in_one_kernel_and_keeps_its_numbers(seed: int, target: str) -> None:
    body, given = drawn_body(seed).using(target=target), arguments(seed)
    plan = body.plan(*given)
    assert {entry.value for entry in plan.entries if entry.key == "loops"} == {"kernel"}
    wanted = body.python(*given)
    for found in (body.reference(*given), body(*given)):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4 * max(1.0, float(np.max(np.abs(wanted), initial=0))))


def test_a_loop_that_is_tasks_by_hand_keeps_its_neighbours_out_of_a_kernel() -> None:
    body, given = drawn_body(1).using(target="interp"), arguments(1)      # two loops
    plan = body.plan(*given).but(loops={"j": "tasks"})
    np.testing.assert_allclose(body(*given, plan=plan), body.python(*given), rtol=1e-5, atol=1e-6)
    assert "for j in P.seq(" in body.lower(plan).source()
