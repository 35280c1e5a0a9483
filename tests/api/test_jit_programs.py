"""Programs that combine what functions on tensors can say: f, f.python and f.reference agree, on arrays with short and empty ends."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from pto_wsp import DType, InOut, Monotone, Scalar, Tensor, Tunable, jit, tt
from pto_wsp.errors import PlanNameError
from pto_wsp.tt.library import silu, softmax

F16, F32, I8, I32 = DType.F16, DType.F32, DType.I8, DType.I32
RNG = np.random.default_rng(0)
PROGRAMS: list[tuple[Any, tuple[Any, ...]]] = []


def draw(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def on(*arguments: Any) -> Callable[[Any], Any]:
    """Add a function to the programs, with the arguments that it is called with."""
    def add(function: Any) -> Any:
        PROGRAMS.append((function, arguments))
        return function
    return add


@on(draw(0, 8))
@jit
def of_no_rows(x: Tensor["t", 8, F32]):
    return np.exp(x) * 2, np.sum(x, axis=-1), np.sum(x, axis=0)


@on(draw(1, 8))
@jit
def of_one_row(x: Tensor["t", 8, F32]):
    return softmax(x)


@on(draw(5, 7, 9))
@jit
def sums_along_any_axis(x: Tensor["a", "b", 9, F32]):
    return np.sum(x, axis=1), np.max(x, axis=0), np.mean(x, axis=(1, 2)), np.sum(x)


@on(draw(5, 7))
@jit
def views(x: Tensor["a", 7, F32]):
    return x[:, ::-1] * 2, x[1:-1], x[-1], x[:, 3], x.T @ x, x.T, x[None]


@on(draw(4, 6, 8))
@jit
def letters(x: Tensor["t", 6, 8, F32]):
    return np.einsum("tab,tcb->tac", x, x), np.einsum("tab->tba", x), np.einsum("tab->a", x)


@on(draw(5, 16))
@jit
def parts(x: Tensor["t", 16, F32]):
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([b, a], axis=-1), np.stack([a, b]), np.pad(a, ((0, 0), (1, 2))), np.repeat(a, 2, axis=1), np.flip(x, axis=1)


@on(draw(6, 33))
@jit
def orders(x: Tensor["t", 33, F32]):
    return np.sort(x, axis=-1), np.argsort(x, axis=-1), np.argmax(x, axis=-1), tt.topk(x, 4)


@on(draw(6, 8), np.array([0, 2, 2, 6], np.int32))
@jit
def ragged_rows(x: Tensor["t", 8, F32], starts: Monotone[Tensor["b", I32]]):
    out = tt.zeros(x.shape)
    for b in tt.each(starts.shape[0] - 1):
        rows = slice(starts[b], starts[b + 1])
        out[rows] = softmax(x[rows])
    return out


@on(draw(9, 8), np.array([0, 2, 2, 6], np.int32))
@jit
def rows_by_table(x: Tensor["n", 8, F32], table: Tensor["t", I32]):
    return x[table], x[table] * 2 + 1, np.take(x, table, axis=0)


class Weights(NamedTuple):
    """The weights of a layer."""

    up: Tensor[8, 12, F32]
    down: Tensor[12, 8, F32]


@jit
def layer(x: Tensor["t", 8, F32], w: Weights):
    return silu(x @ w.up) @ w.down


@on(draw(5, 8), [Weights(draw(8, 12), draw(12, 8)), Weights(draw(8, 12), draw(12, 8))])
@jit
def layers_in_a_list(x: Tensor["t", 8, F32], layers: list[Weights]):
    for w in layers:
        x = x + layer(x, w)
    return {"y": x, "others": (x * 2, x[0])}


def shares(x):
    return x / np.sum(x, axis=-1, keepdims=True)


@on(abs(draw(5, 8)) + 1)
@jit
def one_helper_twice(x: Tensor["t", 8, F32]):
    return shares(shares(x) + 1)


@on(draw(5, 8).astype(np.float16))
@jit
def halves(x: Tensor["t", 8, F16]):
    return x * 2, x @ x.T, np.sum(x, axis=-1), np.exp(x)


@on(RNG.integers(-9, 9, (5, 8)).astype(np.int8))
@jit
def bytes_of_8(x: Tensor["t", 8, I8]):
    return x @ x.T, x.astype(F32) * 0.5, np.maximum(x, 0)


@on(draw(2, 3, 4, 5, 6))
@jit
def five_dimensions(x: Tensor["a", 3, 4, 5, 6, F32]):
    return x * 2 + 1, np.sum(x, axis=-1), x.transpose(4, 3, 2, 1, 0) * 1.0, softmax(x)


@on(draw(6, 8))
@jit
def branches_with_state(x: Tensor["t", 8, F32]):
    out = tt.zeros((8,))
    for i in tt.loop(x.shape[0]):
        with tt.when(i % 2 == 0):
            out[:] = out + x[i]
        with tt.otherwise():
            out[:] = out - x[i]
    return out


@on(draw(6, 8), draw(6, 8))
@jit
def written_in_parts(x: Tensor["t", 8, F32], y: InOut[Tensor["t", 8, F32]]):
    y[:] = y + x
    y[0] = 1.0
    y[:, 2:4] *= 2.0


@on(draw(3, 50, 4))
@jit
def running_sums(x: Tensor["t", 50, 4, F32]):
    return np.cumsum(x, axis=1), np.var(x, axis=-1), np.std(x, axis=1), np.clip(x, -1, 1)


@on(draw(70, 8))
@jit
def triangle_of_a_square(x: Tensor["t", 8, F32]):
    y = x * 1.0
    y[y < 0] = 0.0
    return y, np.where(x > 0, x, -x), np.tril(x @ x.T)


@on(draw(5, 8), 3.0)
@jit
def numbers_of_a_call(x: Tensor["t", 8, F32], s: Scalar[F32]):
    return x * s + x.shape[0]


@on(draw(4, 64, 8), draw(4, 70, 8))
@jit
def attention_in_one_line(q: Tensor["h", "s", 8, F32], k: Tensor["h", "n", 8, F32]):
    return softmax(q @ np.swapaxes(k, -1, -2)) @ k


@on(draw(300, 8))
@jit
def over_many_tiles(x: Tensor["t", 8, F32]):
    return x - np.mean(x, axis=0, keepdims=True), np.max(x), np.min(x)


@on(draw(8, 8) / 3, draw(5, 6, 6))
@jit
def products_with_itself(x: Tensor[8, 8, F32], z: Tensor["t", 6, 6, F32]):
    y, power = np.exp(x), tt.full(x.shape, 0.5)
    for _ in tt.loop(3):
        power[:] = np.tanh(power @ power) + x
    return x @ x, x.T @ x.T, y @ y, z @ z, np.einsum("tab,tba->tab", z, z), power


@on(draw(5, 8))
@jit
def sides_that_never_run(x: Tensor["t", 8, F32]):
    out = tt.zeros(x.shape)
    for i in range(3):
        with tt.when(i % 2 == 1):
            out[:] = out + np.abs(x) * i
            kept = tt.zeros(x.shape)
            kept[:] = x
        with tt.otherwise():
            y = x * 2
            out[:, :4] = y[:, 4:]
    return out


@on(RNG.permutation(8).astype(np.int32))
@jit
def entries_of_its_own_entries(table: Tensor[8, I32]):
    return table[table], np.take_along_axis(table, table), table[table[table]] + table


def flat(value: Any) -> list[np.ndarray]:
    """The arrays of a result, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, tuple | list):
        return [array for one in value for array in flat(one)]
    return [] if value is None else [np.asarray(value)]


