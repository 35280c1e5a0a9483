"""Cards of functions on tensors, of plans and of their differences: what they say, and that every form of them shows it."""

from __future__ import annotations

import json

import pytest

from pto_wsp import Tunable
from pto_wsp.ir import flow
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Const, SymbolRef, Var
from pto_wsp.ir.tensor_function import (
    Apply,
    Array,
    ArrayParam,
    ArrayView,
    BodyNote,
    Insert,
    Make,
    Put,
    Show,
    TensorFunction,
)
from pto_wsp.ir.view import Cut, Pick
from pto_wsp.schedule.tiling import GroupCost, Planner, TilePlan
from pto_wsp.schedule.tiling_names import names_of
from pto_wsp.view.card import BarPart, Card, Preformatted, TablePart, ValuesPart
from pto_wsp.view.html import html_of, page_of
from pto_wsp.view.notebook import card_of
from pto_wsp.view.tiling_cards import function_card, roles_text
from tests.view.test_cards import part_of, text_of

F32 = DType.F32
T, ONE = SymbolRef("t", 0), Const(1)


def array(number: int, name: str, *shape: object) -> Array:
    return Array(number, name, tuple(one if not isinstance(one, int) else Const(one) for one in shape), F32)


X, G, W = array(0, "x", T, 4096), array(1, "g", 4096), array(2, "w", 4096, 6144)
SQUARE, MEAN, ROOT, SCALED = (array(3, "normed.square", T, 4096), array(4, "normed.mean", T, 1), array(5, "normed.root", T, 1),
                              array(6, "normed.scaled", T, 4096))
NORMED, OUT = array(7, "normed", T, 4096), array(8, "out", T, 6144)


def rmsnorm_linear(group: str = "") -> TensorFunction:
    """Return rmsnorm_linear as it is traced; `group`: the name of the group of what is normed."""
    view = ArrayView
    body = flow.Sequence(tuple(flow.Do(one) for one in (
        Apply("mul", (view(X), view(X)), (SQUARE,), group=group), Apply("rowmean", (view(SQUARE),), (MEAN,), group=group),
        Apply("sqrt", (view(MEAN),), (ROOT,), group=group), Apply("div", (view(X), view(ROOT)), (SCALED,), group=group),
        Apply("mul", (view(SCALED), view(G, (Insert(0),))), (NORMED,), group=group),
        Apply("matmul", (view(NORMED), view(W)), (OUT,), group="out" if group else ""))))
    return TensorFunction("rmsnorm_linear", tuple(map(ArrayParam, (X, G, W))), body, (view(OUT),), (T,))


