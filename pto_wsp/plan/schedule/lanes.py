"""Lanes: the streams of a schedule. Tasks of one run one after another, in the order of their submission."""

from __future__ import annotations

from pto_wsp.plan.schedule.keys import LARGEST, TaskKeys
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.types import scalar as s
from pto_wsp.types.scalar import Op


def has_lanes(schedule: Schedule) -> bool:
    """Tell whether a schedule puts tasks in streams."""
    return schedule.streams is not None or schedule.stream_by is not None


def lane_of(schedule: Schedule, keys: TaskKeys) -> s.Scalar:
    """Return the lane of one task, from 1: its stream's key, or its submission index, mod the number of streams; 0 for none."""
    if not has_lanes(schedule):
        return s.Const(0)
    key = s.TaskIndex() if schedule.stream_by is None else keys.natural(schedule.stream_by, "stream_by", LARGEST - 1)
    stream = key if schedule.streams is None else s.binary(Op.MOD, key, s.Const(schedule.streams))
    return s.add(stream, s.Const(1))
