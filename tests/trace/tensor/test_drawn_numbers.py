# ruff: noqa: F821, UP037
"""A body that computes with drawn numbers, or with the time, is refused: it is traced once, for all calls."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter as clock
from typing import Any

import numpy as np
import numpy.random as npr
import pytest
from numpy.random import rand

from pto_wsp import DType, Tensor, jit, tt
from pto_wsp.errors import TensorFunctionError

F32 = DType.F32
X = np.ones((3, 8), np.float32)
RNG = np.random.default_rng()
BIAS = RNG.random(8, np.float32)


@dataclass(eq=False)
class Model:
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))
    bias: np.ndarray = field(default_factory=lambda: np.random.default_rng(2).random(8, np.float32))


MODEL = Model()


def scaled(x: Any) -> Any:
    return x * random.uniform(1, 2)


CHANGING: dict[str, Callable[[Any], Any]] = {
    "random": lambda x: x * random.random(), "time": lambda x: x * time.time(), "clock": lambda x: x * clock(),
    "generator": lambda x: x + RNG.random(8, np.float32), "generator of an object": lambda x: x + MODEL.rng.random(8, np.float32),
    "np.random": lambda x: x * float(np.random.rand()), "rand": lambda x: x * rand(), "npr": lambda x: x * npr.standard_normal(),
    "unseeded": lambda x: x + np.random.default_rng().random(8, np.float32), "called": scaled}
STEADY: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "constant": (lambda x: x + BIAS, X + BIAS), "constant of an object": (lambda x: x + MODEL.bias, X + MODEL.bias),
    "seeded": (lambda x: x + np.random.default_rng(0).random(8, np.float32), X + np.random.default_rng(0).random(8, np.float32)),
    "seeded of Python": (lambda x: x * random.Random(3).random(), X * np.float32(random.Random(3).random())),
    "unused": (lambda x: (time.time(), x * 2)[1], X * 2), "drawn on the device": (lambda x: x + tt.random(x.shape, 1) * 0, X)}


def of(body: Callable[[Any], Any]) -> Any:
    @jit(target="interp")
    def f(x: Tensor["t", 8, F32]):
        return body(x)
    return f


@pytest.mark.parametrize("name", CHANGING)
def test_numbers_that_change_are_refused_at_the_line(name: str) -> None:
    with pytest.raises(TensorFunctionError, match="numbers that change") as refused:
        of(CHANGING[name]).trace()
    assert refused.value.span.file == __file__


@pytest.mark.parametrize("name", STEADY)
def test_numbers_that_stay_are_constants(name: str) -> None:
    body, expected = STEADY[name]
    np.testing.assert_array_equal(of(body)(X), expected)


def test_a_drawn_extent_is_refused() -> None:
    with pytest.raises(TensorFunctionError, match="numbers that change"):
        of(lambda x: x[:random.getrandbits(40)]).trace(Tensor[1 << 40, 8, F32])
