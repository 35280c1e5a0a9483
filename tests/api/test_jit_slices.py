"""Slices with a step, and reversed axes, of extents that only a run tells: as in NumPy, whatever the last tile has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, Monotone, Tensor, jit, tt

F32, I32 = DType.F32, DType.I32
TARGETS = ["interp", pytest.param("cpu_sim", marks=pytest.mark.slow)]


@jit
def sliced(x: Tensor["t", "n", F32]):
    return x[::2] * 2, x[::-1] - x, x[:, ::-1], x[1:-1:2, ::-3] + 1, x[::2][1::2] * 3, np.sum(x[1::2], axis=0)


@jit
def written(x: Tensor["t", 6, F32]):
    out = tt.zeros(x.shape)
    out[::2] = x[::2] * 2
    out[1::3, ::2] += 1
    return out


@jit
def computed(x: Tensor["t", 6, F32]):
    tt.assume(x.shape[0] <= 12)
    return np.cumsum(np.exp(x)[::-1], axis=0)[::-1], np.sort(x, axis=0)[::-1]


@jit
def of_sequences(x: Tensor["t", 6, F32], starts: Monotone[Tensor["b", I32]]):
    sums, turned = tt.zeros((starts.shape[0] - 1, 6)), tt.zeros(x.shape)
    for b in tt.each(starts.shape[0] - 1):
        rows = slice(starts[b], starts[b + 1])
        sums[b] = np.sum(x[rows][::2], axis=0)
        turned[rows] = x[rows][::-1]
    return sums, turned


def results(value: Any) -> list[np.ndarray]:
    return list(value) if isinstance(value, tuple) else [value]


def check(function: Any, target: str, *arrays: np.ndarray, plan: Any = None) -> None:
    wanted = results(function.python(*arrays))
    for one, other in zip(results(function.using(target=target)(*arrays, plan=plan)), wanted, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape[0]).integers(-4, 5, shape).astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_slices_of_symbols_are_numpys(target: str) -> None:
    plan = sliced.plan().but(tiles={"out[0]": {"0": 2}, "out[1]": {"t": 4}, "out[3]": {"0": 2, "1": 2}})
    for t, n in ((9, 5), (0, 3), (3, 0), (1, 1), (2, 7)):
        check(sliced, target, draw(t, n))
        check(sliced, target, draw(t, n), plan=plan)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("function", [written, computed])
def test_slices_are_written_and_taken_of_computed_values(function: Any, target: str) -> None:
    for t in (9, 0, 1, 2, 12):
        check(function, target, draw(t, 6))


@pytest.mark.parametrize("target", TARGETS)
def test_a_slice_of_rows_that_a_table_bounds_may_have_a_step(target: str) -> None:
    for t in (9, 1):
        check(of_sequences, target, draw(t, 6), np.array([0, t // 2, t // 2, t], np.int32))


@jit
def summed(x: Tensor["t", 64, F32]):
    return np.sum(x[:, ::2], axis=1), np.sum(x[:, ::-1] * np.arange(64, dtype=np.float32), axis=1)


@jit
def multiplied(x: Tensor["t", 64, F32]):
    return x[:, ::2] @ x[:, 1::2].T


@pytest.mark.parametrize("function", [summed, multiplied])
def test_a_sum_in_steps_takes_every_other_column(function: Any) -> None:
    """On this arch the kernel walks the sum; it took neighbours once."""
    check(function, "interp", draw(5, 64), plan=function.plan(arch="ascend_910b"))


@jit
def moved_by_a_loop(x: Tensor["t", 64, F32]):
    out = tt.zeros((x.shape[0], 4))
    for j in tt.loop(8):
        out += x[:, j * 8:j * 8 + 8:2] + x[:, ::2][:, j * 4:j * 4 + 4] + x[:, ::-1][:, j * 8:j * 8 + 4]
    return out


@pytest.mark.parametrize("target", TARGETS)
def test_a_loop_moves_a_slice_with_a_step(target: str) -> None:
    check(moved_by_a_loop, target, draw(5, 64))


@jit
def taken(x: Tensor[12, 6, F32], table: Tensor["t", I32]):
    return x[::2][table], x[1::2, ::2][table]


def test_a_table_takes_rows_of_a_slice_with_a_step() -> None:
    check(taken, "interp", draw(12, 6), np.array([5, 0, 3], np.int32))


@jit
def turned(x: Tensor["t", 8, 6, F32]):
    out = tt.empty(x.shape)
    for i in tt.each(x.shape[0]):
        state = tt.zeros((8, 6))
        for j in tt.loop(2):
            part = state.T[2:5]
            part += x[i].T[:3] * (j + 1)
            state.T[5] = np.max(x[i], axis=1)
            state.T[0:1, 4:] += np.sum(x[i], axis=1)[4:]
        out[i] = np.tanh(state)
    return out


@pytest.mark.parametrize("target", TARGETS)
def test_state_of_a_kernel_is_written_through_a_transpose(target: str) -> None:
    assert "state = pto.alloc((8, 6), F32" in turned.lower().source()
    for t in (3, 0, 1):
        check(turned, target, draw(t, 8, 6))


@jit
def scaled_in_a_loop(x: Tensor["t", 6, F32]):
    out = tt.empty(x.shape)
    for i in tt.each(x.shape[0]):
        state = tt.zeros((1, 6))
        for j in tt.loop(3):
            state[:] = (state - (j - 1)) * (j + 1) + (2 * j - 5) * x[i:i + 1] - x[i:i + 1] / (j + 2) + (1 - j - x[i:i + 1])
            state += tt.arange(6).astype(F32) * (j - 4)
        out[i:i + 1] = state
    return out


@pytest.mark.parametrize("target", TARGETS)
def test_sums_of_loop_variables_keep_their_parentheses(target: str) -> None:
    assert "for j in pto.range(3)" in scaled_in_a_loop.lower().source()
    check(scaled_in_a_loop, target, draw(4, 6))


def blocks_before(extra: int, step: int, ahead: int, by_number: bool) -> Any:
    @jit(target="interp")
    def sums(x: Tensor["t", 8, F32], starts: Monotone[Tensor["b", I32]]):
        out = tt.zeros((starts.shape[0] - 1, 8, 8))
        for b in tt.each(starts.shape[0] - 1):
            rows = x[starts[b]:starts[b + 1]]
            for i in tt.each((rows.shape[0] + extra) // 4):
                total = tt.zeros((1, 8))
                if by_number:
                    for j in tt.loop(i):
                        total[:] = total * 0.5 + np.sum(rows[j * 4 + ahead:(j + 1) * 4 + ahead], axis=0, keepdims=True)
                else:
                    for j in tt.loop(0, i * 4, step):
                        total[:] = total * 0.5 + np.sum(rows[j + ahead:j + 4 + ahead], axis=0, keepdims=True)
                out[b, i] = total[0]
        return out
    return sums


@pytest.mark.parametrize(("by_number", "step", "extra", "ahead", "whole"), [
    # an end is i * 4 - step + 4 + ahead at most, where step divides i * 4, and i * 4 is n + extra - 4 at most
    (True, 4, 3, 1, True), (True, 4, 4, 1, False), (False, 2, 2, 0, True), (False, 2, 3, 0, False),
    *(pytest.param(*case, marks=pytest.mark.slow) for case in (
        (True, 4, 0, 1, True), (True, 4, 4, 0, True), (True, 4, 7, 0, False), (False, 4, 3, 1, True), (False, 4, 4, 1, False),
        (False, 2, 1, 1, True), (False, 2, 2, 1, False), (False, 3, 1, 0, True), (False, 3, 1, 1, False)))])      # i * 4 - 1 + 4 + ahead
def test_blocks_before_a_block_are_whole_where_the_bounds_of_loops_say_so(by_number: bool, step: int, extra: int, ahead: int,
                                                                          whole: bool) -> None:
    sums, x, starts = blocks_before(extra, step, ahead, by_number), draw(23, 8), np.array([0, 0, 3, 11, 23], np.int32)
    np.testing.assert_array_equal(sums(x, starts), sums.python(x, starts))
    assert ("valid=(" not in sums.lower().source()) == whole
