"""Sentences of the language's rules that no other test of this folder shows: groups, structures, weak numbers, views, nothing there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from pto_wsp import DType, Injective, InOut, Monotone, PtoError, Scalar, Tensor, jit, tt
from pto_wsp.ir import flow

F16, F32, BF16, I8, I32, I64, BOOL = DType.F16, DType.F32, DType.BF16, DType.I8, DType.I32, DType.I64, DType.BOOL
RNG = np.random.default_rng(3)
X = RNG.standard_normal((5, 4), np.float32)


def refused(call: Callable[..., Any], *args: Any) -> PtoError:
    with pytest.raises(PtoError) as caught:
        call(*args)
    return caught.value


# -- parameters --------------------------------------------------------------------------------------------------------
class Pair(NamedTuple):
    """Two arrays."""

    up: Tensor["n", F32]
    down: Tensor["n", F32]


@dataclass
class Block:
    """A pair, a list and a dict."""

    pair: Pair
    layers: list[Any]
    more: dict[str, Any]


def test_structures_are_flattened_by_path() -> None:
    @jit
    def f(block: Block, pairs: tuple[Pair, Pair]):
        tt.assume(block.pair.up.shape[0] == 3)
        return block.pair.up + block.layers[1]["b"] * block.layers[0] * block.more["k"], [pairs[1].down, {"x": pairs[0].up}]

    one, two = np.ones(3, np.float32), np.full(3, 2, np.float32)
    block = Block(Pair(one, two), [one, {"b": 2.0}], {"k": 3.0})
    first, (second, third) = f.reference(block, (Pair(one, two), Pair(two, one)))
    assert first.tolist() == [7, 7, 7] and second.tolist() == [1, 1, 1] and third["x"].tolist() == [1, 1, 1]
    text = str(f.trace(block, (Pair(one, two), Pair(two, one)))).splitlines()[0]
    assert "block.pair.up: [n] f32" in text and "block.layers.0: [3] f32" in text and "pairs.1.down" in text
    error = refused(f.reference, Block(Pair(one, np.ones(4, np.float32)), [one, {"b": 2.0}], {"k": 3.0}), (Pair(one, two),) * 2)
    assert error.code == "J201" and "block.pair.down" in str(error)


@pytest.mark.parametrize("annotation", ["Tensor[F32]", "Tensor[..., F32]", "Tensor[0, F32]", "Tensor['t + 1', F32]", "Tensor[4]",
                                        "Tensor[2.0, F32]", "Out[Tensor['t', F32]]"])
def test_what_is_no_type_of_a_tensor_is_refused(annotation: str) -> None:
    from pto_wsp import Out
    scope: dict[str, Any] = {"Tensor": Tensor, "F32": F32, "Out": Out}
    exec(f"def f(x: {annotation}):\n    return x", scope)
    assert refused(jit, scope["f"]).code == "J101"


# -- dtypes ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("name", "function", "dtype"), [
    ("number", lambda x, i, n: x * 2 + np.float64(0.5), F16), ("extent", lambda x, i, n: x * x.shape[0], F16),
    ("scalar", lambda x, i, n: x * n, F16), ("integers", lambda x, i, n: i * 3 + np.int64(1), I8),
    ("where of numbers", lambda x, i, n: np.where(x > 0, 1.0, 0.0), F32), ("whole numbers", lambda x, i, n: np.where(x > 0, 1, 0), I32),
    ("zeros", lambda x, i, n: tt.zeros((2,)) + tt.full((2,), 1) + tt.empty((2,)) * 0, F32),
    ("arange", lambda x, i, n: tt.arange(3) * 1, I32),
    ("product of halves", lambda x, i, n: x @ x.T, F32), ("product of bytes", lambda x, i, n: i @ i.T, I32),
    ("sum keeps", lambda x, i, n: np.sum(x), F16), ("sum of bytes", lambda x, i, n: np.sum(i), I8),
    ("count", lambda x, i, n: np.sum(x > 0, axis=1), I32), ("argmax", lambda x, i, n: np.argmax(i, axis=1), I32),
    ("topk", lambda x, i, n: tt.topk(x, 2)[1], I32), ("compare", lambda x, i, n: i > n, BOOL),
])
def test_the_dtype_of_a_result(name: str, function: Callable[..., Any], dtype: DType) -> None:
    @jit
    def f(x: Tensor["t", 4, F16], i: Tensor["t", 4, I8], n: Scalar[I32]):
        return function(x, i, n)

    assert f.trace().results[0].dtype is dtype


@pytest.mark.parametrize(("function", "code"), [
    (lambda x, i: i + 0.5, "T203"), (lambda x, i: i * 1000, "T209"), (lambda x, i: x + i, "T203"), (lambda x, i: i / 2, "T204"),
    (lambda x, i: np.mean(i), "T204"), (lambda x, i: np.sqrt(i), "T204"), (lambda x, i: x[x], "J202"),
])
def test_numbers_that_do_not_fit_and_dtypes_that_mix_are_refused(function: Callable[..., Any], code: str) -> None:
    @jit
    def f(x: Tensor["t", 4, F16], i: Tensor["t", 4, I8]):
        return function(x, i)

    assert refused(f.trace).code == code


# -- symbols -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("function", [
    lambda x, y: (x.reshape(-1, 2) * 1, y.reshape(2, -1) * 1), lambda x, y: np.concatenate([x, y])[x.shape[0]:] + y,
    lambda x, y: np.concatenate([x, y]) + np.concatenate([y, x]), lambda x, y: x[1:][:-1] + x[:-2], lambda x, y: x[:, None] + y[None, :],
])
def test_extents_are_polynomials(function: Callable[..., Any]) -> None:
    @jit
    def f(x: Tensor["m", F32], y: Tensor["n", F32]):
        tt.assume(x.shape[0] >= 2)
        return function(x, y)

    a, b = np.arange(6, dtype=np.float32), np.arange(4, dtype=np.float32)
    if "reshape" in function.__code__.co_names:
        assert refused(f.trace).code == "J204"      # nothing says that m is even
    else:
        np.testing.assert_array_equal(f.reference(a, b), function(a, b))


def test_a_symbol_never_broadcasts_even_when_it_is_1() -> None:
    @jit
    def f(x: Tensor["m", F32], y: Tensor["n", F32]):
        return x + y

    assert refused(f.reference, np.ones(1, np.float32), np.ones(3, np.float32)).code == "J201"


def test_names_do_not_depend_on_how_often_a_body_was_traced() -> None:
    def body(x: Tensor["t", 4, F32]):
        y = abs(x)
        z = sum((y, y * 2))
        return z + 1

    def names() -> list[str]:
        return [array.name for item in flow.leaves(jit(body).trace().body) for array in item.defines]

    assert [names() for _ in range(12)] == [["y", "z.mul", "z", "z#2", "out"]] * 12      # Python makes calls faster from the eighth on


# -- views and state ---------------------------------------------------------------------------------------------------
def test_what_nothing_allows_is_refused_at_its_line() -> None:
    def reshaped(x):
        a = x * 1
        a.reshape(2, -1)[0] = 1.0
        return a

    def reversed_view(x):
        a = x * 1
        a[::-1][0] = 1.0
        return a

    def broadcast(x):
        a = x * 1
        np.broadcast_to(a, (3, *a.shape))[0] = 1.0
        return a

    for body in (reshaped, reversed_view, broadcast, lambda x: x.__setitem__(0, 1.0), lambda x: x.T[0].__iadd__(1.0),
                 lambda x: np.flip(x * 1, 0).__setitem__(0, 1.0)):
        assert refused(jit(lambda x, body=body: body(x)).trace, Tensor[4, 4, F32]).code == "J102"


def test_state_of_a_body_is_new_in_each_iteration_and_slices_clip() -> None:
    @jit
    def f(x: Tensor["t", 4, F32]):
        out = tt.zeros((x.shape[0],))
        for i in tt.loop(x.shape[0]):
            acc = tt.zeros((4,))
            acc += x[i]
            acc[2:99] *= 2.0
            out[i] = np.sum(acc[-3:])
        return out, x[3:99][:, :2] + 0.0, x[7:] * 1.0

    for call in (f.reference, f.python):
        sums, part, nothing = call(X)
        np.testing.assert_allclose(sums, X[:, 1] + 2 * X[:, 2] + 2 * X[:, 3], rtol=1e-5)
        np.testing.assert_array_equal(part, X[3:, :2])
        assert nothing.shape == (0, 4)


def test_a_group_by_name_is_one_kernel_and_changes_no_number() -> None:
    def body(x: Tensor["t", 4, F32], w: Tensor[4, 4, F32], grouped: bool = False):
        a = x * 2.0
        if grouped:
            with tt.group("head"):
                b = np.sum(a, axis=1, keepdims=True)
                c = a - b
        else:
            b = np.sum(a, axis=1, keepdims=True)
            c = a - b
        return c @ w

    f, w = jit(target="interp")(body), np.eye(4, dtype=np.float32)
    np.testing.assert_array_equal(f(X, w, True), f(X, w, False))
    assert {entry.name for entry in f.plan(X, w, True).entries if entry.key == "groups"} >= {"head"}
    assert refused(jit(lambda x: tt.group("a b").__enter__()).trace, Tensor[4, F32]).code == "J105"


# -- nothing there, order, ties ----------------------------------------------------------------------------------------
@pytest.mark.filterwarnings("ignore:Mean of empty", "ignore:invalid value")
def test_sums_over_nothing_are_0_products_1_and_means_nan() -> None:
    @jit
    def f(x: Tensor["t", 4, F32], kept: InOut[Tensor[4, F32]]):
        kept[:] = np.sum(x, axis=0)
        return np.prod(x, axis=0), np.mean(x, axis=0), x.T @ x, np.any(x > 0, axis=0), np.all(x > 0, axis=0)

    for call in (f.using(target="interp"), f.reference, f.python):
        out = np.full(4, 9, np.float32)
        product, mean, square, some, every = call(np.zeros((0, 4), np.float32), out)
        assert not out.any() and (product == 1).all() and np.isnan(mean).all() and not square.any() and not some.any() and every.all()


@pytest.mark.parametrize("n, start, stop, extent", [
    (12, 0, 12, "4"), (12, 0, 9, "4"), (10, 0, 10, "Symbolic(min(4, -j + 10))"), (12, 2, 12, "Symbolic(min(4, -j + 12))"),
    (11, 0, 9, "Symbolic(min(4, -j + 11))")])
def test_blocks_of_a_loop_have_a_number_as_extent_where_none_is_short(n: int, start: int, stop: int, extent: str) -> None:
    extents = []

    @jit
    def f(x):
        total = tt.zeros((1, 2))
        for j in tt.loop(start, stop, 4):
            block = x[j:j + 4]
            extents.append(repr(block.shape[0]))
            total += np.sum(block, axis=0, keepdims=True)
        return total

    x = np.arange(n * 2, dtype=np.float32).reshape(n, 2)
    np.testing.assert_array_equal(f.using(target="interp")(x), sum(x[j:j + 4].sum(axis=0, keepdims=True) for j in range(start, stop, 4)))
    assert extents[0] == extent


@pytest.mark.parametrize("function", [lambda x: np.max(x, axis=0), lambda x: np.min(x), lambda x: np.argmax(x, axis=0)])
def test_an_extreme_of_nothing_is_an_error_of_the_call(function: Callable[[Any], Any]) -> None:
    @jit(target="interp")
    def f(x: Tensor["t", 4, F32]):
        tt.assume(x.shape[0] <= 64)
        return function(x)

    np.testing.assert_array_equal(f(X), function(X))
    error = refused(f, np.zeros((0, 4), np.float32))
    assert error.code in ("J201", "R113") and "test_rules.py" in str(error)


def test_nan_is_largest_in_topk_last_in_sort_and_ties_take_the_lower_place() -> None:
    @jit
    def f(x: Tensor["t", 6, F32]):
        return (*tt.topk(x, 3), *tt.topk(x, 2, largest=False), np.sort(x), np.argsort(x), np.argmax(x, axis=1), np.argmin(x, axis=1))

    x = np.array([[1, np.nan, 1, 3, -2, 3], [5, 5, 5, 5, 5, 5]], np.float32)
    for call in (f.reference, f.using(target="interp")):
        best, at, least, low, rising, order, top, bottom = call(x)
        np.testing.assert_array_equal(best, [[np.nan, 3, 3], [5, 5, 5]])
        np.testing.assert_array_equal(at, [[1, 3, 5], [0, 1, 2]])
        np.testing.assert_array_equal(least, [[-2, 1], [5, 5]])
        np.testing.assert_array_equal(low, [[4, 0], [0, 1]])
        np.testing.assert_array_equal(rising, np.sort(x))
        np.testing.assert_array_equal(order, np.argsort(x, kind="stable"))
        assert top[1] == bottom[1] == 0 and bottom[0] in (1, 4)


def test_an_entry_outside_ends_the_run() -> None:
    @jit(target="interp")
    def f(x: Tensor["t", 4, F32], table: Tensor["n", I64]):
        return x[table] * 1.0

    np.testing.assert_array_equal(f(X, np.array([4, 0, 4])), X[[4, 0, 4]])
    for wrong in (5, -1):
        assert refused(f, X, np.array([0, wrong])).code.startswith("R")


def test_contracts_last_through_what_keeps_them() -> None:
    @jit
    def f(x: Tensor["t", 4, F32], table: Injective[Tensor["t", I32]], starts: Monotone[Tensor["b1", I32]]):
        tt.assume(x.shape[0] <= 64)
        out = tt.zeros((x.shape[0] + 2, 4))
        out[table + 2] = x
        out[tt.arange(x.shape[0])] = x
        out[np.argsort(table)] = x
        for b in tt.each(starts.shape[0] - 1):
            out[starts[b]:starts[b + 1]] *= 2.0
        return out

    places, starts = np.array([2, 0, 1, 4, 3], np.int32), np.array([0, 2, 5], np.int32)
    np.testing.assert_array_equal(f.reference(X, places, starts), f.python(X, places, starts))


# -- results and options -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("returned", [lambda x, y: None, lambda x, y: (y,), lambda x, y: [y, x], lambda x, y: {"a": (x, [y])}])
def test_results_keep_their_structure_and_share_no_memory(returned: Callable[..., Any]) -> None:
    @jit(target="interp")
    def f(x: Tensor["t", 4, F32], state: InOut[Tensor["t", 4, F32]]):
        y = x * 1.0
        state[:] = y
        return returned(x, y)

    state = np.zeros((5, 4), np.float32)
    found, like = f(X, state), returned(X, X)
    assert type(found) is type(like)

    def leaves(value: Any) -> list[np.ndarray]:
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else None
        return [] if value is None else [value] if parts is None else [leaf for part in parts for leaf in leaves(part)]

    for leaf in leaves(found):
        np.testing.assert_array_equal(leaf, X)
        assert not np.shares_memory(leaf, X) and not np.shares_memory(leaf, state)
    assert len(leaves(found)) == len(leaves(like))


def test_numpy_zeros_in_a_body_are_a_constant() -> None:
    def body(x):
        made = np.zeros((4, 4), np.float32)
        made[0] = 1.0
        return x + made

    assert jit(body).reference(np.ones((4, 4), np.float32))[0].tolist() == [2, 2, 2, 2]


def test_a_promised_bound_says_which_operand_a_minimum_is() -> None:
    def added(x: Tensor["t", 4, F32], y: Tensor["n", 4, F32]):
        tt.assume(y.shape[0] <= x.shape[0])
        return x[:np.minimum(x.shape[0], y.shape[0])] + y

    made = jit(added).using(target="interp")
    np.testing.assert_array_equal(made(X, X[:3]), 2 * X[:3])
    assert refused(made, X[:2], X[:3]).code == "J201"
