"""The card of advice on a schedule: the changes that make a run shorter, with bars."""

from __future__ import annotations

from collections.abc import Sequence

from pto_wsp.timing.stats import Stats
from pto_wsp.view.card import AdvicePart, AdviceRow, Card
from pto_wsp.view.run_cards import verdict
from pto_wsp.wording import less


def advice_card(stats: Stats, sentence: str, rows: Sequence[tuple[str, int, float, str]], tried: str) -> Card:
    """Return the card of advice. `stats`: of the run as it is; `rows`: change, cycles, gain as a fraction, why; best first."""
    first = AdviceRow(change="as it is", cycles=stats.total_cycles, gain="", why=stats.dominated_by)
    shown = tuple(AdviceRow(change=change, cycles=cycles, gain=less(gain), why=why) for change, cycles, gain, why in rows)
    part = AdvicePart(unit="cycles", total=stats.total_cycles, bound=stats.lower_bound, rows=(first, *shown))
    return Card(title="Advice", subtitle="changes of the schedule, each simulated on the tasks of the last run",
                sentence=" ".join(filter(None, (verdict(stats), sentence))), parts=(part,) if stats.total_cycles else (),
                foot=f"{tried}. A change goes behind the workload under its schedule" if rows else tried)
