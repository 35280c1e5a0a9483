"""Confirm a race with numbers: two iterations whose tasks touch a common element, evaluated on the plan's own expressions.

The solver works on rows derived from the plan. `witness_of` evaluates the plan itself at the solver's point: both tasks are reached, their
views lie inside the tensor, and the views share elements; otherwise the point is rejected.

For accesses in processes, `unordered_instances` runs the pipeline's skeleton (communication without tasks) with the witness's sizes and
watches both task sites. Each instance records which instances are complete when it starts. Two instances that share an element, neither
complete before the other, are a race: the skeleton follows every chain of program order, tokens, credits and events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TypeAlias

import numpy as np

from pto_wsp.check.affine.linear import Key
from pto_wsp.check.races.accesses import Line, Region, SiteAccess, Taken, region_of
from pto_wsp.check.races.question import Data, Pair, Question
from pto_wsp.check.skeleton import Budget, Number, Skeletons, Uncountable, WatchedTask
from pto_wsp.ir import scalar as s
from pto_wsp.ir.flow import Consume, Loop, Receive, bound_vars, leaves
from pto_wsp.ir.plan import PlanPipeline, Submit, TaskPlan, is_float_symbol
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.view import Clip, Cut, Permute, Pick, Reshape, View, as_declared, bounds_of
from pto_wsp.values import dataclass

_MOST_ITERATIONS = 16          # of a loop, of which the regions are kept for pictures
_MOST_ELEMENTS = 1 << 22        # of a tensor with reshaped views, which are compared element by element

Values: TypeAlias = tuple[tuple[str, int], ...]     # (variable name, value); names may repeat
Shared: TypeAlias = tuple[range, ...]       # one range for each dimension of the tensor


class NoWitness(Exception):
    """The solver's point does not satisfy the plan: an internal mistake, which must not become a user's error."""


@dataclass(frozen=True, slots=True, eq=False)
class Witness:
    """A confirmed race: the loop variables on both sides, outermost first, the values of symbols and elements, and the shared elements.

    `outer`: values of the loop variables around both accesses, by id. `shape`: of the tensor. `boxes`: what each access touches; None for
    views that are no boxes. `others`: boxes of both accesses in each iteration of the loop that leaves them unordered, by its variable;
    empty where these are many or not known.
    """

    pair: Pair
    sides: tuple[Values, Values]
    given: Mapping[str, int]
    shared: Shared
    outer: Mapping[int, int] = field(default_factory=dict)
    shape: tuple[int, ...] = ()
    boxes: tuple[Shared, Shared] | None = None
    others: tuple[tuple[int, Shared, Shared], ...] = ()

    def iteration(self, side: int) -> str:
        """Return the iteration of one side as text, e.g. b = 0, t = 1."""
        return ", ".join(f"{name} = {value}" for name, value in self.sides[side])

    @property
    def elements(self) -> str:
        """The range of elements that both accesses touch, as text, e.g. X[0:4, 7]."""
        inner = ", ".join(str(r.start) if len(r) == 1 else f"{r.start}:{r[-1] + 1}" + (f":{r.step}" if r.step != 1 else "")
                          for r in self.shared)
        name = self.pair.first.view.tensor.shown
        return f"{name}[{inner}]" if inner else name


def witness_of(pair: Pair, question: Question, point: Mapping[Key, int]) -> Witness:
    """Return the witness of the solver's point.

    Raises: NoWitness if the plan's expressions disagree.
    """
    numbers = _Numbers(question, point)
    for side, access in enumerate(pair.accesses):
        numbers.check(access, side)
    if pair.loop is not None and not numbers.value(pair.loop.var, 0) < numbers.value(pair.loop.var, 1):
        raise NoWitness("the iterations are not apart")
    if question.in_part and numbers.are_same(pair):
        raise NoWitness("the regions are the same")
    sides = tuple(tuple((var.name, numbers.value(var, side)) for var in access.variables) for side, access in enumerate(pair.accesses))
    outer = {var.id: numbers.value(var, 0) for level in pair.first.levels[:pair.depth] if isinstance(level, Loop)
             for var in bound_vars(level)}
    shared = numbers.shared(pair)
    given = dict(numbers.given())
    return Witness(pair, (sides[0], sides[1]), given, shared, outer, numbers.shape_of(pair), numbers.boxes(pair), numbers.others(pair))


class _Numbers:
    def __init__(self, question: Question, point: Mapping[Key, int]) -> None:
        self.question, self.point = question, point
        self.elements = {(tensor.id, tuple(i.value(point) for i in element.index)): element.value.value(point)
                         for tensor, elements in question.translator.applications.items() for element in elements}
        self.names: dict[str, int] = {}
        self.instead: dict[s.Var, int] = {}     # values of variables in place of the point's

    def value(self, node: s.Scalar, side: int) -> int:
        return int(s.evaluate(as_declared(node), lambda leaf: self._leaf(leaf, side)))

    def _leaf(self, node: s.Scalar, side: int) -> s.Number:
        match node:
            case s.Var():
                return self.instead[node] if node in self.instead else self.question.number(node, side).value(self.point)
            case s.SymbolRef(name):
                self.names[name] = self.question.number(node, side).value(self.point)
                return self.names[name]
            case s.Element(tensor, index):
                place = tuple(self.value(i, side) for i in index)
                if (tensor.id, place) not in self.elements:
                    raise NoWitness(f"{print_scalar(node)} has no value")
                self.names[f"{tensor.shown}[{', '.join(map(str, place))}]"] = self.elements[tensor.id, place]
                return self.elements[tensor.id, place]
            case _:
                raise NoWitness(f"{print_scalar(node)} has no value")

    def given(self) -> Mapping[str, int]:
        """Return the values of the symbols and elements read so far."""
        return self.names

    def check(self, access: SiteAccess, side: int) -> None:
        """Check the levels and guards of an access against the values.

        Raises: NoWitness if one does not hold.
        """
        for level in access.levels:
            match level:
                case Loop(var=var, start=start, stop=stop, step=step, through=through):
                    walk = range(self.value(start, side), self.value(stop, side), max(1, self.value(step, side)))
                    self._demand(self.value(var, side) in walk, var.name)
                    if through is not None:
                        self._demand(self.value(through.var, side) == self.value(through.value, side), through.var.name)
                case Taken():
                    for branch in level.refused:
                        self._demand(not self.value(branch.condition, side), print_scalar(branch.condition))
                    if level.held is not None:
                        self._demand(bool(self.value(level.held, side)), print_scalar(level.held))
                case _:
                    pass
        guards = [(bound.lower, bound.value, bound.upper) for bound in bounds_of(access.view)]
        guards += [(check.lower, check.value, check.upper) for check in access.checks]
        for lower, value, upper in guards:
            self._demand(self.value(lower, side) <= self.value(value, side) <= self.value(upper, side), print_scalar(value))

    def _demand(self, holds: bool, what: str) -> None:
        if not holds:
            raise NoWitness(what)

    def shared(self, pair: Pair) -> Shared:
        """Return the elements that both accesses touch, in each dimension from first to last."""
        regions = tuple(region_of(access.view) for access in pair.accesses)
        if all(region.is_box for region in regions):
            ranges = tuple(common_range(self._range(regions[0], a, 0), self._range(regions[1], b, 1))
                          for a, b in zip(regions[0].dims, regions[1].dims, strict=True))
        else:
            ranges = self._compared(pair)
        self._demand(all(ranges), "nothing is shared")
        return ranges

    def are_same(self, pair: Pair) -> bool:
        """Tell whether both accesses have the same elements."""
        regions = tuple(region_of(access.view) for access in pair.accesses)
        if all(region.is_box for region in regions):
            here, there = ([self._range(region, line, side) for line in region.dims] for side, region in enumerate(regions))
            return here == there
        return np.array_equal(*self._offsets(pair))

    def _range(self, region: Region, line: Line, side: int) -> range:
        start = self.value(line.start, side)
        if not line.terms:
            return range(start, start + 1)
        (number, factor), = line.terms
        return range(start, start + factor * self.value(region.extents[number], side), factor)

    def boxes(self, pair: Pair) -> tuple[Shared, Shared] | None:
        """Return the elements that each access touches, in each dimension; None for views that are no boxes."""
        regions = tuple(region_of(access.view) for access in pair.accesses)
        if not all(region.is_box for region in regions):
            return None
        here, there = (tuple(self._range(region, line, side) for line in region.dims) for side, region in enumerate(regions))
        return here, there

    def others(self, pair: Pair) -> tuple[tuple[int, Shared, Shared], ...]:
        """Return the boxes of both accesses in each iteration of the pair's loop, for at most `_MOST_ITERATIONS`."""
        loop = pair.loop
        if loop is None or loop.through is not None:
            return ()
        found: list[tuple[int, Shared, Shared]] = []
        try:
            walk = range(self.value(loop.start, 0), self.value(loop.stop, 0), max(1, self.value(loop.step, 0)))
            for value in walk if len(walk) <= _MOST_ITERATIONS else ():
                self.instead = {loop.var: value}
                boxes = self.boxes(pair)
                if boxes is None:
                    return ()
                found.append((value, *boxes))
        except NoWitness:        # an element decides where another iteration works, and the solver gave only those of the pair
            return ()
        finally:
            self.instead = {}
        return tuple(found)

    def _compared(self, pair: Pair) -> Shared:
        both = np.intersect1d(*self._offsets(pair))
        shape = self.shape_of(pair)
        places = np.unravel_index(both, shape) if both.size else tuple(both for _ in shape)
        return tuple(range(int(place.min()), int(place.max()) + 1) if place.size else range(0) for place in places)

    def shape_of(self, pair: Pair) -> tuple[int, ...]:
        """Return the shape of the tensor of both accesses."""
        tensor = pair.first.view.tensor
        return tuple(self.value(s.DimOf(tensor, k), 0) for k in range(tensor.rank))

    def _offsets(self, pair: Pair) -> tuple[np.ndarray, np.ndarray]:
        """Return the sorted linear offsets of each access's elements."""
        shape = self.shape_of(pair)
        if int(np.prod(shape)) > _MOST_ELEMENTS:
            raise NoWitness("the tensor is large, and its views are reshaped")
        whole = np.arange(int(np.prod(shape))).reshape(shape)
        ours, theirs = (np.unique(self._viewed(access.view, whole, side)) for side, access in enumerate(pair.accesses))
        return ours, theirs

    def _viewed(self, view: View, whole: np.ndarray, side: int) -> np.ndarray:
        part = whole
        for step in view.steps:
            match step:
                case Pick(dim, index):
                    part = np.take(part, self.value(index, side), axis=dim)
                case Cut(dim, start, stop, by):
                    cut: list[slice] = [slice(None)] * part.ndim
                    cut[dim] = slice(self.value(start, side), self.value(stop, side), by)
                    part = part[tuple(cut)]
                case Clip(limits):
                    part = part[tuple(slice(0, limit) for limit in limits)]
                case Permute(order):
                    part = part.transpose(order)
                case Reshape(shape):
                    first, last = step.span(part.ndim)
                    part = part.reshape((*part.shape[:first], *shape, *part.shape[last:]))
        return part


