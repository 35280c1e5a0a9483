"""The evaluator of the tensor level against NumPy: statements, steps of views, control, contracts, errors at the user's line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pto_wsp.errors import InternalError, PtoError
from pto_wsp.ir import tensor_function as t
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.layout import Contract
from pto_wsp.ir.scalar import Const, Element, add, minimum, mul, sub
from pto_wsp.ir.view import Cut, Permute, Pick
from pto_wsp.run.tensor_evaluate import evaluate, poison
from tests.tensor_functions import FunctionBuilder, at_least

F32, I32, I64, I8, BF16 = DType.F32, DType.I32, DType.I64, DType.I8, DType.BF16
RNG = np.random.default_rng(1)
X = RNG.standard_normal((3, 5, 8)).astype(np.float32)


def cut(view: t.ArrayView, dim: int, start: Any, stop: Any, by: int = 1) -> t.ArrayView:
    low, high = (Const(n) if isinstance(n, int) else n for n in (start, stop))
    return view.then(Cut(dim, low, high, by))


def test_a_row_program_with_a_symbol_and_a_scalar() -> None:
    f = FunctionBuilder()
    n, scale = f.symbol("n"), f.scalar("scale")
    x, w = f.param("x", (n, 8)), f.param("w", (8, 4))
    total = f.apply("rowsum", f.apply("mul", x, x))
    f.give(f.apply("mul", f.apply("matmul", f.apply("div", x, total), w), scale))
    weights = RNG.standard_normal((8, 4)).astype(np.float32)
    for rows in (3, 1, 0):
        a = X[0][:rows]
        (found,) = evaluate(f.function(), (a, weights), {"scale": 0.5})
        np.testing.assert_allclose(found, (a / (a * a).sum(-1, keepdims=True)) @ weights * 0.5, rtol=1e-5)


@pytest.mark.parametrize("steps, part", [
    ((Pick(1, Const(4)),), X[:, 4]),
    ((Cut(2, Const(1), Const(8), 3),), X[:, :, 1:8:3]),
    ((Permute((2, 0, 1)), t.Insert(1)), X.transpose(2, 0, 1)[:, None]),
    ((t.Flip(1), Pick(0, Const(2))), X[2, ::-1]),
    ((Permute((1, 0, 2)), t.Refold((Const(15), Const(8)))), X.transpose(1, 0, 2).reshape(15, 8)),
    ((t.TileCut(1, Const(4), 4),), X[:, 4:8]),
    ((t.TileCut(1, Const(0), 4), t.TileCut(1, Const(2), 4)), X[:, 2:4]),
], ids=["pick", "cut", "permute", "flip", "refold", "tile", "tiles"])
def test_views_are_numpys(steps: tuple[t.ArrayStep, ...], part: Any) -> None:
    f = FunctionBuilder()
    x = f.param("x", (3, 5, 8))
    f.give(x.then(*steps))
    state = f.make("state", (3, 5, 8), 0)
    f.put(state.then(*steps), x.then(*steps))
    f.give(state)
    given = X.copy()
    read, written = evaluate(f.function(), (given,))
    np.testing.assert_array_equal(read, part)
    places = np.arange(X.size).reshape(X.shape)
    for step in steps:
        places = {t.TileCut: lambda a, s: a[:, s.start.value:s.start.value + s.size], Pick: lambda a, s: a.take(s.index.value, s.dim),
                  Cut: lambda a, s: a[:, :, 1:8:3], Permute: lambda a, s: a.transpose(s.order), t.Insert: lambda a, s: a[:, None],
                  t.Flip: lambda a, s: a[:, ::-1], t.Refold: lambda a, s: a.reshape(15, 8)}[type(step)](places, step)
    expected = np.zeros(X.size, np.float32)
    expected[places] = X.reshape(-1)[places]
    np.testing.assert_array_equal(written, expected.reshape(X.shape))
    assert not np.shares_memory(read, given)


def attention(block: int) -> FunctionBuilder:
    """Flash attention as design/tensor.md writes it."""
    f = FunctionBuilder("attention")
    h, s, n = f.symbol("h"), f.symbol("s"), f.symbol("n")
    q, k, v = f.param("q", (h, s, 4)), f.param("k", (h, n, 4)), f.param("v", (h, n, 4))
    out = f.make("out", (h, s, 4))
    with f.loop(h, ordered=False, name="h") as i:
        qh = f.apply("mul", q.then(Pick(0, i)), 0.5)
        acc, seen, top = f.make("acc", (s, 4), 0), f.make("seen", (s, 1), 0), f.make("top", (s, 1), float("-inf"))
        with f.loop(n, step=block, name="j") as j:
            part = Cut(0, j, minimum(add(j, Const(block)), n))
            kj, vj = k.then(Pick(0, i), part), v.then(Pick(0, i), part)
            score = f.apply("matmul", qh, kj.then(Permute((1, 0))))
            peak = f.apply("maximum", top, f.apply("rowmax", score))
            weight, fade = f.apply("exp", f.apply("sub", score, peak)), f.apply("exp", f.apply("sub", top, peak))
            f.put(acc, f.apply("add", f.apply("mul", acc, fade), f.apply("matmul", weight, vj)))
            f.put(seen, f.apply("add", f.apply("mul", seen, fade), f.apply("rowsum", weight)))
            f.put(top, peak)
        f.put(out.then(Pick(0, i)), f.apply("div", acc, seen))
    f.give(out)
    return f


@pytest.mark.parametrize("order", [None, 1, 2])
def test_flash_attention_with_a_short_last_block(order: int | None) -> None:
    q, k, v = (RNG.standard_normal((3, rows, 4)).astype(np.float32) for rows in (5, 7, 7))
    score = np.exp(q @ k.swapaxes(1, 2) * 0.5)
    (found,) = evaluate(attention(3).function(), (q, k, v), order=order)
    np.testing.assert_allclose(found, score / score.sum(-1, keepdims=True) @ v, rtol=2e-5, atol=1e-6)


def test_experts_write_their_rows_through_places() -> None:
    f = FunctionBuilder()
    n = f.symbol("n")
    x, chosen, scale = f.param("x", (n, 4)), f.param("chosen", (n,), I32), f.param("scale", (3, 1))
    places, starts = f.apply_all("rows_of", chosen, attrs=(("n", 3),), contracts=())
    out = f.make("out", (n, 4))
    with f.loop(3, ordered=False) as e:
        mine = cut(places, 0, Element(starts.array.ref, (e,)), Element(starts.array.ref, (add(e, Const(1)),)))
        f.put(out, f.apply("mul", f.apply("take", x, mine), scale.then(Pick(0, e))), mine)
    f.give(out)
    table = np.array([2, 0, 2, 2, 0], np.int32)
    factors = np.array([[2.0], [3.0], [5.0]], np.float32)
    (found,) = evaluate(f.function(), (X[0, :, :4], table, factors), order=3)
    np.testing.assert_array_equal(found, X[0, :, :4] * factors[table])


def test_writes_through_tables_add_in_order_and_inout_is_written_in_place() -> None:
    f = FunctionBuilder()
    cache, table, value = f.param("cache", (4, 2), BF16, written=True), f.param("table", (3,), I64), f.param("value", (3, 2), BF16)
    f.put(cut(cache, 0, 1, 4), value, table, add=True)
    f.put(cache.then(Pick(0, Const(0))), 7)
    array, values = np.full((4, 2), 256, BF16.np), np.array([[1, 1], [1, 0], [1, 0]], BF16.np)
    assert evaluate(f.function(), (array, np.array([0, 2, 2]), values)) == ()
    expected = np.full((4, 2), 256.0)
    expected[0] = 7                   # 256 + 1 rounds to 256 in bf16, each time
    np.testing.assert_array_equal(array.astype(np.float64), expected)


def test_a_choice_a_print_and_constants() -> None:
    f = FunctionBuilder()
    n, limit = f.symbol("n"), f.scalar("limit")
    f.param("x", (n,), I32)
    c = f.constant("c", np.array([5, 6], np.int32))
    out = f.make("out", (2,), 1, I32)
    with f.when(at_least(limit, 0.5)):
        f.put(out, c)
        f.show("out", out)
    with f.when(at_least(n, Element(c.array.ref, (Const(0),)))):
        f.put(out.then(Pick(0, Const(1))), 9)
    f.give(out)
    shown: list[Any] = []
    (found,) = evaluate(f.function(), (np.zeros(4, np.int32),), {"limit": 1}, show=lambda label, value: shown.append((label, *value)))
    assert list(found) == [5, 6] and shown == [("out", 5, 6)]
    assert list(evaluate(f.function(), (np.zeros(5, np.int32),), {"limit": 0})[0]) == [1, 9]


def test_what_nothing_wrote_is_seen() -> None:
    for dtype in (F32, BF16, DType.FP8E4M3):
        assert np.isnan(poison((2,), dtype).astype(np.float32)).all()
    assert list(poison((1,), I8)) == [-128] and list(poison((1,), DType.U16)) == [65535]
    f = FunctionBuilder()
    state = f.make("state", (4,))
    f.put(cut(state, 0, 0, 3), 1)
    f.give(f.apply("rowsum", state))
    assert np.isnan(evaluate(f.function(), ())[0]).all()


def test_state_of_a_body_is_new_in_each_iteration() -> None:
    f = FunctionBuilder()
    out = f.make("out", (3,), 0, I32)
    with f.loop(3) as i:
        inner = f.make("inner", (1,), 0, I32)
        f.put(inner, f.apply("add", inner, add(i, Const(1))))
        f.put(cut(out, 0, i, add(i, Const(1))), inner)
    f.give(out)
    assert list(evaluate(f.function(), ())[0]) == [1, 2, 3]


def test_what_a_body_makes_ends_with_the_body() -> None:
    f = FunctionBuilder()
    with f.loop(3):
        inner = f.make("inner", (1,), 0, I32)
    f.give(inner)
    with pytest.raises(InternalError, match="inner"):
        evaluate(f.function(), ())


def test_results_of_views_of_state_do_not_change_later() -> None:
    f = FunctionBuilder()
    state = f.make("state", (2, 3), 1)
    before = f.apply("reshape", state, shape=(3, 2))
    f.put(state, 2)
    f.give(before)
    np.testing.assert_array_equal(evaluate(f.function(), ())[0], np.ones((3, 2)))


def failing(build: Any, arrays: Any = (), **scalars: Any) -> PtoError:
    f = FunctionBuilder()
    build(f)
    with pytest.raises(PtoError) as caught:
        evaluate(f.function(), arrays, scalars)
    return caught.value


def pick_outside(f: FunctionBuilder) -> None:
    x, at = f.param("x", (4,)), f.param("at", (1,), I32)
    f.give(f.apply("exp", cut(x, 0, 0, 4).then(Pick(0, Element(at.array.ref, (Const(0),))))))


def cut_outside(f: FunctionBuilder) -> None:
    x, n = f.param("x", (4,)), f.scalar("n", I32)
    f.give(f.apply("exp", cut(x, 0, 0, n)))


def element_outside(f: FunctionBuilder) -> None:
    x, n = f.param("x", (4,), I32), f.scalar("n", I32)
    f.give(f.apply("full", Element(x.array.ref, (n,)), shape=(2,)))


def table_outside(f: FunctionBuilder) -> None:
    x, table = f.make("x", (4,), 0), f.param("table", (2,), I32)
    f.put(x, 1, table)


def nothing_to_choose(f: FunctionBuilder) -> None:
    n = f.symbol("n")
    f.give(f.apply("rowmax", f.param("x", (n,))))


@pytest.mark.parametrize("build, arrays, scalars, code, line", [
    (pick_outside, (X[0, 0, :4], np.array([4], np.int32)), {}, "R104", 1),
    (pick_outside, (X[0, 0, :4], np.array([-1], np.int32)), {}, "R104", 1),
    (cut_outside, (X[0, 0, :4],), {"n": 5}, "R104", 1),
    (cut_outside, (X[0, 0, :4],), {"n": -1}, "R104", 1),
    (cut_outside, (X[0, 0, :4],), {}, "R102", None),
    (element_outside, (np.zeros(4, np.int32),), {"n": 4}, "R104", 1),
    (table_outside, (np.array([0, 4], np.int32),), {}, "R104", 2),
    (nothing_to_choose, (X[0, 0, :0],), {}, "R104", 1),
])
def test_errors_stand_at_the_users_line(build: Any, arrays: Any, scalars: Any, code: str, line: int | None) -> None:
    problem = failing(build, arrays, **scalars)
    assert problem.code == code
    assert line is None or (problem.span is not None and str(problem.span).endswith(f"function.py:{line}"))


def test_arguments_that_do_not_fit_are_refused() -> None:
    f = FunctionBuilder()
    n = f.symbol("n")
    f.param("x", (n, 4)), f.param("y", (n,), I32)
    function = f.function()
    ok = (X[0, :, :4], np.zeros(5, np.int32))
    for arrays, code in (((ok[0],), "R113"), ((ok[0], ok[1][:4]), "R102"), ((ok[0], X[0, 0]), "R113"), ((X[0], ok[1]), "R113")):
        with pytest.raises(PtoError) as caught:
            evaluate(function, arrays)
        assert caught.value.code == code
    evaluate(function, ok)


def test_assumptions_and_contracts_are_checked() -> None:
    f = FunctionBuilder()
    n = f.symbol("n")
    f.param("t", (n,), I32, contracts=(Contract.INJECTIVE,)), f.param("s", (3,), I32, contracts=(Contract.MONOTONE,))
    f.assume(at_least(3, n))
    good = (np.array([4, 1], np.int32), np.array([1, 1, 5], np.int32))
    evaluate(f.function(), good)
    for arrays, code in (((np.array([4, 4], np.int32), good[1]), "R110"), ((good[0], np.array([1, 0, 5], np.int32)), "R110"),
                         ((np.arange(4, dtype=np.int32), good[1]), "R102")):
        with pytest.raises(PtoError) as caught:
            evaluate(f.function(), arrays)
        assert caught.value.code == code


def test_the_order_of_iterations_shows_where_it_matters() -> None:
    """An unordered loop whose iterations write one place gives other results in other orders: the option finds the mistake."""
    f = FunctionBuilder()
    out = f.make("out", (1,), 0, I32)
    with f.loop(8, ordered=False) as i:
        f.put(out, i)
    f.give(out)
    found = {int(evaluate(f.function(), (), order=seed)[0][0]) for seed in range(6)}
    assert len(found) > 1 and int(evaluate(f.function(), ())[0][0]) == 7


def test_scalars_of_views_are_computed() -> None:
    f = FunctionBuilder()
    n = f.symbol("n")
    x = f.param("x", (n, 4))
    f.give(cut(x, 0, sub(n, Const(2)), n).then(t.Refold((Const(4), Const(2)))),
           f.apply("arange", n, 2, shape=(mul(n, Const(2)),), dtype=I32))
    tail, counted = evaluate(f.function(), (X[0, :, :4],))
    np.testing.assert_array_equal(tail, X[0, 3:, :4].reshape(4, 2))
    np.testing.assert_array_equal(counted, 5 + 2 * np.arange(10))


def test_arrays_stay_unchanged_by_evaluation() -> None:
    given = X.copy()
    f = FunctionBuilder()
    x = f.param("x", (3, 5, 8))
    f.give(f.apply("cast", x, attrs=(("dtype", F32),)), x)
    evaluate(f.function(), (given,))[0][:] = 0
    np.testing.assert_array_equal(given, X)
    with pytest.raises(PtoError):
        f.put(replace(x), 1)
        given.flags.writeable = False
        evaluate(f.function(), (given,))
