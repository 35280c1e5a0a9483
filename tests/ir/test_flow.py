"""The control tree that plans and device launches share: walks, rewrites, and the words of its nodes in JSON."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import pytest

from pto_wsp.errors import WorkloadStructureError
from pto_wsp.ir.codec import NodeCodec, check_types
from pto_wsp.ir.flow import (
    Branch,
    Choice,
    Consume,
    Do,
    Flow,
    Loop,
    Pipeline,
    Process,
    Receive,
    Send,
    Sequence,
    SetSlot,
    Sides,
    Through,
    bound_vars,
    children,
    communicates,
    converted,
    evaluations,
    leaves,
    rewrite,
    rewrite_leaves,
    slots_set,
    walk,
    with_bodies,
    with_notes,
)
from pto_wsp.ir.plan import Precondition
from pto_wsp.ir.plan_tags import PLAN_TAGS
from pto_wsp.ir.scalar import Const, Var
from pto_wsp.npu.plan.model import Scope
from pto_wsp.source import Span

Body: TypeAlias = Sequence[str, None, int, int, int]
Item: TypeAlias = Flow[str, None, int, int, int]
ROW, COL, TOKEN = Var("i", 0), Var("j", 1), Var("t", 2)
ONE = Const(1)
WORDS = NodeCodec(PLAN_TAGS, key="node", spans=True)


def do(*names: str) -> Body:
    return Sequence(tuple(map(Do, names)))


def every_kind() -> Body:
    loop: Item = Loop(ROW, Const(0), Const(4), ONE, False, do("a"), None, Through(COL, ROW, None))
    choice: Item = Choice((Branch(ONE, do("b"), None), Branch(ONE, do("c"), None)), do("d"))
    processes = (Process("p", do("e"), (), (0,), 1, 1), Process("q", Sequence((Consume(0, (TOKEN,), do("f"), 0),)), (0,), (), 1, 2))
    return Sequence((loop, choice, Sides((do("g"), do("h"))), Sequence((Do("i"),)), SetSlot(0, ONE, None), Pipeline(processes)))


def test_leaves_come_in_program_order() -> None:
    assert "".join(leaves(every_kind())) == "abcdgh" + "i" + "ef"


def test_a_walk_yields_parents_first_and_each_item_once() -> None:
    items = list(walk(every_kind()))
    place = {id(item): at for at, item in enumerate(items)}
    assert len(place) == len(items) and items[0] == every_kind()
    assert all(place[id(inner)] > place[id(item)] for item in items for inner in children(item))


def test_a_rewrite_changes_every_item_but_sequences() -> None:
    seen: list[Item] = []

    def note(item: Item) -> Item:
        seen.append(item)
        return item

    assert rewrite(every_kind(), note) == every_kind()
    assert seen == [item for item in walk(every_kind()) if not isinstance(item, Sequence)]
    assert "".join(leaves(rewrite_leaves(every_kind(), str.upper))) == "ABCDGHIEF"


def test_items_whose_leaves_stay_are_the_same_objects() -> None:
    found = Sequence((Do("a"), Do("b")))
    assert [one is other for one, other in zip(found.items, rewrite_leaves(found, lambda leaf: "c" if leaf == "a" else leaf).items,
                                               strict=True)] == [False, True]


def test_a_sequence_that_a_rewrite_makes_is_not_changed_again() -> None:
    twice = rewrite(do("a", "b"), lambda item: Sequence((item, item)) if isinstance(item, Do) else item)
    assert list(leaves(twice)) == ["a", "a", "b", "b"]


def test_bodies_are_those_directly_inside() -> None:
    emptied = [with_bodies(item, lambda body: replace(body, items=())) for item in every_kind().items]
    assert [list(leaves(item)) for item in emptied] == [[]] * 6
    assert [len(children(item)) for item in emptied] == [1, 3, 2, 0, 0, 2]


def test_variables_are_bound_by_loops_and_tokens() -> None:
    loop = every_kind().items[0]
    assert bound_vars(loop) == (ROW, COL) and bound_vars(Receive(0, (TOKEN,), 0)) == (TOKEN,) and bound_vars(Do("a")) == ()


def test_what_may_wait_for_other_processes_communicates() -> None:
    assert [communicates(item) for item in every_kind().items] == [False] * 5 + [True]


def test_a_rewrite_keeps_a_scope() -> None:
    inside: Item = Scope((Do("a"),), (), (3,))         # type: ignore[arg-type]
    (found,) = rewrite_leaves(Sequence((inside,)), str.upper).items
    assert found == Scope((Do("A"),), (), (3,))        # type: ignore[arg-type]


def test_the_words_of_a_loop_are_fixed() -> None:
    loop = Loop(ROW, Const(0), Const(4), ONE, True, Sequence(()), Precondition())
    data = WORDS.to_data(loop)
    assert isinstance(data, dict)
    assert list(data) == ["node", "var", "start", "stop", "step", "ordered", "body", "checks", "through", "waits", "span"]
    assert data["node"] == "plan.Loop" and data["checks"] == data["waits"] == []
    assert WORDS.from_data(data) == loop
    assert WORDS.from_data({key: value for key, value in data.items() if key not in ("checks", "waits", "through")}) == loop


def test_a_note_of_another_level_is_refused() -> None:
    with pytest.raises(WorkloadStructureError, match="note"):
        check_types(SetSlot(0, ONE, None), PLAN_TAGS)
    check_types(SetSlot(0, ONE, Precondition()), PLAN_TAGS)


def evaluating() -> Body:
    """Every statement that evaluates scalars, each number once."""
    loop: Item = Loop(ROW, Const(0), Const(1), Const(2), False, Sequence((SetSlot(7, Const(4), None),)), None, Through(COL, Const(3), None))
    choice: Item = Choice((Branch(Const(5), do("a"), None), Branch(Const(6), do(), None)), Sequence((Send(0, (Const(7), Const(8)), None),)))
    return Sequence((loop, choice, Receive(0, (TOKEN,)), SetSlot(5, Const(9), None), SetSlot(7, Const(10), None)))


def test_what_an_item_evaluates_comes_in_its_order_without_what_stands_in_it() -> None:
    found = [tuple(scalar.value for each in evaluations(item) for scalar in each.scalars if isinstance(scalar, Const))
             for item in walk(evaluating())]
    assert [each for each in found if each] == [(0, 1, 2, 3), (4,), (5, 6), (7, 8), (9,), (10,)]


def test_notes_are_changed_with_the_scalars_behind_them() -> None:
    seen: list[tuple[object, ...]] = []

    def change(note: None, scalars: tuple[object, ...]) -> None:
        seen.append(scalars)
        return note

    body = evaluating()
    assert rewrite(body, lambda item: with_notes(item, change)) == body
    assert sorted(map(repr, seen)) == sorted(repr(each.scalars) for item in walk(body) for each in evaluations(item))


def test_slots_that_are_set_come_with_the_first_line() -> None:
    body = Sequence((SetSlot(7, ONE, None, Span("a.py", 1, 0)), Sides((Sequence((SetSlot(7, ONE, None, Span("a.py", 2, 0)),)),))))
    assert slots_set(body) == {7: Span("a.py", 1, 0)} and list(slots_set(evaluating())) == [7, 5]


def test_a_conversion_keeps_everything_but_leaves() -> None:
    def body(of: Body) -> Body:
        return Sequence(tuple(converted(item, lambda leaf: do(leaf, leaf.upper()), body) for item in of.items))

    made = body(every_kind())
    assert "".join(leaves(made)) == "".join(letter + letter.upper() for letter in leaves(every_kind()))
    assert rewrite(made, lambda item: Do("x") if isinstance(item, Do) else item) == rewrite(
        every_kind(), lambda item: Sequence((Do("x"), Do("x"))) if isinstance(item, Do) else item)
