"""Marks: the nodes of a stream that are no tasks, with the numbers that they have in pto_abi.h."""

from __future__ import annotations

import enum


class NodeKind(enum.IntEnum):
    """PTO_NODE_: what a node of a record is."""

    TASK = 0
    JOIN = 1
    MARK = 2


class MarkFlag(enum.IntFlag):
    """PTO_MARK_: what a mark does to its stream."""

    BLOCKS = 1    # nothing more is submitted before it has completed
    NOW = 2       # what it waits for has run when it returns: memory is read next
    RESTS = 4     # nothing more is submitted for now: simulated time goes on without the stream


class EdgeReason(enum.IntFlag):
    """PTO_EDGE_: why something waits for something else."""

    RAW = 1
    WAR = 2
    WAW = 4
    ORDER = 8
    AFTER = 16
    CHANNEL = 32
    EVENT = 64
    READ = 128
    LANE = 256


class Stall(enum.IntEnum):
    """PTO_STALL_: what a stream that stands at a mark waits for."""

    NONE = 0
    CHANNEL_EMPTY = 1
    CHANNEL_FULL = 2
    READ = 3
    EVENT = 4
