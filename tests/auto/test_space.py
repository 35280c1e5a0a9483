"""Drawing choices: each is one of the space, those near another differ little, and all are all."""

from __future__ import annotations

from pto_wsp.auto.search import Tried, best_of, search
from pto_wsp.auto.space import Choice, Draw


def places(choice: Choice) -> tuple[int, ...]:
    return (*choice.answers, *choice.tuning)


def test_all_choices_are_there_once_and_that_which_says_nothing_is_first() -> None:
    every = Draw((2, 1, 3), 2, 0).all()
    assert len(set(every)) == len(every) == Draw((2, 1, 3), 2, 0).size == 6
    assert every[0] == Draw((2, 1, 3), 2, 0).first() == Choice((0, 0), (0,))


def test_a_choice_near_another_differs_in_one_or_two_answers() -> None:
    draw = Draw((4, 1, 3, 5), 3, 1)
    start = draw.any()
    apart = [sum(a != b for a, b in zip(places(start), places(draw.near(start)), strict=True)) for _ in range(100)]
    assert set(apart) == {1, 2}


def test_choices_stay_in_the_space() -> None:
    draw = Draw((4, 1, 3), 3, 1)
    for choice in [draw.any() for _ in range(100)]:
        assert all(0 <= place < width for place, width in zip(places(choice), (4, 1, 3), strict=True))


def test_a_large_space_is_searched_towards_what_does_well() -> None:
    widths = (9,) * 6
    calls: list[int] = []

    def simulate(batch: list[Choice]) -> list[Tried]:
        calls.append(len(batch))
        return [Tried(choice, 1 + sum((place - 5) ** 2 for place in places(choice))) for choice in batch]

    tried = list(search(Draw(widths, 6, 4), 400, simulate))  # type: ignore[arg-type]
    assert len(tried) == sum(calls) == 400 and len({one.choice for one in tried}) == 400
    assert tried[0].choice == Choice((0,) * 6) and tried[0].cycles == 151
    blind = min(one.cycles or 0 for one in tried[1:100])
    assert (best_of(tried).cycles or 0) < min(6, blind)      # of 531441 choices seven are that close


def test_a_space_smaller_than_a_batch_ends() -> None:
    tried = list(search(Draw((1,), 1, 0), 50, lambda batch: [Tried(choice, None, refused="no") for choice in batch]))
    assert [one.refused for one in tried] == ["no"]
