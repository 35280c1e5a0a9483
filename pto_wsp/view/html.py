"""Draw cards as HTML and inline SVG: complete in themselves, without a script or a request, in light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from pto_wsp.resources import templates_dir
from pto_wsp.view.card import Card, TaskLane, TaskMark

_LONGEST = 120      # characters of a name that are shown; the middle of longer ones is left out


@cache
def _environment() -> Environment:
    made = Environment(loader=FileSystemLoader(templates_dir() / "view"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
                       lstrip_blocks=True)
    made.filters["short"] = shortened
    made.filters["number"] = lambda amount: f"{amount:,}"
    made.globals["paths"] = mark_paths
    return made


def html_of(card: Card) -> str:
    """Return a card as HTML for a notebook cell."""
    return _environment().get_template("card.html.j2").render(card=card)


def page_of(cards: Sequence[Card], title: str) -> str:
    """Return cards as a page of HTML that can be saved and sent."""
    return _environment().get_template("page.html.j2").render(cards=cards, title=title)


def shortened(text: str, most: int = _LONGEST) -> str:
    """Return the text without its middle, where it is longer than `most` characters."""
    half = (most - 1) // 2
    return text if len(text) <= most else f"{text[:half]}…{text[-half:]}"


def mark_paths(row: TaskLane) -> list[tuple[int, bool, str]]:
    """Return the marks of a lane as SVG paths: kernel, whether its marks are at full height, path. Marks with a name are left out."""
    found: dict[tuple[int, bool], list[str]] = {}
    for mark in row.marks:
        if not mark.name:
            found.setdefault((mark.kernel, mark.full), []).append(_path(mark))
    return [(kernel, full, "".join(parts)) for (kernel, full), parts in found.items()]


def _path(mark: TaskMark) -> str:
    return f"M{mark.x} 0h{mark.width}v1h-{mark.width}z"
