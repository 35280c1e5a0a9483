"""A body is its own reference: as the NumPy program that it is, traced, and cut into kernels, a drawn body gives the same numbers.

Bodies are drawn as steps on [t, 8] arrays: NumPy's functions, views, state that loops and branches write, tables, products.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, Injective, InOut, PtoError, Tensor, jit, tt

F32, I32 = DType.F32, DType.I32
Values = list[Any]
Step = Callable[[Values, random.Random, Any], Any]


def _written_rows(pool: Values, draw: random.Random, places: Any) -> Any:
    out, x, k = pool[-1] * 1, draw.choice(pool), draw.randrange(8)
    view = out.T[k:k + 3]
    view += x.T[:view.shape[0]] if draw.random() < 0.5 else draw.randrange(3)
    out[..., k] = np.max(x, axis=1) if draw.random() < 0.5 else x[..., 7 - k]
    return out


def _carried(pool: Values, draw: random.Random, places: Any) -> Any:
    x, y, step = draw.choice(pool), draw.choice(pool), draw.choice((1, 2, 3))
    total, top = tt.zeros((8,)), tt.full((1, 8), -4.0)
    for j in tt.loop(0, x.shape[0], step):
        total[:] = total * 0.5 + np.sum(x[j:j + step], axis=0)
        with tt.when(j > 2):
            top[:] = np.maximum(top, y[j:j + 1])
        with tt.otherwise():
            top[0, :4] = 1
    return x - np.tanh(total) + top


def _free(pool: Values, draw: random.Random, places: Any) -> Any:
    x, y, last = draw.choice(pool), draw.choice(pool), draw.random() < 0.5
    out = tt.zeros(x.shape)
    for i in tt.each(x.shape[0]):
        out[i] = y[places[i]] + x[-1] if last else y[i] * np.sum(x[i])
    return out


def _of_loop_variables(pool: Values, draw: random.Random, places: Any) -> Any:
    """Loop variables as numbers beside tensors, in masks, in places of `arange`, and in conditions."""
    x, y, step, ordered = draw.choice(pool), draw.choice(pool), draw.choice((1, 2, 3)), draw.random() < 0.5
    form, sign, shift = draw.randrange(6), draw.choice((1, -1)), draw.randrange(4)
    out, total = tt.zeros(x.shape), tt.zeros((1, 8))
    for j in tt.loop(0, x.shape[0], step) if ordered or form == 3 else tt.each((x.shape[0] + step - 1) // step):
        first = j if ordered or form == 3 else j * step
        rows = slice(first, first + step)
        block = x[rows]
        at = tt.arange(block.shape[0]) + first
        match form:
            case 0:
                out[rows] = block * j * 0.25 + (first * sign + shift)
            case 1:
                out[rows] = np.where((at % 3 == j % 3)[:, None], block, y[rows] - tt.cast(first % 4, F32))
            case 2:
                out[rows] = np.where(tt.arange(8)[None, :] * sign <= at[:, None] + shift, block, (j + shift) // 2)
            case 3:
                total[:] = total * 0.5 + np.sum(np.where((at < 2 * shift + j // 2)[:, None], block, 0), axis=0, keepdims=True) * (j - shift)
                out[rows] = total - tt.cast(at, F32)[:, None]
            case 4:
                for k in tt.loop(4):
                    with tt.when((j + k) % 3 != shift):
                        out[rows, 2 * k:2 * k + 2] = block[:, 2 * k:2 * k + 2] * (k - j) + (j * k if sign > 0 else k)
                    with tt.otherwise():
                        out[rows, 2 * k:2 * k + 2] = y[rows, 2 * k:2 * k + 2] * (k + shift) / 2
            case _:
                near = np.maximum(np.minimum(at * sign + shift, 7), 0)
                out[rows] = np.take_along_axis(block, near[:, None], axis=1) + tt.cast(j, F32) * 0.5
    return out * 0.125


def _placed(pool: Values, draw: random.Random, places: Any) -> Any:
    out = tt.zeros(pool[-1].shape)
    if draw.random() < 0.5:
        out[places] = draw.choice(pool)
    else:
        np.add.at(out, places // 2, draw.choice(pool))
    return out


def _of_axis(pool: Values, draw: random.Random, places: Any) -> Any:
    function, x = draw.choice((np.sum, np.mean, np.max, np.min, np.var)), draw.choice(pool)
    axis, keep = draw.choice((0, 1, None)), draw.random() < 0.5
    made = function(x, axis=axis, keepdims=keep or axis == 1)
    return draw.choice(pool) * 0.5 - made


STEPS: tuple[Step, ...] = (
    _written_rows, _carried, _free, _placed, _of_axis, _of_axis, _of_loop_variables, _of_loop_variables, _of_loop_variables,
    lambda pool, draw, places: draw.choice((np.tanh, np.abs, np.negative, np.floor, np.square))(draw.choice(pool)),
    lambda pool, draw, places: draw.choice((np.add, np.subtract, np.multiply, np.maximum))(draw.choice(pool), draw.choice(pool)),
    lambda pool, draw, places: np.where(draw.choice(pool) > 0, draw.choice(pool), draw.choice((0, 0.5, draw.choice(pool)))),
    lambda pool, draw, places: np.flip(draw.choice(pool), draw.choice((0, 1))),
    lambda pool, draw, places: draw.choice(pool)[places] + tt.cast(places, F32)[:, None],
    lambda pool, draw, places: np.concatenate([draw.choice(pool)[:, 4:], -draw.choice(pool)[:, :4]], axis=1),
    lambda pool, draw, places: draw.choice(pool).reshape(-1, 2, 4).swapaxes(1, 2).reshape(-1, 8),
    lambda pool, draw, places: (draw.choice(pool) @ draw.choice(pool)[:1].T) * 0.25 + draw.choice(pool),
    lambda pool, draw, places: np.einsum("tk,tk->t", draw.choice(pool), draw.choice(pool))[:, None] * 0.1 + draw.choice(pool),
    lambda pool, draw, places: np.cumsum(draw.choice(pool), axis=1) * 0.25,
    lambda pool, draw, places: np.take_along_axis(draw.choice(pool), np.argsort(draw.choice(pool), axis=1), axis=1),
    lambda pool, draw, places: np.repeat(draw.choice(pool)[:, ::2], 2, axis=1) + tt.topk(draw.choice(pool), 1)[0],
)


def drawn_body(seed: int) -> Any:
    @jit(target="interp")
    def body(x: Tensor["t", 8, F32], y: Tensor["t", 8, F32], places: Injective[Tensor["t", I32]], state: InOut[Tensor["t", 8, F32]]):
        tt.assume(x.shape[0] <= 64)
        tt.assume(x.shape[0] >= 1)
        draw = random.Random(seed)
        pool = [x, y]
        for _ in range(7):
            pool.append(draw.choice(STEPS)(pool, draw, places))
        state[:] = state + pool[-1]
        return pool[-1], np.sum(pool[-2], axis=0)
    return body


def arguments(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    t = int(rng.integers(1, 12))
    x, y = (rng.integers(-4, 5, (t, 8)).astype(np.float32) / 4 for _ in range(2))
    return [x, y, rng.permutation(t).astype(np.int32), np.ones((t, 8), np.float32)]


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 120))])
def test_a_body_is_its_own_reference(seed: int) -> None:
    body, (first, second) = drawn_body(seed), (arguments(seed), arguments(seed))
    wanted, found = body.python(*first), body.reference(*second)
    for one, other in zip([*wanted, first[3]], [*found, second[3]], strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-4 * max(1.0, float(np.max(np.abs(one), initial=0))))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_a_body_runs_as_its_reference_says_or_is_refused_at_its_line(seed: int) -> None:
    """The module that it prints gives the same bits, in a namespace of its own."""
    body, (first, second, third) = drawn_body(seed), (arguments(seed) for _ in range(3))
    wanted = body.reference(*first)
    try:
        found = body(*second)
    except PtoError as problem:
        assert problem.code == "J310" and "test_tensor_bodies.py" in str(problem)
        return
    for one, other in zip([*wanted, first[3]], [*found, second[3]], strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-4 * max(1.0, float(np.max(np.abs(one), initial=0))))
    namespace: dict[str, Any] = {"__name__": "ejected"}
    exec(compile(body.lower().source().replace(".compile()", ".compile('interp')"), "<ejected>", "exec"), namespace)
    ejected = namespace["run"](*third)
    for one, other in zip([*found, second[3]], [*ejected, third[3]], strict=True):
        np.testing.assert_array_equal(other, one)
