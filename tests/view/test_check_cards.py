"""Cards of errors, races and checks: the places, regions and edits that they name, and what a notebook shows of an error."""

from __future__ import annotations

import pickle
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, In, Out, P, PtoError, Tensor, Tile, Workload, combine, kernel, pto, workload
from pto_wsp.check.verdict import CheckList, Finding, Verdict
from pto_wsp.errors.order import RaceError
from pto_wsp.errors.traceback import show_below
from pto_wsp.view.card import Card, CodePart, DetailsPart, EditsPart, RegionsPart, TablePart
from pto_wsp.view.check_cards import error_card
from pto_wsp.view.drawings import drawn_regions, ticks
from pto_wsp.view.highlight import code_lines
from pto_wsp.view.html import html_of
from tests.view.test_cards import HOSTILE, part_of, text_of

X, Y = (Tensor(np.ones((4, 64, 64), np.float32), name=name) for name in "XY")


@kernel
def partial(x: In[Tile[16, 64, DType.F32]], y: Out[Tile[16, 64, DType.F32]]) -> None:
    pto.store(y, x * 2.0)


@workload
def windows() -> None:
    for b in P(4):
        for t in P(4):
            partial[b, t](X[b, 16 * t:16 * t + 16], Y[b, 12 * t:12 * t + 16])


@workload
def neighbours() -> None:
    for t in P(3):
        partial[t](Y[0, 16 * t:16 * t + 16], Y[0, 16 * t + 16:16 * t + 32])


@workload
def one() -> None:
    partial(X[0, :16], Y[0, :16])


@workload
def other() -> None:
    partial(X[0, :16], Y[0, 8:24])


@workload
def reshaped() -> None:
    for _ in P(2):
        partial(X[0, :16], Y.reshape(16, 16, 64)[0])


def race_of(made: Workload) -> RaceError:
    with pytest.raises(RaceError) as caught:
        made.compile(target="interp")
    return caught.value


def code(part: CodePart, line: int) -> str:
    return "".join(run.text for run in part.lines[line].runs)


def test_a_race_ties_lines_iterations_and_regions_by_two_letters() -> None:
    error = race_of(windows())
    card = error.card
    lines = next(part for part in card.parts if isinstance(part, CodePart))
    assert [line.badge for line in lines.lines] == ["", "A", "B"]
    assert code(lines, 0) == "for t in P(4):"
    marked = [(run.tone, run.text) for line in lines.lines for run in line.runs if run.tone in ("first", "second")]
    assert marked == [("first", "Y[b, 12 * t:12 * t + 16]"), ("second", "Y[b, 12 * t:12 * t + 16]")]
    assert [line.note for line in lines.lines[1:]] == ["b = 0, t = 0 → written Y[0, 0:16, 0:64]",
                                                       "b = 0, t = 1 → written Y[0, 12:28, 0:64]"]
    shown = part_of(card, RegionsPart)
    assert (shown.title, shown.rows, shown.cols, shown.sentence) == ("Y[0]", 64, 64, "both write Y[0, 12:16, 0:64]")
    assert {box.tone: (box.rows, box.cols) for box in shown.boxes if box.tone != "other"} == {
        "first": ((0, 16), (0, 64)), "second": ((12, 28), (0, 64)), "shared": ((12, 16), (0, 64))}
    assert [(box.label, box.rows) for box in shown.boxes if box.tone == "other"] == [("t = 2", (24, 40)), ("t = 3", (36, 52))]
    assert [(cell.letter, cell.joined) for cell in shown.iterations] == [("A", True), ("B", True), ("", True), ("", False)]
    assert shown.notes == ("256 elements: 25% of what A touches", "so do t = 1, 2 and t = 2, 3")
    assert card.tone == "bad" and card.sentence == error.message and card.title == "error W201"
    assert "Tasks without an order" in part_of(card, DetailsPart).text


def test_the_edits_of_a_race_are_code() -> None:
    edits = part_of(race_of(windows()).card, EditsPart).edits
    texts = {edit.title: "".join(run.text for run in edit.runs) for edit in edits}
    assert texts == {"Blocks apart": "Y[b, 16 * t:16 * t + 16]", "In order": "for t in P.seq(4):",
                     "A place for each t": "Y[t, b, 12 * t:12 * t + 16]"}
    assert [run.text for run in edits[0].runs if run.tone == "mark"] == ["16", "16"]


