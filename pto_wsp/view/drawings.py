"""Where the marks of SVG drawings lie, in pixels: cards say what there is, templates how it is spelled."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from pto_wsp.view.card import InstructionsPart, RegionsPart

_MAP_WIDTH, _MAP_HEIGHT = 440, 330
_LEFT, _TOP = 44, 18            # room for the axes
_LEAST = 2                      # pixels of a region that is narrower
_HATCH = 6                      # pixels between two lines of a hatch


# -- regions of a tensor -----------------------------------------------------------------------------------------------
def drawn_regions(part: RegionsPart) -> dict[str, Any]:
    """Return the drawing of regions: its size, ticks of both axes, and a rectangle a box with its label and hatch."""
    height = min(_MAP_HEIGHT, max(56, round(_MAP_WIDTH * part.rows / max(1, part.cols))))
    across, down = _MAP_WIDTH / max(1, part.cols), height / max(1, part.rows)
    boxes = []
    for box in part.boxes:
        x, y = _LEFT + box.cols[0] * across, _TOP + box.rows[0] * down
        w, h = max(_LEAST, (box.cols[1] - box.cols[0]) * across), max(_LEAST, (box.rows[1] - box.rows[0]) * down)
        named = bool(box.label) and h >= 15 and w >= 7 * len(box.label) + 10
        boxes.append({"x": _short(x), "y": _short(y), "w": _short(w), "h": _short(h), "tone": box.tone, "label": box.label if named else "",
                      "title": box.label, "hatch": hatched(x, y, w, h) if box.tone == "shared" else ""})
    return {"width": _LEFT + _MAP_WIDTH + 8, "height": _TOP + height + 6, "x": _LEFT, "y": _TOP, "w": _MAP_WIDTH, "h": height,
            "boxes": boxes, "cols": [(_short(_LEFT + tick * across), tick) for tick in ticks(part.cols, 6)],
            "rows": [(_short(_TOP + tick * down), tick) for tick in ticks(part.rows, max(1, height // 26))]}


def ticks(extent: int, most: int) -> list[int]:
    """Return at most about `most` round positions of an axis, its ends included."""
    step = next(size for size in _round_steps() if extent / size <= most)
    inner = [tick for tick in range(0, extent, step) if tick == 0 or extent - tick > step // 2]
    return [*inner, extent]


def _round_steps() -> Iterator[int]:
    yield from (1, 2, 4)
    size = 8
    while True:
        yield size
        size *= 2


def _kib(n_bytes: int) -> str:
    return f"{n_bytes / 1024:,.1f}".removesuffix(".0")


def hatched(x: float, y: float, w: float, h: float) -> str:
    """Return the path of slanted lines that fill a rectangle."""
    lines = []
    for k in range(1, min(400, math.ceil((w + h) / _HATCH))):
        offset = k * _HATCH
        x1, y1 = (x + offset, y) if offset <= w else (x + w, y + offset - w)
        x2, y2 = (x, y + offset) if offset <= h else (x + offset - h, y + h)
        lines.append(f"M{_short(x1)} {_short(y1)}L{_short(x2)} {_short(y2)}")
    return "".join(lines)


def _short(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


# -- instructions of a kernel ------------------------------------------------------------------------------------------
_ROW = 21                       # pixels of a row
_PIPE_WIDTH = 50
_MEMORY_WIDTH = 240
_MARK = 26                      # of a mark on a pipe


def drawn_pipes(part: InstructionsPart) -> dict[str, Any]:
    """Return the drawing of pipes: a mark for each step that does work, a curve a flag, two lines a barrier."""
    height = _ROW * len(part.rows) + 8

    def x(pipe: int) -> float:
        return pipe * _PIPE_WIDTH + _PIPE_WIDTH / 2

    marks = [{"x": _short(x(row.pipe) - _MARK / 2), "y": at * _ROW + 3, "title": row.ir} for at, row in enumerate(part.rows)
             if row.pipe is not None]
    flags = []
    for flag in part.flags:
        x1, y1, x2, y2 = x(flag.after), flag.done * _ROW + 14, x(flag.before), flag.wait * _ROW + 3
        side = _MARK / 2 if x2 > x1 else -_MARK / 2
        y1, y2 = (y1, max(y2, y1 + 4)) if flag.wait < len(part.rows) else (y1, min(y2, height - 2))
        path = f"M{_short(x1 + side)} {_short(y1)}C{_short(x1 + side * 2)} {_short(y1)} {_short(x2 - side * 1.2)} {_short(y1 + 2)} " \
               f"{_short(x2 - side)} {_short(y2 + 6)}"
        flags.append({"path": path, "event": flag.event, "x": _short(x2 - side), "y": _short(y2 + 6), "tx": _short(x1 + side * 1.25),
                      "ty": _short(y1 - 3), "anchor": "start" if side > 0 else "end"})
    barriers = [{"x": _short(x(one.pipe) - _MARK / 2 - 3), "w": _MARK + 6, "y": one.row * _ROW - 1} for one in part.barriers]
    return {"width": _PIPE_WIDTH * len(part.pipes), "height": height, "marks": marks, "flags": flags, "barriers": barriers,
            "pipes": [(_short(x(number)), name) for number, name in enumerate(part.pipes)]}


def drawn_memories(part: InstructionsPart) -> dict[str, Any]:
    """Return the drawing of memories: one beside the other, a rectangle a buffer over its addresses and rows."""
    total = max(1, len(part.memories))
    each = max(90, _MEMORY_WIDTH // total)
    gap = 12
    height = _ROW * len(part.rows) + 8
    memories = [{"x": number * (each + gap), "w": each, "name": memory.name,
                 "said": f"{_kib(memory.used_bytes)}" + (f"/{_kib(memory.size_bytes)}" if memory.size_bytes else "") + " KiB"}
                for number, memory in enumerate(part.memories)]
    boxes = []
    for life in part.lifetimes:
        scale = each / max(1, part.memories[life.memory].used_bytes)
        w, h = max(3.0, life.size_bytes * scale), (life.last - life.first + 1) * _ROW - 3
        fits = w >= 6.2 * len(life.name) + 8
        boxes.append({"x": _short(life.memory * (each + gap) + life.address * scale), "y": life.first * _ROW + 2, "w": _short(w - 1),
                      "h": h, "name": life.name, "inside": fits, "size": f"{life.size_bytes:,} B" if fits and h > 30 and w > 60 else "",
                      "title": f"{life.name}: {life.size_bytes:,} bytes at {life.address:#x}"})
    return {"width": total * (each + gap), "height": height, "memories": memories, "boxes": boxes}
