# ruff: noqa: F821, UP037      (a string in Tensor[...] is a symbol)
"""Rows written through `tt.rows_of` lie one behind the other while tasks write them, so that tasks run side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, Tensor, jit, tt

F32, I32 = DType.F32, DType.I32
N = 4


@jit
def routed(x: Tensor["t", 8, F32], ids: Tensor["t", 2, I32], w: Tensor[N, 8, 8, F32]) -> Any:
    pairs = tt.rows_of(ids, N)
    each = tt.empty((x.shape[0] * 2, 8))
    for e in tt.each(N):
        mine = pairs[e]
        each[mine] = x[mine // 2] @ w[e]
    return np.sum(each.reshape(x.shape[0], 2, 8), axis=1)


def drawn(t: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    return (rng.integers(-4, 5, (t, 8)).astype(np.float32), rng.integers(0, N, (t, 2)).astype(np.int32),
            rng.integers(-4, 5, (N, 8, 8)).astype(np.float32))


def expected(x: np.ndarray, ids: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.stack([sum(row @ w[e] for e in mine) for row, mine in zip(x, ids, strict=True)])


def behind(function: Any) -> str:
    return str(function.plan(until="rows_in_order").function)


def test_the_rows_of_each_number_are_a_stretch() -> None:
    text = behind(routed)
    assert "each[pairs.starts[e]:pairs.starts[e + 1]] =" in text
    assert "each.placed[t * 2, 8] f32 = take(each, pairs.ranks)" in text
    assert "each.placed.reshape" in text and "each.at[" not in text


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target", ["cpu_sim", "interp"])
@pytest.mark.parametrize("t", [1, 37])
def test_results_are_those_of_numpy(target: str, t: int) -> None:
    x, ids, w = drawn(t)
    found = routed.using(target=target)(x, ids, w)
    assert np.array_equal(found, expected(x, ids, w))


@pytest.mark.parametrize("target", ["cpu_sim", "interp"])
def test_an_index_for_each_iteration_is_written_through_at_its_places(target: str) -> None:
    @jit
    def rounds(x: Tensor["t", 8, F32], ids: Tensor[3, "t", I32]) -> Any:
        tt.assume(x.shape[0] <= 64)
        out = tt.zeros((x.shape[0], 8), F32)
        for j in tt.loop(3):
            rows = tt.rows_of(ids[j], N)[1]
            out[rows] = x[rows] * (j + 1)
        return out

    rng = np.random.default_rng(2)
    x, ids = rng.integers(-4, 5, (37, 8)).astype(np.float32), rng.integers(0, N, (3, 37)).astype(np.int32)
    wanted = np.zeros_like(x)
    for j in range(3):
        wanted[ids[j] == 1] = x[ids[j] == 1] * (j + 1)
    np.testing.assert_array_equal(rounds.using(target=target)(x, ids), wanted)


@pytest.mark.slow
def test_the_evaluator_agrees_before_and_after_each_pass() -> None:
    x, ids, w = drawn(23, 5)
    assert np.array_equal(routed.using(verify_passes=True)(x, ids, w), expected(x, ids, w))


def test_tasks_of_different_numbers_have_no_edge() -> None:
    """Of 40 tokens, the products of four numbers wait for the index alone."""
    x, ids, w = drawn(40)
    ids[:] = np.arange(80).reshape(40, 2) % N
    plan = routed.plan(x, ids, w)
    program = routed.lower(plan, x=x, ids=ids, w=w).compile("interp")
    program.run()
    named = [str(task).split("[")[0] for task in program.graph.tasks]
    assert [edge for edge in program.graph.edges if edge.source >= 0 and named[edge.source] == named[edge.target] == "each"] == []
    assert named.count("each") == N


def read_inside(x: Tensor["t", 8, F32], ids: Tensor["t", I32]) -> Any:
    pairs, each = tt.rows_of(ids, N), tt.zeros(x.shape)
    for e in tt.loop(N):
        mine = pairs[e]
        each[mine] = x[mine] + each[mine]
    return each


def written_twice(x: Tensor["t", 8, F32], ids: Tensor["t", I32]) -> Any:
    pairs, each = tt.rows_of(ids, N), tt.zeros(x.shape)
    each[0:1] = 1
    for e in tt.each(N):
        mine = pairs[e]
        each[mine] = x[mine]
    return each


def larger(x: Tensor["t", 8, F32], ids: Tensor["t", I32]) -> Any:
    pairs, each = tt.rows_of(ids, N), tt.zeros((x.shape[0] + 1, 8))
    for e in tt.each(N):
        mine = pairs[e]
        each[mine] = x[mine]
    return each


def two_indices(x: Tensor["t", 8, F32], ids: Tensor["t", I32]) -> Any:
    pairs, more, each = tt.rows_of(ids, N), tt.rows_of(ids // 2, N), tt.zeros(x.shape)
    for e in tt.each(N):
        mine = pairs[e]
        each[mine] = x[mine]
    for e in tt.each(N):
        mine = more[e]
        each[mine] = x[mine]
    return each


def read_by_element(x: Tensor["t", 8, F32], ids: Tensor["t", I32]) -> Any:
    pairs, number, each = tt.rows_of(ids, N), tt.zeros((x.shape[0],), I32), tt.zeros(x.shape)
    for e in tt.each(N):
        number[pairs[e]] = pairs[e]
    for i in tt.loop(number[x.shape[0] - 1] + 1):
        each[i] = x[i]
    return each


def columns(x: Tensor["t", 8, F32], ids: Tensor["t", I32]) -> Any:
    pairs, each = tt.rows_of(ids, N), tt.zeros(x.shape)
    for e in tt.each(N):
        mine = pairs[e]
        each[:, :4][mine] = x[mine, :4]
        each[:, 4:][mine] = x[mine, 4:]
    return each


@pytest.mark.slow
@pytest.mark.parametrize("body", [read_inside, written_twice, larger, two_indices, read_by_element, columns],
                         ids=lambda body: body.__name__)
def test_state_that_is_also_used_otherwise_keeps_its_rows(body: Callable[..., Any]) -> None:
    function = jit(body)
    assert "ranks" not in behind(function)
    x, ids, _ = drawn(9)
    found = function(x, ids[:, 0].copy())
    want = np.concatenate([x, np.zeros((1, 8), np.float32)]) if body is larger else x
    assert np.array_equal(found, want)


@jit
def twice(x: Tensor["t", 8, F32], ids: Tensor["t", I32]) -> Any:
    """A side that is not always taken, and two states through one index: rows nobody writes stay 0."""
    pairs, one, two = tt.rows_of(ids, N), tt.zeros(x.shape), tt.empty(x.shape)
    for e in tt.each(N):
        mine = pairs[e]
        with tt.when(e > 1):
            one[mine] = x[mine] * 2
        two[mine] = x[mine] + 1
    return one, two, one + two


@pytest.mark.slow
def test_sides_and_two_states() -> None:
    x, ids, _ = drawn(21, 3)
    first = ids[:, 0].copy()
    one, two, both = twice(x, first)
    want = np.where(first[:, None] > 1, x * 2, 0)
    assert np.array_equal(one, want) and np.array_equal(two, x + 1) and np.array_equal(both, want + x + 1)
    assert str(behind(twice)).count("pairs.ranks)") == 2


def scaled(x: Any, ids: Any, scale: Any) -> Any:
    pairs, out = tt.rows_of(ids, N), tt.zeros((x.shape[0], 8))
    for e in tt.each(N):
        out[pairs[e]] = x[pairs[e]] * scale[e]
    return out


def of_any(x: Tensor["t", 8, F32], ids: Tensor["t", I32], scale: Tensor[N, F32]) -> Any:
    return scaled(x, ids, scale)


# 2048 places of a table of one column fill 64 KiB and its lines of 32 bytes as much again: too many.
@pytest.mark.parametrize(("t", "is_together", "target"), [(37, True, "interp"), *(
    pytest.param(*case, marks=pytest.mark.slow) for case in [(1, True, "interp"), (37, True, "cpu_sim"), (2048, False, "cpu_sim")])])
def test_few_places_are_put_in_order_on_chip_and_stored_together(t: int, is_together: bool, target: str) -> None:
    rng = np.random.default_rng(t)
    given = {"x": rng.integers(-4, 5, (t, 8)).astype(np.float32), "ids": rng.integers(0, N, t).astype(np.int32),
             "scale": np.arange(1, 1 + N, dtype=np.float32)}
    stores, cycles, out = [], [], np.full((t, 8), np.nan, np.float32)
    for function in (jit(scaled), jit(of_any)):
        lowered = function.lower(function.plan(**given, arch="ascend_910b"), **given, out=out)
        kernel = next(text for text in lowered.source().split("@kernel") if "_ranks: Out[" in text)
        stores.append([line for line in kernel.splitlines() if "pto.store(" in line and "starts" not in line])
        cycles.append(lowered.compile(target, arch="ascend_910b").run().stats.total_cycles)
        np.testing.assert_array_equal(out, given["x"] * given["scale"][given["ids"], None])
        out[:] = np.nan
    together, one_by_one = stores
    assert all(line.startswith("        ") for line in one_by_one) and len(one_by_one) == 2
    assert all(line.startswith("    pto") for line in together) == is_together
    assert cycles[0] * 2 < cycles[1] or t == 1 or not is_together
