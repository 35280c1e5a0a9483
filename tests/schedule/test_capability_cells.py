"""The table of host targets and directives, a test a cell: each does what was worked out by hand, in figures, trace or graph."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pto_wsp import (
    Deps,
    DispatchPolicy,
    Pools,
    PtoError,
    ReadyPolicy,
    StartPolicy,
    TimingPolicy,
    TracePolicy,
    WindowMode,
    Workload,
    builtin_arch,
    capabilities,
)
from pto_wsp.errors import WindowError
from pto_wsp.schedule.capability import DIRECTIVES, supports
from pto_wsp.schedule.support import Capability
from tests.schedule.small_tasks import (
    APART,
    BUSY,
    Y,
    chain,
    edges,
    eight,
    halves,
    of_k,
    of_last,
    pair,
    run,
    starts,
    total,
    units,
    windowed,
)


def hashed(k: int) -> int:
    """FNV-1a-64 of the eight little-endian bytes of k, as RFC 9923 has it."""
    state = 0xCBF29CE484222325
    for byte in k.to_bytes(8, "little"):
        state = ((state ^ byte) * 0x100000001B3) % (1 << 64)
    return state


def ends_without_room(size: int, unit: str, *words: str) -> None:
    """Run what finds no room, in both targets: the error says so, and nothing was touched."""
    for target in ("interp", "cpu_sim"):
        Y.data[:] = -1
        program = windowed(size, unit, WindowMode.ABORT).compile(target=target)
        for _ in range(2):
            with pytest.raises(WindowError) as caught:
                program.run()
        assert all(word in str(caught.value) for word in words) and set(Y.data[:, 0]) == {-1}, str(caught.value)


def counts(size: int, unit: str, cycles: int, times: int) -> None:
    """Run what finds no room and goes on: it takes as long as without a window, and stats count."""
    stats = run(windowed(size, unit, WindowMode.BENCHMARK)).stats
    assert (stats.total_cycles, stats.window.stalls) == (cycles, times)


def test_round_robin() -> None:
    assert total(of_k(eight()).dispatch(DispatchPolicy.round_robin(2))) == 20     # 1+3+5+7 and 2+4+6+8


def test_affinity() -> None:
    assert total(of_k(eight()).dispatch(DispatchPolicy.affinity(lambda t: t.k // 6, 2))) == 21     # 1 … 6 and 7+8


def test_hash() -> None:
    loads = [sum(k + 1 for k in range(8) if hashed(k) % 3 == home) for home in range(3)]
    assert total(of_k(eight()).dispatch(DispatchPolicy.hash("k", 3))) == max(loads) < 36


def test_calendar() -> None:
    # executor 0 runs 8, 7, 6 of the eight costs, executor 1 the others backwards: 21 and 15
    found = run(of_k(eight()).calendar(lambda t: ((t.k < 5).where(1, 0), 7 - t.k)))
    assert found.stats.total_cycles == 21
    assert [int(start) for start in found.trace.start] == [14, 12, 9, 5, 0, 15, 8, 0]


def test_dispatch_by() -> None:
    assert total(of_k(eight()).dispatch(DispatchPolicy.dispatch_by(lambda t: (t.k < 7).where(0, 1), 2))) == 28


def test_one_shared_queue() -> None:
    # each takes the next when it is free: 1, 3, 5, 7 end at 1 4 9 16 and 2, 4, 6, 8 at 2 6 12 20
    found = run(of_k(eight()).dispatch(DispatchPolicy.work_steal(2)))
    assert [int(end) for end in found.trace.end] == [1, 2, 4, 6, 9, 12, 16, 20]


def test_streams() -> None:
    assert total(of_k(eight()).streams(3)) == 15     # stream and executor k mod 3: 1+4+7, 2+5+8, 3+6


def test_stream_by() -> None:
    assert total(of_k(eight()).stream_by(lambda t: t.k // 4)) == 36     # one executor all the same
    assert total(of_k(eight()).stream_by(lambda t: t.k // 4).dispatch(APART)) == 26     # 5+6+7+8, one after another
    assert total(of_k(eight()).streams(2).stream_by(lambda t: t.k // 2)) == 22     # 1+2+5+6 and 3+4+7+8
    assert edges(eight().stream_by(lambda t: t.k // 4).task_graph()) == 6


def test_immediate() -> None:
    assert starts(of_k(eight()).dispatch(APART).timing(TimingPolicy.immediate), arch=BUSY, overheads=True) == list(range(0, 80, 10))


def test_batched() -> None:
    found = starts(of_k(eight()).dispatch(APART).timing(TimingPolicy.batched(4)), arch=BUSY, overheads=True)
    assert found == [30] * 4 + [70] * 4     # when the fourth, and the eighth, is submitted


def test_interleaved() -> None:
    w = eight().stream_by(lambda t: (t.k % 4 == 3).where(1, t.k % 4 * 2)).task_graph()     # 0 and 4, 1 and 5, 2 and 6; 3 and 7 in stream 1
    assert list(np.argsort(starts(w))) == [0, 1, 2, 3, 4, 5, 6, 7]
    # streams 0, 2, 4 and stream 1 take turns
    assert list(np.argsort(starts(w.timing(TimingPolicy.interleaved(2))))) == [0, 3, 1, 7, 2, 4, 5, 6]


def test_rate_limit() -> None:
    found = starts(of_k(eight()).dispatch(APART).timing(TimingPolicy.rate_limit(250_000)))     # at 1 GHz: one in 4 cycles
    assert found == list(range(0, 32, 4))


def test_exact() -> None:
    exact = Deps.infer_tensor_map_exact()
    assert (edges(pair().task_graph(deps=exact)), edges(chain().task_graph(deps=exact))) == (0, 1)
    with pytest.raises(PtoError, match=r"Y\[:2\] and Y\[1:3\] overlap in part"):
        halves().task_graph(deps=exact).compile(target="interp")


def test_overlap() -> None:
    assert (edges(pair().task_graph(deps=Deps.infer_bytes_overlap())), edges(chain().task_graph(deps=Deps.infer_bytes_overlap()))) == (0, 1)


def test_explicit() -> None:
    assert edges(pair().task_graph(deps=Deps.explicit())) == 1
    assert edges(eight().task_graph(deps=Deps.explicit())) == 0


def test_hybrid() -> None:
    assert (edges(pair().task_graph(deps=Deps.hybrid())), edges(chain().task_graph(deps=Deps.hybrid()))) == (1, 1)
    reasons = {edge.reasons for edge in run(chain().task_graph(deps=Deps.hybrid())).graph.edges}
    assert {str(reason) for each in reasons for reason in each} >= {"WAW", "order"}


def test_tasks_wait_for_room() -> None:
    # two at a time, freed in order: the next starts when the second last has ended: 0 0 1 2 4 6 9 12
    found = run(windowed(2, "tasks", WindowMode.STALL))
    assert [int(start) for start in found.trace.start] == [0, 0, 1, 2, 4, 6, 9, 12]
    assert (found.stats.total_cycles, found.stats.window.stalls, found.stats.window.high_water) == (20, 6, 2)


def test_tasks_without_room_end_the_run() -> None:
    ends_without_room(4, "tasks", "fill[k=4]", "room for 1 task in a window of 4 tasks")


def test_tasks_without_room_are_counted() -> None:
    counts(2, "tasks", 8, 6)


def test_bytes_wait_for_room() -> None:
    assert total(windowed(8, "bytes", WindowMode.STALL)) == 41     # one tensor at a time, 10 cycles each, and a copy
    # two: the third goes in at 10, the fourth at 11, when the first copy, which lies before the second tensor, has ended
    assert total(windowed(16, "bytes", WindowMode.STALL)) == 22
    assert total(windowed(1024, "bytes", WindowMode.STALL)) == 11


def test_bytes_without_room_end_the_run() -> None:
    ends_without_room(24, "bytes", "fill[k=3, 10]", "room for 8 bytes in a window of 24 bytes")


def test_bytes_without_room_are_counted() -> None:
    counts(16, "bytes", 11, 2)


def test_entries_wait_for_room() -> None:
    assert total(windowed(2, "entries", WindowMode.STALL)) == 20     # one argument in memory each: as two tasks


def test_entries_without_room_end_the_run() -> None:
    ends_without_room(7, "entries", "fill[k=7]", "room for 1 entry in a window of 7 entries")


def test_entries_without_room_are_counted() -> None:
    counts(3, "entries", 8, 5)


def test_edges_wait_for_room() -> None:
    # each copy takes an edge: copy 1 waits for copy 0 until 11, fill 2 behind it ends at 21, copy 3 waits for copy 2 until 22
    found = run(windowed(1, "edges", WindowMode.STALL))
    assert [int(start) for start in found.trace.start] == [0, 10, 0, 11, 11, 21, 12, 22]
    assert (found.stats.window.stalls, found.stats.window.stall_cycles, found.stats.window.high_water) == (3, 11 + 1 + 10, 1)
    assert total(windowed(4, "edges", WindowMode.STALL)) == 11


def test_edges_without_room_end_the_run() -> None:
    ends_without_room(3, "edges", "copy[k=3, 1]", "room for 1 edge in a window of 3 edges")


def test_edges_without_room_are_counted() -> None:
    counts(2, "edges", 11, 2)


def test_ready_tasks_wait_for_room() -> None:
    # one task stands ready, and the stream waits until it is taken: at 1, 2, 4, 6 and 9
    found = run(windowed(1, "ready", WindowMode.STALL))
    assert [int(start) for start in found.trace.start] == [0, 0, 1, 2, 4, 6, 9, 12]
    assert (found.stats.window.stalls, found.stats.window.stall_cycles, found.stats.window.high_water) == (5, 9, 1)
    assert found.trace.causes is not None and found.trace.causes.submit.tolist() == [0, 0, 0, 1, 2, 4, 6, 9]
    assert run(windowed(6, "ready", WindowMode.STALL)).stats.window.stalls == 0      # two run, six stand ready


def test_ready_tasks_without_room_end_the_run() -> None:
    ends_without_room(3, "ready", "fill[k=5]", "room for 1 ready task in a window of 3 ready tasks")


def test_ready_tasks_without_room_are_counted() -> None:
    counts(2, "ready", 20, 6)


def test_single() -> None:
    assert total(of_last(units()).task_graph(pools=Pools.single())) == 17


def test_by_exec_unit() -> None:
    assert total(of_last(units()).task_graph(pools=Pools.by_exec_unit())) == 10     # 10 beside 4+3
    three = builtin_arch("unit").with_cores(cube=1, vector=2)
    assert total(of_last(units()).task_graph(pools=Pools.by_exec_unit(), trace=TracePolicy.cycles(lambda t: 5)), arch=three) == 5


def test_custom() -> None:
    assert total(of_k(eight()).task_graph(pools=Pools.custom(lambda t: t.k % 2))) == 20     # of one AICPU: 1+3+5+7 and 2+4+6+8


def test_fifo() -> None:
    assert starts(of_k(eight()).task_graph(ready=ReadyPolicy.fifo())) == [0, 1, 3, 6, 10, 15, 21, 28]


def test_work_steal() -> None:
    most = of_k(eight()).dispatch(DispatchPolicy.affinity(lambda t: t.k // 7, 2))     # 1 … 7 at home on one, 8 on the other
    assert total(most) == 28
    found = run(most.task_graph(ready=ReadyPolicy.work_steal()))
    assert [int(start) for start in found.trace.start] == [0, 1, 3, 6, 8, 10, 13, 0]     # from 8 on, the other takes 5 and 7
    assert found.stats.total_cycles == 20


def test_priority() -> None:
    assert starts(of_k(eight()).task_graph(ready=ReadyPolicy.priority("k"))) == [35, 33, 30, 26, 21, 15, 8, 0]


def test_start_immediate() -> None:
    assert starts(of_k(eight()).dispatch(APART).task_graph(start=StartPolicy()), arch=BUSY, overheads=True)[:3] == [0, 10, 20]


def test_after_orchestration() -> None:
    w = of_k(eight()).dispatch(APART).task_graph(start=StartPolicy.after_orchestration())
    assert starts(w, arch=BUSY, overheads=True) == [80] * 8     # submitting the last one takes until then


def test_threshold() -> None:
    w = of_k(eight()).dispatch(APART).task_graph(start=StartPolicy.threshold(3))
    assert starts(w, arch=BUSY, overheads=True) == [20, 20, 20, 30, 40, 50, 60, 70]


def test_spatial_map() -> None:
    far = builtin_arch("unit").with_hops(100)
    assert starts(of_k(eight()).spatial_map((2, 2), lambda t: (t.k % 2, t.k // 4)), arch=far)[:3] == [0, 0, 1]


def test_the_archs_cycles() -> None:
    assert total(eight().task_graph(trace=TracePolicy.none())) == 8 * 2     # an element made and stored: 2 cycles


def test_cycles() -> None:
    assert total(of_k(eight())) == 36


ENFORCED: dict[str, Callable[[], None]] = {
    "dispatch.round_robin": test_round_robin, "dispatch.affinity": test_affinity, "dispatch.hash": test_hash,
    "dispatch.dispatch_by": test_dispatch_by, "dispatch.work_steal": test_one_shared_queue, "streams": test_streams,
    "stream_by": test_stream_by, "timing.immediate": test_immediate, "timing.batched": test_batched,
    "timing.interleaved": test_interleaved, "timing.rate_limit": test_rate_limit,
    "task_graph.deps.exact": test_exact, "task_graph.deps.overlap": test_overlap,
    "task_graph.deps.explicit": test_explicit, "task_graph.deps.hybrid": test_hybrid,
    "task_graph.window.tasks.stall": test_tasks_wait_for_room, "task_graph.window.tasks.abort": test_tasks_without_room_end_the_run,
    "task_graph.window.tasks.benchmark": test_tasks_without_room_are_counted, "task_graph.window.bytes.stall": test_bytes_wait_for_room,
    "task_graph.window.bytes.abort": test_bytes_without_room_end_the_run,
    "task_graph.window.bytes.benchmark": test_bytes_without_room_are_counted,
    "task_graph.window.entries.stall": test_entries_wait_for_room,
    "task_graph.window.entries.abort": test_entries_without_room_end_the_run,
    "task_graph.window.edges.stall": test_edges_wait_for_room, "task_graph.window.edges.abort": test_edges_without_room_end_the_run,
    "task_graph.window.edges.benchmark": test_edges_without_room_are_counted,
    "task_graph.window.ready.stall": test_ready_tasks_wait_for_room,
    "task_graph.window.ready.abort": test_ready_tasks_without_room_end_the_run,
    "task_graph.window.ready.benchmark": test_ready_tasks_without_room_are_counted,
    "task_graph.window.entries.benchmark": test_entries_without_room_are_counted, "task_graph.pools.single": test_single,
    "task_graph.pools.by_exec_unit": test_by_exec_unit, "task_graph.pools.custom": test_custom, "task_graph.ready.fifo": test_fifo,
    "task_graph.ready.work_steal": test_work_steal, "task_graph.ready.priority": test_priority,
    "task_graph.start.immediate": test_start_immediate, "task_graph.start.after_orchestration": test_after_orchestration,
    "task_graph.start.threshold": test_threshold, "calendar": test_calendar,
    "spatial_map": test_spatial_map,
    "task_graph.trace.none": test_the_archs_cycles, "task_graph.trace.cycles": test_cycles,
}


def test_every_cell_has_its_test() -> None:
    assert {name for name, found in capabilities("interp").items() if found is Capability.ENFORCED} == ENFORCED.keys()
    assert ENFORCED.keys() == set(DIRECTIVES)
    assert supports("cpu_sim") == supports("interp") and all(found.reason for found in supports("interp").values())


@pytest.mark.slow
@pytest.mark.parametrize("w", [
    lambda: of_k(eight()).streams(3), lambda: of_k(eight()).dispatch(DispatchPolicy.work_steal(2)),
    lambda: windowed(8, "bytes", WindowMode.STALL), lambda: of_last(units()).task_graph(pools=Pools.by_exec_unit()),
], ids=["streams", "queue", "bytes", "units"])
def test_generated_code_says_the_same(w: Callable[[], Workload]) -> None:
    found, oracle = w().compile(target="cpu_sim").run(), w().compile(target="interp").run()
    assert found.stats.total_cycles == oracle.stats.total_cycles
    assert found.trace.start.tolist() == oracle.trace.start.tolist()
