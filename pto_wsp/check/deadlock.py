"""Decide before a run whether the processes of a plan's pipelines, or its copies over links, can deadlock; render it as the user's error.

*Proof by structure.* Take processes as nodes, each channel with one sender and one receiver as an edge, each event as an edge from its
recorder to each process that waits. If these edges form a forest, no deadlock is possible: a blocked process waits along one edge for the
process at the other end; following waits in a forest must turn back along one edge, and then two processes wait for each other at one
channel, one because it is full and one because it is empty, a contradiction. An event's recorder never waits for its own event. Replicas
that send one token for each token they receive count as one process: tokens are dealt and merged in the same turns.

*Links with buffers.* A copy over several links of a mesh takes a buffer at the far end of each but the last, and leaves the buffer when it
has come over the next link. Links are nodes, and an edge leads from a link to the next one of a route. If the edges form no circle, the
links drain from the end, whatever the times; else the record of a run is simulated before its tasks run (`timing/links.py`).

*Proof by running.* The skeleton (skeleton.py) runs the communication without the tasks. The result is a proof if no number in it depends
on the run's bindings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from pto_wsp.check.ranks import BeyondSteps, tasks_of_ranks, value_of
from pto_wsp.check.skeleton import Budget, Leaf, Number, Outcome, Skeletons, Uncountable
from pto_wsp.check.verdict import LINKS_DRAIN, Finding, Verdict
from pto_wsp.errors import DeadlockError, TokenError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.channels import Stuck, Wait, recorder_of
from pto_wsp.ir.flow import AwaitEvent, Choice, Consume, Loop, Pipeline, Receive, RecordEvent, Send, children, communicates, walk
from pto_wsp.ir.flow import Sequence as PlanSequence
from pto_wsp.ir.plan import Item, PlanCommunication, PlanPipeline, PlanProcess, TaskPlan
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.source import UNKNOWN, Span


# -- the error ---------------------------------------------------------------------------------------------------------
def stuck_error(plan: TaskPlan, rows: Sequence[Stuck],
                depths: Mapping[int, int] | None = None, live: bool | None = None) -> DeadlockError | TokenError:
    """Return the error for the rows where the streams of a pipeline are stuck.

    `depths`: the smallest channel depths, by number, with which the processes end. `live`: False if no depths help, None if unknown.
    """
    names = _PlanNames(plan)
    for row in rows:
        if row.waits_for in (Wait.CLOSED, Wait.LOST, Wait.NEVER):
            return _token_error(names, row)
    circle = circle_of(rows)
    first = circle[0]
    whole = tuple(f"{names.place(row)}: {names.wait(row)}" for row in circle)
    others = tuple(f"{names.place(row)}: {names.wait(row)}" for row in rows if row not in circle)
    about = f"process {names.stream(first.stream)} waits for itself" if len(circle) == 1 else (
        f"processes {' and '.join(names.stream(row.stream) for row in circle)} wait for each other")
    return DeadlockError(about, names.span(first), found=names.wait(first), help=_advice(names, rows, depths, live),
                         notes=(*whole, *(f"behind: {text}" for text in others)))


def circle_of(rows: Sequence[Stuck]) -> tuple[Stuck, ...]:
    """Return streams that wait for each other in a cycle, starting with the lowest number."""
    standing = {row.stream: row for row in rows}
    at = rows[0]
    seen: list[Stuck] = []
    while at not in seen:
        seen.append(at)
        after = standing.get(at.peer) if at.peer is not None else None
        if after is None:
            return tuple(seen)
        at = after
    circle = seen[seen.index(at):]
    start = min(range(len(circle)), key=lambda k: circle[k].stream)
    return (*circle[start:], *circle[:start])


def _advice(names: _PlanNames, rows: Sequence[Stuck], depths: Mapping[int, int] | None, live: bool | None) -> str:
    if live is False and any(row.waits_for is Wait.TURN for row in rows):
        return "no depth helps: tokens are dealt and merged in turn, so each at one end has to send or take as often as the others"
    if live is False:
        return "no depth helps: each waits for what another does only afterwards; let one of them send first"
    if depths:
        channels = ", ".join(f"Channel({names.plan.channels[number].name!r}, depth={depth})" for number, depth in sorted(depths.items()))
        return f"these depths are enough: {channels}"
    return "let one of them send before it receives, or give a channel room for what is sent in between"


def _token_error(names: _PlanNames, row: Stuck) -> TokenError:
    if row.waits_for is Wait.NEVER:
        event = names.plan.events[row.channel].name
        return TokenError(f"process {names.stream(row.stream)} waits for a record of event `{event}` that never comes", names.span(row),
                          found=f"record number {row.position + 1}; process {names.stream(row.peer or 0)} has ended",
                          help="record as often as any process synchronizes")
    channel = names.plan.channels[row.channel]
    if row.waits_for is Wait.CLOSED:
        return TokenError(f"process {names.stream(row.stream)} takes a token from `{channel.name}`, which is closed and empty",
                          names.span(row), found=f"{row.position} token{'s' * (row.position != 1)} came, and all who send have ended",
                          help=f"with consume({channel.name}) as t: ... takes as many as there are")
    return TokenError(f"nobody takes a token of `{channel.name}`", names.span(row),
                      found=f"token number {row.position + 1}; all who take from the channel have ended",
                      help=f"with consume({channel.name}) as t: ... takes all that come")


class _PlanNames:
    """The user's names of a plan's streams and statements."""

    def __init__(self, plan: TaskPlan) -> None:
        self.plan = plan
        self._processes: dict[int, tuple[PlanProcess, int]] = {}
        self._sites: dict[int, PlanCommunication] = {}
        for item in walk(plan.body):
            if isinstance(item, Pipeline):
                for process in item.processes:
                    for replica in range(process.replicas):
                        self._processes[process.stream + replica] = process, replica
            elif isinstance(item, Send | Receive | Consume | RecordEvent | AwaitEvent):
                self._sites[item.site] = item

    def stream(self, stream: int) -> str:
        """Return a process's name, with the replica's number if there are several."""
        if stream not in self._processes:
            return "`main`"
        process, replica = self._processes[stream]
        return f"`{process.name}`" if process.replicas == 1 else f"`{process.name}` (replica {replica})"

    def span(self, row: Stuck) -> Span:
        """Return the statement at which a stream is stuck."""
        return self._sites[row.site].span if row.site in self._sites else UNKNOWN

    def place(self, row: Stuck) -> str:
        """Return the process's name and the line at which it is stuck."""
        return f"{self.stream(row.stream)} at {self.span(row).short}"

    def wait(self, row: Stuck) -> str:
        """Say what a stream waits for, and which stream could release it."""
        peer = self.stream(row.peer or 0)
        if row.waits_for is Wait.EVENT:
            return f"waits for record number {row.position + 1} of event `{self.plan.events[row.channel].name}`, which {peer} makes"
        channel = self.plan.channels[row.channel]
        match row.waits_for:
            case Wait.SEND if channel.depth:
                return f"sends to `{channel.name}`, which is full (depth {channel.depth}), until {peer} takes a token"
            case Wait.SEND:
                return f"sends to `{channel.name}`, which has no room of its own (depth 0), until {peer} takes the token"
            case Wait.TURN:
                return f"waits for its turn at `{channel.name}`: {peer} is next"
            case _:
                return f"waits for a token of `{channel.name}`, which {peer} is to send"


