"""The task graph of a run: tasks by name, edges with their reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pto_wsp.values import dataclass

# the bits of PTO_EDGE_ in pto_abi.h
_REASONS: Mapping[int, str] = {1: "RAW", 2: "WAR", 4: "WAW", 8: "order", 16: "after", 32: "channel", 64: "event", 128: "read"}


@dataclass(frozen=True, slots=True)
class Edge:
    """Task `target` waits for task `source`; `bits` says why, `reasons` in words."""

    source: int
    target: int
    bits: int

    @property
    def reasons(self) -> tuple[str, ...]:
        """RAW, WAR, WAW: regions overlap; order: the workload's structure; after: an after=.

        channel, event: a token or a recorded event; read: control flow that reads what the source writes.
        """
        return tuple(name for bit, name in _REASONS.items() if self.bits & bit)


@dataclass(frozen=True, slots=True)
class TaskGraph:
    """Tasks in submission order, and the edges between them."""

    tasks: Sequence[str]
    edges: tuple[Edge, ...]

    def __str__(self) -> str:
        lines = [f"{len(self.tasks)} task{'s' * (len(self.tasks) != 1)}, {len(self.edges)} edge{'s' * (len(self.edges) != 1)}"]
        lines += [f"{self.tasks[e.source]} → {self.tasks[e.target]}  {', '.join(e.reasons)}" for e in self.edges]
        return "\n".join(lines)
