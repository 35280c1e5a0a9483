"""What a notebook shows of a value: a card as HTML beside the value's text.

Nothing here runs, compiles or simulates anything. A fault of a card is no fault of the user's cell: the text is shown alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pto_wsp.errors import CommandError
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.source import here
from pto_wsp.timing.graph import RunGraph
from pto_wsp.timing.stats import Stats
from pto_wsp.timing.trace import Trace, file_path
from pto_wsp.view.card import Card, Preformatted
from pto_wsp.view.html import html_of, page_of
from pto_wsp.view.program_cards import schedule_card
from pto_wsp.view.run_cards import graph_card, lanes_of, stats_card, trace_card

_CARDS: dict[type, Callable[..., Card]] = {Trace: trace_card, Stats: stats_card, RunGraph: graph_card, Schedule: schedule_card}


def card_of(value: object) -> Card | None:
    """Return the card of a trace, the figures of a run or a task graph; None for other values."""
    for kind in type(value).__mro__:
        if kind in _CARDS:
            return _CARDS[kind](value)
    return None


def timeline_card(trace: Trace, end: int | None) -> Card:
    """Return the card of a timeline: lanes of which the full width stands for the time `end`, by default that of the trace."""
    return Card(title="Timeline", parts=(lanes_of(trace, end),) if len(trace) else ())


def text_card(title: str, text: str) -> Card:
    """Return the card of a text in a fixed pitch."""
    return Card(title=title, parts=(Preformatted(text=text),))


def write_page(cards: Sequence[Card], title: str, given: object) -> Path:
    """Write cards as a page of HTML and return its path.

    Raises: T205 for a value that is no path, C108 if the file cannot be written.
    """
    path = file_path("report", given, "report.html")
    try:
        path.write_text(page_of(cards, title), encoding="utf-8")
    except OSError as problem:
        raise CommandError("the report cannot be written there", here(), found=str(problem)) from None
    return path


def mimebundle(text: Callable[[], str], card: Callable[[], Card | None]) -> dict[str, str]:
    """Return what `_repr_mimebundle_` returns: the text, and the card as HTML if it can be made."""
    bundle = {"text/plain": text()}
    try:
        made = card()
        if made is not None:
            bundle["text/html"] = html_of(made)
    except Exception:    # a view never fails a cell; tests call the cards themselves
        return bundle
    return bundle
