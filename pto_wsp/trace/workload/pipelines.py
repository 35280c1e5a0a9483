"""Trace pipelines: channels and events, and the statements send, consume, receive, record, synchronize.

>>> with P.pipe():
...     for i in P.seq(n):
...         send(tiles, load[i](x=X[i], out=T[i]))
...     with consume(tiles) as i:
...         scale[i](x=T[i], out=Y[i])

In `with P.pipe():` every statement directly inside is a process, named after its first kernel, or after its loop or channel.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from inspect import Parameter, signature
from types import FrameType, GenericAlias, TracebackType
from typing import Any, NoReturn
from weakref import WeakValueDictionary

import numpy as np

from pto_wsp.calls import user_call, user_calls
from pto_wsp.errors import ArgumentKindError, ChannelError, NumberError, OutsideTraceError, ProcessError
from pto_wsp.ir import flow
from pto_wsp.ir import scalar as s
from pto_wsp.ir import workload as wl
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.symbolic import Symbolic, as_scalar
from pto_wsp.source import UNKNOWN, Span, here, user_frame
from pto_wsp.trace.bytecode import AssignTarget, assigned_name, target_of
from pto_wsp.trace.workload.trace import (
    TaskHandle,
    TraceScope,
    WorkloadTrace,
    current_trace,
    innermost_scope,
    is_tracing,
    refuse_left_early,
)

MAX_PAYLOAD = 8
MAX_DEPTH = 1 << 20
MAX_INITIAL = 256      # tokens that a channel begins with: each is a send
MAX_REPLICAS = 1024     # replicas of one process
_ids = itertools.count()
_events: WeakValueDictionary[int, Event] = WeakValueDictionary()
_channels: WeakValueDictionary[int, Channel] = WeakValueDictionary()


# -- channels and events -----------------------------------------------------------------------------------------------
_NO_NAME = "channel"


@user_calls()
class Channel:
    """`Channel("tiles", depth=2)`: an ordered queue of tokens between processes that send and processes that receive.

    `name`: without one, that of the variable in `tiles = Channel(depth=2)`. `depth`: its capacity in tokens. A send waits while the
    channel is full; with depth 0 a send and a receive meet. `Channel[T]` is the same class: T tells readers and type checkers what the
    tokens are.

    `initial`: the tokens that the channel begins with, at most `depth`: their number, or the numbers of each, `initial=[0, 1]`; with their
    number alone they carry zeros. The only process that sends to the channel sends them before its body begins. As many may be left when
    the pipeline ends, so a channel of credits is `Channel("free", 2, initial=2)`.
    """

    __slots__ = ("__weakref__", "is_over", "ref")

    def __class_getitem__(cls, item: object) -> GenericAlias:
        return GenericAlias(cls, (item,))

    def __init__(self, name: str | None = None, depth: int = 1, *, initial: int | Sequence[object] = 0) -> None:
        if name is None:
            name = assigned_name(user_frame()) or _NO_NAME
        _check_name("a Channel", name)
        if isinstance(depth, bool) or not isinstance(depth, int) or not 0 <= depth <= MAX_DEPTH:
            raise ChannelError(f"channel `{name}` has a depth that there is none of", here(),
                               expected=f"a whole number, 0 .. {MAX_DEPTH}", found=repr(depth))
        self.ref = wl.ChannelRef(next(_ids), name, depth, _initial_tokens(name, depth, initial))
        self.is_over = False      # whether a run of a program with this channel has finished
        _channels[self.ref.id] = self

    @property
    def name(self) -> str:
        """The channel's name."""
        return self.ref.name

    def is_open(self) -> bool:
        """Tell, on the host, whether a token may still come: False once a run has finished, which closes its channels.

        Raises: W109 in a workload, as do `size`, `empty` and `full`: what they tell is known on the host, not when tasks are made.
        """
        self._ask("is_open")
        return not self.is_over

    def size(self) -> int:
        """Return, on the host, the number of tokens in the channel: 0, as tokens exist during a run, and a run takes all of them."""
        self._ask("size")
        return 0

    def empty(self) -> bool:
        """Tell, on the host, whether the channel holds no token."""
        self._ask("empty")
        return self.size() == 0

    def full(self) -> bool:
        """Tell, on the host, whether the channel has no room for a token that waits in it: only one of depth 0 never has."""
        self._ask("full")
        return self.size() >= self.depth

    def _ask(self, what: str) -> None:
        if is_tracing():
            raise ChannelError(f"{self.name}.{what}() in a workload", here(),
                               help="it asks the host; `with consume(channel)` takes tokens until the channel is closed and empty")

    @property
    def depth(self) -> int:
        """The capacity in tokens."""
        return self.ref.depth

    def __iter__(self) -> NoReturn:
        raise ChannelError(f"channel `{self.name}` is no loop", here(),
                           help=f"with consume({self.name}) as i: ... takes its tokens")

    def __repr__(self) -> str:
        return f"Channel({self.name!r}, depth={self.depth})"


