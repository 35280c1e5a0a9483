"""Check and lower the pipelines of a workload: channels, events and processes get numbers, each process a stream.

`pipeline_errors` checks what must hold before a pipeline has a meaning: who sends, who receives, and how many numbers a token has.
`Network` keeps the numbering of one workload.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field

from pto_wsp.errors import InternalError, PipelineError
from pto_wsp.ir import workload as wl
from pto_wsp.ir.flow import (
    AwaitEvent,
    Consume,
    Pipeline,
    Process,
    Receive,
    RecordEvent,
    Send,
    Sequence,
    assignments,
    children,
    evaluations,
    walk,
)
from pto_wsp.ir.plan import Body, Channel, Event, PlanAwait, PlanPipeline, PlanReceive, PlanRecord, PlanSend, Precondition
from pto_wsp.ir.scalar import Const
from pto_wsp.ir.tags import WORKLOAD_TAGS
from pto_wsp.passes.task_checks import element_checks
from pto_wsp.source import UNKNOWN, Span
from pto_wsp.values import dataclass


# -- checks ------------------------------------------------------------------------------------------------------------
def pipeline_errors(body: wl.Body) -> tuple[PipelineError, ...]:
    """Return the errors of a workload's pipelines, and of process statements outside a pipeline."""
    return tuple(_program_errors(body))


def _program_errors(item: wl.Item) -> Iterator[PipelineError]:
    """Yield the errors of an item of the main program."""
    match item:
        case Pipeline():
            yield from _pipeline(item)
        case Send() | Receive() | Consume() | RecordEvent() | AwaitEvent():
            yield PipelineError(f"{_spelled(item)} outside a process", item.span,
                                help="it belongs into the body of a process: with P.pipe(): ..., or process(...).body(...)")
        case _:
            for inner in children(item):
                yield from _program_errors(inner)


def _pipeline(pipeline: wl.WorkloadPipeline) -> Iterator[PipelineError]:
    for process in pipeline.processes:
        yield from _process_errors(process)
        yield from _declaration_errors(process)
    yield from _names(pipeline.processes)
    yield from _handles(pipeline.processes)
    sends = tuple(item for process in pipeline.processes for item in walk(process.body) if isinstance(item, Send))
    takes = tuple(item for process in pipeline.processes for item in walk(process.body)
                  if isinstance(item, Consume | Receive))
    yield from _ends(sends, takes)
    for channel in dict.fromkeys(item.channel for item in (*sends, *takes)):
        yield from _arity(channel, sends, takes)
        yield from _initial(channel, pipeline.processes, sends)
    yield from _events(pipeline.processes)


def _process_errors(process: wl.WorkloadProcess) -> Iterator[PipelineError]:
    for item in walk(process.body):
        if isinstance(item, Pipeline):
            yield PipelineError(f"a pipeline in process `{process.name}` of another", item.span,
                                help="connect all processes in one pipeline; the main program may run several, also in a loop")
        yield from (PipelineError(f"process `{process.name}` sets slot {place.slot}", evaluations(item)[0].span,
                                  help="slots belong to the main program; processes give each other numbers with send(channel, value)")
                    for place, _ in assignments(item))


def _declaration_errors(process: wl.WorkloadProcess) -> Iterator[PipelineError]:
    """Yield the differences between a process's declared channels and those its body uses."""
    items = tuple(walk(process.body))
    received = {item.channel: item.span for item in reversed(items) if isinstance(item, Consume | Receive)}
    sent = {item.channel: item.span for item in reversed(items) if isinstance(item, Send)}
    for used, declared, does, method in ((received, process.consumes, "takes from", "consumes"),
                                         (sent, process.produces, "sends to", "produces")):
        for channel, span in used.items():
            if channel not in declared:
                yield PipelineError(f"process `{process.name}` {does} channel `{channel.name}` and does not say so", span,
                                    help=f"process({process.name!r}).{method}({channel.name})")
        for channel in declared:
            if channel not in used:
                yield PipelineError(f"process `{process.name}` says that it {method} channel `{channel.name}`, and its body does not",
                                    process.span, help=f"drop .{method}({channel.name}), or use it in the body")


def _names(processes: Iterable[wl.WorkloadProcess]) -> Iterator[PipelineError]:
    first_by_name: dict[str, wl.WorkloadProcess] = {}
    for process in processes:
        if process.name in first_by_name:
            yield PipelineError(f"two processes are called `{process.name}`", process.span,
                                help="replicate(process, n) makes several alike",
                                notes=(_at("the other is", first_by_name[process.name].span),))
        first_by_name.setdefault(process.name, process)


