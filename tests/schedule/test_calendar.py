"""Calendars as values: given as functions and tables, written and read as text and JSON, refused where they are none."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import PtoError
from pto_wsp.schedule.calendar import Calendar
from pto_wsp.schedule.schedule import Schedule

PAIRS = ((0, 0), (1, 5), (0, 1))
TEXT = """calendar of 3 tasks on 2 executors
0: executor 0 position 0
1: executor 1 position 5
2: executor 0 position 1"""


def test_a_table_is_written_a_line_a_task() -> None:
    assert str(Calendar.of(PAIRS)) == TEXT
    assert str(Calendar.of([(0, 0, 7)])) == "calendar of 1 task on 1 executor\n0: executor 0 position 0 start 7"


@pytest.mark.parametrize("table", [PAIRS, [list(pair) for pair in PAIRS], np.array(PAIRS, np.int32)])
def test_tables_of_all_kinds_are_one(table: object) -> None:
    assert Calendar.of(table) == Calendar.of(PAIRS)  # type: ignore[arg-type]


@pytest.mark.parametrize("table", [(), PAIRS, [(3, 1, 10), (0, 0, 0)]])
def test_text_and_json_give_the_same_again(table: object) -> None:
    calendar = Calendar.of(table)  # type: ignore[arg-type]
    assert Calendar.from_text(str(calendar)) == calendar
    schedule = Schedule(calendar=calendar)
    assert Schedule.model_validate_json(schedule.model_dump_json()) == schedule


def test_a_function_goes_through_json() -> None:
    schedule = Schedule(calendar=Calendar.of(lambda t: (t.b % 2, t.b // 2)))
    assert Schedule.model_validate_json(schedule.model_dump_json()) == schedule
    assert str(schedule.calendar) == "Calendar.of(lambda t: (t.b % 2, t.b // 2))"


def test_a_change_of_one_place_changes_one_line() -> None:
    changed = str(Calendar.of(((0, 0), (1, 6), (0, 1)))).splitlines()
    assert [k for k, line in enumerate(TEXT.splitlines()) if changed[k] != line] == [2]


def test_what_is_shown_is_short_and_tells_tables_apart() -> None:
    long = [repr(Calendar.of([(0, k + last * (k == 999)) for k in range(1000)])) for last in (0, 1)]
    assert long[0] != long[1] and all(len(text) < 80 and "1000 tasks on 1 executor" in text for text in long)


@pytest.mark.parametrize("table, message", [
    ([(0, 0), (-1, 1)], "row 1 of a calendar is no place"),
    ([(0, 0), (0, -1)], "row 1 of a calendar is no place"),
    ([(0, 0), (1 << 16, 0)], "row 1 of a calendar is no place"),
    ([(0, 1 << 31)], "row 0 of a calendar is no place"),
    ([(0,)], "row 0 of a calendar is no place"),
    ([(0, 1.5)], "row 0 of a calendar is no place"),
    ([(True, 0)], "row 0 of a calendar is no place"),
    ([3], "row 0 of a calendar is no place"),
    (["00"], "row 0 of a calendar is no place"),
    ([(0, 0, -1)], "row 0 of a calendar is no place"),
    ([(0, 0, -1)], "row 0 of a calendar is no place"), ([(0, 0, 1 << 62)], "row 0 of a calendar is no place"),
    ([(0, 0, 1), (0, 1)], "some rows of a calendar have a start, others none"),
    ([(0, 0), (1, 0), (0, 0)], "tasks 0 and 2 of a calendar are in one place"),
])
def test_a_table_that_is_none_is_refused(table: list[tuple[int, ...]], message: str) -> None:
    with pytest.raises(PtoError, match=message) as caught:
        Calendar.of(table)
    assert caught.value.code == "S102" and "test_calendar.py" in str(caught.value)


@pytest.mark.parametrize("text, message", [
    ("", "this text is no calendar"),
    ("calender of 1 task on 1 executor\n0: executor 0 position 0", "this text is no calendar"),
    ("calendar of 2 tasks on 1 executor\n0: executor 0 position 0", "more or fewer lines"),
    ("calendar of 2 tasks on 1 executor\n0: executor 0 position 0\n2: executor 0 position 1", "line 3 of a calendar is not that of"),
    ("calendar of 1 task on 1 executor\n0: executor x position 0", "line 2 of a calendar is not that of task 0"),
    ("calendar of 2 tasks on 1 executor\n0: executor 0 position 0\n1: executor 0 position 0", "tasks 0 and 1 of a calendar are in"),
])
def test_text_that_is_none_is_refused(text: str, message: str) -> None:
    with pytest.raises(PtoError, match=message) as caught:
        Calendar.from_text(text)
    assert caught.value.code == "S102"


@pytest.mark.parametrize("given", [3, None, "0, 0", {0: (0, 0)}, (place for place in [(0, 0)])])
def test_what_is_neither_function_nor_table_is_refused(given: object) -> None:
    with pytest.raises(PtoError, match=r"this is no calendar(.|\n)*a table of such pairs") as caught:
        Calendar.of(given)  # type: ignore[arg-type]
    assert caught.value.code == "S102"


@pytest.mark.parametrize("given", [lambda t: t.b, lambda t: (t.b, 0, 0)])
def test_a_function_that_gives_no_two_numbers_is_refused(given: object) -> None:
    with pytest.raises(PtoError) as caught:
        Calendar.of(given)  # type: ignore[arg-type]
    assert caught.value.code == "S103"


def test_rows_may_be_arrays() -> None:
    assert Calendar.of([np.array([0, 0]), np.array([1, 0])]) == Calendar.of(np.array([[0, 0], [1, 0]])) == Calendar.of([(0, 0), (1, 0)])
