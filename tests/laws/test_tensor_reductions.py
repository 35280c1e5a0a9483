"""A default plan has a form for what NumPy reduces: any axes of tensors of rank 2 to 4, of numbers and of symbols, bounded or not."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, Tensor, jit, tt

F32 = DType.F32
SIZES = (1, 2, 5, 16, 24, 33)
BOUND = 64


class Drawn:
    """A function of one tensor that returns one to three results: reductions, and what normalises along reduced axes."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.rank = rank = draw.choice((2, 3, 3, 3, 4))
        self.sizes = [draw.choice(SIZES) for _ in range(rank)]
        self.symbols = [dim for dim in range(rank) if draw.random() < 0.4]
        self.bounded = [dim for dim in self.symbols if draw.random() < 0.5]
        kinds, names = ("reduce", "centre", "softmax", "running", "twice", "first"), ("sum", "max", "mean", "min")
        self.steps = [(draw.choice(kinds), draw.choice(names),
                       tuple(sorted(draw.sample(range(rank), draw.randint(1, rank)))), draw.random() < 0.5, draw.randrange(rank))
                      for _ in range(draw.randint(1, 3))]
        self.x = np.random.default_rng(seed).standard_normal(self.sizes).astype(np.float32)

    def body(self, x: Any) -> tuple[Any, ...]:
        if not isinstance(x, np.ndarray):
            for dim in self.bounded:
                tt.assume(x.shape[dim] <= BOUND)
        return tuple(self.step(x, *step) for step in self.steps)

    def step(self, x: Any, kind: str, name: str, axes: tuple[int, ...], keepdims: bool, axis: int) -> Any:
        is_bounded = axis not in self.symbols or axis in self.bounded
        match kind:
            case "reduce":
                return getattr(x, name)(axis=axes, keepdims=keepdims)
            case "centre":
                return (x - x.mean(axis=axes, keepdims=True)) * 2
            case "softmax":
                e = np.exp(x - x.max(axis=axes, keepdims=True))
                return e / e.sum(axis=axes, keepdims=True)
            case "twice":
                return (x.sum(axis=axes, keepdims=True) + x).max(axis=axis)
            case "running" if is_bounded:
                return np.cumsum(x, axis=axis)
            case "first" if is_bounded:
                return np.argmax(x, axis=axis)
            case _:
                return x + 1

    def check(self, target: str) -> None:
        def function(x):
            return self.body(x)

        function.__annotations__["x"] = Tensor[(*(f"n{dim}" if dim in self.symbols else self.sizes[dim] for dim in range(self.rank)), F32)]
        given = jit(function).using(target=target)(self.x)
        for result, wanted in zip(given, self.body(self.x.astype(np.float64)), strict=True):
            assert result.shape == np.shape(wanted)
            np.testing.assert_allclose(result, wanted, rtol=2e-3, atol=2e-3, err_msg=str((self.sizes, self.symbols, self.steps)))


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.slow] * (seed >= 10)) for seed in range(120)])
def test_reductions_mean_what_numpy_means(seed: int) -> None:
    Drawn(seed).check("interp")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1024))
def test_compiled_reductions_do_the_same(seed: int) -> None:
    Drawn(seed).check("cpu_sim")


# What had no form: a sum walked over an axis in front of others; a stack with an axis of 1 between; more tiles than a task has arguments.
@pytest.mark.parametrize("shape, body", [
    (("b", 16, 24), lambda x: x.sum(axis=(0, 1))),
    (("b", 16, 24, 4), lambda x: x.mean(axis=(1, 3))),
    (("b", 33, 1), lambda x: x - x.mean(axis=(1, 2), keepdims=True)),
    ((5, 5, 33, "s"), lambda x: x - x.max(axis=0, keepdims=True)),
    ((33, "t", 16), lambda x: x.cumsum(axis=0)),
    ((2, "t", 33), lambda x: x.min(axis=(0, 1))),
], ids=["over rows of matrices", "around", "columns of 1", "an axis of 1 between", "running over a stack", "over a stack"])
@pytest.mark.parametrize("size", [1, 7])
def test_shapes_that_need_a_finer_cut(shape: tuple[int | str, ...], body: Any, size: int) -> None:
    def function(x):
        if "t" in shape:
            tt.assume(x.shape[1] <= BOUND)
        return body(x)

    function.__annotations__["x"] = Tensor[(*shape, F32)]
    x = np.random.default_rng(size).standard_normal([size if isinstance(one, str) else one for one in shape]).astype(np.float32)
    np.testing.assert_allclose(jit(function).using(target="interp")(x), body(x.astype(np.float64)), rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_a_sum_of_many_tensors_is_several_kernels() -> None:
    def total(xs):
        y = xs[0]
        for x in xs[1:]:
            y = y + x
        return y

    total.__annotations__["xs"] = list[Tensor["t", 4, F32]]
    given = [np.full((3, 4), k, np.float32) for k in range(40)]
    function = jit(total)
    assert (function(given) == sum(range(40))).all()
    groups = [entry.value for entry in function.plan(given).entries if entry.key == "groups"]
    assert [len(values) for values in groups] == [30, 9]
