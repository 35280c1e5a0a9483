"""Lanes of a short tile that are not there reach no element that is kept: each row of "Tails, exactly" in design/tensor.md.

Each program makes its operand from what the loads fill with 0, so that these lanes hold NaN, infinity, or the number that wins. What is
emitted gives the results of the evaluator; a mutant without the fill does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp.arch.instances import builtin_arch
from pto_wsp.errors import NoTileFormError, PtoError
from pto_wsp.ir import tensor_function as t
from pto_wsp.ir.dtype import DType
from pto_wsp.ops.tensors import tail_of
from pto_wsp.ops.traits import Fill
from pto_wsp.passes.tensor import op_text
from pto_wsp.passes.tensor.emit import emit
from pto_wsp.passes.tensor.passes import run_tensor_passes
from pto_wsp.passes.tensor.planned import PlannedFunction, TensorContext
from pto_wsp.run.tensor_evaluate import evaluate
from pto_wsp.schedule.tiling import TilePlan
from tests.tensor_functions import FunctionBuilder, at_least

F32, I32, F16 = DType.F32, DType.I32, DType.F16
CONTEXT = TensorContext(builtin_arch("ascend_910b"), "cpu_sim", {"t": 16, "n": 16})
T, N = 3, 5
Program = Callable[[FunctionBuilder, t.ArrayView, t.ArrayView], t.ArrayView]


def program(name: str) -> tuple[t.TensorFunction, list[Any]]:
    """x: [t, n] of whole numbers from 1 to 9, w: [n, 4]; n is 16 at most, and 5 in the run. Of products t is 3: all is one task."""
    f, build = FunctionBuilder("tails"), ROWS[name]
    rows, n = T if name.startswith("product") else f.symbol("t"), f.symbol("n")
    f.assume(at_least(16, n))
    x, w = f.param("x", (rows, n)), f.param("w", (n, 4))
    f.group = "all"          # one kernel: a value that goes through memory has 0 there again
    f.give(build(f, x, w))
    rng = np.random.default_rng(0)
    return f.function(), [rng.integers(1, 9, (T, N)).astype(np.float32), rng.integers(-3, 3, (N, 4)).astype(np.float32)]


def emitted(function: t.TensorFunction, arrays: list[Any]) -> Any:
    """What the emitted workload gives."""
    module = emit(run_tensor_passes(PlannedFunction(function, TilePlan("tails", "ascend_910b", "cpu_sim")), CONTEXT), CONTEXT)
    compiled = module.workload().compile(target="interp")
    (result,) = evaluate(function, [array.copy() for array in arrays])
    found = np.full(result.shape, -99, result.dtype)
    names = {slot.ref.shown for slot in compiled.plan.tensors} | {symbol.name for symbol in compiled.plan.symbols}
    bound = {"t": T, "n": N, **dict(zip(module.parameters, arrays, strict=True)), module.results[0]: found}
    compiled.run(**{name: value for name, value in bound.items() if name in names})
    return found


def log(f: FunctionBuilder, x: t.ArrayView) -> t.ArrayView:
    return f.apply("log2", x)             # -inf of 0


def recip(f: FunctionBuilder, x: t.ArrayView) -> t.ArrayView:
    return f.apply("recip", x)            # inf of 0


def ratio(f: FunctionBuilder, x: t.ArrayView) -> t.ArrayView:
    return f.apply("add", f.apply("sub", f.apply("mul", f.apply("recip", x), x), 1), x)      # NaN of 0, else x


def below(f: FunctionBuilder, x: t.ArrayView) -> t.ArrayView:
    return f.apply("sub", x, 20)          # -20 of 0 is the least


def above(f: FunctionBuilder, x: t.ArrayView) -> t.ArrayView:
    return f.apply("sub", 20, x)          # 20 of 0 is the most


def whole(f: FunctionBuilder, x: t.ArrayView) -> t.ArrayView:
    return f.apply("cast", above(f, x), attrs=(("dtype", I32),))


def sorted_(f: FunctionBuilder, x: t.ArrayView, order: Any) -> t.ArrayView:
    return f.apply("gather", x, f.apply("argsort", x, attrs=order), attrs=(("axis", 1), ("inside", True)))


def apart(f: FunctionBuilder, op: str, x: t.ArrayView, attrs: Any = ()) -> t.ArrayView:
    """An operation in a kernel of its own, which reads the scratch that another kernel wrote."""
    f.group = "second"
    return f.apply(op, x, attrs=attrs)


ALONG = (("axis", 1), ("keepdims", True))
DESCENDING, RISING = (("descending", True),), (("descending", False),)
ROWS: dict[str, Program] = {
    "rowsum of NaN": lambda f, x, w: f.apply("rowsum", ratio(f, x)),
    "rowsum of 20": lambda f, x, w: f.apply("rowsum", above(f, x)),
    "rowsum of halves": lambda f, x, w: f.apply("rowsum", f.apply("cast", above(f, x), attrs=(("dtype", F16),))),
    "rowmean": lambda f, x, w: f.apply("rowmean", above(f, x)),
    "rowmean of a load": lambda f, x, w: f.apply("rowmean", x),
    "rowprod": lambda f, x, w: f.apply("rowprod", x),
    "rowmax": lambda f, x, w: f.apply("rowmax", above(f, x)),
    "rowmax of NaN": lambda f, x, w: f.apply("rowmax", ratio(f, x)),
    "rowmax of whole numbers": lambda f, x, w: f.apply("rowmax", whole(f, x)),
    "rowmin": lambda f, x, w: f.apply("rowmin", below(f, x)),
    "rowmin of a load": lambda f, x, w: f.apply("rowmin", x),
    "colsum": lambda f, x, w: f.apply("colsum", f.apply("exp", w)),
    "colmean": lambda f, x, w: f.apply("colmean", f.apply("add", w, 7)),
    "product": lambda f, x, w: f.apply("matmul", ratio(f, x), w),
    "product of both": lambda f, x, w: f.apply("matmul", recip(f, x), f.apply("add", w, 1)),
    "product with another": lambda f, x, w: f.apply("matmul", x, f.apply("log2", f.apply("abs", w))),
    "argmax": lambda f, x, w: f.apply("rowargmax", ratio(f, x)),
    "argmin": lambda f, x, w: f.apply("rowargmin", below(f, x)),
    "topk": lambda f, x, w: f.apply("topk", above(f, x), attrs=(("k", 2), *DESCENDING)),
    "topk of the least": lambda f, x, w: f.apply("topk", below(f, x), attrs=(("k", 2), *RISING)),
    "topk of whole numbers": lambda f, x, w: f.apply("topk", whole(f, x), attrs=(("k", 2), *DESCENDING)),
    "absmax": lambda f, x, w: f.apply("rowmax", f.apply("abs", above(f, x))),
    "argmax of equal numbers": lambda f, x, w: f.apply("rowargmax", f.apply("mul", x, 0)),
    "argmax of the lowest": lambda f, x, w: f.apply("rowargmax", f.apply("sub", f.apply("mul", x, 0), math.inf)),
    "sort": lambda f, x, w: sorted_(f, below(f, x), RISING),
    "sort of infinities": lambda f, x, w: sorted_(f, f.apply("where", f.apply("lt", 5, x), math.inf, x), RISING),
    "sort of whole numbers": lambda f, x, w: sorted_(f, f.apply("cast", below(f, x), attrs=(("dtype", I32),)), RISING),
    "falling sort": lambda f, x, w: sorted_(f, above(f, x), DESCENDING),
    "argsort": lambda f, x, w: f.apply("argsort", below(f, x), attrs=RISING),
    "falling argsort": lambda f, x, w: f.apply("argsort", above(f, x), attrs=DESCENDING),
    "softmax": lambda f, x, w: f.apply("softmax", above(f, x)),
    "logsumexp": lambda f, x, w: f.apply("logsumexp", above(f, x), attrs=ALONG),
    "any": lambda f, x, w: f.apply("any", f.apply("lt", below(f, x), -19.5), attrs=ALONG),
    "all": lambda f, x, w: f.apply("all", f.apply("lt", above(f, x), 19.5), attrs=ALONG),
    "cumsum": lambda f, x, w: f.apply("cumsum", above(f, x), attrs=(("axis", 1),)),
    "rowmax through memory": lambda f, x, w: apart(f, "rowmax", below(f, x)),
    "rowprod through memory": lambda f, x, w: apart(f, "rowprod", x),
    "argmax through memory": lambda f, x, w: apart(f, "rowargmax", below(f, x)),
    "topk through memory": lambda f, x, w: apart(f, "topk", below(f, x), (("k", 2), *DESCENDING)),
    "whole numbers through memory": lambda f, x, w: apart(f, "rowmax", f.apply("sub", whole(f, x), 40)),
}
# what no other number changes: 0 of a load is the identity of a sum, a place is below that of every lane behind, a sum runs forwards
WITHOUT_FILL = ("rowmean of a load", "cumsum", "argmax of equal numbers", "argmax of the lowest")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ROWS)
def test_what_is_emitted_gives_the_results_of_kept_lanes(name: str) -> None:
    function, arrays = program(name)
    (wanted,) = evaluate(function, [array.copy() for array in arrays])
    np.testing.assert_array_equal(emitted(function, arrays), wanted)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [name for name in ROWS if name not in WITHOUT_FILL])
def test_a_mutant_without_the_fill_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(op_text, "masked", lambda writer, value, dim, fill: value)
    function, arrays = program(name)
    (wanted,) = evaluate(function, [array.copy() for array in arrays])
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(emitted(function, arrays), wanted)


def test_a_gather_reads_a_place_that_is_there_in_every_lane() -> None:
    """An index of short rows: lanes behind them hold -1 after a shift, at which a kernel would fail."""
    f = FunctionBuilder("tails")
    f.group = "all"
    n = f.symbol("t")
    x, index = f.param("x", (n, 8)), f.param("index", (n, 3), I32)
    f.give(f.apply("gather", x, f.apply("sub", index, 1), attrs=(("axis", 1),)))
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal((T, 8)).astype(np.float32), rng.integers(1, 9, (T, 3)).astype(np.int32)]
    np.testing.assert_array_equal(emitted(f.function(), arrays), np.take_along_axis(arrays[0], arrays[1] - 1, 1))


def test_what_no_number_helps_is_refused() -> None:
    f = FunctionBuilder("tails")
    n = f.symbol("n")
    f.assume(at_least(16, n))
    f.give(f.apply("std", f.param("x", (4, n)), attrs=(("axis", 1), ("keepdims", True))))
    with pytest.raises((NoTileFormError, PtoError)):
        emitted(f.function(), [np.ones((4, 5), np.float32)])


@pytest.mark.parametrize(("op", "position", "attrs", "fill"), [
    ("add", 0, (), Fill.NONE), ("rowsum", 0, (), Fill.ZERO), ("rowmean", 0, (), Fill.ZERO), ("rowprod", 0, (), Fill.ONE),
    ("colmax", 0, (), Fill.LOWEST), ("rowmin", 0, (), Fill.HIGHEST), ("matmul", 1, (), Fill.ZERO), ("rowargmax", 0, (), Fill.LOWEST),
    ("rowargmin", 0, (), Fill.HIGHEST), ("topk", 0, DESCENDING, Fill.LOWEST), ("argsort", 0, RISING, Fill.NAN_OR_HIGHEST),
    ("cumsum", 0, (), Fill.NONE), ("softmax", 0, (), Fill.LOWEST), ("any", 0, (), Fill.ZERO), ("all", 0, (), Fill.ONE),
    ("gather", 1, (), Fill.ZERO), ("take", 1, (), Fill.VALID), ("interleave", 0, (), Fill.REFUSED), ("scatter", 1, (), Fill.REFUSED),
    ("var", 0, (), Fill.REFUSED), ("tsort32", 0, (), Fill.REFUSED),
])
def test_the_table(op: str, position: int, attrs: Any, fill: Fill) -> None:
    assert tail_of(op, position, attrs) is fill
