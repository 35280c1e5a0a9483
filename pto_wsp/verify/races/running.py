"""Two tasks of different processes that nothing orders, found by running what the processes send and take, with numbers.

The deadlock check's skeleton runs with the sizes of the solver's two iterations and watches the two task sites. Each instance knows which
instances of the other are over when it starts: two that share an element, of which neither is over before the other, are a race. What
the skeleton does not order no run orders: it follows every chain of program order, tokens, credits and events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from pto_wsp.plan.model import Consume, Loop, Pipeline, Receive, Submit, TaskPlan, is_float_symbol
from pto_wsp.plan.walk import items_in
from pto_wsp.types import scalar as s
from pto_wsp.types.scalar_text import print_scalar
from pto_wsp.types.view import as_declared
from pto_wsp.values import dataclass
from pto_wsp.verify.deadlock.skeleton import Budget, NotKnown, Number, Skeletons, WatchedTask
from pto_wsp.verify.races.accesses import Access
from pto_wsp.verify.races.question import Data, Pair
from pto_wsp.verify.races.regions import Line, Region, region_of
from pto_wsp.verify.races.witness import Shared, Values, Witness, common_range

_BUDGET = 20_000        # statements: a tenth of a second
_MOST_PAIRS = 60_000    # of instances that are compared
_SIZES = (32, 8, 6, 5, 4, 3)     # of symbols that the solver's example says nothing of, or whose numbers show nothing


@dataclass(frozen=True, slots=True, eq=False)
class Unordered:
    """Two instances without an order: as a witness, and for each side how many tokens its process has moved before, by channel."""

    witness: Witness
    tokens: tuple[Mapping[int, int], Mapping[int, int]]


def unordered_instances(plan: TaskPlan, pipeline: Pipeline, witness: Witness, data: Data, *, apart: bool = True) -> Unordered | None:
    """Return two instances of the accesses of a witness that share an element and have no order, with its sizes, or others for sizes
    that are symbols; None where there are none. `apart`: the two are in different processes or replicas.

    Raises: NotKnown where the processes cannot be run without their tasks, or not within the budget.
    """
    first, second = witness.pair.accesses
    if not isinstance(first.statement, Submit) or not isinstance(second.statement, Submit):
        raise NotKnown("the workload reads it itself")
    if any(isinstance(item, Submit) and item.after for item in items_in(pipeline)):
        raise NotKnown("after= orders tasks of its processes")
    found, why = None, None
    for given in _sizes(plan, witness):
        try:
            found = _found(plan, pipeline, witness, data, given, apart=apart)
        except NotKnown as problem:
            why = why or problem
        if found is not None:
            return found
    if why is not None:
        raise why
    return None


def _sizes(plan: TaskPlan, witness: Witness) -> Iterator[Mapping[str, int]]:
    """Yield the sizes to run with: of all symbols that have none."""
    free = [symbol.name for symbol in plan.symbols if symbol.default is None and not is_float_symbol(symbol)]
    if all(name in witness.given for name in free):
        yield witness.given
    for size in _SIZES if free else ():
        yield {**witness.given, **{name: max(size, witness.given.get(name, 0)) for name in free}}


def _found(plan: TaskPlan, pipeline: Pipeline, witness: Witness, data: Data, given: Mapping[str, int], *, apart: bool) -> Unordered | None:
    pair = witness.pair
    key = ("tasks", id(pipeline), *sorted(given.items()), *sorted(witness.outer.items()))
    if key not in data.kept:
        data.kept[key] = _tasks(plan, pipeline, witness, data, given)
    run = data.kept[key]
    if not isinstance(run, list):
        raise NotKnown(str(run))
    tasks: list[WatchedTask] = run
    regions = [{number: _box(access, task) for number, task in enumerate(tasks) if _is_of(task, access)} for access in pair.accesses]
    numbers = sorted({*regions[0], *regions[1]})
    if len(numbers) ** 2 > 2 * _MOST_PAIRS:
        raise NotKnown("it has too many tasks to be run here")
    for at, later in enumerate(numbers):
        for earlier in numbers[:at]:
            if tasks[later].before >> earlier & 1 or (apart and tasks[earlier].stream == tasks[later].stream):
                continue
            for one, other in ((earlier, later), (later, earlier)):
                here, there = regions[0].get(one), regions[1].get(other)
                shared = None if here is None or there is None else _shared(here, there)
                if shared is not None:
                    return _unordered(witness, given, tasks[one], tasks[other], shared)
    return None


def _tasks(plan: TaskPlan, pipeline: Pipeline, witness: Witness, data: Data, given: Mapping[str, int]) -> list[WatchedTask] | str:
    """Return the tasks of a pipeline with these sizes, none where a run with them ends before its first one; or why that is not known."""
    submits = {item.site: item for item in items_in(pipeline) if isinstance(item, Submit)}
    skeletons = Skeletons(plan, _leaf_with(data, given), Budget(_BUDGET), dict(witness.outer), sites=frozenset(submits))
    try:
        if skeletons.run(pipeline).rows:
            return "its processes come to a stop"
    except NotKnown as why:
        return str(why)
    return skeletons.watched if all(_passes(task, submits[task.site]) for task in skeletons.watched) else []


def _unordered(witness: Witness, given: Mapping[str, int], first: WatchedTask, second: WatchedTask, shared: Shared) -> Unordered:
    pair = witness.pair
    sides = (_values(pair, pair.first, first), _values(pair, pair.second, second))
    return Unordered(replace(witness, sides=sides, given=given, shared=shared), (first.tokens, second.tokens))


def _values(pair: Pair, access: Access, task: WatchedTask) -> Values:
    """Return the loops and tokens around an instance, outermost first."""
    found: list[tuple[str, int]] = []
    for level in access.levels:
        variables = (level.known_var,) if isinstance(level, Loop) else level.vars if isinstance(level, Consume | Receive) else ()
        found += [(var.name, int(task.value(var))) for var in variables if var.name != "_"]
    return tuple(found)


def _is_of(task: WatchedTask, access: Access) -> bool:
    return isinstance(access.statement, Submit) and access.statement.site == task.site


def _passes(task: WatchedTask, submit: Submit) -> bool:
    """Tell whether the checks of an instance hold, as far as they are known."""
    for check in submit.checks:
        try:
            if not task.value(check.lower) <= task.value(check.value) <= task.value(check.upper):
                return False
        except NotKnown:
            pass
    return True


def _box(access: Access, task: WatchedTask) -> Shared:
    region = region_of(access.view)
    if not region.is_box:
        raise NotKnown("a view is reshaped")
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
    """Return the numbers that a run with these sizes has, of tensors as declared and of what arrays hold now."""
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
        raise NotKnown(f"`{print_scalar(node)}` is known at run time alone")
    return leaf