# -- the check ---------------------------------------------------------------------------------------------------------
_BUDGET = 20_000       # statements to run: about 0.1 s


def check_deadlock(plan: TaskPlan) -> tuple[Finding, ...]:
    """Return two findings for each pipeline of a plan (deadlock; tokens left over), one for windows and executors, one for links."""
    findings = tuple(finding for pipeline, sure in _pipelines(plan.body, sure=True) for finding in _pipeline(plan, pipeline, sure=sure))
    windows = (_WINDOWS, *_SEVERAL * (len(plan.rules.windows) > 1)) if findings else ()
    return (*findings, *windows, *_links(plan))


# -- links with buffers ------------------------------------------------------------------------------------------------
def _links(plan: TaskPlan) -> Iterator[Finding]:
    """Yield the finding of links with buffers, if the ranks have any."""
    routes, check = plan.rules.routes, LINKS_DRAIN
    if routes is None or not routes.buffers:
        return
    ahead: dict[tuple[int, int], set[tuple[int, int]]] = {}
    later = "copies are simulated before each run"
    try:
        for task, values, _ in tasks_of_ranks(plan):
            if task.on is None or task.on.source is None or not task.on.crosses:
                continue
            source, target = value_of(task.on.source, values), value_of(task.on.rank, values)
            if source is None or target is None:
                yield Finding(check, Verdict.NOT_PROVED, f"a run says between which ranks {task.span.short} copies; {later}")
                return
            for before, behind in pairwise(routes.between(int(source), int(target))):
                ahead.setdefault(before, set()).add(behind)
    except BeyondSteps:
        yield Finding(check, Verdict.NOT_PROVED, f"there are too many copies to look at; {later}")
        return
    circle = _circle_of_links(ahead)
    if circle is None:
        yield Finding(check, Verdict.PROVED, "no circle of links, each of which a copy takes behind the one before")
        return
    names = " → ".join(f"rank {rank} {plan.rules.links[number]}" for rank, number in circle[:_SHOWN_LINKS])
    yield Finding(check, Verdict.NOT_PROVED, f"{names}{' → …' if len(circle) > _SHOWN_LINKS else ''} are a circle; {later}")


