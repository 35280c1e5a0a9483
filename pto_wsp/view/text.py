"""Draw cards as text for a terminal, in the order of the page: letters and glyphs say without colour what colours say.

In lanes a letter is a kernel, a capital where it was busy for more than half of the column. Nothing of a card is read as markup;
characters that steer a terminal are written as `\\x1b`, and text that runs from right to left changes no order beside it.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

from rich.cells import cell_len, set_cell_size
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pto_wsp.view.card import BarPart, Box, BoxesPart, Card, LanesPart, Preformatted, Site, TablePart, ValuesPart
from pto_wsp.view.terminal import (
    LONGEST_CELL,
    Unwrapped,
    block,
    encodable,
    fills_of,
    fitted,
    flow,
    in_order,
    key_style,
    legend_lines,
    letters_of,
    one_line,
)
from pto_wsp.view.text_drawings import DRAWINGS, bound_mark
from pto_wsp.wording import printable

Colours = Literal["standard", "256", "truecolor", "windows"]

_NARROWEST, _ELSEWHERE = 20, 120      # columns: the least, and of what is no terminal
_INDENT = 2
_TRAILING = re.compile(r"(?: |\x1b\[[0-9;]*m)+$", re.MULTILINE)


def text_of(card: Card, width: int | None = None, colours: Colours | None = None, encoding: str | None = None) -> str:
    """Return a card as text.

    width: columns; None: those of the terminal, or `$COLUMNS`. colours: what the terminal can show; None: no style at all. encoding: of
    the reader; None: that of stdout. What it cannot write is replaced by ASCII.
    """
    columns = max(_NARROWEST, terminal_columns() if width is None else width)
    console = Console(file=io.StringIO(), width=columns, color_system=colours, force_terminal=colours is not None, no_color=colours is None,
                      markup=False, emoji=False, highlight=False, legacy_windows=False, soft_wrap=False)
    for part in _parts(card, columns):
        console.print(part, soft_wrap=isinstance(part, Unwrapped))
    written = console.file
    assert isinstance(written, io.StringIO)
    text = _TRAILING.sub(lambda end: end[0].replace(" ", ""), written.getvalue().rstrip("\n"))
    return encodable(in_order(text), encoding or getattr(sys.stdout, "encoding", None) or "utf-8")


def terminal_columns() -> int:
    """Return the columns of the terminal; `$COLUMNS`, else 120, where stdout is none."""
    return shutil.get_terminal_size((_ELSEWHERE, 24)).columns if sys.stdout.isatty() else _columns_set()


def _columns_set() -> int:
    given = os.environ.get("COLUMNS", "")
    return int(given) if given.isdecimal() and 0 < int(given) < 1 << 16 else _ELSEWHERE


# -- whole cards -------------------------------------------------------------------------------------------------------
def _parts(card: Card, width: int) -> Iterator[RenderableType]:
    head = Text(one_line(card.title), style="bold")
    if card.subtitle:
        head.append(f"  {one_line(card.subtitle)}", style="not bold dim")
    if card.state:
        head.append(f"  {one_line(card.state)}", style="not bold cyan")
    yield head
    if card.sentence:
        yield Text(one_line(card.sentence, LONGEST_CELL), style="bold")
    for part in card.parts:
        yield ""
        yield from DRAWN[part.kind](part, width)
    if card.foot:
        yield ""
        yield Text(one_line(card.foot, LONGEST_CELL), style="dim")


# -- kinds of parts ----------------------------------------------------------------------------------------------------
def _values(part: ValuesPart, width: int) -> Iterator[RenderableType]:
    """Yield the pairs of labels and values in lines, as many in each as fit."""
    line = Text()
    for fact in part.values:
        label = Text.assemble((one_line(fact.label), "dim"), " ") if fact.label else Text()
        pair = Text.assemble(label, one_line(fact.value, LONGEST_CELL))
        if line and line.cell_len + 3 + pair.cell_len > width:
            yield line
            line = Text()
        line = Text.assemble(line, "   ", pair) if line else pair
    if line:
        yield line


def _table(part: TablePart, width: int) -> Iterator[RenderableType]:
    """Yield the table; where its columns do not fit side by side, a block for each row."""
    if part.title:
        yield Text(one_line(part.title), style="bold")
    rows = [[block(cell) for cell in row] for row in part.rows]
    head = [one_line(name) for name in part.head]
    least = [_least(column, [row[k] for row in rows if k < len(row)], k in part.right) for k, column in enumerate(head)]
    if sum(least) + _INDENT * (len(least) - 1) > width:
        for number, row in enumerate(rows):
            yield from ([""] if number else [])
            yield from (Text.assemble((f"{name} " if name else "", "dim"), cell) for name, cell in zip(head, row, strict=False) if cell)
    else:
        table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, _INDENT, 0, 0), show_header=any(head))
        for k, name in enumerate(head):
            table.add_column(Text(name), justify="right" if k in part.right else "left", overflow="fold", min_width=least[k])
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        yield table
    if part.more:
        yield Text(f"… {part.more:,} more", style="dim")


def _least(head: str, cells: Sequence[str], is_number: bool) -> int:
    """Return the columns that a table's column needs: a number's are not broken, other text between its words, or after 24 characters."""
    lines = [head, *(line for cell in cells for line in cell.split("\n"))]
    if is_number:
        return max(map(cell_len, lines))
    return max(min(cell_len(word), 24) for line in lines for word in line.split(" "))


_TONES: Mapping[str, str] = MappingProxyType({"work": "default", "submission": "dim", "bad": "red", "rest": "dim"})


def _bar(part: BarPart, width: int) -> Iterator[RenderableType]:
    """Yield the segments as a line of glyphs, a mark below at the lower bound, and what each glyph stands for."""
    if part.title:
        yield Text(one_line(part.title), style="bold")
    total = sum(segment.amount for segment in part.segments)
    span = min(width, 100)
    fills = fills_of(part.segments)
    line, before = Text(), 0
    for segment, fill in zip(part.segments, fills, strict=True):
        begin, before = before, before + segment.amount
        cells = round(span * before / max(1, total)) - round(span * begin / max(1, total))
        line.append(fill * cells, style=_TONES[segment.tone])
    yield line
    if part.bound is not None and total:
        at = min(span - 1, max(0, round(span * part.bound / total) - 1))
        yield bound_mark(at, f"lower bound {part.bound:,} {one_line(part.unit)}")
    pairs = Text()
    for segment, fill in zip(part.segments, fills, strict=True):
        pair = Text.assemble((fill, _TONES[segment.tone]), f" {one_line(segment.label)} {segment.amount:,}",
                             (f" {segment.amount / max(1, total):.0%}", "dim"))
        yield from flow(pairs, pair, width)
    yield Text.assemble(pairs, (f"   {one_line(part.unit)}", "dim"))


def _lanes(part: LanesPart, width: int) -> Iterator[RenderableType]:
    """Yield a line of letters for each lane, the axis and the legend."""
    labels = [fitted(one_line(lane.label), max(8, width // 4)) for lane in part.lanes]
    left = max(map(cell_len, labels), default=0)
    right = max((cell_len(one_line(lane.busy)) for lane in part.lanes), default=0)
    span = max(8, width - left - right - 2)
    group = ""
    for lane, label in zip(part.lanes, labels, strict=True):
        if lane.group != group:
            group = lane.group
            yield Text(one_line(group), style="dim")
        yield Text.assemble(set_cell_size(label, left), " ", letters_of(lane, part.legend, span), " ", one_line(lane.busy).rjust(right))
    if part.more:
        yield Text(f"… {part.more:,} more lanes", style="dim")
    end = f"{part.total:,} {one_line(part.unit)}"
    yield Text(f"{' ' * left} 0{end.rjust(span - 1)}", style="dim")
    yield from legend_lines(part.legend, width)
    yield Text("a column is the kernel that ran longest there; small letter: busy for less than half of it", style="dim")


_ORDER: Mapping[str, str] = MappingProxyType({"any": "‖ ", "down": "↓ ", "none": ""})


def _boxes(part: BoxesPart, width: int) -> Iterator[RenderableType]:
    """Yield a line for each loop, statement and call, indented by depth."""
    yield from _inside(part.boxes, 0, width)
    if part.more:
        yield Text(f"… {part.more:,} more lines", style="dim")
    if any(isinstance(box, Box) for box in part.boxes):
        yield Text("‖ iterations without an order   ↓ in order", style="dim")


def _inside(items: Sequence[Box | Site | str], depth: int, width: int) -> Iterator[RenderableType]:
    for item in items:
        match item:
            case str():
                yield _indented(Text(one_line(item)), depth)
            case Box():
                head = Text.assemble((_ORDER[item.order], "bold"), one_line(item.head))
                head = Text.assemble(head, (f"  {one_line(item.size)}", "dim")) if item.size else head
                if item.lengths is not None:
                    head.append(f"  {_heights(item.lengths.counts)}")
                yield _indented(head, depth)
                if item.dots is not None:
                    for row in item.dots.rows:
                        yield _indented(Text("".join("●" if k in row else "·" for k in range(item.dots.columns)), style="dim"), depth + 1)
                yield from _inside(item.inside, depth + 1, width)
            case Site():
                line = Text.assemble((item.kernel.letter, key_style(item.kernel)), " ", (one_line(item.kernel.name), "bold"),
                                     one_line(item.index), (f"  {one_line(item.tasks)}" if item.tasks else "", "dim"))
                for argument in item.arguments:
                    line.append(f"   {one_line(argument.label)} ", style="dim").append(one_line(argument.value), style="default not dim")
                yield _indented(line, depth)


_STEPS = "▁▂▃▄▅▆▇█"


def _heights(counts: Sequence[int]) -> str:
    """Return numbers as a row of bars; a blank is 0."""
    most = max(1, *counts)
    return "".join(_STEPS[-(-8 * count // most) - 1] if count else " " for count in counts)


_DEEPEST = 12     # levels that are indented: deeper ones leave no room


def _indented(line: Text, depth: int) -> RenderableType:
    return Padding(line, (0, 0, 0, 2 * min(depth, _DEEPEST)))


_DIFFERENCE: Mapping[str, str] = MappingProxyType({"+": "green", "-": "red", "@": "cyan"})


def _preformatted(part: Preformatted, width: int) -> Iterator[RenderableType]:
    """Yield the text as it is, unwrapped; lines of a unified difference in its colours."""
    if part.title:
        yield Text(one_line(part.title), style="bold")
    text = printable(part.text.rstrip("\n"))
    differs = text.startswith("--- ")
    line = Unwrapped()
    for number, row in enumerate(text.split("\n")):
        line.append("\n" * (number > 0) + row, style=_DIFFERENCE.get(row[:1], "") if differs else "")
    yield line


# One function for each kind of part; a new kind gets one here.
DRAWN: Mapping[str, Callable[[Any, int], Iterator[RenderableType]]] = MappingProxyType({
    "values": _values, "table": _table, "bar": _bar, "lanes": _lanes, "boxes": _boxes, "text": _preformatted, **DRAWINGS,
})
