"""Cards of schedules, and of the programs made with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pto_wsp.check.verdict import CheckList
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.timing.graph import Regions
from pto_wsp.timing.stats import Stats
from pto_wsp.timing.trace import Trace
from pto_wsp.view.card import Card, LabelledValue, TablePart, ValuesPart
from pto_wsp.view.check_cards import checks_rows
from pto_wsp.view.iteration_cards import run_grids
from pto_wsp.view.run_cards import lanes_of, sent_table, stats_parts, verdict
from pto_wsp.view.schedule_cards import schedule_table


# -- programs ----------------------------------------------------------------------------------------------------------
def program_card(name: str, target: str, state: str, facts: Sequence[tuple[str, str]], checks: CheckList, schedule: Schedule,
                 stats: Stats | None, trace: Trace | None, regions: Regions | None = None,
                 sent: np.ndarray[Any, Any] | None = None) -> Card:
    """Return the card of a program. `stats`, `trace`: of its last run; None if they are not simulated yet, or too long to draw.

    `regions`: what a task of that run uses of its tensors, by number. `sent`: the bytes that it copied from rank to rank.
    """
    parts: list[Any] = [ValuesPart(values=tuple(LabelledValue(label=label, value=value) for label, value in facts))]
    if trace is not None and len(trace):
        parts.append(lanes_of(trace))
        parts.extend(run_grids(trace, regions))
    if stats is not None:
        parts.extend(stats_parts(stats))
    if sent is not None:
        parts.append(sent_table(sent))
    if schedule != Schedule():
        parts.append(schedule_table(schedule, target))
    if checks:
        rows = checks_rows(checks)
        parts.append(TablePart(title="Checks", head=("verdict", "check", "why"), rows=rows[:12], more=max(0, len(rows) - 12)))
    return Card(title=name, subtitle=f"Program · {target}", state=state,
                sentence=verdict(stats) if stats is not None else "", parts=tuple(parts))
