"""What must hold between the processes of a pipeline before it means anything: who sends, who takes, and of how many numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pto_wsp.errors import PipelineError
from pto_wsp.expr import workload as wl
from pto_wsp.expr.rewrite import outer_nodes
from pto_wsp.expr.tags import WORKLOAD_TAGS
from pto_wsp.source import UNKNOWN, Span


def pipeline_errors(body: wl.Block) -> tuple[PipelineError, ...]:
    """Return what is wrong with the pipelines of a workload, and with statements of processes that stand outside one."""
    return tuple(_outside(body))


def _outside(item: wl.Item) -> Iterator[PipelineError]:
    """What is wrong in an item of the main program."""
    match item:
        case wl.Pipeline():
            yield from _pipeline(item)
        case wl.Send() | wl.Receive() | wl.Consume() | wl.Record() | wl.Synchronize():
            yield PipelineError(f"{_spelled(item)} outside a process", item.span,
                                help="it belongs into the body of a process: with P.pipe(): ..., or process(...).body(...)")
        case _:
            for inner in wl.inner_items(item):
                yield from _outside(inner)


def _pipeline(pipeline: wl.Pipeline) -> Iterator[PipelineError]:
    for process in pipeline.processes:
        yield from _inside(process)
        yield from _declared(process)
    yield from _names(pipeline.processes)
    yield from _handles(pipeline.processes)
    sends = tuple(item for process in pipeline.processes for item in outer_nodes(process.body) if isinstance(item, wl.Send))
    takes = tuple(item for process in pipeline.processes for item in outer_nodes(process.body)
                  if isinstance(item, wl.Consume | wl.Receive))
    yield from _ends(sends, takes)
    for channel in dict.fromkeys(item.channel for item in (*sends, *takes)):
        yield from _arity(channel, sends, takes)
    yield from _events(pipeline.processes)


def _inside(process: wl.Process) -> Iterator[PipelineError]:
    for item in outer_nodes(process.body):
        if isinstance(item, wl.Pipeline):
            yield PipelineError(f"a pipeline in process `{process.name}` of another", item.span,
                                help="connect all processes in one pipeline; the main program may run several, also in a loop")
        elif isinstance(item, wl.SetSlot):
            yield PipelineError(f"process `{process.name}` sets slot {item.slot}", item.span,
                                help="slots belong to the main program; processes give each other numbers with send(channel, value)")


def _declared(process: wl.Process) -> Iterator[PipelineError]:
    """Declared channels against those that the body uses."""
    items = tuple(outer_nodes(process.body))
    taken = {item.channel: item.span for item in reversed(items) if isinstance(item, wl.Consume | wl.Receive)}
    given = {item.channel: item.span for item in reversed(items) if isinstance(item, wl.Send)}
    for used, declared, does, method in ((taken, process.consumes, "takes from", "consumes"),
                                         (given, process.produces, "sends to", "produces")):
        for channel, span in used.items():
            if channel not in declared:
                yield PipelineError(f"process `{process.name}` {does} channel `{channel.name}` and does not say so", span,
                                    help=f"process({process.name!r}).{method}({channel.name})")
        for channel in declared:
            if channel not in used:
                yield PipelineError(f"process `{process.name}` says that it {method} channel `{channel.name}`, and its body does not",
                                    process.span, help=f"drop .{method}({channel.name}), or use it in the body")


def _names(processes: Iterable[wl.Process]) -> Iterator[PipelineError]:
    known: dict[str, wl.Process] = {}
    for process in processes:
        if process.name in known:
            yield PipelineError(f"two processes are called `{process.name}`", process.span,
                                help="replicate(process, n) makes several alike",
                                notes=(_at("the other is", known[process.name].span),))
        known.setdefault(process.name, process)


def _handles(processes: Iterable[wl.Process]) -> Iterator[PipelineError]:
    """Tasks wait for those of their own process and of what comes before the pipeline."""
    home = {item.handle: process.name for process in processes for item in outer_nodes(process.body) if isinstance(item, wl.Task)}
    for process in processes:
        for item in outer_nodes(process.body):
            if isinstance(item, wl.Task | wl.Send):
                for handle in item.after:
                    other = home.get(handle, process.name)
                    if other != process.name:
                        yield PipelineError(f"process `{process.name}` names a task of process `{other}`", item.span,
                                            help="processes are ordered through channels and events: send(channel, task) gives it on")


def _ends(sends: Iterable[wl.Send], takes: Iterable[wl.Consume | wl.Receive]) -> Iterator[PipelineError]:
    given = {item.channel: item for item in reversed(tuple(sends))}
    taken = {item.channel: item for item in reversed(tuple(takes))}
    for channel, send in given.items():
        if channel not in taken:
            yield PipelineError(f"nobody takes from channel `{channel.name}`", send.span, help=f"with consume({channel.name}) as t: ...")
    for channel, take in taken.items():
        if channel not in given:
            yield PipelineError(f"nobody sends to channel `{channel.name}`", take.span, help=f"send({channel.name}, task)")


def _arity(channel: wl.ChannelRef, sends: Iterable[wl.Send], takes: Iterable[wl.Consume | wl.Receive]) -> Iterator[PipelineError]:
    """All tokens of a channel have as many numbers; whoever takes them names all, or none."""
    first: wl.Send | None = None
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


def _events(processes: Iterable[wl.Process]) -> Iterator[PipelineError]:
    recorded: dict[wl.EventRef, tuple[wl.Process, wl.Record]] = {}
    for process in processes:
        for item in outer_nodes(process.body):
            if isinstance(item, wl.Record):
                known = recorded.setdefault(item.event, (process, item))
                if known[0] is not process or process.replicas > 1:
                    yield PipelineError(f"event `{item.event.name}` is recorded by more than one process", item.span,
                                        help="one process records an event; several synchronize with it",
                                        notes=() if known[0] is process else (_at("also", known[1].span),))
    for process in processes:
        for item in outer_nodes(process.body):
            if isinstance(item, wl.Synchronize) and item.event not in recorded:
                yield PipelineError(f"no process of this pipeline records event `{item.event.name}`", item.span,
                                    help=f"record({item.event.name})")


def _spelled(item: wl.Item) -> str:
    match item:
        case wl.Send(channel):
            return f"send({channel.name}, ...)"
        case wl.Receive(channel):
            return f"receive({channel.name})"
        case wl.Consume(channel):
            return f"consume({channel.name})"
        case wl.Record(event):
            return f"record({event.name})"
        case wl.Synchronize(event):
            return f"synchronize({event.name})"
        case _:
            return WORKLOAD_TAGS.name(item)


def _numbers(n: int) -> str:
    return "no numbers" if n == 0 else f"{n} number{'s' * (n != 1)}"


def _at(what: str, span: Span) -> str:
    return what if span == UNKNOWN else f"{what} at {span}"
