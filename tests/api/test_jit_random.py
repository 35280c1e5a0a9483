"""`tt.random`: numbers by seed and flat index alone, the same bits on every target and under every plan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, Scalar, Tensor, jit, tt

F32, I64 = DType.F32, DType.I64
_MASK = (1 << 32) - 1


def drawn(index: int, seed: int) -> float:
    """Return the number of a flat index: the first word of Philox2x32-10, by Python's integers."""
    left, right, key = index & _MASK, seed >> 32 & _MASK, seed & _MASK
    for _ in range(10):
        product = 0xD256D193 * left
        left, right = (product >> 32) ^ key ^ right, product & _MASK
        key = (key + 0x9E3779B9) & _MASK
    return (left >> 8) * 2.0 ** -24


def test_the_generator_is_that_of_the_paper() -> None:
    """Its authors' known answers: counters and keys of zeros, and of ones."""
    assert drawn(0, 0) == (0xFF1DAE59 >> 8) * 2.0 ** -24
    assert drawn(_MASK, (_MASK << 32) | _MASK) == (0x2C3F628B >> 8) * 2.0 ** -24


def expected(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.array([drawn(k, seed) for k in range(int(np.prod(shape)))], np.float32).reshape(shape)


@jit
def noisy(x: Tensor["t", 3, "s", F32], seed: Scalar[I64]):
    return x + tt.random(x.shape, seed), tt.random((x.shape[2], x.shape[0]), 7).T * 2.0


@jit
def dropped(x: Tensor["t", 40, F32], keep: Scalar[F32], seed: Scalar[I64]):
    for turn in range(2):
        x = np.where(tt.random(x.shape, seed + turn) < keep, x / keep, 0.0)
    return np.sum(x, axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.slow), pytest.param(-3, marks=pytest.mark.slow), (1 << 40) + 5])
def test_numbers_are_those_of_philox_by_flat_index(seed: int) -> None:
    x = np.zeros((4, 3, 5), np.float32)
    for call in (noisy, noisy.using(target="interp"), noisy.python, noisy.reference):
        first, second = call(x, seed)
        np.testing.assert_array_equal(first, expected(x.shape, seed))
        np.testing.assert_array_equal(second, expected((5, 4), 7).T * np.float32(2))


@pytest.mark.slow
@pytest.mark.parametrize("tiles", [{"t": 2, "s": 3}, {"t": 1, "s": 64}, {"t": 3, "s": 1}])
def test_no_plan_changes_a_number(tiles: dict[Any, int]) -> None:
    x = np.zeros((5, 3, 7), np.float32)
    plan = noisy.plan().but(tiles={"out[0]": tiles}, tails={"t": (2, 1)} if tiles["t"] == 2 else {})
    first, _ = noisy(x, 11, plan=plan)
    np.testing.assert_array_equal(first, expected(x.shape, 11))


@pytest.mark.slow
def test_numbers_drawn_in_a_kernel_that_sums_them_are_the_same() -> None:
    x = np.ones((9, 40), np.float32)
    wanted = x
    for turn in range(2):
        wanted = np.where(expected(x.shape, 5 + turn) < np.float32(0.5), wanted * np.float32(2), np.float32(0))
    np.testing.assert_array_equal(dropped(x, 0.5, 5), wanted.sum(1))
    np.testing.assert_array_equal(dropped.using(target="interp")(x, 0.5, 5), wanted.sum(1))


@pytest.mark.slow
def test_numbers_drawn_in_a_loop_are_those_of_each_turns_seed() -> None:
    @jit
    def f(x: Tensor["t", 6, F32]):
        out = tt.empty(x.shape)
        for i in tt.each(x.shape[0]):
            out[i] = tt.random((6,), i * 2)
        return out

    for call in (f, f.using(target="interp"), f.python):
        np.testing.assert_array_equal(call(np.zeros((3, 6), np.float32)), [expected((6,), 2 * i) for i in range(3)])


@pytest.mark.parametrize("tiles", [{0: 2, 1: 3, 2: 4}, {0: 4, 1: 2, 2: 8}])
def test_rows_of_a_tile_that_are_no_neighbours_keep_their_numbers(tiles: dict[Any, int]) -> None:
    @jit(target="interp")
    def f(x: Tensor[4, 4, 8, F32]):
        return x + tt.random(x.shape, 5)

    x = np.zeros((4, 4, 8), np.float32)
    np.testing.assert_array_equal(f(x, plan=f.plan().but(tiles={"out": tiles})), expected(x.shape, 5))
