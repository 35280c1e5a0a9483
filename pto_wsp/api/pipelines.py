"""Define processes and pipelines: `connect([load, scale], [tiles])` is a workload.

>>> load = process("load").produces(tiles).body(loading)
>>> scale = process("scale").consumes(tiles).body(scaling)
>>> pipeline = connect([load, replicate(scale, 2)], [tiles])
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, NoReturn

from pto_wsp.api.forms import make_form
from pto_wsp.api.workload import Workload, WorkloadFunction, embed
from pto_wsp.calls import user_call, user_calls
from pto_wsp.errors import ChannelError, PipelineError, ProcessError
from pto_wsp.ir import flow
from pto_wsp.ir import workload as wl
from pto_wsp.ir.rewrite import with_fresh_ids
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.traffic import Collective
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.source import UNKNOWN, Span, here
from pto_wsp.trace.workload.pipelines import (
    MAX_REPLICAS,
    Channel,
    Consumer,
    consumer,
    note_connected,
    note_process,
    receive_token,
    send_placed_task,
    send_token,
)
from pto_wsp.trace.workload.rings import Ring, RingProducer, ring_consumer, ring_producer, ring_receiver
from pto_wsp.trace.workload.trace import Placed, is_tracing, place, trace_workload, unplace
from pto_wsp.values import dataclass

_LONGEST_NAME = 60


@user_calls()
@dataclass(frozen=True, slots=True, eq=False)
class Process:
    """A part of a pipeline with a program order of its own. Every method returns a new value."""

    name: str
    takes: tuple[Channel, ...] = ()
    gives: tuple[Channel, ...] = ()
    node: wl.Body | None = field(default=None, repr=False)
    tensors: Mapping[int, Tensor] = field(default_factory=dict, repr=False)
    replicas: int = 1
    span: Span = field(default=UNKNOWN, repr=False)
    moves: tuple[Collective, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        """Refuse what is no process.

        Raises: W108 for a name, a body or a number of replicas that there is none of, W109 for what is no channel.
        """
        if not isinstance(self.name, str) or not self.name.strip() or not self.name.isprintable():
            raise ProcessError("a process needs a name", here(), expected='text, e.g. process("load")', found=f"{self.name!r:.60}")
        _channels("a process", (*self.takes, *self.gives))
        if not isinstance(self.node, flow.Sequence | None) or not isinstance(self.replicas, int):
            raise ProcessError(f"process `{self.name}` is made of parts that are none", here(),
                               help="process(name).consumes(...).produces(...).body(...), and replicate(process, n)")

    def consumes(self, *channels: Channel | Ring) -> Process:
        """Set the channels and rings that the body receives tokens from."""
        return replace(self, takes=(*self.takes, *_channels("consumes", channels)))

    def produces(self, *channels: Channel | Ring) -> Process:
        """Set the channels and rings that the body sends tokens to."""
        return replace(self, gives=(*self.gives, *_channels("produces", channels)))

    def body(self, what: Workload | WorkloadFunction | Callable[[], object]) -> Process:
        """Set the body: a workload, or a function that is traced as one.

        Raises: W108 for anything else.
        """
        if isinstance(what, Workload):
            if what.schedule != Schedule():
                raise ProcessError(f"the body of process `{self.name}` has a schedule of its own", here(),
                                   found=repr(what.schedule), help="schedule the whole: connect(...).dispatch(...)")
            if what._placed is not None:
                unplace(what._placed)
            return replace(self, node=what._node.body, tensors=what._tensors, moves=what._moves)
        if not callable(what):
            raise ProcessError(f"the body of process `{self.name}` is a workload, or a function", here(), found=repr(what))
        node, trace = trace_workload(self.name, lambda: embed(what()))
        moves = tuple(move for move in trace.ranks.moves if isinstance(move, Collective))
        return replace(self, node=node.body, tensors=trace.tensors, moves=moves)

    def __enter__(self) -> NoReturn:
        """Refuse `with process(…):`, because a body is traced as a whole.

        Raises: W108.
        """
        raise ProcessError(f"process `{self.name}` opens no block: its body is a function", here(),
                           expected=f'process("{self.name}").body(function)',
                           help="define the function above, without parameters, and give it to .body(...)")

    def __exit__(self, *of: object) -> None:
        """Do nothing: no block is ever entered."""


@user_call("process")
def process(name: str) -> Process:
    """Create a process: `process("load").produces(tiles).body(loading)`."""
    span = here()
    made = Process(name, span=span)
    note_process(name, span)
    return made


@user_call("replicate")
def replicate(which: Process, n: int) -> Process:
    """Return the process replicated n times; its channels distribute their tokens to the replicas in turn.

    Raises: W108 for a number that there is none of.
    """
    if not isinstance(which, Process):
        raise ProcessError("replicate takes a process", here(), found=repr(which))
    if isinstance(n, bool) or not isinstance(n, int) or n < 1 or which.replicas * n > MAX_REPLICAS:
        raise ProcessError(f"process `{which.name}` is replicated a number of times", here(),
                           expected=f"1 .. {MAX_REPLICAS // which.replicas}", found=repr(n))
    return replace(which, replicas=which.replicas * n)


@user_call("connect")
def connect(processes: Sequence[Process], channels: Sequence[Channel | Ring]) -> Workload:
    """Return the workload in which processes run concurrently, ordered only by their channels and events.

    Raises: W110 for channels that are not those of the processes, W108 for what is no process.
    """
    span = here()
    listed = {channel.ref.id: channel for channel in _channels("connect", channels)}
    parts = tuple(_processes(processes, span))
    if not parts:
        raise ProcessError("connect takes at least one process", span)
    for part in parts:
        note_connected(part.span)
        for ref in (*part.takes, *part.gives):
            if ref.ref.id not in listed:
                raise PipelineError(f"process `{part.name}` uses channel `{ref.name}`, which is not connected", span,
                                    help=f"connect(processes, [..., {ref.name}])")
    used = {channel.ref.id for part in parts for channel in (*part.takes, *part.gives)}
    for number, channel in listed.items():
        if number not in used:
            raise PipelineError(f"channel `{channel.name}` is connected and no process has it", span,
                                help=f"process(...).produces({channel.name}), and .consumes({channel.name}) of another")
    tensors: dict[int, Tensor] = {}
    nodes: list[wl.WorkloadProcess] = []
    for part in parts:
        assert part.node is not None
        body = with_fresh_ids(part.node)
        tensors |= part.tensors
        nodes.append(flow.Process(part.name, body, tuple(c.ref for c in part.takes), tuple(c.ref for c in part.gives), part.replicas,
                                  span=part.span))
    block = flow.Sequence((flow.Pipeline(tuple(nodes), span=span),))
    whole = Workload(wl.Workload(_name_of(parts), block), tensors)
    whole._placed = place(block, tensors)
    whole._moves = tuple(move for part in parts for move in part.moves)
    return whole


@user_call("send")
def send(channel: Channel, *what: object) -> Workload:
    """Send a token to a channel: `send(ch, kernel[i](…))`, `send(ch, part(i))` for a workload of one task, or `send(ch, i, j)`.

    A task's token carries its bracket indices and appears when it has completed. Whole numbers and truth values can be sent.
    Outside a workload the result is a workload, such as the body of a process: `send(ch, task(kernel, [0], [X, Y]))`.
    Raises: W109 and T209 for what is no token, W103 for what is out of scope.
    """
    sent = what[0] if len(what) == 1 else None
    if not isinstance(sent, Workload):
        return make_form("send", lambda: send_token(channel, what))
    if sent._placed is None or not is_tracing():
        return make_form("send", lambda: _send_workload(channel, sent))
    task = sent._placed
    form = make_form("send", lambda: send_placed_task(channel, task.items))
    if form._placed is None or form._placed.scope is not task.scope:
        return form
    whole = Placed(task.scope, (*task.items, *form._placed.items))      # taken elsewhere, the task goes along
    result = Workload(wl.Workload("send", flow.Sequence(whole.items)), form._tensors)
    result._placed = whole
    return result


def _send_workload(channel: Channel, what: Workload) -> None:
    """Place a workload of one task here and send the task."""
    placed = place(what._node.body, what._tensors)
    assert placed is not None
    send_placed_task(channel, placed.items)


@user_call("consume")
def consume(channel: Channel | Ring, body: Callable[..., object] | None = None) -> Any:
    """Receive tokens until the channel is closed and empty: `with consume(ch) as i:`, or `consume(ch, lambda b, h: …)`.

    Of a ring each token is a buffer, with its numbers if there are names for them: `with consume(ring) as buffer`, `as (buffer, i)`.
    With a body, outside a workload, the result is a workload, such as the body of a process.
    Raises: K105 outside a workload for the form without a body, W109 for what is no channel.
    """
    def opened() -> Consumer:
        return ring_consumer(channel) if isinstance(channel, Ring) else consumer(channel)

    if body is None:
        return opened()
    if isinstance(body, Workload) or not callable(body):
        raise ChannelError("consume takes a function of the token's numbers", here(), found=f"{type(body).__name__}: {body!r:.60}",
                           help="consume(channel, lambda i: ...)")
    return make_form("consume", lambda: opened().run(body, embed))


@user_call("produce")
def produce(ring: Ring, *numbers: object) -> RingProducer:
    """Fill the next buffer of a ring: `with produce(ring) as buffer: load[i](x=X[i], out=buffer)`.

    The body waits for a free buffer; those who take from the ring get the buffer when the body's tasks have completed, and the numbers
    along with it: `with produce(ring, i) as buffer`, `with consume(ring) as (buffer, i)`.
    Raises: K105 outside a workload; W115 for what is no ring, and where the number of the buffer is not that of ordered loops; T209 for
    what is no whole number.
    """
    return ring_producer(ring, numbers)


@user_call("receive")
def receive(channel: Channel | Ring) -> Any:
    """Receive one token: `i = receive(ch)`, `b, h = receive(ch)`; of a ring one buffer: `with receive(ring) as buffer:`.

    The run fails if no token will come.
    Raises: K105 outside a workload, W109 for what is no channel.
    """
    return ring_receiver(channel) if isinstance(channel, Ring) else receive_token(channel)


def _name_of(parts: Sequence[Process]) -> str:
    """Return a name for a pipeline that is valid in file names and in C: its process names, or only the first and last if they are long."""
    names = [re.sub(r"\W+", "_", part.name, flags=re.ASCII).strip("_")[:_LONGEST_NAME] or "process" for part in parts]
    whole = "_".join(names)
    return whole if len(whole) <= _LONGEST_NAME else f"{names[0]}_to_{names[-1]}"


def _processes(given: object, span: Span) -> Iterator[Process]:
    if isinstance(given, Process):
        if given.node is None:
            raise PipelineError(f"process `{given.name}` has no body", given.span, help=".body(workload) says what it does")
        yield given
    elif isinstance(given, Iterable) and not isinstance(given, str | bytes):
        for element in given:
            yield from _processes(element, span)
    else:
        raise ProcessError("connect takes processes", span, found=f"{type(given).__name__}: {given!r:.60}")


def _channels(what: str, given: Iterable[object]) -> tuple[Channel, ...]:
    found: list[Channel] = []
    for one in given:
        if isinstance(one, Ring):
            found += one.channels
        elif not isinstance(one, Channel):
            raise ChannelError(f"{what} takes channels", here(), found=f"{type(one).__name__}: {one!r:.60}")
        else:
            found.append(one)
    return tuple(found)
