"""Draw cards as HTML and inline SVG: complete in themselves, without a script or a request, in light and dark."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pto_wsp.resources import templates_dir
from pto_wsp.view.card import Card, GraphLink, GraphPart, GridPanel, TaskLane, TaskMark
from pto_wsp.view.drawings import drawn_memories, drawn_pipes, drawn_regions
from pto_wsp.wording import shortened

# the files of `templates/view/page/` that make the script of a page, in order
SCRIPTS = ("data", "pixels", "lanes", "panels", "search", "keys", "main")


@cache
def _environment() -> Environment:
    made = Environment(loader=FileSystemLoader(templates_dir() / "view"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
                       lstrip_blocks=True)
    made.filters["short"] = shortened
    made.filters["number"] = lambda amount: f"{amount:,}"
    made.globals["paths"] = mark_paths
    made.globals["row_paths"] = row_paths
    made.globals["link_path"] = link_path
    made.globals["cell_paths"] = cell_paths
    made.globals["style"] = style_of
    made.globals["drawing"] = {"regions": drawn_regions, "pipes": drawn_pipes, "memories": drawn_memories}
    return made


def style_of(cards: Sequence[Card]) -> Markup:
    """Return the style sheet of cards: colours for light and dark, and the rules of the kinds of parts that they have."""
    kinds = sorted({part.kind for card in cards for part in card.parts})
    return Markup(_environment().get_template("style.css.j2").render(card_kinds=kinds).strip())


def html_of(card: Card) -> str:
    """Return a card as HTML for a notebook cell."""
    return _environment().get_template("card.html.j2").render(card=card)


def body_of(card: Card) -> str:
    """Return a card as HTML without its style sheet, for a place that has `style_of` it."""
    return _environment().get_template("body.html.j2").render(card=card)


def page_of(cards: Sequence[Card], title: str, run: str = "") -> str:
    """Return cards as a page of HTML that can be saved and sent. `run`: the data of a run as JSON without markup, for a page of clicks.

    The page asks for nothing outside itself, and runs no script but its own: its policy names the script's digest.
    """
    script = "\n".join((templates_dir() / "view" / "page" / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS) if run else ""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii") if run else ""
    return _environment().get_template("page.html.j2").render(cards=cards, title=title, run=Markup(run), script=Markup(script),
                                                              digest=digest)


def mark_paths(row: TaskLane) -> list[tuple[int, bool, str]]:
    """Return the marks of a lane as SVG paths: kernel, whether its marks are at full height, path. Marks with a name are left out."""
    found: dict[tuple[int, bool], list[str]] = {}
    for mark in row.marks:
        if not mark.name:
            found.setdefault((mark.kernel, mark.full), []).append(_path(mark))
    return [(kernel, full, "".join(parts)) for (kernel, full), parts in found.items()]


def row_paths(lanes: Sequence[TaskLane]) -> list[tuple[int, bool, str]]:
    """Return the marks of several lanes, one below the other, as SVG paths: kernel, whether at full height, path."""
    found: dict[tuple[int, bool], list[str]] = {}
    for row, lane in enumerate(lanes):
        for mark in lane.marks:
            found.setdefault((mark.kernel, mark.full), []).append(f"M{mark.x} {10 * row}h{mark.width}v9h-{mark.width}z")
    return [(kernel, full, "".join(parts)) for (kernel, full), parts in found.items()]


def link_path(part: GraphPart, link: GraphLink) -> str:
    """Return edges of a graph as an SVG path: from below their source to above their target, or back at the right."""
    half = part.node_height // 2
    (x, y), *rest = link.points
    if link.is_back:
        source, target = part.nodes[link.source], part.nodes[link.target]
        out, back = source.x + source.width // 2, target.x + target.width // 2
        side = max(out, back) + 34
        tip = f"{back + 1} {target.y - 8}"
        return f"M{out} {source.y + 8}C{side} {source.y + 14} {side} {target.y - 14} {tip}m6 -5L{tip}l7 3"
    y += half
    drawn = [f"M{x} {y}"]
    for number, (to_x, to_y) in enumerate(rest):
        end = to_y - half if number == len(rest) - 1 else to_y
        drawn.append(f"C{x} {(y + end) // 2} {to_x} {(y + end) // 2} {to_x} {end}")
        x, y = to_x, end
    return f"{''.join(drawn)}m-3 -6l3 6l3 -6"


def cell_paths(panel: GridPanel, by_time: bool, width: int, height: int, left: int) -> list[tuple[str, str]]:
    """Return the cells of a grid as SVG paths: class, path. In the grid by place, cells with a name are left out.

    `width`, `height`: of a cell; `left`: where cells begin.
    """
    found: dict[str, list[str]] = {}
    for cell in panel.cells:
        if by_time or not cell.name:
            wide = max(1.5, round((width - 1) * cell.width / 100, 1))
            tone = f"w{cell.when}" if by_time else f"f{cell.where % 8}"
            found.setdefault(tone, []).append(f"M{left + cell.x * width} {cell.y * height}h{wide:g}v{height - 1}h-{wide:g}z")
    return [(tone, "".join(parts)) for tone, parts in found.items()]


def _path(mark: TaskMark) -> str:
    return f"M{mark.x} 0h{mark.width}v1h-{mark.width}z"
