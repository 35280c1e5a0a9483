"""Count the iterations and tasks of a workload with what is bound now, as far as that is known without running it.

Loops are gone through with a few hundred samples of their variables: a loop whose variable no inner bound depends on stands for all its
iterations by its middle one, with their number as weight. What tasks compute is not known, whatever the arrays hold now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from pto_wsp.errors import PtoError
from pto_wsp.ir import flow
from pto_wsp.ir import scalar as s
from pto_wsp.ir import workload as wl
from pto_wsp.ir.layout import TensorRef
from pto_wsp.ir.view import View, place_of
from pto_wsp.run.task_list import block_of
from pto_wsp.values import dataclass
from pto_wsp.view.card import Dots, Lengths, RegionMap
from pto_wsp.view.maps import map_of, use_of

_MOST_SAMPLES = 2000        # iterations that are looked at one by one
_MOST_BARS, _MOST_ROWS, _MOST_COLUMNS = 48, 24, 64

Arrays = Mapping[int, "np.ndarray[Any, Any] | None"]
Values = Mapping[s.Var, int]
Samples = Sequence[tuple[Values, int]]


class _NotKnown(Exception):
    """A value that is not known; its argument says why."""


@dataclass(frozen=True, slots=True)
class LoopSize:
    """The size of a loop: as text, and of ragged and sparse rows as numbers."""

    text: str
    lengths: Lengths | None = None
    dots: Dots | None = None


@dataclass(frozen=True, slots=True)
class SiteSize:
    """The tasks of a call, None if their number is not known, and the region of a middle one for each parameter, as far as known."""

    tasks: int | None
    regions: Mapping[str, RegionMap]


@dataclass(slots=True)
class LoopSizes:
    """Sizes of a workload: of its loops and calls in program order, the names that a run must bind, and those that tasks decide."""

    loops: list[LoopSize] = field(default_factory=list)
    sites: list[SiteSize] = field(default_factory=list)
    open: dict[str, None] = field(default_factory=dict)
    decided: dict[str, None] = field(default_factory=dict)

    @property
    def tasks(self) -> int | None:
        """The number of tasks; None if it is not known."""
        counts = [site.tasks for site in self.sites]
        return sum(count for count in counts if count is not None) if None not in counts else None


def sizes_of_loops(workload: wl.Workload, arrays: Arrays) -> LoopSizes:
    """Return the sizes of a workload. `arrays`: what its tensors hold now, by id."""
    return _Counter(workload, arrays).count()


class _Counter:
    """Walks a workload once, with samples of the loop variables; None for samples that are not known."""

    def __init__(self, workload: wl.Workload, arrays: Arrays) -> None:
        self._workload, self._arrays, self._found = workload, arrays, LoopSizes()
        self._written = {arg.view.tensor.id for task in wl.tasks(workload.body) for arg in task.args if isinstance(arg, wl.ViewArg)
                         for param in task.kernel.memory_params if param.name == arg.param and param.role.writes}

    def count(self) -> LoopSizes:
        """Return the sizes."""
        self._visit(self._workload.body, [({}, 1)])
        return self._found

    def _visit(self, item: wl.Item, samples: Samples | None) -> None:
        match item:
            case flow.Do(wl.Task() as task):
                self._site(task, samples)
            case flow.Loop():
                self._loop(item, samples)
            case flow.Choice():
                self._choice(item, samples)
            case flow.Pipeline(processes):
                for process in processes:
                    self._visit(process.body, None if samples is None else [(at, n * process.replicas) for at, n in samples])
            case flow.Consume(body=body):
                self._visit(body, None)
            case _:
                for inner in flow.children(item):
                    self._visit(inner, samples)

    def _loop(self, loop: wl.WorkloadLoop, samples: Samples | None) -> None:
        place = len(self._found.loops)
        self._found.loops.append(LoopSize(""))
        why = ""
        ranges: list[range] | None = None
        if samples is not None:
            try:
                ranges = [range(*(self._value(bound, at) for bound in (loop.start, loop.stop, loop.step))) for at, _ in samples]
            except _NotKnown as problem:
                why = str(problem)
        else:
            why = self._why_open(loop)
        self._found.loops[place] = LoopSize(why) if ranges is None or samples is None else self._size(loop, ranges, samples)
        self._visit(loop.body, None if ranges is None or samples is None else self._inside(loop, ranges, samples))

    def _inside(self, loop: wl.WorkloadLoop, ranges: Sequence[range], samples: Samples) -> Samples | None:
        """Return the samples of a loop's body: each iteration where something inside depends on it, else the middle one for all."""
        needed = any(var in s.leaves(node) for node in _deciding(loop.body) for var in loop.bound)
        if needed and sum(map(len, ranges)) > _MOST_SAMPLES:
            return None
        found: list[tuple[Values, int]] = []
        for (at, weight), numbers in zip(samples, ranges, strict=True):
            picked = numbers if needed else numbers[len(numbers) // 2:len(numbers) // 2 + 1]
            for number in picked:
                inside = {**at, loop.var: number}
                if loop.through is not None:
                    try:
                        inside[loop.through.var] = self._value(loop.through.value, inside)
                    except _NotKnown:
                        if needed:
                            return None
                found.append((inside, weight * (1 if needed else len(numbers))))
        return found

    def _size(self, loop: wl.WorkloadLoop, ranges: Sequence[range], samples: Samples) -> LoopSize:
        counts = [len(numbers) for numbers in ranges]
        total = sum(count * weight for count, (_, weight) in zip(counts, samples, strict=True))
        if loop.through is not None:
            return LoopSize(f"{sum(counts):,} in {len(counts):,} sparse rows", None, self._dots(loop, ranges, samples))
        if len(set(counts)) <= 1:
            return LoopSize(self._plain(loop, counts[0] if counts else 0))
        shown = tuple(counts[:_MOST_BARS])
        lengths = Lengths(counts=shown, more=len(counts) - len(shown))
        return LoopSize(f"ragged, {min(counts):,} to {max(counts):,}, {total:,} in all", lengths)

    def _plain(self, loop: wl.WorkloadLoop, count: int) -> str:
        leaves = [leaf for bound in (loop.start, loop.stop, loop.step) for leaf in s.leaves(bound)]
        symbols = [leaf for leaf in leaves if isinstance(leaf, s.SymbolRef)]
        if any(isinstance(leaf, s.Element | s.SymbolRef) for leaf in leaves):
            by = f"{symbols[0].name} {'=' if symbols[0] == loop.stop else '→'} " if symbols and symbols[0].name else ""
            return f"{by}{count:,} now"
        return f"{count:,}"

    def _dots(self, loop: wl.WorkloadLoop, ranges: Sequence[range], samples: Samples) -> Dots | None:
        assert loop.through is not None
        if sum(map(len, ranges)) > _MOST_SAMPLES:
            return None
        try:
            rows = [[self._value(loop.through.value, {**at, loop.var: number}) for number in numbers]
                    for numbers, (at, _) in zip(ranges[:_MOST_ROWS], samples, strict=False)]
        except _NotKnown:
            return None
        scale = -(-(1 + max((column for row in rows for column in row), default=0)) // _MOST_COLUMNS)
        columns = 1 + max((column // scale for row in rows for column in row), default=0)
        return Dots(rows=tuple(tuple(dict.fromkeys(column // scale for column in row)) for row in rows), columns=columns, scale=scale,
                    more=max(0, len(ranges) - _MOST_ROWS))

    def _choice(self, choice: wl.WorkloadChoice, samples: Samples | None) -> None:
        left = samples
        for branch in choice.branches:
            inside: Samples | None = None
            if left is not None:
                try:
                    holds = [bool(self._value(branch.condition, at)) for at, _ in left]
                    inside = [sample for sample, yes in zip(left, holds, strict=True) if yes]
                    left = [sample for sample, yes in zip(left, holds, strict=True) if not yes]
                except _NotKnown:
                    left = None
            self._visit(branch.body, inside)
        self._visit(choice.otherwise, left)

    def _site(self, task: wl.Task, samples: Samples | None) -> None:
        count = None if samples is None else sum(weight for _, weight in samples)
        regions: dict[str, RegionMap] = {}
        if samples:
            at, _ = samples[len(samples) // 2]
            uses = {param.name: use_of(param.role) for param in task.kernel.memory_params}
            for arg in task.args:
                if isinstance(arg, wl.ViewArg):
                    try:
                        block, shape = self._block(arg.view, at)
                    except _NotKnown:
                        continue
                    regions[arg.param] = map_of(arg.view.tensor.shown, str(arg.view.tensor.dtype), shape, block, uses[arg.param])
        self._found.sites.append(SiteSize(count, regions))

    def _block(self, view: View, at: Values) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
        array, tensor = self._arrays.get(view.tensor.id), view.tensor
        shape = tensor.shape if array is None else array.shape
        strides = tensor.layout.strides if array is None else tuple(step // array.itemsize for step in array.strides)
        place = place_of(view)
        extent = [self._value(dim.extent, at) for dim in place.dims]
        steps = [self._value(dim.stride, at) for dim in place.dims]
        if min(extent, default=1) < 0 or len(extent) > 4:
            raise _NotKnown
        return block_of(shape, strides, self._value(place.offset, at), extent, steps), tuple(shape)

    def _value(self, node: s.Scalar, at: Values) -> int:
        """Return the value of a scalar in an iteration.

        Raises: _NotKnown if it is not known.
        """
        def leaf(inner: s.Scalar) -> s.Number:
            match inner:
                case s.Var() if inner in at:
                    return at[inner]
                case s.SymbolRef(name, default=default):
                    if default is None:
                        self._found.open[name] = None
                        raise _NotKnown(f"open: {name}")
                    return default
                case s.DimOf(tensor, dim):
                    array = self._arrays.get(tensor.id)
                    return tensor.shape[dim] if array is None else array.shape[dim]
                case s.StrideOf(tensor, dim):
                    array = self._arrays.get(tensor.id)
                    return tensor.layout.strides[dim] if array is None else array.strides[dim] // array.itemsize
                case s.Element(tensor, index):
                    return self._element(tensor, [self._value(i, at) for i in index])
                case _:
                    raise _NotKnown("decided by the run")

        try:
            return int(s.evaluate(node, leaf))
        except (PtoError, ArithmeticError, ValueError) as problem:
            raise _NotKnown("not known") from problem

    def _element(self, tensor: TensorRef, index: Sequence[int]) -> int:
        if tensor.id in self._written:
            self._found.decided[tensor.shown] = None
            raise _NotKnown(f"decided by tasks: {tensor.shown}")
        array = self._arrays.get(tensor.id)
        if array is None:
            self._found.open[tensor.shown] = None
            raise _NotKnown(f"open: {tensor.shown}")
        if len(index) != array.ndim or not all(0 <= i < extent for i, extent in zip(index, array.shape, strict=True)):
            raise _NotKnown("not known")
        return int(array[tuple(index)])

    def _why_open(self, loop: wl.WorkloadLoop) -> str:
        """Return why the size of a loop is not known whose samples are not: what its own bounds say, with any of its iterations."""
        try:
            return self._plain(loop, len(range(*(self._value(bound, {}) for bound in (loop.start, loop.stop, loop.step)))))
        except _NotKnown as problem:
            return str(problem) if str(problem).startswith(("open", "decided by tasks")) else ""


def _deciding(body: wl.Body) -> list[s.Scalar]:
    """Return the scalars in a body on which the number of iterations depends."""
    found: list[s.Scalar] = []
    for item in flow.walk(body):
        match item:
            case flow.Loop():
                found += [item.start, item.stop, item.step]
            case flow.Choice(branches):
                found += [branch.condition for branch in branches]
            case _:
                pass
    return found