def _handles(processes: Iterable[wl.WorkloadProcess]) -> Iterator[PipelineError]:
    """Yield tasks that wait for a task of another process; only tasks of the same process or before the pipeline are allowed."""
    home = {task.handle: process.name for process in processes for task in wl.tasks(process.body)}
    for process in processes:
        for each in wl.waiting(process.body):
            for handle in each.after:
                other = home.get(handle, process.name)
                if other != process.name:
                    yield PipelineError(f"process `{process.name}` names a task of process `{other}`", each.span,
                                        help="processes are ordered through channels and events: send(channel, task) gives it on")


def _ends(sends: Iterable[wl.WorkloadSend], takes: Iterable[wl.WorkloadConsume | wl.WorkloadReceive]) -> Iterator[PipelineError]:
    sent = {item.channel: item for item in reversed(tuple(sends))}
    received = {item.channel: item for item in reversed(tuple(takes))}
    for channel, send in sent.items():
        if channel not in received:
            yield PipelineError(f"nobody takes from channel `{channel.name}`", send.span, help=f"with consume({channel.name}) as t: ...")
    for channel, take in received.items():
        if channel not in sent:
            yield PipelineError(f"nobody sends to channel `{channel.name}`", take.span, help=f"send({channel.name}, task)")


def _arity(channel: wl.ChannelRef, sends: Iterable[wl.WorkloadSend],
           takes: Iterable[wl.WorkloadConsume | wl.WorkloadReceive]) -> Iterator[PipelineError]:
    """Yield the statements that disagree on the number of values in a channel's tokens; a receiver names all values or none."""
    first: wl.WorkloadSend | None = None
    for send in sends:
        if send.channel != channel:
            continue
        if first is not None and len(send.payload) != len(first.payload):
            yield PipelineError(f"a token of channel `{channel.name}` carries {_numbers(len(send.payload))} here", send.span,
                                expected=_numbers(len(first.payload)), notes=(_at("the first one is sent", first.span),))
        first = first or send
    for take in takes:
        if first is not None and take.channel == channel and take.vars and len(take.vars) != len(first.payload):
            yield PipelineError(f"a token of channel `{channel.name}` is taken as {_numbers(len(take.vars))}", take.span,
                                expected=_numbers(len(first.payload)), notes=(_at("it is sent", first.span),))


def _initial(channel: wl.ChannelRef, processes: Iterable[wl.WorkloadProcess],
             sends: Iterable[wl.WorkloadSend]) -> Iterator[PipelineError]:
    """Yield what is wrong with the tokens that a channel begins with: one process sends first, tokens of the same numbers."""
    if not channel.initial:
        return
    senders = [process for process in processes if channel in process.produces]
    if len(senders) > 1 or any(process.replicas > 1 for process in senders):
        yield PipelineError(f"channel `{channel.name}` begins with tokens, and several processes send to it", senders[0].span,
                            expected="one process that sends, without replicas", found=", ".join(
                                f"{process.name}{f', {process.replicas} times' if process.replicas > 1 else ''}" for process in senders))
    for send in sends:
        if send.channel == channel and channel.initial[0] and len(send.payload) != len(channel.initial[0]):
            yield PipelineError(f"a token of channel `{channel.name}` carries {_numbers(len(send.payload))} here", send.span,
                                expected=f"{_numbers(len(channel.initial[0]))}, as the tokens that it begins with",
                                help=f"Channel({channel.name!r}, {channel.depth}, initial=[...]) takes the numbers of each token")
            return


def _events(processes: Iterable[wl.WorkloadProcess]) -> Iterator[PipelineError]:
    recorded: dict[wl.EventRef, tuple[wl.WorkloadProcess, RecordEvent[wl.EventRef]]] = {}
    for process in processes:
        for item in walk(process.body):
            if isinstance(item, RecordEvent):
                first_record = recorded.setdefault(item.event, (process, item))
                if first_record[0] is not process or process.replicas > 1:
                    yield PipelineError(f"event `{item.event.name}` is recorded by more than one process", item.span,
                                        help="one process records an event; several synchronize with it",
                                        notes=() if first_record[0] is process else (_at("also", first_record[1].span),))
    for process in processes:
        for item in walk(process.body):
            if isinstance(item, AwaitEvent) and item.event not in recorded:
                yield PipelineError(f"no process of this pipeline records event `{item.event.name}`", item.span,
                                    help=f"record({item.event.name})")


def _spelled(item: wl.Item) -> str:
    match item:
        case Send(channel):
            return f"send({channel.name}, ...)"
        case Receive(channel):
            return f"receive({channel.name})"
        case Consume(channel):
            return f"consume({channel.name})"
        case RecordEvent(event):
            return f"record({event.name})"
        case AwaitEvent(event):
            return f"synchronize({event.name})"
        case _:
            return WORKLOAD_TAGS.name(item)


