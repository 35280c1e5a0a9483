"""Reshapes that join axes of symbolic extents are copied, and give NumPy's numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, Tensor, jit, tt

F32 = DType.F32


def flat(x: Tensor["t", 8, F32]):  # type: ignore[valid-type, no-untyped-def]
    return np.exp(x.reshape(-1))


def halves(x: Tensor["t", 8, F32]):  # type: ignore[valid-type, no-untyped-def]
    return x.reshape(x.shape[0] * 2, 4) + 1


def joined(x: Tensor["a", "b", F32]):  # type: ignore[valid-type, no-untyped-def]
    return np.sum((x * 2).reshape(-1, 1), axis=-1)


def columns(x: Tensor["t", 8, F32]):  # type: ignore[valid-type, no-untyped-def]
    sums = np.sum(x.reshape(x.shape[0] * 2, 4), axis=-1, keepdims=True).reshape(x.shape[0], 2, 1)
    out = tt.empty(sums.shape)
    for i in tt.each(x.shape[0]):
        out[i] = sums[i] * 2
    return out


def second_halves(x: Tensor["t", 8, F32]):  # type: ignore[valid-type, no-untyped-def]
    half = x.shape[0] // 2
    second = x[half:half * 2]      # its extent is t // 2 * 2 - t // 2
    return x[:half] - second / np.std(second.reshape(half, 2, 4), axis=(1, 2))[:, None]


def later_rows(x: Tensor["t", 8, F32]):  # type: ignore[valid-type, no-untyped-def]
    return np.exp(x[1:].reshape(-1))


def turned(x: Tensor["t", 8, F32]):  # type: ignore[valid-type, no-untyped-def]
    return np.exp(x.T.reshape(-1))


def known_rows(x: Tensor[37, 8, F32]):  # type: ignore[valid-type, no-untyped-def]
    return np.exp(x[1:5].reshape(8, 4))


@pytest.mark.parametrize(("body", "meaning"), [
    (later_rows, lambda x: np.exp(x[1:].reshape(-1))), (turned, lambda x: np.exp(x.T.reshape(-1))),
    (known_rows, lambda x: np.exp(x[1:5].reshape(8, 4))),
    (columns, lambda x: x.reshape(-1, 2, 4).sum(-1, keepdims=True) * 2),
    (second_halves, lambda x: x[:18] - x[18:36] / x[18:36].std(1)[:, None]),
    (flat, lambda x: np.exp(x.reshape(-1))), (halves, lambda x: x.reshape(-1, 4) + 1), (joined, lambda x: (x * 2).reshape(-1))])
def test_a_reshape_that_joins_symbols_gives_the_numbers_of_numpy(body: Callable[..., Any], meaning: Callable[..., Any]) -> None:
    x = np.random.default_rng(0).standard_normal((37, 8), np.float32)
    np.testing.assert_allclose(jit(body).using(target="interp")(x), meaning(x), rtol=1e-5)


def test_a_reshape_of_blocks_that_is_turned_is_planned_for_each_target() -> None:
    @jit
    def chosen(q: Tensor["t", 16, F32], k: Tensor[8, 4, 16, F32]):  # type: ignore[valid-type, no-untyped-def]
        _, best = tt.topk(q @ np.mean(k, axis=1).T, 2)
        out = tt.empty((q.shape[0], 8))
        for i in tt.each(q.shape[0]):
            out[i] = (q[i:i + 1] @ k[best[i]].reshape(8, 16).T)[0]
        return out

    for target in ("cpu_sim", "ascend_npu", "pto"):
        chosen.plan(arch="ascend_910b", target=target)


def one_sequence(x: Tensor[1, "t", 8, F32]):  # type: ignore[valid-type, no-untyped-def]
    return np.exp(x[0].reshape(x.shape[1], 2, 4))


def one_sequence_flat(x: Tensor[1, "t", 8, F32]):  # type: ignore[valid-type, no-untyped-def]
    return np.exp(x[0].reshape(-1))


def a_batch_of_it(x: Tensor[1, "t", 8, F32]):  # type: ignore[valid-type, no-untyped-def]
    return np.exp(x[0].reshape(1, 1, -1, 8) + 1)


@pytest.mark.parametrize("target", ["interp", pytest.param("cpu_sim", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("body", "meaning"), [
    (one_sequence, lambda x: np.exp(x.reshape(-1, 2, 4))), (one_sequence_flat, lambda x: np.exp(x.reshape(-1))),
    (a_batch_of_it, lambda x: np.exp(x.reshape(1, 1, -1, 8) + 1))])
def test_extents_of_1_stand_before_an_extent_of_a_run(body: Callable[..., Any], meaning: Callable[..., Any], target: str) -> None:
    x = np.random.default_rng(0).standard_normal((1, 37, 8), np.float32)
    np.testing.assert_allclose(jit(body).using(target=target)(x), meaning(x), rtol=1e-5)


def test_the_only_row_of_a_dimension_is_no_part_to_be_copied() -> None:
    assert ".part" not in str(jit(one_sequence).plan()) + str(jit(one_sequence_flat).plan())


def pairs_of(x: Any) -> Any:
    """Return [t, 2, 8] of [t, 8]: a split of an extent that is twice a symbol."""
    each = tt.empty((x.shape[0] * 2, 8))
    for i in tt.each(x.shape[0]):
        each[i * 2] = x[i]
        each[i * 2 + 1] = x[i] * 3
    return each.reshape(x.shape[0], 2, 8)


def turned_pairs(x: Tensor["t", 8, F32]):  # type: ignore[valid-type, no-untyped-def]
    return np.exp(pairs_of(x)[None].transpose(0, 2, 1, 3))


def second_of_pairs(x: Tensor["t", 8, F32]):  # type: ignore[valid-type, no-untyped-def]
    return np.exp(pairs_of(x)[:, 1])


def test_the_inner_part_of_a_split_is_whole_wherever_it_stands() -> None:
    x = np.random.default_rng(0).standard_normal((37, 8), np.float32)
    pairs = np.stack((x, x * 3), axis=1)
    for body, meaning in ((turned_pairs, pairs[None].transpose(0, 2, 1, 3)), (second_of_pairs, pairs[:, 1])):
        np.testing.assert_allclose(jit(body).using(target="interp")(x), np.exp(meaning), rtol=1e-5)
    row = next(line for line in str(jit(second_of_pairs).plan()).splitlines() if line.startswith("out"))
    assert "1 whole" not in row, "a part that is picked is none of the columns"
