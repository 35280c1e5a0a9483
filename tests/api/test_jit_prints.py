"""`tt.print` in functions on tensors: what there is of each tile, in the order of the program, on every target."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, PtoError, Tensor, jit, tt

F32 = DType.F32


def many(x: Tensor["t", 4, F32]):
    y = x * 2.0
    total = np.sum(y, axis=1)
    tt.print("t", x.shape[0])
    tt.print("total", total)
    tt.print("y", y)
    for i in tt.loop(x.shape[0]):
        with tt.when(i == 1):
            tt.print("second", x[i])
        with tt.otherwise():
            tt.print(i)
    tt.print("turned", y.T)
    return y


def attention(q: Tensor["s", 8, F32], k: Tensor["n", 8, F32]):
    acc, top = tt.zeros((q.shape[0], 8)), tt.full((q.shape[0], 1), -math.inf)
    for j in tt.loop(0, k.shape[0], 4):
        score = q @ k[j:j + 4].T
        peak = np.maximum(top, np.max(score, axis=-1, keepdims=True))
        tt.print("peak", peak)
        acc[:] = acc * np.exp(top - peak) + np.exp(score - peak) @ k[j:j + 4]
        top[:] = peak
    return acc


def test_prints_show_what_is_there_in_the_order_of_the_program(capsys: pytest.CaptureFixture[str], golden: Any) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    shown = []
    for target in ("interp", "cpu_sim"):
        np.testing.assert_array_equal(jit(target=target)(many)(x), x * 2)
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    golden(shown[0])


@pytest.mark.parametrize("target", ["interp", pytest.param("cpu_sim", marks=pytest.mark.slow)])
def test_a_print_in_a_loop_that_carries_state_shows_each_turn(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(3)
    q, k = rng.standard_normal((3, 8), np.float32), rng.standard_normal((10, 8), np.float32)
    f = jit(target=target)(attention)
    np.testing.assert_allclose(f(q, k), f.python(q, k), rtol=1e-4, atol=1e-5)
    shown = capsys.readouterr().out
    tops = [np.max(q @ k[:end].T, axis=1) for end in (4, 8, 10)]
    numbers = [float(n) for line in shown.split("peak")[1:4] for n in line.replace("[", " ").replace("]", " ").split() if "." in n]
    np.testing.assert_allclose(numbers, np.concatenate(tops), rtol=1e-4)


def test_no_tile_prints_what_is_computed_again() -> None:
    @jit
    def f(x: Tensor["t", 64, F32], w: Tensor[64, 4096, F32]):
        g = np.tanh(x)
        tt.print("g", g)
        return g @ w

    plan = f.plan()
    text = f.lower(plan.but(tiles={"out": {1: 128}})).source()
    assert text.count("pto.print") == 1 and "for out_1 in" not in text.split("g[")[0].split("@workload")[1]


def test_a_group_by_name_takes_the_print_along() -> None:
    @jit
    def f(x: Tensor["t", 64, F32]):
        with tt.group("both"):
            a = x + 1.0
            tt.print("a", a)
            return a * 2.0

    assert f.lower().source().count("@kernel") == 1


def test_what_is_no_label_is_refused() -> None:
    @jit
    def f(x: Tensor["t", 64, F32]):
        tt.print(x, "x")
        return x * 2.0

    with pytest.raises(PtoError) as caught:
        f.trace()
    assert caught.value.expected == 'tt.print(x) or tt.print("label", x)'