def _numbers(n: int) -> str:
    return "no numbers" if n == 0 else f"{n} number{'s' * (n != 1)}"


def _at(what: str, span: Span) -> str:
    return what if span == UNKNOWN else f"{what} at {span}"


# -- lowering ----------------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class PipelineNumbers:
    """The numbering so far. Channels and events belong to one pipeline: another pipeline that uses the same refs gets new numbers."""

    channels: list[Channel] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    n_streams: int = 1
    n_sites: int = 0
    _channels: dict[int, int] = field(default_factory=dict)    # numbers in the current pipeline, by ref id
    _events: dict[int, int] = field(default_factory=dict)

    def site(self) -> int:
        """Return the number of a new statement that uses a channel or an event."""
        self.n_sites += 1
        return self.n_sites - 1

    def channel(self, ref: wl.ChannelRef) -> int:
        """Return the number of a channel of the current pipeline."""
        if ref.id not in self._channels:
            raise InternalError(f"channel {ref.name} is used outside a pipeline")
        return self._channels[ref.id]

    def event(self, ref: wl.EventRef) -> int:
        """Return the number of an event of the current pipeline."""
        if ref.id not in self._events:
            raise InternalError(f"event {ref.name} is used outside a pipeline")
        return self._events[ref.id]

    def pipeline(self, pipeline: wl.WorkloadPipeline, block: Callable[[wl.Body], Body]) -> PlanPipeline:
        """Return a pipeline with its channels and events opened; `block` lowers the body of a process."""
        streams: list[int] = []
        for process in pipeline.processes:
            streams.append(self.n_streams)
            self.n_streams += process.replicas
        self._channels, self._events = {}, {}
        for process in pipeline.processes:
            for ref in (*process.consumes, *process.produces):
                if ref.id not in self._channels:
                    self._channels[ref.id] = len(self.channels)
                    self.channels.append(_channel(ref, pipeline, streams))
            for item in walk(process.body):
                if isinstance(item, RecordEvent | AwaitEvent) and item.event.id not in self._events:
                    self._events[item.event.id] = len(self.events)
                    self.events.append(Event(item.event.name, item.event.id))
        opened, events = tuple(self._channels.values()), tuple(self._events.values())
        processes = tuple(
            Process(process.name, block(_with_initial_tokens(process)), tuple(map(self.channel, process.consumes)),
                    tuple(map(self.channel, process.produces)), process.replicas, stream, process.span)
            for process, stream in zip(pipeline.processes, streams, strict=True))
        return Pipeline(processes, opened, events, pipeline.span)

    def send(self, send: wl.WorkloadSend) -> PlanSend:
        """Return a send with its checks; whoever calls notes its scalars."""
        checks = tuple(dict.fromkeys(check for value in send.payload for check in element_checks(value, send.span)))
        return Send(self.channel(send.channel), send.payload, Precondition(checks), send.after, self.site(), send.span)

    def receive(self, receive: wl.WorkloadReceive) -> PlanReceive:
        """Return a lowered receive."""
        return Receive(self.channel(receive.channel), receive.vars, self.site(), receive.span)

    def record(self, record: RecordEvent[wl.EventRef]) -> PlanRecord:
        """Return a lowered record of an event."""
        return RecordEvent(self.event(record.event), self.site(), record.span)

    def synchronize(self, wait: AwaitEvent[wl.EventRef]) -> PlanAwait:
        """Return a lowered wait for an event."""
        return AwaitEvent(self.event(wait.event), self.site(), wait.span)


def _with_initial_tokens(process: wl.WorkloadProcess) -> wl.Body:
    """Return the body of a process behind the sends of the tokens with which its channels begin."""
    n_numbers = {item.channel: len(item.payload) for item in walk(process.body) if isinstance(item, Send)}
    first = tuple(Send(channel, tuple(map(Const, numbers or (0,) * n_numbers[channel])), wl.WorkloadNote(), span=process.span)
                  for channel in process.produces for numbers in channel.initial)
    return Sequence((*first, *process.body.items)) if first else process.body


def _channel(ref: wl.ChannelRef, pipeline: wl.WorkloadPipeline, streams: list[int]) -> Channel:
    def ends(of: Callable[[wl.WorkloadProcess], tuple[wl.ChannelRef, ...]]) -> tuple[int, ...]:
        return tuple(stream + replica for process, stream in zip(pipeline.processes, streams, strict=True)
                     if any(each.id == ref.id for each in of(process)) for replica in range(process.replicas))

    sent = next((len(item.payload) for process in pipeline.processes for item in walk(process.body)
                 if isinstance(item, Send) and item.channel.id == ref.id), 0)
    return Channel(ref.name, ref.depth, sent, ends(lambda process: process.produces), ends(lambda process: process.consumes),
                   initial=len(ref.initial))
