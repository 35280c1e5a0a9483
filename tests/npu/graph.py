"""The task graph that an orchestration submitted, and which pairs of its tasks lack an order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.npu.package import Direction


@dataclass(frozen=True)
class Argument:
    """A view that a task is given: `buffer` counts the user's tensors in order, then what the runtime allocated."""

    direction: Direction
    buffer: int
    element_bytes: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def writes(self) -> bool:
        """True for OUT and INOUT."""
        return self.direction is not Direction.IN

    def elements(self) -> npt.NDArray[Any]:
        """Return where its elements lie in the buffer, in elements, sorted."""
        at = np.array([self.offset], np.int64)
        for extent, stride in zip(self.shape, self.strides, strict=True):
            at = (at[:, None] + np.arange(extent, dtype=np.int64) * stride).ravel()
        return np.unique(at)


@dataclass(frozen=True)
class Edge:
    """The task waits for the task of this number. `kind`: made (inferred: that one allocates the tensor), found (inferred: that one has
    written there), or named (set_dependencies)."""

    before: int
    kind: str


@dataclass(frozen=True)
class Task:
    """One submit: func_ids of its kernels, blocks, scalar slots, and what it waits for."""

    kernels: tuple[int, ...]
    blocks: int
    scalars: tuple[int, ...]
    arguments: tuple[Argument, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True)
class Graph:
    """All tasks in the order of their submits. `most_bytes`: the most that allocated tensors of open scopes took at a time."""

    tasks: tuple[Task, ...]
    n_buffers: int
    most_bytes: int

    def edges(self, *kinds: str) -> frozenset[tuple[int, int]]:
        """Return (before, after) of every edge of these kinds, of all kinds where none is named."""
        return frozenset((edge.before, number) for number, task in enumerate(self.tasks) for edge in task.edges
                         if not kinds or edge.kind in kinds)

    @cached_property
    def ancestors(self) -> tuple[int, ...]:
        """For each task the tasks that it waits for, through others too, as bits."""
        found: list[int] = []
        for task in self.tasks:
            bits = 0
            for edge in task.edges:
                bits |= found[edge.before] | 1 << edge.before
            found.append(bits)
        return tuple(found)

    def unordered_conflicts(self) -> Iterator[tuple[int, int, int]]:
        """Yield (earlier, later, buffer) for tasks that share an element, one writing it, with no path of edges between them."""
        cache: dict[Argument, npt.NDArray[Any]] = {}

        def elements(argument: Argument) -> npt.NDArray[Any]:
            if argument not in cache:
                cache[argument] = argument.elements()
            return cache[argument]

        by_buffer: dict[int, list[tuple[int, Argument]]] = {}
        for number, task in enumerate(self.tasks):
            for argument in task.arguments:
                for earlier, other in by_buffer.get(argument.buffer, ()):
                    if earlier == number or not (argument.writes or other.writes) or self.ancestors[number] >> earlier & 1:
                        continue
                    mine, theirs = elements(argument), elements(other)
                    if mine.size and theirs.size and mine[0] <= theirs[-1] and theirs[0] <= mine[-1] and np.isin(mine, theirs).any():
                        yield earlier, number, argument.buffer
            for argument in task.arguments:
                by_buffer.setdefault(argument.buffer, []).append((number, argument))


def read_graph(path: Path) -> Graph:
    """Read what the host runtime wrote."""
    raw = json.loads(path.read_text())
    tasks = tuple(
        Task(tuple(task["kernels"]), task["blocks"], tuple(task["scalars"]),
             tuple(Argument(Direction(a["direction"]), a["buffer"], a["bytes"], a["offset"], tuple(a["shape"]), tuple(a["strides"]))
                   for a in task["arguments"]),
             tuple(Edge(before, kind) for before, kind in task["edges"]))
        for task in raw["tasks"])
    return Graph(tasks, len(raw["buffers"]), raw["most_bytes"])