@pytest.mark.parametrize("target", ["interp", pytest.param("cpu_sim", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("function", "arguments"), [pytest.param(*program, id=program[0].__name__) for program in PROGRAMS])
def test_a_call_gives_what_the_body_means(function: Any, arguments: tuple[Any, ...], target: str) -> None:
    def results(call: Callable[..., Any]) -> list[np.ndarray]:
        given = copy.deepcopy(arguments)
        return [*flat(call(*given)), *(array for array in given if isinstance(array, np.ndarray))]

    made = results(function.using(target=target))
    tolerance = 2e-3 if made and made[0].dtype == np.float16 else 2e-4
    for meaning in (function.python, function.reference):
        expected = results(meaning)
        assert [one.shape for one in made] == [one.shape for one in expected]
        for one, other in zip(made, expected, strict=True):
            np.testing.assert_allclose(one.astype(np.float64), other.astype(np.float64), rtol=tolerance, atol=tolerance)


@jit
def in_blocks(x: Tensor["t", 8, F32], block: int = Tunable(4, 16)):
    out = tt.zeros((8,))
    for i in tt.loop(0, x.shape[0], block):
        out[:] = out + np.sum(x[i:i + block], axis=0)
    return out


def test_a_plan_has_values_of_tunable_parameters() -> None:
    x = draw(37, 8)
    plan = in_blocks.plan(x).but(tunables={"block": 16})
    assert in_blocks.lower(plan).source() != in_blocks.lower().source()
    for given in (None, plan):
        np.testing.assert_allclose(in_blocks.using(target="interp")(x, plan=given), x.sum(0), rtol=1e-5, atol=1e-5)
    with pytest.raises(PlanNameError, match="did you mean block"):
        plan.but(tunables={"blok": 16})


@jit
def joined(w: Tensor["t", 6, F32]):
    return np.concatenate([w, w * 2], axis=1)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("columns", [5, 6, 7, 11, 12])
def test_a_tile_may_be_longer_than_a_part_that_is_written(columns: int) -> None:
    w = draw(5, 6)
    plan = joined.plan(w).but(tiles={"out": {1: columns}})
    np.testing.assert_array_equal(joined.using(target="interp")(w, plan=plan), np.concatenate([w, w * 2], axis=1))
