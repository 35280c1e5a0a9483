"""What `passes` shows: the passes of targets in the order of their run."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from pto_wsp.targets.options import CompileOptions
from pto_wsp.targets.table import TARGETS, find_target

_HEAD = ("level", "pass", "what it does")


def pipelines(name: str) -> Iterator[Text]:
    """Yield a heading and a line for each pass of each target: level, where it changes, name, and what the pass does.

    name: only this target; "" for all.
    Raises: C104 for a target that there is none of.
    """
    for number, target in enumerate(map(find_target, [name] if name else TARGETS)):
        yield Text("\n" * (number > 0) + target.name, style="bold")
        steps = target.passes(CompileOptions())
        levels = [step.level_name if at == 0 or steps[at - 1].level_name != step.level_name else "" for at, step in enumerate(steps)]
        rows = [_HEAD, *((level, step.name, step.summary) for level, step in zip(levels, steps, strict=True))]
        widths = [max(len(row[k]) for row in rows) for k in (0, 1)]
        for at, (level, step, summary) in enumerate(rows):
            yield Text(f"{level:{widths[0]}}  {step:{widths[1]}}  {summary}", style="" if at else "bold")
