"""A default plan takes along any axis at places that a sort found, of which the table has one dimension more, or a dimension of 1."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, Tensor, jit, tt

F32 = DType.F32


class Drawn:
    """A function that finds places along the last axis of `x`, and takes the elements of `v` there: `v` has an axis more than `x`."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        rank = draw.choice((1, 2, 2, 3))
        self.sizes = [draw.choice((1, 2, 4, 6)) for _ in range(rank - 1)] + [draw.choice((5, 16))]
        self.at, self.k = draw.randint(0, rank), draw.choice((1, 3, 4))
        self.find, self.after = draw.choice(("topk", "argsort", "argmax")), draw.choice(("", "scaled", "sum", "both"))
        self.in_loop, self.symbol = rank > 1 and self.at > 0 and draw.random() < 0.4, rank > 1 and draw.random() < 0.4
        rng = np.random.default_rng(seed)
        self.x = rng.permutation(int(np.prod(self.sizes))).reshape(self.sizes).astype(np.float32)
        self.v = rng.standard_normal([*self.sizes[:self.at], draw.choice((1, 3, 8)), *self.sizes[self.at:]]).astype(np.float32)

    def taken(self, x: Any, v: Any, at: int) -> Any:
        match self.find:
            case "topk":
                best, places = tt.topk(x, self.k)
            case "argsort":
                places = np.argsort(x, axis=-1)[..., :self.k]
                best = np.sort(x, axis=-1)[..., :self.k]
            case _:
                places, best = np.argmax(x, axis=-1, keepdims=True), np.max(x, axis=-1, keepdims=True)
        more = (*[slice(None)] * at, None)
        axis = v.ndim - 2 if at == x.ndim else v.ndim - 1
        found = np.take_along_axis(v, places[more], axis=axis)
        match self.after:
            case "scaled":
                return found * 2 + 1
            case "both":
                return found * best[more]
            case "sum":
                return np.sum(found, axis=axis)
            case _:
                return found

    def body(self, x: Any, v: Any) -> Any:
        if not self.in_loop:
            return self.taken(x, v, self.at)
        shape = list(v.shape)
        last = (v.ndim - 2 if self.at == x.ndim else v.ndim - 1)
        shape[last] = 1 if self.find == "argmax" else self.k
        if self.after == "sum":
            del shape[last]
        out = tt.empty(shape)
        for i in tt.each(x.shape[0]):
            out[i] = self.taken(x[i], v[i], self.at - 1)
        return out

    def check(self, target: str) -> None:
        def function(x, v):
            return self.body(x, v)
        leading = ["t", *self.sizes[1:]] if self.symbol else self.sizes
        shape = leading if self.at == 0 or not self.symbol else ["t", *self.v.shape[1:]]
        whole = [self.v.shape[0], *leading] if self.at == 0 else shape if self.symbol else list(self.v.shape)
        function.__annotations__ = {"x": Tensor[*leading, F32], "v": Tensor[*whole, F32]}
        made = jit(function)
        np.testing.assert_allclose(made.using(target=target)(self.x, self.v), made.python(self.x, self.v), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("seed", [*range(24), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(24, 150))])
def test_places_that_a_sort_found_are_taken_along_any_axis(seed: int) -> None:
    Drawn(seed).check("interp")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(150, 156))
def test_so_does_the_c_code(seed: int) -> None:
    Drawn(seed).check("cpu_sim")


@pytest.mark.parametrize("k", [1, 3])
def test_an_axis_of_1_inside_a_stack_that_is_transposed_stays(k: int) -> None:
    """Tasks take one position of the second axis: the stack of matrices is [6, 1, 16, 8]."""
    @jit
    def taken(x: Tensor[6, 4, 16, F32], v: Tensor[6, 4, 16, 8, F32]):
        _, places = tt.topk(x, k)
        return np.take_along_axis(v, places[..., None], axis=2)

    rng = np.random.default_rng(k)
    x, v = rng.permutation(384).reshape(6, 4, 16).astype(np.float32), rng.standard_normal((6, 4, 16, 8)).astype(np.float32)
    np.testing.assert_array_equal(taken.using(target="interp")(x, v), np.take_along_axis(v, np.argsort(-x, axis=-1)[..., :k, None], axis=2))
