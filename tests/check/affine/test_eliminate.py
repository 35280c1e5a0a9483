"""Elimination: which projections are exact, which places lie between the shadows, and that a tableau keeps its points."""

from __future__ import annotations

import random

import pytest

from pto_wsp.check.affine.eliminate import Nothing, Search, Tableau, columns_of, places_of, splinters_of
from pto_wsp.check.affine.rows import Rows, insert, interval, project
from tests.check.affine.random_systems import box, holds, random_rows


def test_a_row_of_a_quotient_is_exact_where_it_is_wide_enough() -> None:
    exact: Rows = {((0, 1), (1, -4)): (0, 3)}
    narrow: Rows = {((0, 1), (1, -4)): (0, 2)}
    assert columns_of(exact)[1].is_exact()
    assert not columns_of(narrow)[1].is_exact()
    two: Rows = {**exact, ((1, 4), (2, -1)): (0, 3)}
    assert not columns_of(two)[1].is_exact()


@pytest.mark.parametrize("block", range(5))
def test_an_exact_projection_has_an_integer_over_each_point(block: int) -> None:
    rng = random.Random(block)
    seen = 0
    for _ in range(150):
        rows = random_rows(rng, 3)
        parts = project(rows, 2, False)
        column = columns_of(rows).get(2)
        if parts is None or column is None or not column.is_exact():
            continue
        seen += 1
        for point in box(2, 4):
            if holds(parts[0], point):
                least, most = interval(parts[1], 2, dict(point))
                assert least is None or most is None or least <= most
    assert seen > 20


@pytest.mark.parametrize("block", range(5))
def test_a_point_that_is_not_over_the_dark_shadow_is_in_a_place(block: int) -> None:
    rng = random.Random(50 + block)
    outside = 0
    for _ in range(300):
        rows = random_rows(rng, 2)
        column, dark = columns_of(rows).get(1), project(rows, 1, True)
        if column is None or not (column.n_low and column.n_high) or column.is_exact():
            continue
        mine = {form: bounds for form, bounds in rows.items() if any(var == 1 for var, _ in form)}
        places = splinters_of(mine, 1, 1000)
        assert places is not None
        for point in box(2, 6):
            if holds(rows, point) and not (dark is not None and holds(dark[0], {0: point[0]})):
                outside += 1
                values = [(sum(c * point[var] for var, c in terms.items()), low, high) for terms, low, high in places]
                assert any(low == value == high for value, low, high in values)
    assert outside > 20


def test_places_are_counted_first() -> None:
    mine: Rows = {((0, 1), (1, 1000)): (0, None), ((1, 999), (2, 1)): (None, 0)}
    assert splinters_of(mine, 1, 24) is None


def test_what_is_added_later_is_rewritten() -> None:
    tableau = Tableau({}, 3)
    tableau.add({0: 3, 1: 5}, 1, 1)
    tableau.settle()
    assert not tableau.rows
    tableau.add({0: 1}, 5, 9)
    tableau.add({2: 1, 0: -1}, 0, 0)
    branch = tableau.branch()
    point = Search(1000).find(tableau)
    assert isinstance(point, dict)
    assert 3 * point[0] + 5 * point[1] == 1 and 5 <= point[0] <= 9 and point[2] == point[0]
    branch.add({0: 1}, None, 6)   # 7 is the only one of 5 … 9 that is 2 modulo 5
    assert Search(1000).find(branch) is Nothing.EMPTY


@pytest.mark.slow
def test_equalities_without_a_coefficient_of_one_keep_their_points() -> None:
    rng = random.Random(9)
    found = 0
    for _ in range(200):
        rows: Rows = {}
        fine = all(insert(rows, {var: 1}, -4, 4) for var in range(3))
        for _ in range(rng.randint(1, 2)):
            terms = {var: c for var in range(3) if (c := rng.choice([-9, -7, -6, -4, 0, 4, 6, 7, 9, 10]))}
            value = rng.randint(-12, 12)
            fine = fine and insert(rows, terms, value, value)
        points = [point for point in box(3, 4) if fine and holds(rows, point)]
        tableau = Tableau(dict(rows), 3)
        tableau.empty = not fine
        answer = Search(2000).find(tableau)
        assert isinstance(answer, dict) == bool(points)
        found += bool(points)
        if isinstance(answer, dict):
            assert holds(rows, {var: answer.get(var, 0) for var in range(3)})
    assert found > 20


@pytest.mark.parametrize("block", range(5))
def test_the_values_of_a_thin_row_are_all_tried(block: int) -> None:
    rng = random.Random(70 + block)
    outside = 0
    for _ in range(100):
        rows: Rows = {((0, rng.choice([101, 103])), (1, rng.choice([-97, -89]))): (rng.randint(-300, -100), rng.randint(100, 300))}
        insert(rows, {0: rng.choice([1, 2]), 1: rng.choice([-3, 3])}, rng.randint(-4, 0), rng.randint(0, 4))
        dark = project(rows, 1, True)
        places = places_of(rows, rows, 1)
        assert places is not None
        for point in box(2, 6):
            if holds(rows, point) and not (dark is not None and holds(dark[0], {0: point[0]})):
                outside += 1
                assert any(sum(c * point[var] for var, c in terms.items()) == low == high for terms, low, high in places)
    assert outside > 50


def test_a_search_that_goes_deep_is_given_up() -> None:
    # The only points are far from 0, and cutting at holes comes nearer to them step by step.
    rows: Rows = {}
    for var in range(3):
        insert(rows, {var: 1}, 0, None)
    insert(rows, {0: 1, 1: -8192}, 15, 31)
    insert(rows, {0: 8192, 2: -8192, 1: -1}, 15, 142)
    assert Search(100_000).find(Tableau(rows, 3)) is Nothing.UNKNOWN
