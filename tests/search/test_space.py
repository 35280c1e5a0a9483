"""Drawing candidates: each is one of the space, those near another differ little, and all are all."""

from __future__ import annotations

from itertools import pairwise

from pto_wsp.api.search import Tried, best_of, search
from pto_wsp.api.search_space import Candidate, Draw


def test_all_choices_are_there_once_and_that_which_says_nothing_is_first() -> None:
    every = Draw((2, 1, 3), 2, 0).all()
    assert len(set(every)) == len(every) == Draw((2, 1, 3), 2, 0).size == 6
    assert every[0] == Draw((2, 1, 3), 2, 0).first() == Candidate((0, 0), (0,))


def test_a_choice_near_another_differs_in_one_or_two_answers() -> None:
    draw = Draw((4, 1, 3, 5), 3, 1)
    start = draw.any()
    apart = [sum(a != b for a, b in zip(start.places, draw.near(start).places, strict=True)) for _ in range(100)]
    assert set(apart) == {1, 2}


def test_answers_that_helped_are_put_together() -> None:
    draw = Draw((3, 3, 3), 2, 0)
    assert [candidate.places for candidate in draw.alone()] == [(1, 0, 0), (2, 0, 0), (0, 1, 0), (0, 2, 0), (0, 0, 1), (0, 0, 2)]
    assert draw.together([Candidate((0, 2), (0,)), Candidate((0, 1), (0,)), Candidate((0, 0), (1,)), Candidate((1, 0), (0,))]) == [
        Candidate((0, 2), (0,)), Candidate((0, 2), (1,)), Candidate((1, 2), (1,))]


def test_what_helps_alone_is_found_together_soon() -> None:
    good = (3, 0, 2, 1, 4)

    def simulate(batch: list[Candidate]) -> list[Tried]:
        return [Tried(candidate, 100 - sum(a == b for a, b in zip(candidate.places, good, strict=True))) for candidate in batch]

    tried = list(search(Draw((6,) * 5, 5, 0), 30, simulate))  # type: ignore[arg-type]
    assert best_of(tried).cycles == 95       # all five, after 26 that say one thing at most


def test_choices_stay_in_the_space() -> None:
    draw = Draw((4, 1, 3), 3, 1)
    for candidate in [draw.any() for _ in range(100)]:
        assert all(0 <= place < width for place, width in zip(candidate.places, (4, 1, 3), strict=True))


def test_a_large_space_is_searched_towards_what_does_well() -> None:
    def cycles(candidate: Candidate) -> int:      # answers that only help with one another
        here = candidate.places
        return 1 + sum((a + b - 7) ** 2 for a, b in pairwise(here)) + 5 * (here[0] != 4)

    def simulate(batch: list[Candidate]) -> list[Tried]:
        assert 0 < len(batch) <= 60
        return [Tried(candidate, cycles(candidate)) for candidate in batch]

    ours, blind = 0, 0
    for seed in range(5):
        draw = Draw((9,) * 6, 6, seed)
        tried = list(search(draw, 400, simulate))  # type: ignore[arg-type]
        assert len(tried) == len({one.candidate for one in tried}) == 400 and tried[0].candidate == Candidate((0,) * 6)
        ours += best_of(tried).cycles or 0
        blind += min(cycles(draw.any()) for _ in range(400))
    assert ours < 0.7 * blind


def test_a_space_smaller_than_a_batch_ends() -> None:
    tried = list(search(Draw((1,), 1, 0), 50, lambda batch: [Tried(candidate, None, refused="no") for candidate in batch]))
    assert [one.refused for one in tried] == ["no"]
