"""Marks from Python: what a record shows of marks and streams, how edges and stalls read."""

from __future__ import annotations

from typing import Any

import pytest

from pto_wsp.artifact.build import load_runtime
from pto_wsp.errors import InternalError
from pto_wsp.ir.execution_rules import ExecutionRules
from pto_wsp.run.record import EdgeReason, MarkFlag, Stall
from pto_wsp.run.simulator import STALL_REASONS, Recorder
from pto_wsp.timing.edges import Edge, Edges

CHANNEL, ORDER, READ, AFTER = EdgeReason.CHANNEL, EdgeReason.ORDER, EdgeReason.READ, EdgeReason.AFTER

RULES = ExecutionRules(n_workers=3, window=4)


class Orchestrator:
    """Writes nodes into a record by hand; all tasks take `cost` on the executor of their stream."""

    def __init__(self, *, infer: bool = False) -> None:
        self.runtime = load_runtime()
        self.recorder = Recorder(self.runtime, RULES, infer=infer)
        self.sink = self.runtime.lib.pto_record_sink(self.recorder.raw)
        self.memory = self.runtime.ffi.new("int64_t[]", 8)

    def ids(self, nodes: tuple[int, ...]) -> Any:
        return self.runtime.ffi.new("int64_t[]", nodes or [0])

    def cells(self, cells: tuple[int, ...], flags: int) -> Any:
        ffi = self.runtime.ffi
        return ffi.new("pto_arg[]", [{"data": ffi.cast("char *", self.memory + cell), "extent": [1, 1], "stride": [1, 1], "elem_bytes": 8,
                                      "flags": flags} for cell in cells] or 1)

    def task(self, cost: int, *, stream: int = 0, order: tuple[int, ...] = (), after: tuple[int, ...] = (), writes: tuple[int, ...] = (),
             ) -> int:
        kept = self.ids(order), self.ids(after), self.cells(writes, self.runtime.lib.PTO_WRITE)
        node: int = self.sink.submit(self.sink, self.runtime.ffi.new("pto_task *", {
            "stream": stream, "worker": stream, "cost": cost, "n_order": len(order), "order": kept[0], "n_after": len(after),
            "after": kept[1], "n_args": len(writes), "args": kept[2]}))
        return node

    def mark(self, *, stream: int = 0, flags: int = 0, stall: Stall = Stall.NONE, before: tuple[int, ...] = (),
             order: tuple[int, ...] = (), reads: tuple[int, ...] = (), delay: int = 0) -> int:
        kept = self.ids(before), self.ids(order), self.cells(reads, self.runtime.lib.PTO_READ)
        node: int = self.sink.mark(self.sink, self.runtime.ffi.new("pto_mark *", {
            "stream": stream, "flags": flags, "why": CHANNEL, "stall": stall, "site": 3, "n_before": len(before), "before": kept[0],
            "n_order": len(order), "order": kept[1], "n_args": len(reads), "args": kept[2], "delay": delay}))
        return node

    def join(self, *nodes: int) -> int:
        join = self.sink.join_open(self.sink)
        for member in nodes:
            self.sink.join_add(self.sink, join, member)
        node: int = self.sink.join_close(self.sink, join, -1)
        return node


def test_a_record_shows_marks_and_streams() -> None:
    o = Orchestrator()
    o.task(5, stream=1)
    o.mark(stream=2, flags=MarkFlag.BLOCKS | MarkFlag.RESTS, stall=Stall.EVENT, before=(0,), delay=7)
    o.task(1, stream=2)
    columns = o.recorder.columns()
    assert list(columns.node_kind) == [0, 2, 0] and list(columns.node_task) == [0, -1, 1] and list(columns.task_stream) == [1, 2]
    assert list(columns.mark_node) == [1] and list(columns.mark_stream) == [2] and list(columns.mark_delay) == [7]
    assert list(columns.mark_flags) == [5] and list(columns.mark_stall) == [4] and list(columns.mark_site) == [3]


def test_stalls_are_told_by_reason() -> None:
    """Stream 1 sends after 5 cycles, with latency 2, to stream 2, which takes 4; then stream 1 waits for the slot."""
    o = Orchestrator()
    start = o.mark(flags=MarkFlag.RESTS)
    for stream in (1, 2):
        o.mark(stream=stream, flags=MarkFlag.BLOCKS, order=(start,))
    token = o.mark(stream=1, before=(o.task(5, stream=1),), delay=2)
    received = o.mark(stream=2, flags=MarkFlag.BLOCKS, stall=Stall.CHANNEL_EMPTY, before=(token,))
    o.task(4, stream=2, order=(received,))
    o.mark(stream=1, flags=MarkFlag.BLOCKS, stall=Stall.CHANNEL_FULL, before=(received,))
    o.task(10, stream=1)
    found = o.recorder.simulate(RULES, keep_trace=True)
    assert found.total_cycles == 17 and found.tasks is not None and list(found.tasks.start) == [0, 7, 7]
    told = dict(zip(STALL_REASONS, zip(found.stalls, found.stall_cycles, strict=True), strict=True))
    assert told == {"": (0, 0), "CHANNEL_EMPTY_WAIT": (1, 7), "CHANNEL_FULL_WAIT": (1, 7), "DATA_READ_WAIT": (0, 0), "EVENT_WAIT": (0, 0)}


def test_edges_go_through_marks_with_their_reasons() -> None:
    """Who waits for a mark waits for what the mark waits for, and says why the mark does; structure is named where it is all there is."""
    o = Orchestrator(infer=True)
    a, b, c = o.task(1, writes=(0,)), o.task(1, writes=(1,)), o.task(1)
    token = o.mark(before=(b,))
    received = o.mark(before=(token,), order=(o.join(a, c),), reads=(0,))
    o.task(1, order=(received,))
    o.task(1, after=(o.join(token, c),))
    assert Edges(o.recorder.columns()) == [
        Edge(0, 3, READ), Edge(1, 3, CHANNEL), Edge(2, 3, ORDER), Edge(1, 4, AFTER | CHANNEL), Edge(2, 4, AFTER)]
    assert Edge(0, 3, ORDER | READ | CHANNEL | EdgeReason.EVENT).reasons == ("order", "channel", "event", "read")


def test_what_is_waited_for_anyway_is_not_inherited_from_mark_to_mark() -> None:
    """Each task waits for a mark, which waits for the task before it and the mark before it: one edge a task. What is not ordered stays."""
    o = Orchestrator()
    apart = o.task(1, stream=1)
    node, mark = o.task(1), o.mark(before=(apart,))
    for _ in range(5):
        mark = o.mark(before=(mark,), order=(node,))
        node = o.task(1, order=(mark,))
    edges = Edges(o.recorder.columns())
    assert edges == [Edge(0, 2, CHANNEL), *(Edge(k, k + 1, ORDER) for k in range(1, 6))]


def test_a_mark_that_is_to_have_run_needs_someone_who_runs() -> None:
    o = Orchestrator()
    assert o.mark(flags=MarkFlag.NOW) == -1 and o.sink.status == o.runtime.lib.PTO_E_UNEXECUTED


def test_a_simulation_without_an_executor_for_a_stream_is_our_bug() -> None:
    o = Orchestrator()
    o.task(1, stream=7)
    with pytest.raises(InternalError):
        o.recorder.simulate(RULES, keep_trace=False)
