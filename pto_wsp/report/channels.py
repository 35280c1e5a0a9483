"""How full channels were in simulated time: a token is there when its mark completes, until the mark that takes it does."""

from __future__ import annotations

import numpy as np

from pto_wsp.plan.model import Consume, Receive, Send, TaskPlan
from pto_wsp.plan.walk import items_of
from pto_wsp.report.completion import Completion
from pto_wsp.report.stats import ChannelStats
from pto_wsp.runtime.native.simulator import SimResult
from pto_wsp.runtime.record.columns import RecordColumns
from pto_wsp.runtime.record.marks import Stall

_MOST_MARKS = 1 << 17


def channel_stats(plan: TaskPlan, columns: RecordColumns, sim: SimResult) -> tuple[ChannelStats, ...]:
    """Return the channels of a stream with their tokens; nothing for one that is longer than is looked through."""
    if sim.tasks is None or columns.first_node > 0 or not plan.channels or len(columns.mark_node) > _MOST_MARKS:
        return ()
    ends = {item.site: (item.channel, isinstance(item, Send)) for item in items_of(plan) if isinstance(item, Send | Receive | Consume)}
    completion = Completion(columns, sim.tasks.submit, sim.tasks.complete)
    changes: list[list[tuple[int, int, int]]] = [[] for _ in plan.channels]     # (time, node, 1 or -1)
    for node, site, stall in zip(columns.mark_node.tolist(), columns.mark_site.tolist(), columns.mark_stall.tolist(), strict=True):
        channel, is_sent = ends.get(site, (-1, False))
        if channel >= 0 and stall == (Stall.NONE if is_sent else Stall.CHANNEL_EMPTY):
            changes[channel].append((completion.of(node)[0], node, 1 if is_sent else -1))
    found = []
    for known, moves in zip(plan.channels, changes, strict=True):
        steps = np.array([step for _, _, step in sorted(moves)], np.int64)
        found.append(ChannelStats(known.name, known.depth, int((steps > 0).sum()), max(0, int(np.cumsum(steps).max(initial=0)))))
    return tuple(found)
