"""Text that breaks into lines: where, and how far."""

from __future__ import annotations

import pytest

from pto_wsp.ir.text import Text, TextRow, listed, one_line, wrap_text

CALL = listed("f(", ("a: In", "b: Out"), ",", ")")


def test_what_fits_stays_on_one_line() -> None:
    assert wrap_text(CALL, 16) == one_line(CALL) == "f(a: In, b: Out)"


def test_what_does_not_fit_has_a_line_a_part() -> None:
    assert wrap_text(CALL, 15) == "f(\n    a: In,\n    b: Out)"


def test_only_the_list_that_does_not_fit_is_broken() -> None:
    text = listed("w[", (TextRow(("axis → ", CALL)), "Kind"), ",", "]")
    assert wrap_text(text, 28) == "w[\n    axis → f(a: In, b: Out),\n    Kind]"


def test_the_bracket_behind_a_part_counts() -> None:
    text = listed("w[", ("Kind", CALL), ",", "]")
    assert wrap_text(text, 21) == "w[\n    Kind,\n    f(a: In, b: Out)]"
    assert wrap_text(text, 20) == "w[\n    Kind,\n    f(\n        a: In,\n        b: Out)]"


def test_what_follows_a_broken_list_in_a_row_starts_at_its_last_line() -> None:
    text = TextRow((CALL, " → ", CALL))
    assert wrap_text(text, 21) == "f(a: In, b: Out) → f(\n    a: In,\n    b: Out)"
    assert wrap_text(text, 15) == "f(\n    a: In,\n    b: Out) → f(\n    a: In,\n    b: Out)"


def test_a_word_is_never_broken() -> None:
    assert wrap_text("unbreakable", 3) == "unbreakable"


@pytest.mark.parametrize("width", range(1, 60))
def test_lines_say_the_same_at_every_width(width: int) -> None:
    text: Text = listed("w[", (TextRow(("a → ", listed("{", (CALL, CALL), ";", "}"))), "Kind"), ",", "]")
    shown = wrap_text(text, width)
    assert "".join(shown.split()) == "".join(one_line(text).split())
    assert width < 24 or max(map(len, shown.split("\n"))) <= width