def common_range(ours: range, theirs: range) -> range:
    """Return the intersection of two ranges as a range; irregular intersections keep first, last and the first step."""
    if not ours or not theirs:
        return range(0)
    if len(ours) > len(theirs):
        ours, theirs = theirs, ours
    if ours.step == theirs.step == 1:
        return range(max(ours.start, theirs.start), min(ours.stop, theirs.stop))
    both: Sequence[int] = [k for k in ours if k in theirs]
    if not both:
        return range(0)
    step = both[1] - both[0] if len(both) > 1 else 1
    return range(both[0], both[-1] + 1, step)


# -- task instances in processes ---------------------------------------------------------------------------------------
_BUDGET = 20_000        # statements to run: about 0.1 s
_MOST_PAIRS = 60_000    # pairs of instances to compare
_SIZES = (32, 8, 6, 5, 4, 3)     # tried for symbols without a default


@dataclass(frozen=True, slots=True, eq=False)
class Concurrent:
    """Two instances without an order: the witness, and for each side the number of tokens its process has moved before, by channel."""

    witness: Witness
    tokens: tuple[Mapping[int, int], Mapping[int, int]]


def unordered_instances(plan: TaskPlan, pipeline: PlanPipeline, witness: Witness, data: Data, *, apart: bool = True) -> Concurrent | None:
    """Return two instances of the accesses of a witness that share an element and have no order, with its sizes, or others for sizes
    that are symbols; None where there are none. `apart`: the two are in different processes or replicas.

    Sizes are the witness's, or others for symbols without a default. `apart`: the instances must be in different processes or replicas.
    Raises: NotKnown if the processes cannot run without their tasks, or exceed the budget.
    """
    first, second = witness.pair.accesses
    if not isinstance(first.statement, Submit) or not isinstance(second.statement, Submit):
        raise Uncountable("the workload reads it itself")
    if any(task.after for task in leaves(pipeline)):
        raise Uncountable("after= orders tasks of its processes")
    instances, why = None, None
    for sizes in _sizes(plan, witness):
        try:
            instances = _found(plan, pipeline, witness, data, sizes, apart=apart)
        except Uncountable as problem:
            why = why or problem
        if instances is not None:
            return instances
    if why is not None:
        raise why
    return None


