"""Draw the pictures of docs/why_slow.md: `python docs/pictures/why_slow.py` runs the page and writes why_NAME.svg beside this file.

A picture has the lanes of the run that the block before it looks at, with the lower bound, and below what the makespan is put down to.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))

from make import DARK_TEXT, WIDTH, rect, svg, text  # noqa: E402 - it stands beside this file

from pto_wsp import Program  # noqa: E402
from pto_wsp.view.run_cards import causes_bar, lanes_of  # noqa: E402

PAGE = FOLDER.parent / "why_slow.md"
LEFT, SPAN, MOST = 100, WIDTH - 190, 8


def runs_of(page: Path) -> Iterator[tuple[str, Program]]:
    """Yield each picture that a page names, with the program that its blocks up to there have run."""
    names: dict[str, object] = {"__name__": page.stem}
    source = page.read_text(encoding="utf-8")
    linecache.cache[str(page)] = (len(source), None, source.splitlines(keepends=True), str(page))     # kernels read their own source
    for found in re.finditer(r"^```python\n(.*?)^```$|\(pictures/(why_\w+)\.svg\)", source, re.M | re.S):
        if found[2] is None:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile("\n" * source.count("\n", 0, found.start(1)) + found[1], str(page), "exec"), names)
        else:
            program = names["program"]
            assert isinstance(program, Program)
            yield found[2], program


def picture(program: Program) -> str:
    """Return the lanes of a run with its lower bound, and what its makespan is put down to."""
    trace, stats = program.trace, program.stats
    used = np.unique(trace.executor)
    part = lanes_of(replace(trace, executor=np.searchsorted(used, trace.executor), n_executors=len(used), homes=()))
    places = f"{len(used)} of {stats.n_cores} cores" if stats.n_cores else f"{len(used)} of {len(stats.executors)} executors"
    head = f"{stats.total_cycles:,} cycles on {places}: {stats.verdict.kind}"
    parts, y = [f"<style>{_TONES}</style>", text(LEFT, 22, head, "strong")], 36.0
    for executor, row in list(zip(used.tolist(), part.lanes, strict=True))[:MOST]:
        parts += [text(LEFT - 8, y + 11, f"executor {executor}", "end small"), rect(LEFT, y, SPAN, 15, "lane"),
                  text(LEFT + SPAN + 8, y + 11, f"{row.busy} busy", "small")]
        for mark in row.marks:
            x, width = LEFT + SPAN * mark.x / 1000, SPAN * mark.width / 1000
            parts.append(rect(x, y, max(1.0, width - 1), 15, f"c{mark.kernel}"))
            if width > 12:
                ink = "ondark" if mark.kernel in DARK_TEXT else "on"
                parts.append(text(x + width / 2, y + 11, part.legend[mark.kernel].letter, f"mid {ink}"))
        y += 18
    if len(used) > MOST:
        parts.append(text(LEFT, y + 12, f"… {len(used) - MOST} more executors", "small"))
        y += 16
    at = LEFT + SPAN * min(1.0, stats.lower_bound / stats.total_cycles)
    side = "end " * (at > WIDTH / 2)
    parts += [f'<path class="bound" d="M{at:g} 30V{y + 3:g}"/>',
              text(at + (-4 if side else 4), y + 12, f"lower bound {stats.lower_bound:,}", f"{side}bad small")]
    y += 20
    for k, entry in enumerate(part.legend):
        parts += [rect(LEFT + 90 * k, y, 10, 10, f"c{k}"), text(LEFT + 90 * k + 15, y + 9, f"{entry.letter} {entry.name}", "small")]
    y += 20
    parts.append(text(LEFT - 8, y + 14, "put down to", "end small"))
    x = float(LEFT)
    for segment in causes_bar(stats.causes(), stats.lower_bound).segments:
        width = SPAN * segment.amount / stats.total_cycles
        parts.append(rect(x, y, max(1.0, width - 1), 20, segment.tone))
        label = f"{segment.label} {segment.amount / stats.total_cycles:.0%}"
        if width > 7 * len(label):
            parts.append(text(x + 6, y + 14, label, "inside" if segment.tone in ("work", "bad") else ""))
        x += width
    return svg(int(y) + 32, parts, head)


_TONES = (".work{fill:var(--work)}.submission{fill:var(--sub)}.rest{fill:var(--line)}"
          "text.inside{fill:var(--bg);font-weight:600;font-size:11px}")


def main() -> int:
    """Write all pictures of the page."""
    for name, program in runs_of(PAGE):
        (FOLDER / f"{name}.svg").write_text(picture(program), encoding="utf-8")
        print(f"{name}.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
