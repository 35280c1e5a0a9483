"""`with P.pipe():` every statement directly inside is a process of its own, named after what it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from types import TracebackType

from pto_wsp.errors import SymbolicControlError, WorkloadStructureError
from pto_wsp.expr import workload as wl
from pto_wsp.expr.rewrite import outer_nodes
from pto_wsp.frontend.bytecode.early_exit import left_early
from pto_wsp.frontend.workload.trace import Scope, WorkloadTrace, current_trace, innermost_scope
from pto_wsp.source import UNKNOWN, Span, here, user_frame


class Pipe:
    """What `P.pipe()` returns."""

    __slots__ = ("_body", "_entered_at", "_scope", "_span", "_trace")

    def __init__(self, trace: WorkloadTrace, span: Span) -> None:
        self._trace, self._span = trace, span
        self._body: AbstractContextManager[Scope] | None = None
        trace.unopened.append((self, span))

    def __enter__(self) -> None:
        if self._trace is not current_trace("P.pipe()") or self._body is not None:
            raise WorkloadStructureError("P.pipe() is opened where it was not made", here(), help="write it here: with P.pipe(): ...")
        self._trace.unopened = [(each, span) for each, span in self._trace.unopened if each is not self]
        self._entered_at = user_frame().f_lasti
        self._body = self._trace.scope()
        self._scope = self._body.__enter__()
        self._scope.is_pipe = True

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._body is not None
        self._body.__exit__(None, None, None)
        if kind is not None:
            return
        if left_early(user_frame(), self._entered_at):
            raise SymbolicControlError("the body of P.pipe() is left early", here(),
                                       help="it is traced once, so break and return have no meaning in it")
        for at, name in self._scope.loose.items():
            raise WorkloadStructureError(f"process `{name}` is made in the body of P.pipe() and connected to nothing", at,
                                         help="here every statement is a process already: write its body in place; or "
                                              "connect([process(...), ...], [...]) without P.pipe()")
        self._trace.append(wl.Pipeline(tuple(_processes(_parts(self._scope.items))), self._span))

    def __repr__(self) -> str:
        return "P.pipe()"


def note_process(name: str, span: Span) -> None:
    """Remember a process that is made directly in the body of a P.pipe(): it must be connected there."""
    scope = innermost_scope()
    if scope is not None and scope.is_pipe:
        scope.loose[span] = name


def note_connected(span: Span) -> None:
    """Forget a process that has been connected."""
    scope = innermost_scope()
    if scope is not None:
        scope.loose.pop(span, None)


def pipe() -> Pipe:
    """Return what `with` opens.

    Raises: K105 outside a workload.
    """
    return Pipe(current_trace("P.pipe()"), here())


def _parts(items: Iterable[wl.Item]) -> Iterator[wl.Block]:
    """Yield the statements: a task that a send directly behind it gives away belongs to that send."""
    held: list[wl.Item] = []
    for item in items:
        sent = isinstance(item, wl.Send) and held and isinstance(held[-1], wl.Task) and held[-1].handle in item.after
        if held and not sent:
            yield wl.Block(tuple(held))
            held = []
        held.append(item)
    if held:
        yield wl.Block(tuple(held))


def _processes(parts: Iterable[wl.Block]) -> Iterator[wl.Process]:
    names: dict[str, int] = {}
    for body in parts:
        name = _name_of(body)
        names[name] = names.get(name, 0) + 1
        yield wl.Process(name if names[name] == 1 else f"{name} ({names[name]})", body, *channels_of(body), span=_span_of(body))


def channels_of(body: wl.Block) -> tuple[tuple[wl.ChannelRef, ...], tuple[wl.ChannelRef, ...]]:
    """Return the channels that a body takes from and those that it gives to, in the order of the text."""
    taken = dict.fromkeys(item.channel for item in outer_nodes(body) if isinstance(item, wl.Consume | wl.Receive))
    given = dict.fromkeys(item.channel for item in outer_nodes(body) if isinstance(item, wl.Send))
    return tuple(taken), tuple(given)


def _name_of(body: wl.Block) -> str:
    """What a statement is: its first kernel, else the loop, or the channel that it uses."""
    for item in outer_nodes(body):
        if isinstance(item, wl.Task):
            return item.kernel.name
    for item in outer_nodes(body):
        match item:
            case wl.Consume(channel) | wl.Receive(channel):
                return f"consume {channel.name}"
            case wl.Send(channel):
                return f"send {channel.name}"
            case wl.Record(event) | wl.Synchronize(event):
                return event.name
            case _:
                pass
    return "process"


def _span_of(body: wl.Block) -> Span:
    for item in outer_nodes(body):
        match item:
            case wl.Block() | wl.Combine() | wl.Choice():
                pass
            case _:
                return item.span
    return UNKNOWN