def _sizes(plan: TaskPlan, witness: Witness) -> Iterator[Mapping[str, int]]:
    """Yield the sizes to run with, for all symbols without a default."""
    free = [symbol.name for symbol in plan.symbols if symbol.default is None and not is_float_symbol(symbol)]
    if all(name in witness.given for name in free):
        yield witness.given
    for size in _SIZES if free else ():
        yield {**witness.given, **{name: max(size, witness.given.get(name, 0)) for name in free}}


def _found(plan: TaskPlan, pipeline: PlanPipeline, witness: Witness, data: Data, given: Mapping[str, int], *,
           apart: bool) -> Concurrent | None:
    pair = witness.pair
    key = ("tasks", id(pipeline), *sorted(given.items()), *sorted(witness.outer.items()))
    if key not in data.kept:
        data.kept[key] = _tasks(plan, pipeline, witness, data, given)
    run = data.kept[key]
    if not isinstance(run, list):
        raise Uncountable(str(run))
    tasks: list[WatchedTask] = run
    regions = [{number: _box(access, task) for number, task in enumerate(tasks) if _is_of(task, access)} for access in pair.accesses]
    numbers = sorted({*regions[0], *regions[1]})
    if len(numbers) ** 2 > 2 * _MOST_PAIRS:
        raise Uncountable("it has too many tasks to be run here")
    for position, later in enumerate(numbers):
        for earlier in numbers[:position]:
            if tasks[later].before >> earlier & 1 or (apart and tasks[earlier].stream == tasks[later].stream):
                continue
            for one, other in ((earlier, later), (later, earlier)):
                here, there = regions[0].get(one), regions[1].get(other)
                if here is None or there is None:
                    continue
                shared = _shared(here, there)
                if shared is not None:
                    found = _unordered(witness, given, tasks[one], tasks[other], shared)
                    return replace(found, witness=replace(found.witness, boxes=(here, there), others=()))
    return None