def test_a_read_and_a_write_are_marked_each_at_its_argument() -> None:
    card = race_of(neighbours()).card
    lines = next(part for part in card.parts if isinstance(part, CodePart))
    marked = [run.text for line in lines.lines for run in line.runs if run.tone in ("first", "second")]
    assert marked == ["Y[0, 16 * t + 16:16 * t + 32]", "Y[0, 16 * t:16 * t + 16]"]
    assert part_of(card, RegionsPart).sentence == "both touch Y[0, 16:32, 0:64]"
    assert [edit.title for edit in part_of(card, EditsPart).edits] == ["In order"]


def test_sides_without_an_order_have_regions_and_no_iterations() -> None:
    card = race_of(combine(one(), other())).card
    shown = part_of(card, RegionsPart)
    assert shown.iterations == () and shown.sentence == "both write Y[0, 8:16, 0:64]"
    assert not any(isinstance(part, EditsPart) for part in card.parts)


def test_regions_that_are_no_boxes_leave_the_line() -> None:
    error = race_of(reshaped())
    assert error.picture is None
    line = part_of(error.card, CodePart).lines[0]
    assert any(run.tone == "mark" and "reshape" in run.text for run in line.runs)


def test_the_picture_survives_pickling_and_errors_together() -> None:
    error = race_of(windows())
    copy = pickle.loads(pickle.dumps(error))
    assert copy.picture == error.picture and copy.card == error.card and str(copy) == str(error)


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_an_error_is_text_and_never_markup(name: str) -> None:
    html = html_of(error_card(RaceError(name, None, expected=name, found=name, help=name, notes=(name,), others=(RaceError(name),))))
    text_of(html)
    assert len(html) < 100_000


def test_a_notebook_shows_the_picture_behind_the_report_once(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[dict[str, str]] = []
    callbacks: list[Any] = []
    events = SimpleNamespace(register=lambda _, callback: callbacks.append(callback),
                             unregister=lambda _, callback: callbacks.remove(callback))
    ipython: Any = ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object(), events=events)
    ipython.display = SimpleNamespace(display=lambda data, raw: shown.append(data))
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    error = race_of(windows())
    show_below(error)
    show_below(error)
    assert shown == [] and len(callbacks) == 1
    for callback in list(callbacks):
        callback()
    assert len(shown) == 1 and "both write" in text_of(shown[0]["text/html"]) and callbacks == []


def test_an_error_without_a_picture_adds_nothing_to_a_notebook() -> None:
    with pytest.raises(PtoError) as caught:
        windows().compile(target="nowhere")
    assert caught.value.picture is None
    card = caught.value.card
    assert card.sentence == caught.value.message and part_of(card, CodePart).lines


def test_checks_are_lines_and_a_table_with_what_is_open_first() -> None:
    proof = Finding("a", Verdict.PROVED, "always")
    findings = [proof, Finding("b", Verdict.NOT_PROVED, "who knows"), proof]
    checks = CheckList(findings)
    assert checks == ("proved: a (always)", "not proved: b (who knows)") and repr(checks) == "Checks(1 proved, 1 not proved)"
    assert str(checks) == "proved: a (always)\nnot proved: b (who knows)"
    assert part_of(checks.card, TablePart).rows == (("? not proved", "b", "who knows"), ("✓ proved", "a", "always"))
    assert checks.card.sentence == "1 of 2 proved for every run, 1 left to each run."
    assert CheckList([]).card == Card(title="Checks", sentence="There was nothing to check.")
    assert repr(CheckList([])) == "Checks(none)"


def test_ticks_are_round_and_hold_both_ends() -> None:
    assert ticks(64, 4) == [0, 16, 32, 48, 64]
    assert ticks(1, 6) == [0, 1] and ticks(100, 6) == [0, 32, 64, 100]
    assert len(ticks(10 ** 9, 6)) <= 8


def test_a_map_keeps_its_size_whatever_the_tensor() -> None:
    for rows, cols in ((1, 10 ** 7), (10 ** 7, 1), (1, 1)):
        drawn = drawn_regions(RegionsPart(title="t", rows=rows, cols=cols, boxes=()))
        assert drawn["width"] < 600 and drawn["height"] < 400


def test_code_keeps_its_characters_and_has_tones() -> None:
    text = 'def f(x):\n    return "a" + 1  # why\n'
    lines = code_lines(text, "python")
    assert "\n".join("".join(run.text for run in line.runs) for line in lines) == text
    assert {run.text.strip(): run.tone for line in lines for run in line.runs if run.tone} == {
        "def": "key", "f": "name", "return": "key", '"a"': "string", "1": "number", "# why": "comment"}
