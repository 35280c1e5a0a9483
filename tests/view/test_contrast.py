"""Cards in a browser: every text of every kind of part, tone and kernel colour can be read, light and dark."""

from __future__ import annotations

import re
import string
from pathlib import Path
from typing import Any, get_args

import pytest

from pto_wsp.view.card import (
    BarPart,
    BoxesPart,
    Card,
    CardPart,
    CodeLine,
    CodePart,
    CodeRun,
    GraphNode,
    GraphPart,
    GridCell,
    GridPanel,
    GridPart,
    IterationCell,
    LanesPart,
    LegendEntry,
    Part,
    RegionBox,
    RegionsPart,
    Segment,
    Site,
    StripPart,
    StripSpan,
    Tone,
)
from pto_wsp.view.colours import SLOTS
from pto_wsp.view.html import page_of
from tests.view.browser import missing, open_browser
from tests.view.test_text import cards_of

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=missing() or "a browser is there")]

KERNELS = tuple(LegendEntry(name=f"kernel {slot}", letter=string.ascii_uppercase[slot], slot=slot) for slot in range(SLOTS))


def tones(model: type[CardPart], field: str) -> list[Any]:
    """Return the values of a field that is one of several words."""
    return list(get_args(model.model_fields[field].annotation))


def coloured() -> Card:
    """Return a card with each tone of each kind of part, and each colour of kernels."""
    spans = tones(StripSpan, "tone")
    nodes = tuple(GraphNode(kernel=key, label="n", count="8", x=60 + 110 * at, y=40, width=90) for at, key in enumerate(KERNELS))
    lines = (CodeLine(number="1", badge=badge, note="note", runs=tuple(CodeRun(text=tone or "plain", tone=tone) for tone in get_args(Tone)))
             for badge in ("", "A", "B"))
    boxes = (RegionBox(rows=(10 * at, 10 * at + 9), cols=(0, 30), tone=tone, label=tone)
             for at, tone in enumerate(tones(RegionBox, "tone")))
    cells = (IterationCell(label="i", letter=letter) for letter in tones(IterationCell, "letter"))
    grids = tuple(GridPart(title="g", kernel=key, across="a", down="d", place="core", unit="cycles", panels=(GridPanel(
        title="p", n_rows=1, n_columns=1, row_labels=("r",), cells=(GridCell(x=0, y=0),)),)) for key in KERNELS)
    return Card(title="Colours", subtitle="s", state="open", sentence="bad", foot="f", tone="bad", parts=(
        GraphPart(width=1900, height=80, node_height=34, nodes=nodes, links=(), legend=KERNELS),
        LanesPart(unit="cycles", total=3, legend=KERNELS, lanes=()),
        BarPart(unit="cycles", segments=tuple(Segment(label=tone, amount=9, tone=tone) for tone in tones(Segment, "tone")), bound=3),
        StripPart(unit="cycles", moments=tuple(("m", at) for at in range(len(spans) + 1)),
                  spans=tuple(StripSpan(label=tone, amount=9, tone=tone, cause="c") for tone in spans)),
        CodePart(title="c", lines=tuple(lines)), RegionsPart(title="r", rows=40, cols=40, boxes=tuple(boxes), iterations=tuple(cells)),
        BoxesPart(boxes=tuple(Site(kernel=key, index="[b]", arguments=()) for key in KERNELS)), *grids))


@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
def test_every_text_of_every_kind_of_part_can_be_read(tmp_path: Path, is_dark: bool) -> None:
    cards = [*cards_of("name"), coloured()]
    assert {part.kind for card in cards for part in card.parts} == {
        kind.model_fields["kind"].default for kind in get_args(get_args(Part)[0])}
    page = tmp_path / "cards.html"
    page.write_text(page_of(cards, "cards", ""), encoding="utf-8")
    with open_browser(is_dark=is_dark) as browser:
        browser.driver.get(page.as_uri())
        assert browser.faint_text() == []
        tint = "#f4f4f4" if is_dark else "#161616"
        browser.run("document.querySelector('.pto-card .title').style.color = arguments[0]; "
                    "document.querySelector('.pto-card').style.background = arguments[0]", tint)
        assert any(re.search('^1.00:1 .*"name"', text) for text in browser.faint_text())       # what cannot be read is found
