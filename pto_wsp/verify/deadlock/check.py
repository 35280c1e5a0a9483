"""Whether the processes of a plan's pipelines can come to wait for each other, before anything runs.

Two ways lead to "proved". *By structure*: take processes as points, each channel between one sender and one taker as a line, each event
as a line from its recorder to whoever waits for it. Where these lines form no circle, no deadlock is possible: who waits, waits along one
line, for the process at its other end; follow that, and as there is no circle to go round, one line is gone back along at once. Then two
processes wait for each other at the same channel, one because it is full and one because it is empty, which cannot be; and who records
an event does not wait for it. Replicas that send one token for each that they take count as one process: tokens are dealt and merged in
the same turns, so the one with the earliest never waits for another's turn.

*By running it*: what processes send and take is run without their tasks, with the numbers that are known (skeleton.py); that decides it
when these are all the numbers there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pto_wsp.errors import TokenError
from pto_wsp.plan.model import (
    AwaitEvent,
    Choice,
    Consume,
    Item,
    Loop,
    Pipeline,
    Process,
    Receive,
    Send,
    Sequence,
    TaskPlan,
)
from pto_wsp.plan.waits.channel_state import Wait
from pto_wsp.plan.waits.communication import communicates, recorder_of
from pto_wsp.plan.walk import inner_items, items_in
from pto_wsp.types import scalar as s
from pto_wsp.types.scalar_text import print_scalar
from pto_wsp.verify.deadlock.report import stuck_error
from pto_wsp.verify.deadlock.skeleton import Budget, Leaf, NotKnown, Number, Outcome, Skeletons
from pto_wsp.verify.verdict import Finding, Verdict

_BUDGET = 20_000       # statements: a tenth of a second


def check_deadlock(plan: TaskPlan) -> tuple[Finding, ...]:
    """Return verdicts for each pipeline of a plan, deadlock and tokens that nobody takes, and one for windows and executors."""
    findings = tuple(finding for pipeline, sure in _pipelines(plan.body, sure=True) for finding in _pipeline(plan, pipeline, sure=sure))
    return (*findings, _WINDOWS) if findings else ()


_WINDOWS = Finding("deadlock of windows and executors", Verdict.PROVED,
                   "each process has a window of its own, and tasks are submitted in an order in which whatever they wait for comes before "
                   "them: the earliest that has not completed is never held back, so a full window drains")


def _pipelines(item: Item, *, sure: bool) -> Iterator[tuple[Pipeline, bool]]:
    """Yield the pipelines of the main program, and whether control surely comes to each."""
    match item:
        case Pipeline():
            yield item, sure
        case Loop(start=s.Const(start), stop=s.Const(stop)):
            yield from _pipelines(item.body, sure=sure and start < stop)
        case Loop() | Choice():
            for inner in inner_items(item):
                yield from _pipelines(inner, sure=False)
        case _:
            for inner in inner_items(item):
                yield from _pipelines(inner, sure=sure)


def _pipeline(plan: TaskPlan, pipeline: Pipeline, *, sure: bool) -> Iterator[Finding]:
    names = ", ".join(process.name for process in pipeline.processes)
    deadlock, tokens = f"deadlock of {names}", f"tokens of {names}"
    numbers = _Declared()
    skeletons = Skeletons(plan, numbers.leaf, Budget(_BUDGET))
    circle, outcome, unknown = _circle(plan, pipeline), None, ""
    try:
        outcome = skeletons.run(pipeline)
    except NotKnown as why:
        unknown = str(why)
    if outcome is not None and outcome.rows:
        yield _counterexample(plan, pipeline, skeletons, outcome, (deadlock, tokens), sure=sure)
        return
    if outcome is not None and numbers.assumed:
        unknown = f"it ends with the sizes declared ({', '.join(sorted(numbers.assumed))}), and a run may bind others"
    held = "" if outcome is None else ", ".join(f"{plan.channels[number].name} {most}" for number, most in outcome.most.items())
    ended = f"run without its tasks, it ends; tokens held at most: {held}"
    if circle is None:
        yield Finding(deadlock, Verdict.PROVED, "its channels and events form no circle, and each has one process at either end")
    elif not unknown:
        yield Finding(deadlock, Verdict.PROVED, ended)
    else:
        yield Finding(deadlock, Verdict.NOT_PROVED, f"{circle}, and {unknown}; a run that comes to a stop is reported")
    left = tuple(_not_surely_taken(plan, pipeline))
    if not unknown:
        yield Finding(tokens, Verdict.PROVED, ended)
    elif not left:
        yield Finding(tokens, Verdict.PROVED, "every channel is consumed until it is closed and empty")
    else:
        yield Finding(tokens, Verdict.NOT_PROVED, f"watched at run time for {', '.join(left)}: {unknown}")


def _counterexample(plan: TaskPlan, pipeline: Pipeline, skeletons: Skeletons, outcome: Outcome, checks: tuple[str, str], *,
                    sure: bool) -> Finding:
    error = stuck_error(plan, outcome.rows, *advice(skeletons, pipeline, outcome))
    check = checks[isinstance(error, TokenError)]
    if sure:
        return Finding(check, Verdict.COUNTEREXAMPLE, error.message, error)
    return Finding(check, Verdict.NOT_PROVED, f"reported at run time if it comes to that: {error.message}")


def advice(skeletons: Skeletons, pipeline: Pipeline, outcome: Outcome) -> tuple[Mapping[int, int] | None, bool | None]:
    """Return the depths with which a pipeline that came to a stop would end, and whether there are any; None: it is not known."""
    if any(row.waits_for in (Wait.CLOSED, Wait.LOST, Wait.NEVER) for row in outcome.rows):
        return None, None
    try:
        depths = replace(skeletons, budget=Budget(8 * _BUDGET)).live_depths(pipeline)
    except NotKnown:
        return None, None
    return depths, depths is not None


class _Declared:
    """Numbers as they were declared: of an axis that a run may bind anew, the one that it starts with."""

    def __init__(self) -> None:
        self.assumed: set[str] = set()
        self.leaf: Leaf = self._leaf

    def _leaf(self, node: s.Scalar) -> Number:
        match node:
            case s.SymbolRef(name, default=int(default)):
                self.assumed.add(name)
                return default
            case s.DimOf(tensor, dim):
                self.assumed.add(tensor.shown)
                return tensor.shape[dim]
            case s.Const(value):
                return value
            case _:
                raise NotKnown(f"`{print_scalar(node)}` is known at run time alone")


def _circle(plan: TaskPlan, pipeline: Pipeline) -> str | None:
    """Return what keeps the channels and events from being a forest with one process at either end, None when they are."""
    home = {process.stream + replica: process for process in pipeline.processes for replica in range(process.replicas)}
    root = {process.stream: process.stream for process in pipeline.processes}

    def find(stream: int) -> int:
        while root[stream] != stream:
            stream = root[stream]
        return stream

    def joins(one: Process, other: Process) -> bool:
        first, second = find(one.stream), find(other.stream)
        root[first] = second
        return first != second

    for process in pipeline.processes:
        if process.replicas > 1 and communicates(process.body) and not _one_for_one(process):
            return f"replicas of `{process.name}` do not send one token for each that they take"
    for number in pipeline.channels:
        channel = plan.channels[number]
        ends = [tuple(dict.fromkeys(home[stream].stream for stream in streams)) for streams in (channel.producers, channel.consumers)]
        if any(len(end) != 1 for end in ends):
            return f"`{channel.name}` has several processes at one end"
        if not joins(home[ends[0][0]], home[ends[1][0]]):
            return f"`{channel.name}` closes a circle"
    for process in pipeline.processes:
        for event in sorted(_awaited(process.body)):
            if not joins(home[recorder_of(pipeline, event)], process):
                return f"`{plan.events[event].name}` closes a circle"
    return None


def _one_for_one(process: Process) -> bool:
    """Tell whether a process takes from one channel until that is closed, and for each token sends one to every channel it sends to."""
    takes = [item for item in _flat(process.body) if communicates(item)]
    if len(takes) != 1 or not isinstance(takes[0], Consume):
        return False
    statements = [item for item in _flat(takes[0].body) if communicates(item)]
    given = [item.channel for item in statements if isinstance(item, Send)]
    return len(given) == len(statements) and sorted(given) == sorted(process.produces)


def _flat(body: Item) -> Iterator[Item]:
    """Yield the statements of a body, those of sequences in it among them."""
    for item in body.items if isinstance(body, Sequence) else (body,):
        if isinstance(item, Sequence):
            yield from _flat(item)
        else:
            yield item


def _awaited(item: Item) -> set[int]:
    return {inner.event for inner in items_in(item) if isinstance(inner, AwaitEvent)}


def _not_surely_taken(plan: TaskPlan, pipeline: Pipeline) -> Iterator[str]:
    """Yield channels and events with a statement that may find nothing, or may never come."""
    for number in pipeline.channels:
        takers = [process for process in pipeline.processes if number in process.consumes]
        sure = all(any(isinstance(item, Consume) and item.channel == number for item in _flat(process.body))
                   and not any(isinstance(item, Receive) and item.channel == number for item in items_in(process.body))
                   for process in takers)
        if not sure:
            yield f"`{plan.channels[number].name}`"
    if any(isinstance(item, AwaitEvent) for process in pipeline.processes for item in items_in(process.body)):
        yield from (f"`{plan.events[event].name}`" for event in pipeline.events)