def choose(plan: TilePlan) -> TilePlan:
    for key, name, axis, value, reason in (
            ("groups", "normed", "", ("normed.mean", "normed"), ""), ("groups", "out", "", ("out",), ""),
            ("tiles", "normed", "t", 4, "8 needs 278,560 of 188,416 bytes of UB"),
            ("tiles", "out", "t", 128, "best of 157; next t=64 1=256: +4%"), ("tiles", "out", "1", 256, ""),
            ("inner", "out", "w:0", 64, ""), ("keep", "normed", "", "whole", ""), ("tails", "", "t", "short", "")):
        plan = plan.with_choice(key, name, axis, value, reason)
    rows = plan.said("tiles", "out", "t")
    assert rows is not None and isinstance(rows.value, int)
    return plan.with_cost(GroupCost("normed", ("mul", "rowmean", "sqrt", "div", "mul"), "vector", ("4096",), 256, 374772)).with_cost(
        GroupCost("out", ("matmul",), "cube", (), 192, 3000000 * 128 // rows.value))


@pytest.fixture(name="plan")
def made_plan() -> TilePlan:
    planner = Planner(names_of(rmsnorm_linear(), ("block",)), choose, reads_all=False)
    return TilePlan("rmsnorm_linear", "ascend_910b", "cpu_sim", (("t", 1024),)).used_with("rmsnorm_linear", planner)


@pytest.fixture(name="mine")
def made_mine(plan: TilePlan) -> TilePlan:
    return plan.but(tiles={"out": {"t": 64, 1: Tunable(512, 1024)}}, tails={"t": (64, 16, 4, 1)}, allow="row_scale")


def every_form(card: Card) -> str:
    """Return the text of a card's HTML, after a look at its other forms."""
    assert Card.model_validate_json(card.model_dump_json()) == card
    for width in (40, 80, 140):
        wide = any(isinstance(part, Preformatted) for part in card.parts)      # code is not wrapped
        assert wide or all(len(line) <= width for line in card_text(card, width).splitlines())
    html = text_of(html_of(card))
    assert card.title in html and card.title in card_text(card, 100)
    return html


def card_text(card: Card, width: int) -> str:
    from pto_wsp.view.text import text_of as shown

    return shown(card, width=width)


# -- plans -------------------------------------------------------------------------------------------------------------
def test_the_card_of_a_plan_says_where_the_cycles_go_and_why(plan: TilePlan) -> None:
    card = plan.card
    html = every_form(card)
    assert card.sentence == "2 groups, 0 entries by hand; about 3,374,772 cycles, 89% of them in out."
    groups, others = (part for part in card.parts if isinstance(part, TablePart))
    assert groups.rows == (
        ("normed", "mul … mul", "vector", "t=4", "4096 whole", "whole", "374,772", "256", "chosen: 8 needs 278,560 of 188,416 bytes of UB"),
        ("out", "matmul", "cube", "t=128 1=256", "w:0=64", "", "3,000,000", "192", "chosen: best of 157; next t=64 1=256: +4%"))
    assert others.rows == (("tails", "t: short last tile", ""),)
    assert [segment.amount for segment in part_of(card, BarPart).segments] == [374772, 3000000]
    assert "planned for 1,024" in card.state and "bytes of UB" in html


def test_entries_by_hand_are_code_that_makes_the_plan_again(plan: TilePlan, mine: TilePlan) -> None:
    code = part_of(mine.card, Preformatted).text
    assert mine.code == ".but(tiles={'out': {'t': 64, 1: Tunable(512, 1024)}}, tails={'t': (64, 16, 4, 1)}, allow=('row_scale',))"
    assert eval(code, {"plan": plan, "Tunable": Tunable}) == mine
    every_form(mine.card)
    assert not plan.code and not any(isinstance(part, Preformatted) for part in plan.card.parts)


def test_a_plan_without_costs_has_a_card() -> None:
    card = TilePlan("f", "unit", "interp").card
    assert card.sentence == "0 groups, 0 entries by hand." and every_form(card)


def test_long_plans_are_cut_off() -> None:
    plan = TilePlan("f", "unit", "interp")
    for k in range(200):
        plan = plan.with_choice("groups", f"value_{k}", "", (f"value_{k}",), "").with_choice("loops", f"j{k}", "", "tasks", "x" * 500)
    assert [part.more for part in plan.card.parts] == [120, 120] and len(plan._repr_mimebundle_()["text/html"]) < 100_000


# -- differences -------------------------------------------------------------------------------------------------------
def test_the_card_of_a_difference_goes_entry_by_entry_with_costs(plan: TilePlan, mine: TilePlan) -> None:
    card = mine.diff(plan).card
    assert card.sentence == "4 entries differ; this plan costs 6,374,772 cycles (+89%)."
    entries, costs = (part for part in card.parts if isinstance(part, TablePart))
    assert ("tiles['out']['t']", "64", "128") in entries.rows and ("allow", "row_scale", "not said") in entries.rows
    assert costs.rows == (("out", "6,000,000 cycles", "3,000,000 cycles", "+100%"),
                          ("together", "6,374,772 cycles", "3,374,772 cycles", "+89%"))
    every_form(card)
    assert plan.diff(plan).card.sentence == "They say the same."


# -- functions ---------------------------------------------------------------------------------------------------------
def test_the_card_of_a_function_has_shapes_axes_and_groups() -> None:
    card = card_of(rmsnorm_linear("normed"))
    assert card is not None
    table = part_of(card, TablePart)
    assert table.rows[1] == ("normed.mean", "[t, 1] f32", "rowmean(normed.square)", "t free, 4096 summed", "normed")
    assert table.rows[5] == ("out", "[t, 6144] f32", "matmul(normed, w)", "t free, 4096 summed, 6144 free", "out")
    assert card.sentence == "6 statements in 2 groups: normed, out." and card.foot == "returns out [t, 6144] f32"
    assert [value.value for value in part_of(card, ValuesPart).values] == ["[t, 4096] f32", "[4096] f32", "[4096, 6144] f32"]
    every_form(card)
    assert function_card(rmsnorm_linear()).sentence == "6 statements, not yet in groups."


def test_loops_choices_state_and_prints_are_rows() -> None:
    h = Var("h", 3)
    acc, y = array(20, "acc", T, 8), array(21, "y", T, 8)
    inside = flow.Sequence((flow.Do(Make(acc, 0.0)), flow.Do(Put(ArrayView(acc, (Cut(0, Const(0), T),)), ArrayView(y), add=True)),
                            flow.Do(Show("acc", ArrayView(acc, (Pick(0, h),))))))
    loop = flow.Loop(h, Const(0), T, Const(1), False, inside, BodyNote("heads"))
    choice = flow.Choice((flow.Branch(h, inside, BodyNote()),), inside)
    function = TensorFunction("f", (ArrayParam(y, written=True),), flow.Sequence((loop, choice)), (), (T,))
    rows = part_of(function_card(function), TablePart).rows
    assert [row[0].strip("\u00a0") for row in rows] == ["for h", "acc", "acc", "", "when", "acc", "acc", "", "otherwise", "acc", "acc", ""]
    assert rows[0][2] == "each(0, t, 1)" and rows[0][-1] == "heads" and rows[2][2] == "+= y"
    every_form(function_card(function))


def test_axes_of_an_op_that_needs_them_whole() -> None:
    y = array(30, "y", T, 4096)
    assert roles_text(Apply("argsort", (ArrayView(X),), (y,))).startswith(("t free", "4096 whole"))
    assert roles_text(Make(y, 0)) == ""


def test_names_that_are_html_are_text(plan: TilePlan) -> None:
    bad = "<img src=x onerror=alert(1)>"
    card = TilePlan(bad, bad, bad).with_choice("groups", bad, "", (bad,), bad).with_choice("tiles", bad, bad, 4, bad).card
    assert "<img" not in html_of(card) and json.loads(card.model_dump_json())["title"] == bad
    assert "<img" not in page_of((card,), "plans")


def test_a_column_without_anything_is_left_out(plan: TilePlan) -> None:
    heads = [part_of(function_card(rmsnorm_linear(group)), TablePart).head for group in ("", "normed")]
    assert heads == [("makes", "shape", "of", "axes"), ("makes", "shape", "of", "axes", "group")]
    alone = TilePlan("f", "unit", "interp").with_choice("groups", "out", "", ("out",), "")
    alone = alone.with_cost(GroupCost("out", ("add",), "vector", (), 4, 128))
    table = part_of(card_of(alone), TablePart)
    assert table.head == ("group", "ops", "core", "cycles", "tasks") and table.rows == (("out", "add", "vector", "128", "4"),)
    assert table.right == (3, 4)
