"""Cards of passes: which ran, on what, what each changed, how long it took, and whether the numbers stayed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pto_wsp.passes.pipeline import PassRun
from pto_wsp.view.card import Card, DiffPart, Preformatted, TablePart

_MOST_ROWS, _MOST_DIFFS, _MOST_LINES, _MOST_TEXT = 80, 24, 240, 8000
_NUMBERS = {True: "same", False: "✗ others", None: ""}


def lowered_card(until: str, text: str, steps: Sequence[PassRun]) -> Card:
    """Return the card of a workload after some passes. `text`: of the IR behind the last; `steps`: each pass on each IR."""
    changed = [step for step in steps if step.changed]
    wrong = [step for step in steps if step.same_numbers is False]
    table = TablePart(title="Passes", head=("level", "pass", "on", "changed", "ms", "numbers"), right=(4,),
                      rows=tuple(_row(step) for step in steps[:_MOST_ROWS]), more=max(0, len(steps) - _MOST_ROWS))
    parts: list[Any] = [table] if steps else []
    left = _MOST_LINES
    for step in changed[:_MOST_DIFFS]:
        if left > 0:
            parts.append(_diff(step, left))
            left -= len(step.diff())
    shown = text if len(text) <= _MOST_TEXT else text[:_MOST_TEXT].rpartition("\n")[0] + "\n…"
    parts.append(Preformatted(title=f"Behind {until}", text=shown))
    sentence = f"{len(changed)} of {len(steps)} passes changed something, in {sum(step.seconds for step in steps) * 1e3:.1f} ms"
    numbers = f"; {len(wrong)} changed the numbers" if wrong else "; kernels compute the same numbers"
    sentence += numbers * any(step.same_numbers is not None for step in steps)
    return Card(title=f"Lowered to {until}", sentence=f"{sentence}.", parts=tuple(parts), tone="bad" if wrong else "",
                foot="lower(verify_passes=True) looks whether each pass keeps the numbers of kernels")


def pass_card(step: PassRun) -> Card:
    """Return the card of one pass on one IR: its diff."""
    return Card(title=step.name, subtitle=f"Pass · {step.level} {step.ir}", state=f"{step.seconds * 1e3:.2f} ms",
                sentence="" if step.changed else "It changed nothing.", parts=(_diff(step, _MOST_LINES),) if step.changed else ())


def _row(step: PassRun) -> tuple[str, ...]:
    lines = step.diff() if step.changed else ()
    more, less = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    changed = f"+{more} −{less}" if lines else ""
    return step.level, step.name, step.ir, changed, f"{step.seconds * 1e3:.2f}", _NUMBERS[step.same_numbers]


def _diff(step: PassRun, most: int) -> DiffPart:
    lines = step.diff()
    return DiffPart(title=step.name, note=f"{step.level} {step.ir}", lines=tuple(line[:200] for line in lines[:most]),
                    more=max(0, len(lines) - most))
