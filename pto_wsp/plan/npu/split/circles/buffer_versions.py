"""A buffer as several, one for each time that it is written: parts that run one after the other hand on values, not buffers.

    acc[:] = %1                                  acc.1[:] = %1
    %2 = read acc                                %2 = read acc.1
    if n > 0:                                    %4 = read acc.1; acc.2[:] = %4
        acc[:] = %3                  →           if n > 0:
                                                     acc.3[:] = %3; %5 = read acc.3; acc.2[:] = %5
    %6 = read acc                                %6 = read acc.2

A loop that writes a buffer from outside of it has one version of it inside.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Set
from dataclasses import field, replace
from functools import partial

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import Body, buffers_written, map_bodies, walk
from pto_wsp.expr.rewrite import rewrite
from pto_wsp.plan.kernel.values import fresh_ids
from pto_wsp.source import Span
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Version:
    """The buffer that stands for another at some point. `fresh`: nothing was done to it since it was made; `empty`: nor was it filled."""

    buffer: k.Buffer
    fresh: bool = False
    empty: bool = False


def buffer_versions(kernel: k.Kernel, chosen: Set[int]) -> k.Kernel:
    """Return the kernel with the chosen buffers as versions."""
    return replace(kernel, body=tuple(_Versions(kernel, chosen).body(kernel.body, {})))


@dataclass(slots=True)
class _Versions:
    kernel: k.Kernel
    chosen: Set[int]
    values: Iterator[int] = field(init=False)
    buffers: Iterator[int] = field(init=False)

    def __post_init__(self) -> None:
        self.values = fresh_ids(self.kernel)
        made = (stmt.buffer.id for stmt in walk(self.kernel.body) if isinstance(stmt, k.Alloc))
        self.buffers = itertools.count(1 + max(made, default=-1))

    def body(self, body: Body, now: dict[int, Version]) -> Iterator[k.Stmt]:
        """Yield the statements of a body with versions. `now`: the version of each chosen buffer, from here on that behind the body."""
        for stmt in body:
            match stmt:
                case k.Alloc(buffer, init) if buffer.id in self.chosen:
                    now[buffer.id] = Version(self._buffer(buffer), fresh=True, empty=init is None)
                    yield replace(stmt, buffer=now[buffer.id].buffer)
                case k.Write(buffer, span=span) if buffer.id in now:
                    now[buffer.id] = Version(self._buffer(buffer))
                    yield k.Alloc(now[buffer.id].buffer, None, span)
                    yield replace(stmt, buffer=now[buffer.id].buffer)
                case k.Read(_, buffer) if buffer.id in now:
                    now[buffer.id] = Version(now[buffer.id].buffer)
                    yield replace(stmt, buffer=now[buffer.id].buffer)
                case k.For(span=span):
                    for key in sorted(buffers_written(stmt) & set(now)):
                        if not now[key].fresh:
                            yield from self._copied(key, now, span)
                        now[key] = Version(now[key].buffer)
                    yield replace(stmt, body=tuple(self._inside(stmt.body, dict(now))))
                case k.If(span=span):
                    before = dict(now)
                    for key in sorted(buffers_written(stmt) & set(now)):
                        yield from self._copied(key, now, span)
                    yield map_bodies(stmt, partial(self._side, before=before, behind=dict(now), span=span))
                case _:
                    yield stmt

    def _side(self, body: Body, before: dict[int, Version], behind: dict[int, Version], span: Span) -> Body:
        """Return one side of a branch, and what brings its versions to those behind the branch."""
        now = dict(before)
        out = list(self.body(body, now))
        for key in before:
            if now[key].buffer != before[key].buffer:
                value = k.Value(next(self.values), now[key].buffer.type)
                out += (k.Read(value, now[key].buffer, span), k.Write(behind[key].buffer, value, span))
        return tuple(out)

    def _inside(self, body: Body, now: dict[int, Version]) -> Iterator[k.Stmt]:
        """Yield the body of a loop: buffers from outside are one version there, those that it makes have several."""
        named = rewrite(body, lambda node: now[node.id].buffer if isinstance(node, k.Buffer) and node.id in now else None)
        yield from self.body(named, {})

    def _copied(self, key: int, now: dict[int, Version], span: Span) -> Iterator[k.Stmt]:
        """Yield what makes a new version, with what the last one holds."""
        old, new = now[key], self._buffer(now[key].buffer)
        now[key] = Version(new)
        yield k.Alloc(new, None, span)
        if not old.empty:
            value = k.Value(next(self.values), new.type)
            yield k.Read(value, old.buffer, span)
            yield k.Write(new, value, span)

    def _buffer(self, buffer: k.Buffer) -> k.Buffer:
        return replace(buffer, id=next(self.buffers))
