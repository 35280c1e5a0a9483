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
    Sequence,
    SetSlot,
    Sides,
    Through,
    bound_vars,
    children,
    communicates,
    leaves,
    rewrite,
    rewrite_leaves,
    walk,
    with_bodies,
)
from pto_wsp.ir.plan import Precondition
from pto_wsp.ir.plan_tags import PLAN_TAGS
from pto_wsp.ir.scalar import Const, Var
from pto_wsp.npu.plan.model import Scope

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
