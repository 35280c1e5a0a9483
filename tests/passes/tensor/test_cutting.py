"""Functions are divided into kernels and cut into tasks without a change of their numbers, and as a plan by hand says."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pto_wsp.arch.instances import builtin_arch
from pto_wsp.errors import PlanConflictError, PlanFitError, PlanNameError, PtoError, UnboundedAxisError
from pto_wsp.ir import flow
from pto_wsp.ir import tensor_function as t
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.layout import Contract
from pto_wsp.ir.scalar import Binary, Const, Element, Op, add, ceil_div, minimum, sub
from pto_wsp.ir.view import Cut, Permute, Pick
from pto_wsp.passes.tensor.effects import made_by
from pto_wsp.passes.tensor.passes import run_tensor_passes
from pto_wsp.passes.tensor.planned import PlannedFunction, TensorContext
from pto_wsp.run.tensor_evaluate import evaluate
from pto_wsp.schedule.tiling import TilePlan
from pto_wsp.schedule.tiling_entries import entries_of
from tests.tensor_functions import FunctionBuilder

RNG = np.random.default_rng(0)


def draw(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def part(dim: int, start: int, stop: int) -> Cut:
    return Cut(dim, Const(start), Const(stop))


def softmax() -> tuple[t.TensorFunction, list[Any]]:
    f = FunctionBuilder("softmax")
    x = f.param("x", (3, f.symbol("t"), f.symbol("n")))
    grown = f.apply("exp", f.apply("sub", x, f.apply("rowmax", x, name="top")), name="grown")
    f.give(f.apply("div", grown, f.apply("rowsum", grown, name="total"), name="out"))
    return f.function(), [draw(3, 37, 300)]


def rms_norm_linear() -> tuple[t.TensorFunction, list[Any]]:
    f = FunctionBuilder("rms_norm_linear")
    n = f.symbol("t")
    x, g, w = f.param("x", (n, 512)), f.param("g", (512,)), f.param("w", (512, 700))
    root = f.apply("sqrt", f.apply("add", f.apply("rowmean", f.apply("mul", x, x)), 1e-6))
    f.give(f.apply("matmul", f.apply("mul", f.apply("div", x, root), g, name="normed"), w, name="out"))
    return f.function(), [draw(37, 512), draw(512), draw(512, 700)]


def swiglu() -> tuple[t.TensorFunction, list[Any]]:
    f = FunctionBuilder("swiglu")
    x, w, down = f.param("x", (f.symbol("t"), 64)), f.param("w", (64, 512)), f.param("down", (256, 64))
    up = f.apply("matmul", x, w, name="up")
    gate = f.apply("silu", up.then(part(1, 0, 256)), name="gate")
    hidden = f.apply("mul", gate, up.then(part(1, 256, 512)), name="hidden")
    f.give(f.apply("add", f.apply("matmul", hidden, down, name="low"), x, name="out"))
    return f.function(), [draw(37, 64), draw(64, 512) / 8, draw(256, 64) / 8]


def rotary() -> tuple[t.TensorFunction, list[Any]]:
    f = FunctionBuilder("rotary")
    n = f.symbol("t")
    u, c, s = f.param("u", (n, 4, 32)), f.param("c", (n, 32)), f.param("s", (n, 32))
    turned = f.make("turned", (n, 4, 32))
    f.put(turned.then(part(2, 0, 16)), f.apply("neg", u.then(part(2, 16, 32))))
    f.put(turned.then(part(2, 16, 32)), u.then(part(2, 0, 16)))
    f.give(f.apply("add", f.apply("mul", u, c.then(t.Insert(1))), f.apply("mul", turned, s.then(t.Insert(1))), name="out"))
    return f.function(), [draw(37, 4, 32), draw(37, 32), draw(37, 32)]


def by_heads() -> tuple[t.TensorFunction, list[Any]]:
    f = FunctionBuilder("by_heads")
    n = f.symbol("t")
    q, w = f.param("q", (n, 32)), f.param("w", (4, 8, 16))
    heads = f.apply("mul", q, 2.0, name="twice").then(t.Refold((n, Const(4), Const(8))), Permute((1, 0, 2)))
    f.give(f.apply("matmul", heads, w, name="out").then(Permute((1, 0, 2))))
    return f.function(), [draw(37, 32), draw(4, 8, 16)]


def columns() -> tuple[t.TensorFunction, list[Any]]:
    f = FunctionBuilder("columns")
    x = f.param("x", (f.symbol("t"), 300))
    f.give(f.apply("sub", f.apply("colsum", f.apply("mul", x, x), name="power"), f.apply("colmean", x), name="out"))
    return f.function(), [draw(37, 300)]


def through_table() -> tuple[t.TensorFunction, list[Any]]:
    f = FunctionBuilder("through_table")
    n = f.symbol("t")
    x, slots = f.param("x", (n, 40)), f.param("slots", (n,), DType.I32, contracts=(Contract.INJECTIVE,))
    cache = f.param("cache", (100, 40), written=True)
    f.put(cache, f.apply("mul", x, 2.0, name="twice"), slots)
    f.give(f.apply("add", f.apply("take", cache, slots), 1.0, name="out"))
    return f.function(), [draw(37, 40), RNG.permutation(100)[:37].astype(np.int32), draw(100, 40)]


def in_place() -> tuple[t.TensorFunction, list[Any]]:
    f = FunctionBuilder("in_place")
    n = f.symbol("t")
    y, x = f.param("y", (n, 33), written=True), f.param("x", (n, 33))
    f.put(y, f.apply("add", y, x, name="sum"))
    f.give(f.apply("mul", y, 2.0, name="out"))
    return f.function(), [draw(37, 33), draw(37, 33)]


def ragged() -> tuple[t.TensorFunction, list[Any]]:
    f = FunctionBuilder("ragged")
    n, b = f.symbol("t"), f.symbol("b")
    x, starts = f.param("x", (n, 24)), f.param("starts", (b,), DType.I32, contracts=(Contract.MONOTONE,))
    out = f.make("out", (n, 24), 0.0)
    with f.loop(sub(b, Const(1)), ordered=False, name="e") as e:
        rows = Cut(0, Element(starts.array.ref, (e,)), Element(starts.array.ref, (add(e, Const(1)),)))
        low = f.apply("sub", x.then(rows), f.apply("rowmax", x.then(rows)), name="low")
        f.put(out.then(rows), f.apply("div", low, f.apply("colsum", low), name="share"))
    f.give(out)
    return f.function(), [draw(37, 24), np.array([0, 5, 5, 20, 30], np.int32)]


def attention() -> tuple[t.TensorFunction, list[Any]]:
    f = FunctionBuilder("attention")
    s, n = f.symbol("s"), f.symbol("n")
    q, k, v = f.param("q", (3, s, 16)), f.param("k", (3, n, 16)), f.param("v", (3, n, 16))
    out = f.make("out", (3, s, 16))
    with f.loop(3, ordered=False, name="h") as h:
        qh = f.apply("mul", q.then(Pick(0, h)), 0.25, name="qh")
        acc, seen, top = f.make("acc", (s, 16), 0.0), f.make("seen", (s, 1), 0.0), f.make("top", (s, 1), -math.inf)
        with f.loop(n, step=8, name="j") as j:
            rows = Cut(0, j, minimum(add(j, Const(8)), n))
            score = f.apply("matmul", qh, k.then(Pick(0, h), rows, Permute((1, 0))), name="score")
            peak = f.apply("maximum", top, f.apply("rowmax", score), name="peak")
            weight = f.apply("exp", f.apply("sub", score, peak), name="weight")
            fade = f.apply("exp", f.apply("sub", top, peak), name="fade")
            f.put(acc, f.apply("add", f.apply("mul", acc, fade), f.apply("matmul", weight, v.then(Pick(0, h), rows))))
            f.put(seen, f.apply("add", f.apply("mul", seen, fade), f.apply("rowsum", weight)))
            f.put(top, peak)
        f.put(out.then(Pick(0, h)), f.apply("div", acc, seen, name="mixed"))
    f.give(out)
    return f.function(), [draw(3, 37, 16), draw(3, 45, 16), draw(3, 45, 16)]


def scaled_product() -> tuple[t.TensorFunction, list[Any]]:
    f = FunctionBuilder("scaled_product")
    n = f.symbol("t")
    x, s, w = f.param("x", (n, 64)), f.param("s", (n, 1)), f.param("w", (64, 40))
    f.give(f.apply("matmul", f.apply("div", x, f.apply("exp", s), name="scaled"), w, name="out"))
    return f.function(), [draw(37, 64), draw(37, 1), draw(64, 40)]


def plain_attention() -> tuple[t.TensorFunction, list[Any]]:
    f = FunctionBuilder("plain_attention")
    s, n = f.symbol("s"), f.symbol("n")
    q, k, v = f.param("q", (3, s, 16)), f.param("k", (3, n, 16)), f.param("v", (3, n, 16))
    score = f.apply("mul", f.apply("matmul", q, k.then(Permute((0, 2, 1))), name="product"), 0.25, name="score")
    grown = f.apply("exp", f.apply("sub", score, f.apply("rowmax", score)), name="grown")
    f.give(f.apply("matmul", f.apply("div", grown, f.apply("rowsum", grown)), v, name="out"))
    return f.function(), [draw(3, 37, 16), draw(3, 300, 16), draw(3, 300, 16)]


PROGRAMS: tuple[Callable[[], tuple[t.TensorFunction, list[Any]]], ...] = (
    softmax, rms_norm_linear, swiglu, rotary, by_heads, columns, through_table, in_place, ragged, attention, scaled_product,
    plain_attention)


def cut(function: t.TensorFunction, arch: str = "unit", hand: Mapping[str, Any] | None = None) -> PlannedFunction:
    """The function in tiled form, under a plan with these entries by hand."""
    entries = tuple(replace(entry, by_hand=True) for entry in entries_of(hand or {}))
    plan = TilePlan(function.name, arch, "cpu_sim", entries=entries)
    return run_tensor_passes(PlannedFunction(function, plan), TensorContext(builtin_arch(arch), "cpu_sim", {}))


def check(function: t.TensorFunction, arrays: list[Any], made: PlannedFunction) -> None:
    """Both functions give the same, for any order of tasks."""
    before = [array.copy() for array in arrays]
    expected = [*evaluate(function, before), *before]
    for order in (None, 3):
        after = [array.copy() for array in arrays]
        for one, other in zip(expected, [*evaluate(made.function, after, order=order), *after], strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-4)


def loops(made: PlannedFunction) -> list[str]:
    """The variables of the loops of tasks, and of kernels' own loops in brackets, in program order."""
    found = [item for item in flow.walk(made.function.body) if isinstance(item, flow.Loop)]
    return [f"[{loop.var.name}]" if loop.note.group else loop.var.name for loop in found]