def _tasks(plan: TaskPlan, pipeline: PlanPipeline, witness: Witness, data: Data, given: Mapping[str, int]) -> list[WatchedTask] | str:
    """Return the tasks of a pipeline with these sizes, none where a run with them ends before its first one; or why that is not known."""
    submits = {task.site: task for task in leaves(pipeline)}
    skeletons = Skeletons(plan, _leaf_with(data, given), Budget(_BUDGET), dict(witness.outer), sites=frozenset(submits))
    try:
        if skeletons.run(pipeline).rows:
            return "its processes come to a stop"
    except Uncountable as why:
        return str(why)
    return skeletons.watched if all(_passes(task, submits[task.site]) for task in skeletons.watched) else []


def _unordered(witness: Witness, given: Mapping[str, int], first: WatchedTask, second: WatchedTask, shared: Shared) -> Concurrent:
    pair = witness.pair
    sides = (_values(pair, pair.first, first), _values(pair, pair.second, second))
    return Concurrent(replace(witness, sides=sides, given=given, shared=shared), (first.tokens, second.tokens))


def _values(pair: Pair, access: SiteAccess, task: WatchedTask) -> Values:
    """Return the values of the loops and tokens around an instance, outermost first."""
    values: list[tuple[str, int]] = []
    for level in access.levels:
        variables = (level.known_var,) if isinstance(level, Loop) else level.vars if isinstance(level, Consume | Receive) else ()
        values += [(var.name, int(task.value(var))) for var in variables if var.name != "_"]
    return tuple(values)


def _is_of(task: WatchedTask, access: SiteAccess) -> bool:
    return isinstance(access.statement, Submit) and access.statement.site == task.site


def _passes(task: WatchedTask, submit: Submit) -> bool:
    """Tell whether the checks of an instance hold, as far as they are known."""
    for check in submit.note.checks:
        try:
            if not task.value(check.lower) <= task.value(check.value) <= task.value(check.upper):
                return False
        except Uncountable:
            pass
    return True


def _box(access: SiteAccess, task: WatchedTask) -> Shared:
    region = region_of(access.view)
    if not region.is_box:
        raise Uncountable("a view is reshaped")
    return tuple(_range(region, line, task) for line in region.dims)


def _range(region: Region, line: Line, task: WatchedTask) -> range:
    start = int(task.value(line.start))
    if not line.terms:
        return range(start, start + 1)
    (number, factor), = line.terms
    return range(start, start + factor * int(task.value(region.extents[number])), factor)


def _shared(here: Shared, there: Shared) -> Shared | None:
    both = tuple(common_range(ours, theirs) for ours, theirs in zip(here, there, strict=True))
    return both if all(both) else None


def _leaf_with(data: Data, given: Mapping[str, int]) -> Callable[[s.Scalar], Number]:
    """Return the function that evaluates leaves with these sizes, declared shapes and the current contents of arrays."""
    def leaf(node: s.Scalar) -> Number:
        match as_declared(node):
            case s.Const(value):
                return value
            case s.SymbolRef(name, default=default):
                if name in given:
                    return given[name]
                if isinstance(default, int):
                    return default
            case s.Element(tensor, index) if tensor.id not in data.written and tensor.id in data.arrays:
                at = tuple(int(one.value) for one in index if isinstance(one, s.Const))
                array = data.arrays[tensor.id]
                if len(at) == len(index) and all(0 <= k < extent for k, extent in zip(at, array.shape, strict=True)):
                    return int(array[at])
            case _:
                pass
        raise Uncountable(f"`{print_scalar(node)}` is known at run time alone")
    return leaf
