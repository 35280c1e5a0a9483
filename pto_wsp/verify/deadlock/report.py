"""A pipeline that is stuck, as the user's error: who waits where for what, and which depths would do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pto_wsp.errors import DeadlockError, TokenError
from pto_wsp.plan.model import AwaitEvent, Consume, Pipeline, Process, Receive, RecordEvent, Send, TaskPlan
from pto_wsp.plan.waits.channel_state import Stuck, Wait
from pto_wsp.plan.walk import items_of
from pto_wsp.source import UNKNOWN, Span

Communication = Send | Receive | Consume | RecordEvent | AwaitEvent


def stuck_error(plan: TaskPlan, rows: Sequence[Stuck],
                depths: Mapping[int, int] | None = None, live: bool | None = None) -> DeadlockError | TokenError:
    """Return the error for what the streams of a pipeline stand at.

    `depths`: the smallest depths of channels, by number, with which the same processes end; `live` False: there are none; None: nobody
    has looked.
    """
    names = _Names(plan)
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
    """Return streams that wait for each other in a circle, beginning with the one of the lowest number."""
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


def _advice(names: _Names, rows: Sequence[Stuck], depths: Mapping[int, int] | None, live: bool | None) -> str:
    if live is False and any(row.waits_for is Wait.TURN for row in rows):
        return "no depth helps: tokens are dealt and merged in turn, so each at one end has to send or take as often as the others"
    if live is False:
        return "no depth helps: each waits for what another does only afterwards; let one of them send first"
    if depths:
        wanted = ", ".join(f"Channel({names.plan.channels[number].name!r}, depth={depth})" for number, depth in sorted(depths.items()))
        return f"these depths are enough: {wanted}"
    return "let one of them send before it receives, or give a channel room for what is sent in between"


def _token_error(names: _Names, row: Stuck) -> TokenError:
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


class _Names:
    """What streams and statements of a plan are called."""

    def __init__(self, plan: TaskPlan) -> None:
        self.plan = plan
        self._processes: dict[int, tuple[Process, int]] = {}
        self._sites: dict[int, Communication] = {}
        for item in items_of(plan):
            if isinstance(item, Pipeline):
                for process in item.processes:
                    for replica in range(process.replicas):
                        self._processes[process.stream + replica] = process, replica
            elif isinstance(item, Communication):
                self._sites[item.site] = item

    def stream(self, stream: int) -> str:
        """Return a process's name, with its replica's number where there are several."""
        if stream not in self._processes:
            return "`main`"
        process, replica = self._processes[stream]
        return f"`{process.name}`" if process.replicas == 1 else f"`{process.name}` (replica {replica})"

    def span(self, row: Stuck) -> Span:
        """Return the statement that a stream stands at."""
        return self._sites[row.site].span if row.site in self._sites else UNKNOWN

    def place(self, row: Stuck) -> str:
        """Return a process and the line that it stands at."""
        return f"{self.stream(row.stream)} at {self.span(row).short}"

    def wait(self, row: Stuck) -> str:
        """Say what a stream waits for, and who could let it go on."""
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
