# ruff: noqa: F821, UP037      (a string in Tensor[...] is a symbol)
"""Blocks of a segment that lies between two elements of a table: a block is bounded, so state stays in a task; short blocks are right."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, Monotone, Tensor, jit, tt

F32, I32 = DType.F32, DType.I32
BLOCK, DIM = 8, 4


@jit
def sums(x: Tensor["t", DIM, F32], starts: Monotone[Tensor["ends", I32]]) -> Any:
    """Each row becomes the sum of all rows of its segment up to its own block."""
    out = tt.zeros(x.shape)
    for r in tt.each(starts.shape[0] - 1):
        mine, n = slice(starts[r], starts[r + 1]), starts[r + 1] - starts[r]
        for i in tt.each((n + BLOCK - 1) // BLOCK):
            rows = slice(i * BLOCK, np.minimum((i + 1) * BLOCK, n))
            part = x[mine][rows]
            acc = tt.zeros(part.shape)
            for j in tt.loop(i + 1):
                acc[:] = acc + np.sum(x[mine][j * BLOCK:np.minimum((j + 1) * BLOCK, n)], axis=0, keepdims=True)
            out[mine][rows] = acc
    return out


def expected(x: np.ndarray, starts: np.ndarray) -> np.ndarray:
    out = np.zeros_like(x)
    for lo, hi in pairwise(starts):
        for i in range(lo, hi, BLOCK):
            out[i:min(i + BLOCK, hi)] = x[lo:min(i + BLOCK, hi)].sum(0)
    return out


def test_the_loop_over_blocks_is_a_loop_of_its_kernel() -> None:
    plan = str(sums.plan())
    assert "j: kernel" in plan
    source = sums.lower(sums.plan()).source()
    assert "for j in pto.range(" in source and "for j in P" not in source


@pytest.mark.sampled(2)
@pytest.mark.parametrize("target", ["cpu_sim", "interp"])
@pytest.mark.parametrize("lengths", [[5], [8, 8], [0, 17, 0, 3, 8, 1], [24, 0, 9]])
def test_segments_of_any_length(target: str, lengths: list[int]) -> None:
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32) + 2      # rows of no segment on both sides
    x = np.random.default_rng(sum(lengths)).integers(-9, 10, (int(starts[-1]) + 3, DIM)).astype(np.float32)
    assert np.array_equal(sums.using(target=target)(x, starts), expected(x, starts))


@jit
def beyond(x: Tensor["t", DIM, F32], starts: Monotone[Tensor["ends", I32]]) -> Any:
    """Starts may lie outside of x: slices clip as NumPy's."""
    out = tt.zeros((starts.shape[0] - 1, DIM))
    for r in tt.each(starts.shape[0] - 1):
        part = x[starts[r]:starts[r + 1]]
        out[r] = np.sum(part[2:np.minimum(6, starts[r + 1])], axis=0)
    return out


@pytest.mark.parametrize("target", ["cpu_sim", "interp"])
def test_slices_of_slices_clip(target: str) -> None:
    x = np.random.default_rng(0).integers(-9, 10, (10, DIM)).astype(np.float32)
    starts = np.array([0, 1, 5, 5, 9, 14, 30], np.int32)
    want = np.stack([x[a:b][2:min(6, b)].sum(0) for a, b in pairwise(starts)])
    assert np.array_equal(beyond.using(target=target)(x, starts), want)


@jit
def by_element(x: Tensor[32, DIM, F32], lengths: Tensor[4, I32]) -> Any:
    """An element that a loop's own variable reads does not enter a kernel as a number of the task."""
    acc = tt.zeros((1, DIM))
    for j in tt.loop(4):
        acc[:] = acc * 2 + np.sum(x[j * 8:j * 8 + 8][0:np.minimum(8, lengths[j])], axis=0, keepdims=True)
    return acc


@pytest.mark.parametrize("target", ["cpu_sim", "interp"])
def test_lengths_by_turn(target: str) -> None:
    x = np.random.default_rng(0).integers(-9, 10, (32, DIM)).astype(np.float32)
    lengths, acc = np.array([3, 0, 8, 5], np.int32), np.zeros((1, DIM), np.float32)
    for j in range(4):
        acc = acc * 2 + x[j * 8:j * 8 + 8][:lengths[j]].sum(0, keepdims=True)
    assert np.array_equal(by_element.using(target=target)(x, lengths), acc)


@jit
def later_end(x: Tensor["t", DIM, F32], ends: Tensor["n", I32]) -> Any:
    """A stop that is the later of two is no bound by the nearer one."""
    out = tt.zeros((ends.shape[0], DIM))
    for r in tt.each(ends.shape[0]):
        out[r] = np.sum(x[2:np.maximum(6, ends[r])], axis=0)
    return out


@pytest.mark.parametrize("target", ["cpu_sim", "interp"])
def test_the_later_of_two_ends(target: str) -> None:
    x = np.random.default_rng(1).integers(-9, 10, (20, DIM)).astype(np.float32)
    ends = np.array([0, 6, 7, 19, 40], np.int32)
    assert np.array_equal(later_end.using(target=target)(x, ends), np.stack([x[2:max(6, end)].sum(0) for end in ends]))
