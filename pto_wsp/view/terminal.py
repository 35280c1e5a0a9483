"""What all parts of a card have in common as text: harmless lines, letters of kernels, the legend.

Nothing of a card is read as markup; characters that steer a terminal are written as `\\x1b`, and text that runs from right to left
changes no order beside it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType

from rich.cells import cell_len
from rich.console import RenderableType
from rich.style import Style
from rich.text import Text

from pto_wsp.view.card import LegendEntry, Segment, TaskLane
from pto_wsp.view.colours import KERNEL_HUES
from pto_wsp.wording import printable, shortened

LONGEST, LONGEST_CELL = 200, 2000   # characters of a title or label, and of a cell


# -- lines -------------------------------------------------------------------------------------------------------------
class Unwrapped(Text):
    """Text whose lines stay as long as they are."""


def flow(line: Text, pair: Text, width: int) -> Iterator[Text]:
    """Append a pair to a line; yield the line first where the pair does not fit."""
    if line and line.cell_len + 3 + pair.cell_len > width:
        yield line.copy()
        line.truncate(0)
    line.append_text(Text("   ") if line else Text())
    line.append_text(pair)


_FILLS: Mapping[str, str] = MappingProxyType({"work": "█■", "submission": "▓▤", "bad": "▒▚▞▨", "rest": "░▫"})


def fills_of(segments: Sequence[Segment]) -> list[str]:
    """Return a glyph for each segment: the first of its tone, or the first letter of its label when the tone has no more."""
    left = {tone: list(glyphs) for tone, glyphs in _FILLS.items()}
    return [left[segment.tone].pop(0) if left[segment.tone] else one_line(segment.label)[:1] or "?" for segment in segments]


# -- kernels -----------------------------------------------------------------------------------------------------------
_IDLE = "·"


def letters_of(lane: TaskLane, legend: Sequence[LegendEntry], span: int) -> Text:
    """Return the columns of a lane. Marks have thousandths of the lane; the column shows the kernel that covers most of it."""
    covered: list[dict[int, float]] = [{} for _ in range(span)]
    for mark in lane.marks:
        begin, end = mark.x * span / 1000, (mark.x + mark.width) * span / 1000
        for column in range(max(0, int(begin)), min(span, int(end) + 1)):
            share = (min(end, column + 1) - max(begin, column)) * (1.0 if mark.full else 0.49)
            if share > 0:
                covered[column][mark.kernel] = covered[column].get(mark.kernel, 0.0) + share
    line = Text()
    for (letter, style), run in groupby(_letter(shares, legend) for shares in covered):
        line.append(letter * len(list(run)), style=style)
    return line


def _letter(shares: Mapping[int, float], legend: Sequence[LegendEntry]) -> tuple[str, Style]:
    """Return the letter of a column, of which kernels cover these shares, and its style."""
    if not shares:
        return _IDLE, Style(dim=True)
    entry = legend[max(shares, key=lambda kernel: (shares[kernel], -kernel))]
    if sum(shares.values()) >= 0.5:
        return entry.letter, key_style(entry)
    return entry.letter.lower(), Style(color=KERNEL_HUES[entry.slot % 8])


def key_style(entry: LegendEntry) -> Style:
    """Return the style of a kernel's capital letters; kernels of hatched colours are underlined."""
    hue = entry.slot % 8
    return Style(color="black" if hue in (1, 2, 4, 5, 7) else "white", bgcolor=KERNEL_HUES[hue], bold=True, underline=entry.slot >= 8)


_MOST_KEYS = 12


def legend_lines(legend: Sequence[LegendEntry], width: int) -> Iterator[RenderableType]:
    """Yield the kernels with their letters, as many in a line as fit."""
    line = Text()
    for entry in legend[:_MOST_KEYS]:
        name = fitted(one_line(entry.name), min(40, width - 4))
        yield from flow(line, Text.assemble((entry.letter, key_style(entry)), f" {name}"), width)
    if len(legend) > _MOST_KEYS:
        yield from flow(line, Text(f"{len(legend) - _MOST_KEYS} other kernels", style="dim"), width)
    if line:
        yield line


# -- harmless text -----------------------------------------------------------------------------------------------------
def one_line(text: str, most: int = LONGEST) -> str:
    """Return the text on one line; if the line is longer than `most` characters, its middle is replaced by an ellipsis."""
    return printable(shortened(text, most).replace("\xa0", " ")).replace("\n", "\\n").replace("\t", " ")


def block(text: str) -> str:
    """Return the text of a cell, which may have lines."""
    return printable(shortened(text, LONGEST_CELL).replace("\xa0", " ")).expandtabs(4)


def fitted(text: str, columns: int) -> str:
    """Return the text; if the text is wider than `columns`, its middle is replaced by an ellipsis."""
    while cell_len(text) > max(3, columns):
        text = shortened(text, max(3, min(len(text) - 1, columns)))
    return text


_STRONG = ("R", "AL")
_RUN = re.compile(r"[^\x00-\u058f]+")     # no letter below runs from right to left


def in_order(text: str) -> str:
    """Put marks of left-to-right text around what runs from right to left, so that a terminal keeps the columns in their order."""
    return _RUN.sub(lambda run: f"\u200e{run[0]}\u200e" if any(unicodedata.bidirectional(c) in _STRONG for c in run[0]) else run[0], text)


_ASCII = str.maketrans({"█": "#", "▓": "%", "▤": "+", "▒": "x", "▚": "/", "▞": "\\", "▨": "*", "░": ":", "▫": "-", "▲": "^",
                        "·": ".", "…": "...", "‖": "||", "↓": "v", "—": "-", "–": "-", "→": "->", "←": "<-", "×": "x", "−": "-",
                        "✓": "+", "✗": "x", "■": "=", "●": "o",
                        **{bar: str(k + 1) for k, bar in enumerate("▁▂▃▄▅▆▇")},
                        "≤": "<=", "≥": ">=", "\u200e": ""})


def encodable(text: str, encoding: str) -> str:
    """Return text that a stream of this encoding writes: glyphs as ASCII, other characters as escapes."""
    try:
        text.encode(encoding)
    except LookupError:
        encoding = "ascii"
    except UnicodeEncodeError:
        pass
    else:
        return text
    return text.translate(_ASCII).encode(encoding, "backslashreplace").decode(encoding)