def groups(made: PlannedFunction) -> tuple[str, ...]:
    return tuple(cost.name for cost in made.plan.costs)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("arch", ["unit", "ascend_910b"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_tasks_on_tiles_give_the_numbers_of_the_function(program: Callable[[], tuple[t.TensorFunction, list[Any]]], arch: str) -> None:
    function, arrays = program()
    check(function, arrays, cut(function, arch))


def test_what_shares_its_rows_shares_a_kernel() -> None:
    made = cut(rms_norm_linear()[0], "ascend_910b")
    assert groups(made) == ("normed", "out")
    entry = made.plan.said("groups", "normed")
    assert entry is not None and entry.value == ("mul", "rowmean", "add", "sqrt", "div", "normed")


def test_rows_that_a_kernel_read_are_not_written_there_under_other_numbers() -> None:
    f = FunctionBuilder("moved_up")
    x = f.param("x", (40, 16), written=True)
    f.put(x.then(part(0, 0, 39)), f.apply("exp", f.apply("mul", x.then(part(0, 1, 40)), 0.5), name="grown"))
    function, arrays = f.function(), [draw(40, 16)]
    made = cut(function, hand={"tiles": {"grown": {0: 4}}})
    assert groups(made) == ("grown", "x")
    check(function, arrays, made)


@pytest.mark.parametrize("n, together, one_kernel", [(80, False, True), (30, True, True), (31, True, False)])
def test_a_kernel_has_the_values_that_live_together_in_the_cache(n: int, together: bool, one_kernel: bool) -> None:
    f = FunctionBuilder("rows")
    x = f.param("x", (f.symbol("t"), 1 << 14), DType.F64)      # a row has 128 KiB, a task's tiles 4 MiB
    values = [f.apply("sub", x, f.apply("rowmax", x))]
    for k in range(2, 2 + n):
        values.append(f.apply("mul", values[0 if together else -1], 1.0 / k))
    total = values.pop()
    for value in values if together else ():
        total = f.apply("maximum", total, value)
    f.give(total)
    assert (len(groups(cut(f.function()))) == 1) == one_kernel


def test_a_value_that_the_next_iteration_alone_reads_is_computed() -> None:
    f = FunctionBuilder("one_behind")
    x, out, last = f.param("x", (8, 16)), f.make("out", (8, 16)), f.make("last", (16,), 0.0)
    with f.loop(8, name="j") as j:
        f.put(out.then(Pick(0, j)), f.apply("mul", last, 2.0))
        f.put(last, f.apply("exp", x.then(Pick(0, j))))
    f.give(out)
    function, arrays = f.function(), [draw(8, 16)]
    check(function, arrays, cut(function))


def test_a_loop_that_carries_state_is_a_loop_of_one_kernel() -> None:
    made = cut(attention()[0])
    assert groups(made) == ("out",) and loops(made) == ["h", "s_i", "[j]"]
    # by hand it is a loop of tasks, with the state in memory
    function, arrays = attention()
    tasks = cut(function, hand={"loops": {"j": "tasks"}})
    assert "j" in loops(tasks) and len(groups(tasks)) > 3
    check(function, arrays, tasks)


def test_a_symbolic_sum_is_walked_in_steps() -> None:
    made = cut(softmax()[0])
    assert groups(made) == ("top", "total", "out") and loops(made).count("[total_step]") == 1


HAND: Mapping[str, tuple[Callable[[], tuple[t.TensorFunction, list[Any]]], Mapping[str, Any]]] = {
    "tiles": (swiglu, {"tiles": {"out": {"t": 5, 1: 16}}}),
    "inner": (swiglu, {"inner": {"out": {"k": 100}}, "groups": {"first": ("up",), "second": ("gate", "hidden"), "third": ("low", "out")}}),
    "groups": (swiglu, {"groups": {"first": ("up",), "second": ("gate", "hidden"), "third": ("low", "out")}}),
    "loops": (attention, {"loops": {"j": "tasks"}}),
    "batch": (swiglu, {"batch": {"out": 3}, "tiles": {"out": {"t": 5}}}),
    "tails": (in_place, {"tiles": {"out": {"t": 16}}, "tails": {"t": (16, 4, 1)}}),
    "split": (columns, {"split": {"power": 3}}),
    "order": (by_heads, {"order": {"out": ("0", "t")}, "tiles": {"out": {"t": 8}}}),
    "keep": (rms_norm_linear, {"keep": {"normed": "again"}, "groups": {"first": ("mul", "rowmean", "add", "sqrt", "div", "normed")},
                               "tiles": {"out": {1: 128}}}),
    "flat": (rotary, {"flat": {"out": (1,)}}),
    "allow": (scaled_product, {"allow": ("row_scale",)}),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("key", HAND)
def test_an_entry_by_hand_changes_the_tasks_and_not_the_numbers(key: str) -> None:
    program, hand = HAND[key]
    function, arrays = program()
    made = cut(function, hand=hand)
    without = cut(function, hand={name: value for name, value in hand.items() if name != key})
    assert made.function != without.function, f"{key} changes nothing"
    check(function, arrays, made)


def test_falling_sizes_leave_no_short_tile() -> None:
    made = cut(in_place()[0], hand={"tiles": {"out": {"t": 16}}, "tails": {"t": (16, 4, 1)}})
    assert loops(made) == ["t_i", "t_i", "t_i"]
    views = [view for statement in flow.leaves(made.function.body) for view in statement.reads]
    assert not any(isinstance(step, t.TileCut) for view in views for step in view.steps)


def test_an_online_softmax_is_one_kernel_that_holds_no_row() -> None:
    function, arrays = plain_attention()
    assert len(groups(cut(function))) > 2
    made = cut(function, hand={"allow": ("online_softmax",)})
    assert groups(made) == ("out",) and loops(made) == ["out_0", "s_i", "[out_block]"]
    check(function, arrays, made)
    with pytest.raises(PlanNameError, match="nothing to rewrite"):
        cut(rotary()[0], hand={"allow": ("online_softmax",)})


def test_a_value_that_is_computed_again_needs_no_memory() -> None:
    hand = {"groups": {"first": ("mul", "rowmean", "add", "sqrt", "div", "normed")}, "tiles": {"out": {1: 128}}}
    apart = cut(rms_norm_linear()[0], hand=hand)
    assert groups(apart) == ("first", "out")
    again = cut(rms_norm_linear()[0], hand={**hand, "keep": {"normed": "again"}})
    assert groups(again) == ("out",) and loops(again) == ["t_i", "out_1"]
    with pytest.raises(PlanConflictError, match="no result of the function"):
        cut(rms_norm_linear()[0], hand={"keep": {"out": "again"}})


def test_an_axis_that_must_be_whole_needs_a_bound() -> None:
    f = FunctionBuilder()
    x = f.param("x", (f.symbol("t"), n := f.symbol("n")))
    f.give(f.apply("topk", x, attrs=(("k", 4), ("descending", True))))
    with pytest.raises(UnboundedAxisError, match=r"tt\.assume\(n <= 4096\)"):
        cut(f.function())
    f.assume(Binary(Op.LE, n, Const(64)))
    function = f.function()
    check(function, [draw(9, 50)], cut(function))


@pytest.mark.parametrize(("hand", "error"), [({"split": {"out": 2}}, PlanConflictError), ({"split": {"power": 400}}, None)])
def test_what_is_no_sum_is_not_split(hand: Mapping[str, Any], error: type[PtoError] | None) -> None:
    if error is None:
        f = FunctionBuilder()
        f.give(f.apply("rowsum", f.param("x", (f.symbol("t"), 300)), name="power"))
        with pytest.raises(PlanFitError, match="no 400 pieces"):
            cut(f.function(), hand=hand)
    else:
        with pytest.raises(error):
            cut(columns()[0], hand=hand)


# -- steps inside a task -----------------------------------------------------------------------------------------------
def product() -> tuple[t.TensorFunction, list[Any]]:
    f = FunctionBuilder("product")
    x, w = f.param("x", (f.symbol("t"), 48)), f.param("w", (48, 40))
    f.give(f.apply("matmul", x, w, name="out"))
    return f.function(), [draw(77, 48), draw(48, 40)]


BLOCKS = {"tiles": {"out": {"t": 32, 1: 40}}}


def test_a_task_computes_neighbouring_tiles_one_after_the_other() -> None:
    function, arrays = product()
    made = cut(function, hand={"tiles": {"out": {"t": 8, 1: 40}}, "batch": {"out": 3}})
    check(function, arrays, made)
    assert loops(made) == ["t_i", "[out_tile]"]
    assert made.function.body.items[-1].stop == ceil_div(function.symbols[0], Const(24))


@pytest.mark.parametrize(("stay", "nesting"), [("left", ["[out_m]", "[out_n]"]), ("right", ["[out_n]", "[out_m]"])])
def test_the_operand_that_stays_is_read_in_the_outer_loop(stay: str, nesting: list[str]) -> None:
    function, arrays = product()
    made = cut(function, hand={**BLOCKS, "inner": {"out": {"m": 16, "n": 16, "stay": stay}}})
    check(function, arrays, made)
    assert loops(made) == ["t_i", *nesting]


@pytest.mark.parametrize(("hand", "reason"), [
    ({"inner": {"out": {"m": 33}}}, "no part of the tile"),
    ({"inner": {"out": {"m": 8, "n": 8, "stay": "left", "k": 16}}}, "can stay while its sum is walked"),
    ({"inner": {"out": {"m": 8}}, "batch": {"out": 2}}, "two entries are for steps"),
    ({"inner": {"out": {"m": 8}}, "tails": {"t": (32, 4, 1)}}, "falling sizes")])
def test_steps_that_contradict_the_plan_are_refused(hand: Mapping[str, Any], reason: str) -> None:
    with pytest.raises(PlanConflictError, match=reason):
        cut(product()[0], hand={**BLOCKS, **hand})


# -- scratch of a task -------------------------------------------------------------------------------------------------
def chain() -> tuple[t.TensorFunction, list[Any]]:
    """Three kernels, each on the rows of the one before: a norm, a product, a softmax of the whole rows of the product."""
    f = FunctionBuilder("chain")
    x, w = f.param("x", (f.symbol("t"), 48)), f.param("w", (48, 40))
    root = f.apply("sqrt", f.apply("rowmean", f.apply("mul", x, x)), name="root")
    normed = f.apply("div", x, root, name="normed")
    made = f.apply("matmul", normed, w, name="made")
    peak = f.apply("rowmax", made, name="peak")
    f.give(f.apply("sub", made, peak, name="out"))
    return f.function(), [draw(77, 48), draw(48, 40)]


THREE = {"groups": {"normed": ("root.mul", "root", "normed"), "made": ("made",), "out": ("peak", "out")}}


def scratch_of(made: PlannedFunction) -> dict[str, int]:
    """How many loops of tasks stand around each array that a `Make` makes."""
    found: dict[str, int] = {}

    def inside(body: t.Body, depth: int) -> None:
        for item in body.items:
            array = made_by(item)
            if array is not None:
                found[array.name] = depth
            for inner in flow.children(item):
                assert isinstance(inner, flow.Sequence)
                inside(inner, depth + 1)

    inside(made.function.body, 0)
    return found


def test_rows_that_kernels_share_lie_in_scratch_of_their_loop() -> None:
    function, arrays = chain()
    tiles = {"normed": {"t": 8}, "made": {"t": 32}, "out": {"t": 16}}
    made = cut(function, "ascend_910b", {**THREE, "tiles": tiles})
    check(function, arrays, made)
    assert scratch_of(made)["normed"] == scratch_of(made)["made"] == 1 and scratch_of(made)["out"] == 0
    assert made.function.body.items[-1].stop == ceil_div(function.symbols[0], Const(32)), "one loop, of the largest tiles"


def test_kernels_whose_tiles_do_not_divide_each_other_keep_the_whole_value() -> None:
    function, arrays = chain()
    hand = {**THREE, "tiles": {"normed": {"t": 24}, "made": {"t": 32}, "out": {"t": 16}}}
    made = cut(function, "ascend_910b", hand)
    check(function, arrays, made)
    said = made.plan.said("keep", "normed")
    assert scratch_of(made)["normed"] == 0 and said is not None and said.first == "whole"
    assert "tiles of 24 and 32 do not divide each other" in said.reason
    with pytest.raises(PlanConflictError, match="do not divide each other"):
        cut(function, "ascend_910b", {**hand, "keep": {"normed": "task"}})


def test_a_value_that_a_task_keeps_has_tiles_that_divide_those_of_its_kernels() -> None:
    function, arrays = chain()
    made = cut(function, "ascend_910b", {**THREE, "keep": {"normed": "task"}, "tiles": {"made": {"t": 24}}})
    check(function, arrays, made)
    tile = made.plan.said("tiles", "normed", "t")
    assert tile is not None and isinstance(tile.first, int) and (24 % tile.first == 0 or tile.first % 24 == 0)


def test_what_the_next_kernel_reads_across_its_blocks_lies_in_memory() -> None:
    """Rows one further, the columns of another block, a sum over all rows: none of them waits for one turn of the loop alone."""
    f = FunctionBuilder("across")
    x = f.param("x", (64, 32))
    y = f.apply("exp", x, name="y")
    f.give(f.apply("add", y.then(part(0, 1, 64)), y.then(part(0, 0, 63)), name="moved"), f.apply("colsum", y, name="total"))
    function = f.function()
    made = cut(function, "ascend_910b", {"groups": {"y": ("y",), "moved": ("moved",), "total": ("total",)}, "tiles": {"y": {0: 16}}})
    check(function, [draw(64, 32)], made)
    assert scratch_of(made)["y"] == 0
    with pytest.raises(PlanConflictError, match="scratch of a task"):
        cut(function, "ascend_910b", {"groups": {"y": ("y",), "moved": ("moved",), "total": ("total",)}, "tiles": {"y": {0: 16}},
                                      "keep": {"y": "task"}})