_SHOWN_LINKS = 4


def _circle_of_links(ahead: Mapping[tuple[int, int], set[tuple[int, int]]]) -> list[tuple[int, int]] | None:
    """Return links that follow each other in a circle; None if taking away links without one ahead leaves none."""
    left = dict(ahead)
    while ends := [link for link, links in left.items() if not links & left.keys()]:
        for link in ends:
            del left[link]
    if not left:
        return None
    way = [min(left)]
    while (link := min(left[way[-1]] & left.keys())) not in way:
        way.append(link)
    return way[way.index(link):]


_WINDOWS = Finding("deadlock of windows and executors", Verdict.PROVED,
                   "each process has a window of its own, and tasks are submitted in an order in which whatever they wait for comes before "
                   "them: the earliest that has not completed is never held back, so a full window drains")


_SEVERAL = (Finding("deadlock of several windows", Verdict.PROVED,
                    "windows of tasks, bytes, entries and edges free their room in one order, that of submission, and ready tasks run "
                    "whatever their process does; a task that alone needs more than a window is refused with R106"),)


def _pipelines(item: Item, *, sure: bool) -> Iterator[tuple[PlanPipeline, bool]]:
    """Yield the pipelines of the main program, and whether control surely comes to each."""
    match item:
        case Pipeline():
            yield item, sure
        case Loop(start=s.Const(start), stop=s.Const(stop)):
            yield from _pipelines(item.body, sure=sure and start < stop)
        case Loop() | Choice():
            for inner in children(item):
                yield from _pipelines(inner, sure=False)
        case _:
            for inner in children(item):
                yield from _pipelines(inner, sure=sure)


def _pipeline(plan: TaskPlan, pipeline: PlanPipeline, *, sure: bool) -> Iterator[Finding]:
    names = ", ".join(process.name for process in pipeline.processes)
    deadlock, tokens = f"deadlock of {names}", f"tokens of {names}"
    numbers = _Declared()
    skeletons = Skeletons(plan, numbers.leaf, Budget(_BUDGET))
    circle, outcome, unknown = _circle(plan, pipeline), None, ""
    try:
        outcome = skeletons.run(pipeline)
    except Uncountable as why:
        unknown = str(why)
    if outcome is not None and outcome.rows:
        yield _counterexample(plan, pipeline, skeletons, outcome, (deadlock, tokens), sure=sure)
        return
    if outcome is not None and numbers.assumed:
        unknown = f"it ends with the sizes declared ({', '.join(sorted(numbers.assumed))}), and a run may bind others"
    high_water = "" if outcome is None else ", ".join(f"{plan.channels[number].name} {most}" for number, most in outcome.most.items())
    ended = f"run without its tasks, it ends; tokens held at most: {high_water}"
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


