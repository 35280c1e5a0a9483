"""Composed views show the same elements by no more steps; each rule by hand, all rules on drawn views."""

from __future__ import annotations

import random

import numpy as np
import pytest

from pto_wsp.ir import tensor_function as t
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Const, SymbolRef, Var, add, mul
from pto_wsp.ir.view import Cut, Permute, Pick
from pto_wsp.passes.tensor.view_steps import composed
from pto_wsp.run.tensor_evaluate import evaluate
from tests.tensor_functions import FunctionBuilder, extents

N, J = SymbolRef("n", 0), Var("j", 1)


def cut(dim: int, start: int, stop: int, by: int = 1) -> Cut:
    return Cut(dim, Const(start), Const(stop), by)


def pick(dim: int, index: int) -> Pick:
    return Pick(dim, Const(index))


@pytest.mark.parametrize(("shape", "steps", "expected"), [
    ((N, 1), (pick(1, 0), t.Insert(1)), ()),
    ((N, 4), (pick(1, 0), t.Insert(1)), (pick(1, 0), t.Insert(1))),
    ((N, 4), (t.Insert(1), pick(1, 0)), ()),
    ((N, 4), (Permute((1, 0)), Permute((1, 0))), ()),
    ((2, 3, 4), (Permute((1, 2, 0)), Permute((0, 2, 1))), (Permute((1, 0, 2)),)),
    ((9, 4), (cut(0, 2, 8), cut(0, 1, 4)), (cut(0, 3, 6),)),
    ((9, 4), (cut(0, 1, 9, 2), cut(0, 1, 4, 2)), (cut(0, 3, 8, 4),)),
    ((9, 4), (cut(0, 1, 9, 2), pick(0, 2)), (pick(0, 5),)),
    ((9, 4), (cut(0, 0, 9), cut(1, 0, 4)), ()),
    ((N, 4), (Cut(0, J, add(J, Const(4))), Cut(0, Const(1), Const(3))), (Cut(0, add(J, Const(1)), add(J, Const(3))),)),
    ((9, 4), (cut(0, 2, 8), cut(1, 1, 3), cut(0, 1, 4)), (cut(0, 3, 6), cut(1, 1, 3))),
    ((9, 4), (cut(0, 2, 8), Permute((1, 0)), cut(1, 1, 4)), (cut(0, 3, 6), Permute((1, 0)))),
    ((9, 4), (Permute((1, 0)), pick(0, 2)), (pick(1, 2),)),
    ((9, 4), (t.Flip(0), t.Flip(0)), ()),
    ((1, 4), (t.Flip(0),), ()),
    ((N, 4), (t.Refold((mul(N, Const(4)),)), t.Refold((N, Const(4)))), ()),
    ((N, 4), (t.Refold((mul(N, Const(4)),)), t.Refold((N, Const(2), Const(2)))), (t.Refold((N, Const(2), Const(2))),)),
    ((N, 1, 4), (t.Refold((N, Const(4), Const(1))),), (pick(1, 0), t.Insert(2))),
    ((8, 4), (t.TileCut(0, Const(0), 8),), ()),
])
def test_rules(shape: tuple[object, ...], steps: tuple[t.ArrayStep, ...], expected: tuple[t.ArrayStep, ...]) -> None:
    view = t.ArrayView(t.Array(0, "x", extents(shape), DType.F32), steps)
    assert composed(view).steps == expected
    assert composed(composed(view)) == composed(view)


def drawn_steps(draw: random.Random, shape: tuple[int, ...]) -> tuple[t.ArrayStep, ...]:
    view = t.ArrayView(t.Array(0, "x", extents(shape), DType.F32))
    for _ in range(draw.randint(1, 7)):
        sizes = [int(n.value) for n in view.shape if isinstance(n, Const)]
        dim = draw.randrange(len(sizes)) if sizes else 0
        match draw.choice(("pick", "cut", "cut", "permute", "insert", "flip", "refold", "tile")):
            case "pick" if sizes and sizes[dim]:
                view = view.then(pick(dim, draw.randrange(sizes[dim])))
            case "cut" if sizes:
                start = draw.randint(0, sizes[dim])
                view = view.then(cut(dim, start, draw.randint(start, sizes[dim]), draw.choice((1, 1, 2, 3))))
            case "permute":
                view = view.then(Permute(tuple(draw.sample(range(len(sizes)), len(sizes)))))
            case "insert":
                view = view.then(t.Insert(draw.randint(0, len(sizes))))
            case "flip" if sizes:
                view = view.then(t.Flip(dim))
            case "tile" if sizes:
                view = view.then(t.TileCut(dim, Const(draw.randint(0, sizes[dim])), draw.randint(1, 4)))
            case "refold" if len(sizes) >= 2 and dim + 1 < len(sizes):
                view = view.then(t.Refold(extents((*sizes[:dim], sizes[dim] * sizes[dim + 1], *sizes[dim + 2:]))))
    return view.steps


def test_composed_views_show_the_same_elements_by_no_more_steps() -> None:
    draw = random.Random(7)
    shorter = 0
    for _ in range(500):
        shape = tuple(draw.randint(1, 5) for _ in range(draw.randint(1, 3)))
        f = FunctionBuilder()
        x = f.param("x", shape)
        view = x.then(*drawn_steps(draw, shape))
        f.give(view, composed(view))
        before, after = evaluate(f.function(), (np.arange(np.prod(shape), dtype=np.float32).reshape(shape),))
        np.testing.assert_array_equal(before, after, str(view.steps))
        assert len(composed(view).steps) <= len(view.steps) + sum(isinstance(step, t.Refold) for step in view.steps) * 4
        assert composed(composed(view)) == composed(view)
        shorter += len(composed(view).steps) < len(view.steps)
    assert shorter > 100