@user_calls()
class Event:
    """`Event("loaded")`: recorded by one process, awaited by others; the n-th `synchronize` waits for the n-th `record`."""

    __slots__ = ("__weakref__", "ref", "was_recorded")

    def __init__(self, name: str) -> None:
        _check_name("an Event", name)
        self.ref = wl.EventRef(next(_ids), name)
        self.was_recorded: Callable[[], bool] = lambda: False      # whether the last finished run recorded it
        _events[self.ref.id] = self

    @property
    def name(self) -> str:
        """The event's name."""
        return self.ref.name

    def __repr__(self) -> str:
        return f"Event({self.name!r})"


# -- statements --------------------------------------------------------------------------------------------------------
def send_token(channel: object, what: tuple[object, ...]) -> None:
    """Send a token: a task (the token carries its bracket indices and arrives when the task completes), or integers.

    Raises: W109 and T209 for what is no token, W103 for what is out of scope, K105 outside a workload.
    """
    trace = current_trace("send(...)")
    frame, span = user_frame(), here()
    ref = _channel("send", channel, span)
    if len(what) == 1 and isinstance(what[0], TaskHandle):
        task = _task_of(what[0], trace, span)
        send_payload(trace, ref, tuple(trace.use(node, frame, span) for node in task.index), (task.handle,), span)
    else:
        send_payload(trace, ref, token_numbers(trace, ref, what, frame, span), (), span)


def send_placed_task(channel: object, body: Sequence[wl.Item]) -> None:
    """Send the only task of a workload placed here.

    Raises: W109 when it does not have one.
    """
    trace, span = current_trace("send(...)"), here()
    ref = _channel("send", channel, span)
    items = tuple(item for part in body for item in flow.walk(part) if not isinstance(item, flow.Sequence))
    tasks = tuple(task for part in body for task in wl.tasks(part))
    if len(items) != 1 or not tasks:
        raise ChannelError(f"send to `{ref.name}` takes a workload of one task", span, found=f"{len(items)} statements",
                           help="send each task where it is made: send(channel, kernel[i](...))")
    send_payload(trace, ref, tasks[0].index, (tasks[0].handle,), span)


def send_payload(trace: WorkloadTrace, ref: wl.ChannelRef, payload: tuple[s.Scalar, ...], after: tuple[int, ...], span: Span) -> None:
    """Append the send statement.

    Raises: W102 for more than MAX_PAYLOAD numbers.
    """
    if len(payload) > MAX_PAYLOAD:
        raise ChannelError(f"a token of `{ref.name}` is too long", span, expected=f"at most {MAX_PAYLOAD} numbers",
                           found=str(len(payload)))
    trace.append(flow.Send(ref, payload, wl.WorkloadNote(), after, span=span))