def _counterexample(plan: TaskPlan, pipeline: PlanPipeline, skeletons: Skeletons, outcome: Outcome, checks: tuple[str, str], *,
                    sure: bool) -> Finding:
    error = stuck_error(plan, outcome.rows, *advice(skeletons, pipeline, outcome))
    check = checks[isinstance(error, TokenError)]
    if sure:
        return Finding(check, Verdict.COUNTEREXAMPLE, error.message, error)
    return Finding(check, Verdict.NOT_PROVED, f"reported at run time if it comes to that: {error.message}")


def advice(skeletons: Skeletons, pipeline: PlanPipeline, outcome: Outcome) -> tuple[Mapping[int, int] | None, bool | None]:
    """Return the depths with which a pipeline that came to a stop would end, and whether there are any; None: it is not known."""
    if any(row.waits_for in (Wait.CLOSED, Wait.LOST, Wait.NEVER) for row in outcome.rows):
        return None, None
    try:
        depths = replace(skeletons, budget=Budget(8 * _BUDGET)).live_depths(pipeline)
    except Uncountable:
        return None, None
    return depths, depths is not None


class _Declared:
    """Evaluates leaves at their declared values, and collects in `assumed` the names that a run may rebind."""

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
                raise Uncountable(f"`{print_scalar(node)}` is known at run time alone")


def _circle(plan: TaskPlan, pipeline: PlanPipeline) -> str | None:
    """Return what keeps the channels and events from being a forest with one process at either end, None when they are."""
    home = {process.stream + replica: process for process in pipeline.processes for replica in range(process.replicas)}
    root = {process.stream: process.stream for process in pipeline.processes}

    def find(stream: int) -> int:
        while root[stream] != stream:
            stream = root[stream]
        return stream

    def joins(one: PlanProcess, other: PlanProcess) -> bool:
        first, second = find(one.stream), find(other.stream)
        root[first] = second
        return first != second

    for process in pipeline.processes:
        if process.replicas > 1 and communicates(process.body) and not _forwards_each_token(process):
            return f"replicas of `{process.name}` do not send one token for each that they take"
    for number in pipeline.channels:
        channel = plan.channels[number]
        ends = [tuple(dict.fromkeys(home[stream].stream for stream in streams)) for streams in (channel.producers, channel.consumers)]
        if any(len(end) != 1 for end in ends):
            return f"`{channel.name}` has several processes at one end"
        if not joins(home[ends[0][0]], home[ends[1][0]]):
            return f"`{channel.name}` closes a circle"
    for process in pipeline.processes:
        for event in sorted({inner.event for inner in walk(process.body) if isinstance(inner, AwaitEvent)}):
            if not joins(home[recorder_of(pipeline, event)], process):
                return f"`{plan.events[event].name}` closes a circle"
    return None


def _forwards_each_token(process: PlanProcess) -> bool:
    """Tell whether a process takes from one channel until that is closed, and for each token sends one to every channel it sends to."""
    takes = [item for item in _flat(process.body) if communicates(item)]
    if len(takes) != 1 or not isinstance(takes[0], Consume):
        return False
    statements = [item for item in _flat(takes[0].body) if communicates(item)]
    sent = [item.channel for item in statements if isinstance(item, Send)]
    return len(sent) == len(statements) and sorted(sent) == sorted(process.produces)


def _flat(body: Item) -> Iterator[Item]:
    """Yield the statements of a body, with nested sequences flattened."""
    for item in body.items if isinstance(body, PlanSequence) else (body,):
        if isinstance(item, PlanSequence):
            yield from _flat(item)
        else:
            yield item


def _not_surely_taken(plan: TaskPlan, pipeline: PlanPipeline) -> Iterator[str]:
    """Yield channels and events with a statement that may find nothing, or may never come."""
    for number in pipeline.channels:
        takers = [process for process in pipeline.processes if number in process.consumes]
        sure = all(any(isinstance(item, Consume) and item.channel == number for item in _flat(process.body))
                   and not any(isinstance(item, Receive) and item.channel == number for item in walk(process.body))
                   for process in takers)
        if not sure:
            yield f"`{plan.channels[number].name}`"
    if any(isinstance(item, AwaitEvent) for process in pipeline.processes for item in walk(process.body)):
        yield from (f"`{plan.events[event].name}`" for event in pipeline.events)
