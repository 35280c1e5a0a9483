"""Names are given once, close to what was asked, and the same names in the same order whatever the history of other scopes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pto_wsp.ir.names import Names


def test_a_name_is_given_once() -> None:
    names = Names()
    assert [names.take("x") for _ in range(3)] == ["x", "x_2", "x_3"]


def test_a_number_that_a_user_chose_is_passed_over() -> None:
    names = Names(("x", "x_3"))
    assert [names.take(wanted) for wanted in ("x", "x", "x_3", "x_2", "x")] == ["x_2", "x_4", "x_3_2", "x_2_2", "x_5"]


def test_names_of_a_block_are_free_again_behind_it() -> None:
    outer = Names(("task",))
    outer.take("made")
    inner = outer.inner()
    assert [inner.take("task"), inner.take("made"), inner.take("view")] == ["task_2", "made_2", "view"]
    assert [outer.take("view"), outer.take("made")] == ["view", "made_2"]


def test_a_language_numbers_its_own_way() -> None:
    assert [Names("a", "{}_v{}".format).take("a"), Names("a", lambda name, number: name + "_" * (number - 1)).take("a")] == ["a_v2", "a_"]
    blocks = Names("a", "{}_v{}".format).inner()
    assert [blocks.take("a"), blocks.take("a")] == ["a_v2", "a_v3"]


@given(st.lists(st.sampled_from(("a", "a_2", "a_3", "a_2_2", "b"))), st.sets(st.sampled_from(("a", "a_2", "a_4", "b_2"))))
def test_each_name_is_the_first_unused_variant(wanted: list[str], taken: set[str]) -> None:
    names, used = Names(taken), set(taken)
    for name in wanted:
        expected = next(free for free in (name, *(f"{name}_{number}" for number in range(2, 50))) if free not in used)
        assert names.take(name) == expected
        used.add(expected)
