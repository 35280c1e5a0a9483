"""Functions on tensors as text: views, statements and control read like NumPy."""

from __future__ import annotations

import pytest

from pto_wsp.ir import tensor_function as t
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.layout import Contract
from pto_wsp.ir.scalar import Const, Scalar, Var, add, minimum
from pto_wsp.ir.tensor_function_text import print_array_view, print_function
from pto_wsp.ir.view import Cut, Permute, Pick
from tests.tensor_functions import FunctionBuilder, at_least

J = Var("j", 0)


def cut(dim: int, start: Scalar | int, stop: Scalar | int, by: int = 1) -> Cut:
    return Cut(dim, Const(start) if isinstance(start, int) else start, Const(stop) if isinstance(stop, int) else stop, by)


@pytest.mark.parametrize(("steps", "text"), [
    ((), "x"),
    ((Pick(0, J),), "x[j]"),
    ((Pick(1, Const(2)), cut(1, J, add(J, Const(4)))), "x[:, 2, j:j + 4]"),
    ((cut(0, 0, 2), cut(1, 1, 4)), "x[:2, 1:]"),
    ((cut(2, 0, 8, 2), cut(2, 1, 3)), "x[:, :, ::2][:, :, 1:3]"),
    ((Pick(0, J), Permute((1, 0))), "x[j].T"),
    ((Permute((1, 0, 2)), t.Refold((Const(4), Const(24)))), "x.transpose(1, 0, 2).reshape(4, 24)"),
    ((t.Insert(1), Pick(0, J)), "x[j, None]"),
    ((t.Insert(3),), "x[:, :, :, None]"),
    ((t.Flip(1),), "x[:, ::-1]"),
    ((t.TileCut(1, J, 16), t.Insert(0)), "x[None, :, j:+16]"),
])
def test_views(steps: tuple[t.ArrayStep, ...], text: str) -> None:
    view = t.ArrayView(t.Array(0, "x", (Const(3), Const(4), Const(8)), DType.F32), steps)
    assert print_array_view(view) == text


def test_a_function() -> None:
    f = FunctionBuilder("attention")
    n, scale = f.symbol("n"), f.scalar("scale")
    f.assume(at_least(64, n))
    q, table, cache = f.param("q", (n, 8)), f.param("table", (n,), DType.I32, contracts=(Contract.INJECTIVE,)), \
        f.param("cache", (n, 8), written=True)
    acc = f.make("acc", (n, 8))
    with f.loop(n, step=4, name="j", group="score") as j:
        part = q.then(Cut(0, j, minimum(add(j, Const(4)), n)))
        score = f.apply("matmul", q, part.then(Permute((1, 0))), name="score", group="score")
        f.put(acc, f.apply("topk", score, attrs=(("k", 1), ("descending", True)), name="best"))
    with f.loop(3, ordered=False), f.when(at_least(scale, 0.5)):
        f.put(cache, acc, table, add=True)
        f.put(acc, 0)
    f.show("acc", acc)
    f.give(acc)
    assert print_function(f.function(), {"matmul": "@"}) == """\
function attention(q: [n, 8] f32, table: [n] i32 injective, cache: inout [n, 8] f32, scale: scalar f32):
    assume 64 >= n
    acc[n, 8] f32 = undefined
    for j in loop(0, n, 4):                                                         # group score
        score[n, min(j + 4, n) - j] f32 = q @ q[j:min(j + 4, n)].T                      # group score
        best[n, 1] i32 = topk(score, k=1, descending=True)
        acc[:] = best
    for i in each(3):
        if scale >= 0.5:
            cache.at[table] += acc
            acc[:] = 0
    print('acc', acc)
    return acc"""


def test_a_function_without_statements() -> None:
    assert print_function(FunctionBuilder("nothing").function()) == "function nothing():\n    pass\n    return nothing"
