# ruff: noqa: F821, UP037      (a string in Tensor[...] is a symbol)
"""Loops that look up elements of tables by their own variable: inside a kernel where it can, else loops of tasks with the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, PtoError, Tensor, jit, tt

F32, I32, I64 = DType.F32, DType.I32, DType.I64
PAGE = 4


@jit
def sums(pages: Tensor["pages", 2, PAGE, 8, F32], table: Tensor["b", "m", I32], lengths: Tensor["b", I32]) -> Any:
    out = tt.empty((table.shape[0], 2, 8))
    for b, g in tt.each(table.shape[0], 2):
        acc = tt.zeros((1, 8))
        for j in tt.loop((lengths[b] + PAGE - 1) // PAGE):
            acc[:] = acc + np.sum(pages[table[b, j], g][:lengths[b] - j * PAGE], axis=0, keepdims=True)
        out[b, g] = acc[0]
    return out


@jit
def rows(cache: Tensor["rows", 8, F32], table: Tensor["m", I64], starts: Tensor["s", I32]) -> Any:
    """Look up the entry of an entry, in blocks that overlap."""
    acc = tt.zeros((1, 8))
    for j in tt.loop(starts.shape[0]):
        first = table[starts[j]]
        acc[:] = acc * 2 + np.sum(cache[first:first + PAGE], axis=0, keepdims=True)
    return acc * 2


@jit
def turned(cache: Tensor[12, 8, 6, F32], table: Tensor["m", I32]) -> Any:
    """A matrix in another order of its axes, and one column of it."""
    acc = tt.zeros((6, 8))
    for j in tt.loop(table.shape[0]):
        acc[:] = acc + cache[table[j]].T * cache[table[j], :, 0]
    return acc * 2


@jit
def heads(x: Tensor["pages", 3, 4, 8, F32], table: Tensor["m", I32]) -> Any:
    acc = tt.zeros((4, 8))
    for j in tt.loop(table.shape[0]):
        acc[:] = acc + np.sum(x[table[j]], axis=0)
    return acc * 2


@jit
def weighted(x: Tensor["pages", 4, 8, F32], table: Tensor["m", I32], weight: Tensor["m", F32]) -> Any:
    acc = tt.zeros((4, 8))
    for j in tt.loop(table.shape[0]):
        acc[:] = acc + x[table[j]] * weight[j]
    return acc * 2


@jit
def two_loops(x: Tensor["pages", 4, 8, F32], table: Tensor["n", 3, I32]) -> Any:
    acc = tt.zeros((4, 8))
    for i in tt.loop(table.shape[0]):
        for j in tt.loop(3):
            acc[:] = np.maximum(acc, x[table[i, j]]) - 1
    return acc * 2


@jit
def scaled(x: Tensor["n", 8, F32], table: Tensor["m", I32]) -> Any:
    """Use an element as a number, which kernels cannot look up."""
    acc = tt.zeros((1, 8))
    for j in tt.loop(table.shape[0]):
        acc[:] = acc + x[table[j]] * table[j]
    return acc * 2


@jit
def chosen(x: Tensor["pages", 4, 8, F32], table: Tensor["m", I32]) -> Any:
    """Look up in a branch, and behind the branch once more."""
    acc = tt.zeros((4, 8))
    for j in tt.loop(table.shape[0]):
        with tt.when(j > 0):
            acc[:] = acc * 3 + x[table[j]]
        acc[:] = acc - x[table[j]]
    return acc * 2


RNG = np.random.default_rng(0)
CASES: dict[str, tuple[Any, dict[str, np.ndarray[Any, Any]]]] = {
    "sums": (sums, {"pages": RNG.standard_normal((7, 2, PAGE, 8), np.float32), "lengths": np.array([9, 0, 4, 1], np.int32),
                    "table": np.array([[3, 6, 0], [-1, -1, -1], [5, -1, -1], [6, 99, -1]], np.int32)}),
    "rows": (rows, {"cache": RNG.standard_normal((20, 8), np.float32), "table": np.array([16, 0, 3, 5], np.int64),
                    "starts": np.array([2, 0, 3, 1, 0], np.int32)}),
    "turned": (turned, {"cache": RNG.standard_normal((12, 8, 6), np.float32), "table": np.array([11, 0, 4], np.int32)}),
    "heads": (heads, {"x": RNG.standard_normal((5, 3, 4, 8), np.float32), "table": np.array([4, 1, 1], np.int32)}),
    "weighted": (weighted, {"x": RNG.standard_normal((5, 4, 8), np.float32), "table": np.array([4, 1, 1], np.int32),
                            "weight": np.array([1, 2, 3], np.float32)}),
    "two_loops": (two_loops, {"x": RNG.standard_normal((5, 4, 8), np.float32), "table": np.array([[4, 1, 1], [0, 2, 3]], np.int32)}),
    "chosen": (chosen, {"x": RNG.standard_normal((5, 4, 8), np.float32), "table": np.array([4, 1, 1], np.int32)}),
    "scaled": (scaled, {"x": RNG.standard_normal((5, 8), np.float32), "table": np.array([4, 1, 2], np.int32)}),
}
TASKS = {"heads": "what it looks up has no form as tiles of one kernel", "scaled": "a kernel cannot look up table[j] in each iteration"}


@pytest.mark.parametrize("arch", ["host_cpu", pytest.param("ascend_910b", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [
    name if name in ("sums", "chosen", "scaled") else pytest.param(name, marks=pytest.mark.slow) for name in CASES])
def test_loops_in_a_kernel_and_loops_of_tasks_give_the_same_bits(name: str, arch: str) -> None:
    function, given = CASES[name]
    plan = function.plan(**given, arch=arch)
    said = next(entry for entry in plan.entries if entry.key == "loops")
    assert (said.value, said.reason) == (("tasks", TASKS[name]) if name in TASKS else ("kernel", "its state fits into a task"))
    found = function(**given, plan=plan)
    np.testing.assert_array_equal(found, function.reference(**given))
    by_hand = plan.but(loops={loop.name: "tasks" for loop in plan.entries if loop.key == "loops"})
    np.testing.assert_array_equal(function(**given, plan=by_hand), found)
    np.testing.assert_array_equal(function.using(target="interp")(**given, plan=plan), found)


def test_sums_are_what_numpy_gives() -> None:
    """Entries behind the end of a row are never read: they are no pages."""
    given = CASES["sums"][1]
    want = np.zeros((4, 2, 8))
    for b, n in enumerate(given["lengths"]):
        for i in range(n):
            want[b] += given["pages"][given["table"][b, i // PAGE], :, i % PAGE]
    np.testing.assert_allclose(sums(**given), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("page", [7, -1, 2**31 - 1])
@pytest.mark.parametrize("target", ["cpu_sim", "interp"])
def test_an_element_outside_ends_the_run_at_the_line_that_uses_it(target: str, page: int) -> None:
    given = {name: value.copy() for name, value in CASES["sums"][1].items()}
    given["table"][0, 1] = page
    with pytest.raises(PtoError) as caught:
        sums.using(target=target)(**given)
    assert caught.value.code == "R101"
    assert "acc[:] = acc + np.sum(pages[table[b, j], g]" in str(caught.value)


def test_a_row_shorter_than_the_loop_ends_the_run() -> None:
    given = {name: value.copy() for name, value in CASES["sums"][1].items()}
    given["lengths"][0] = 3 * PAGE + 1
    with pytest.raises(PtoError) as caught:
        sums(**given)
    assert caught.value.code == "R101"


def test_a_target_whose_kernels_read_no_elements_has_a_loop_of_tasks() -> None:
    function, given = CASES["sums"]
    said = function.plan(**given, arch="ascend_910b", target="pto").said("loops", "j")
    assert (said.value, said.reason) == ("tasks", "a kernel cannot look up table[b, j] in each iteration")
