"""Rows: how they are rounded and met, and what shadows hold, by hand and against all points of a box."""

from __future__ import annotations

import random

import pytest

from pto_wsp.check.affine.rows import Rows, insert, interval, project, refutes, replace, tighten
from tests.check.affine.random_systems import box, holds, random_rows


def test_a_row_is_rounded_and_turned_to_its_shape() -> None:
    rows: Rows = {}
    assert insert(rows, {3: -6, 5: 9}, -10, 10)
    assert rows == {((3, 2), (5, -3)): (-3, 3)}


def test_two_bounds_of_one_form_meet() -> None:
    rows: Rows = {}
    assert insert(rows, {0: 1, 1: -1}, 0, None)
    assert insert(rows, {0: -2, 1: 2}, -9, None)
    assert rows == {((0, 1), (1, -1)): (0, 4)}
    assert not insert(rows, {1: 1, 0: -1}, 1, None)


def test_a_range_without_a_multiple_is_refused() -> None:
    assert not insert({}, {0: 4}, 5, 7)
    assert not insert({}, {}, 1, None)
    assert insert({}, {}, 0, 0)


def test_a_value_replaces_its_variable() -> None:
    rows: Rows = {}
    insert(rows, {0: 1, 1: 2}, 0, 9)
    insert(rows, {1: 1}, 0, 3)
    assert replace(rows, (0, ((1, 3), (2, 1)), 5)) == {((1, 1),): (0, 3), ((1, 5), (2, 1)): (-5, 4)}
    assert replace(rows, (0, ((1, -2),), 10)) is None


def test_the_dark_shadow_is_smaller_by_the_gap() -> None:
    # 3y >= x and 4y <= z: the real shadow is 4x <= 3z, the dark one 4x + (3 - 1)(4 - 1) <= 3z
    rows: Rows = {}
    insert(rows, {0: -1, 1: 3}, 0, None)
    insert(rows, {2: -1, 1: 4}, None, 0)
    real, dark = project(rows, 1, False), project(rows, 1, True)
    assert real is not None and real[0] == {((0, 4), (2, -3)): (None, 0)}
    assert dark is not None and dark[0] == {((0, 4), (2, -3)): (None, -6)}


def test_a_row_that_may_miss_an_integer_has_no_dark_shadow() -> None:
    narrow: Rows = {((0, 1), (1, 4)): (0, 2)}
    wide: Rows = {((0, 1), (1, 4)): (0, 3)}
    assert project(narrow, 1, True) is None
    assert project(wide, 1, True) == ({}, wide)


@pytest.mark.parametrize("block", range(5))
def test_shadows_hold_what_they_should(block: int) -> None:
    """The real shadow has each point with an integer over it, the dark one no point without."""
    rng = random.Random(block)
    for _ in range(60):
        rows = random_rows(rng, 3)
        real, dark = project(rows, 2, False), project(rows, 2, True)
        for point in box(2, 4):
            least, most = interval(real[1], 2, dict(point)) if real else (0, -1)
            others = {form: bounds for form, bounds in rows.items() if all(var != 2 for var, _ in form)}
            reached = holds(others, point) and (least is None or most is None or least <= most)
            if reached:
                assert real is not None and holds(real[0], point)
            if dark is not None and holds(dark[0], point):
                assert reached


def test_the_interval_of_a_variable_is_what_its_rows_leave() -> None:
    rng = random.Random(3)
    for _ in range(100):
        rows = {form: bounds for form, bounds in random_rows(rng, 3).items() if any(var == 1 for var, _ in form)}
        if not rows:
            continue
        point = {0: rng.randint(-3, 3), 2: rng.randint(-3, 3)}
        least, most = interval(rows, 1, point)
        for value in range(-30, 31):
            inside = (least is None or least <= value) and (most is None or value <= most)
            assert inside == holds(rows, {**point, 1: value})


@pytest.mark.sampled(5)
@pytest.mark.parametrize("block", range(5))
def test_tightening_changes_no_point(block: int) -> None:
    rng = random.Random(100 + block)
    for _ in range(60):
        rows = random_rows(rng, 3, bounded=True)
        tight = tighten(rows)
        for point in box(3, 4):
            assert holds(rows, point) == (tight is not None and holds(tight, point))


def test_tightening_finds_bounds_and_drops_what_they_imply() -> None:
    rows: Rows = {}
    insert(rows, {0: 1}, 0, 10)
    insert(rows, {0: 1, 1: 2}, 25, None)
    insert(rows, {1: 1, 2: -1}, None, 0)
    insert(rows, {2: 1}, None, 9)
    insert(rows, {0: 1, 2: 1}, -5, None)
    assert tighten(rows) == {((0, 1),): (7, 10), ((1, 1),): (8, 9), ((2, 1),): (8, 9), ((0, 1), (1, 2)): (25, None),
                             ((1, 1), (2, -1)): (None, 0)}
    insert(rows, {0: 1}, None, 6)
    assert tighten(rows) is None


@pytest.mark.parametrize("block", range(3))
def test_what_is_refuted_has_no_point(block: int) -> None:
    rng = random.Random(200 + block)
    refuted = 0
    for _ in range(200):
        rows = random_rows(rng, 2, bounded=True)
        terms = {var: rng.choice([-2, -1, 1, 3]) for var in range(2) if rng.random() < 0.8}
        low, high = rng.choice([(None, rng.randint(-9, 0)), (rng.randint(0, 9), None), (4, 4)])
        if refutes(rows, dict(terms), low, high):
            refuted += 1
            more: Rows = dict(rows)
            assert not insert(more, dict(terms), low, high) or not any(holds(more, point) for point in box(2, 4))
    assert refuted > 15
    assert not refutes({((0, 1),): (0, 4)}, {0: 2}, 8, None)
    assert refutes({((0, 1),): (0, 4)}, {0: 2}, 9, None)