class Consumer:
    """The result of `consume(channel)`; `with` opens the body that runs for each token."""

    __slots__ = ("_body", "_channel", "_entered_at", "_scope", "_span", "_trace", "_vars")

    def __init__(self, trace: WorkloadTrace, channel: wl.ChannelRef, span: Span) -> None:
        self._trace, self._channel, self._span = trace, channel, span
        self._vars: tuple[s.Var, ...] = ()
        self._body: AbstractContextManager[TraceScope] | None = None
        trace.awaited.add(self, span)

    def __repr__(self) -> str:
        return f"consume({self._channel.name})"

    def __enter__(self) -> Any:
        if self._trace is not current_trace("consume(...)") or self._body is not None:
            raise ChannelError(f"consume({self._channel.name}) is opened where it was not made", here(),
                               help=f"write it here: with consume({self._channel.name}) as i: ...")
        frame = user_frame()
        self._entered_at = frame.f_lasti
        return self._open(target_of(frame))

    def _open(self, target: AssignTarget) -> Any:
        self._trace.awaited.opened(self)
        self._vars = _new_vars(self._trace, target)
        self._body = self._trace.scope(*self._vars)
        self._scope = self._body.__enter__()
        return _value_of(self._vars)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._body is None:
            return
        self._body.__exit__(None, None, None)
        if kind is not None:
            return
        refuse_left_early(f"consume({self._channel.name})", " and stands for every token", self._entered_at)
        self._close()

    def _close(self) -> None:
        self._trace.append(flow.Consume(self._channel, self._vars, flow.Sequence(tuple(self._scope.items)), span=self._span))

    def run(self, body: Callable[..., object], embed: Callable[[object], None]) -> None:
        """Trace a function of the token's numbers as the body; `embed` places the function's result."""
        parameters = [p for p in signature(body).parameters.values()
                      if p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
        value = self._open(AssignTarget(len(parameters), tuple(p.name for p in parameters)))
        assert self._body is not None
        try:
            embed(body(*(value if isinstance(value, tuple) else () if value is None else (value,))))
        finally:
            self._body.__exit__(None, None, None)
        self._close()


def consumer(channel: object) -> Consumer:
    """Return the context manager that consumes a channel token by token.

    Raises: K105 outside a workload, W109 for what is no channel.
    """
    trace, span = current_trace("consume(...)"), here()
    return Consumer(trace, _channel("consume", channel, span), span)


def receive_token(channel: Channel) -> Any:
    """Receive one token of a channel, and return its numbers.

    Raises: K105 outside a workload, W109 for what is no channel.
    """
    trace, span = current_trace("receive(...)"), here()
    ref = _channel("receive", channel, span)
    variables = _new_vars(trace, target_of(user_frame()))
    trace.bind(variables)
    trace.append(flow.Receive(ref, variables, span=span))
    return _value_of(variables)


@user_call("record")
def record(event: Event) -> None:
    """Record an event after everything before this statement in its process has completed."""
    trace, span = current_trace("record(...)"), here()
    trace.append(flow.RecordEvent(_event("record", event, span), span=span))


@user_call("synchronize")
def synchronize(event: Event) -> None:
    """Make the following statements of the process wait for the event: the n-th call waits for its n-th record."""
    trace, span = current_trace("synchronize(...)"), here()
    trace.append(flow.AwaitEvent(_event("synchronize", event, span), span=span))


@user_call("query")
def query(event: Event) -> bool:
    """Tell, on the host, whether the last finished run of a program with this event recorded it.

    Raises: W109 in a workload: what it says is known when a run is over, not when tasks are made.
    """
    ref = _event("query", event, here())
    if is_tracing():
        raise ChannelError(f"query({ref.name}) in a workload", here(),
                           help="it asks the host about the last run; synchronize(event) waits for one in a process")
    return event.was_recorded()


def live_event(id: int) -> Event | None:
    """Return the event of that id; None if it no longer exists."""
    return _events.get(id)


def live_channel(id: int) -> Channel | None:
    """Return the channel of that id; None if it no longer exists."""
    return _channels.get(id)


def _new_vars(trace: WorkloadTrace, target: AssignTarget) -> tuple[s.Var, ...]:
    names = target.names or tuple(f"t{k}" if target.count > 1 else "t" for k in range(target.count))
    return tuple(trace.new_var(name) for name in names)


def _value_of(variables: tuple[s.Var, ...]) -> Any:
    values = tuple(Symbolic(variable) for variable in variables)
    return values[0] if len(values) == 1 else values or None


def _initial_tokens(name: str, depth: int, given: object) -> tuple[tuple[int, ...], ...]:
    """Return the numbers of each token that a channel begins with.

    Raises: W109 for what is neither a number of tokens nor the numbers of each, and for more tokens than the channel holds.
    """
    tokens: list[object] = [()] * given if isinstance(given, int) and not isinstance(given, bool) and 0 <= given <= MAX_INITIAL else (
        list(given) if isinstance(given, Sequence) and not isinstance(given, str | bytes) else [None])
    made = [tuple(token) if isinstance(token, tuple | list) else (token,) for token in tokens]
    if any(not is_payload(numbers) for numbers in made) or len({len(numbers) for numbers in made}) > 1 or len(made) > MAX_INITIAL:
        raise ChannelError(f"channel `{name}` begins with tokens that there are none of", here(),
                           expected=f"a number of tokens, 0 .. {MAX_INITIAL}, or the whole numbers of each: initial=[0, 1]",
                           found=f"{given!r:.100}")
    if len(made) > depth:
        raise ChannelError(f"channel `{name}` begins with more tokens than it holds", here(), expected=f"at most {depth}, its depth",
                           found=str(len(made)))
    return tuple(tuple(map(int, numbers)) for numbers in made)


def is_payload(numbers: Sequence[object]) -> bool:
    """Tell whether these are the numbers of a token: whole numbers of 64 bits, not too many."""
    return len(numbers) <= MAX_PAYLOAD and all(isinstance(number, int | np.integer) and not isinstance(number, bool)
                                               and -(1 << 63) <= int(number) < 1 << 63 for number in numbers)


def _channel(what: str, channel: object, span: Span) -> wl.ChannelRef:
    if isinstance(channel, Channel):
        return channel.ref
    raise ChannelError(f"{what} takes a channel", span, expected="a Channel", found=f"{type(channel).__name__}: {channel!r:.60}")


def _event(what: str, event: object, span: Span) -> wl.EventRef:
    if isinstance(event, Event):
        return event.ref
    raise ChannelError(f"{what} takes an event", span, expected="an Event", found=f"{type(event).__name__}: {event!r:.60}")


def _task_of(handle: TaskHandle, trace: WorkloadTrace, span: Span) -> wl.Task:
    """Return the task of a handle, searching backwards from the last statement."""
    if handle.trace is not trace:
        raise OutsideTraceError(f"send of a task of another workload: {handle!r}", span,
                                help="a process sends tasks of its own: make the task and send it in one body")
    for scope in reversed(trace.scopes):
        for item in reversed(scope.items):
            for task in wl.tasks(item):
                if task.handle == handle.id:
                    return task
    raise ChannelError(f"send of a task that has been moved: {handle!r}", span, help="send it in the body that makes it")


def token_numbers(trace: WorkloadTrace, ref: wl.ChannelRef, values: tuple[object, ...], frame: FrameType,
                  span: Span) -> tuple[s.Scalar, ...]:
    """Return values as the numbers of a token of a channel.

    Raises: T209 for what is no whole number or truth value, W103 for what is out of scope.
    """
    return tuple(trace.use(_whole(ref, value, span), frame, span) for value in values)


def _whole(ref: wl.ChannelRef, value: object, span: Span) -> s.Scalar:
    try:
        node = as_scalar(value)
    except ArgumentKindError:
        raise NumberError(f"send to `{ref.name}`: this is no token", span,
                          expected="a task, a workload of one task, or whole numbers and truth values",
                          found=f"{type(value).__name__}: {value!r:.60}") from None
    kind = s.scalar_dtype(node)
    if kind.is_bool:
        return s.select(node, s.Const(1), s.Const(0))
    if not kind.is_integer:
        raise NumberError(f"send to `{ref.name}`: a token carries whole numbers and truth values", span,
                          found=f"a float: {print_scalar(node)}",
                          help="let a task write it to a tensor, and send where it stands")
    return node


def _check_name(what: str, name: object) -> None:
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise ChannelError(f"{what} needs a name", here(), expected='text, e.g. Channel("tiles")', found=repr(name))


# -- P.pipe() ----------------------------------------------------------------------------------------------------------
class PipeScope:
    """The result of `P.pipe()`."""

    __slots__ = ("_body", "_entered_at", "_scope", "_span", "_trace")

    def __init__(self, trace: WorkloadTrace, span: Span) -> None:
        self._trace, self._span = trace, span
        self._body: AbstractContextManager[TraceScope] | None = None
        trace.awaited.add(self, span)

    def __enter__(self) -> None:
        if self._trace is not current_trace("P.pipe()") or self._body is not None:
            raise ProcessError("P.pipe() is opened where it was not made", here(), help="write it here: with P.pipe(): ...")
        self._trace.awaited.opened(self)
        self._entered_at = user_frame().f_lasti
        self._body = self._trace.scope()
        self._scope = self._body.__enter__()
        self._scope.is_pipe = True

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._body is not None
        self._body.__exit__(None, None, None)
        if kind is not None:
            return
        refuse_left_early("P.pipe()", "", self._entered_at)
        for at, name in self._scope.loose.items():
            raise ProcessError(f"process `{name}` is made in the body of P.pipe() and connected to nothing", at,
                               help="here every statement is a process already: write its body in place; or "
                                    "connect([process(...), ...], [...]) without P.pipe()")
        self._trace.append(flow.Pipeline(tuple(_processes(_parts(self._scope.items))), span=self._span))

    def __repr__(self) -> str:
        return "P.pipe()"


def note_process(name: str, span: Span) -> None:
    """Record a process made directly in the body of a P.pipe(), where it must be connected."""
    scope = innermost_scope()
    if scope is not None and scope.is_pipe:
        scope.loose[span] = name


def note_connected(span: Span) -> None:
    """Mark a process as connected."""
    scope = innermost_scope()
    if scope is not None:
        scope.loose.pop(span, None)


def pipe() -> PipeScope:
    """Return the context manager of `P.pipe()`.

    Raises: K105 outside a workload.
    """
    return PipeScope(current_trace("P.pipe()"), here())


def _parts(items: Iterable[wl.Item]) -> Iterator[wl.Body]:
    """Yield the statements; a task and the send of it that follows directly are one statement."""
    part: list[wl.Item] = []
    for item in items:
        sent = isinstance(item, flow.Send) and part and isinstance(part[-1], flow.Do | flow.Sequence) and any(
            task.handle in item.after for task in wl.tasks(part[-1]))
        if part and not sent:
            yield flow.Sequence(tuple(part))
            part = []
        part.append(item)
    if part:
        yield flow.Sequence(tuple(part))


def _processes(parts: Iterable[wl.Body]) -> Iterator[wl.WorkloadProcess]:
    names: dict[str, int] = {}
    for body in parts:
        name = _name_of(body)
        names[name] = names.get(name, 0) + 1
        yield flow.Process(name if names[name] == 1 else f"{name} ({names[name]})", body, *channels_of(body), span=_span_of(body))


def channels_of(body: wl.Body) -> tuple[tuple[wl.ChannelRef, ...], tuple[wl.ChannelRef, ...]]:
    """Return the channels that a body receives from, and those it sends to, in program order."""
    received = dict.fromkeys(item.channel for item in flow.walk(body) if isinstance(item, flow.Consume | flow.Receive))
    sent = dict.fromkeys(item.channel for item in flow.walk(body) if isinstance(item, flow.Send))
    return tuple(received), tuple(sent)


def _name_of(body: wl.Body) -> str:
    """Return the name of a statement: its first kernel, or the channel or event it uses."""
    for task in wl.tasks(body):
        return task.kernel.name
    for item in flow.walk(body):
        match item:
            case flow.Consume(channel) | flow.Receive(channel):
                return f"consume {channel.name}"
            case flow.Send(channel):
                return f"send {channel.name}"
            case flow.RecordEvent(event) | flow.AwaitEvent(event):
                return event.name
            case _:
                pass
    return "process"


def _span_of(body: wl.Body) -> Span:
    for item in flow.walk(body):
        match item:
            case flow.Sequence() | flow.Sides() | flow.Choice():
                pass
            case flow.Do(leaf):
                return leaf.span
            case _:
                return item.span
    return UNKNOWN
