"""Order that streams of a schedule add, by hand: what it proves, and what it does not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pto_wsp import Deps, DispatchPolicy, DType, InOut, P, PtoError, Symbol, Tensor, Tile, Workload, kernel, pto, workload

F32 = DType.F32
N = Symbol("n")


@kernel
def add_one(y: InOut[Tile[1, 4, F32]]) -> None:
    pto.store(y, y + 1.0)


def sums(place: Callable[[object, object], object] = lambda b, t: t) -> Workload:
    """Return sixteen tasks, of which those with the same place update the same row."""
    Y = Tensor(np.zeros((16, 4), np.float32), name="Y")

    @workload
    def whole() -> None:
        for b in P(4):
            for t in P(4):
                at = place(b, t)
                add_one[b, t](y=Y[at:at + 1])

    return whole()


def races(w: Workload) -> str:
    return next(line for line in w.compile(target="interp").checks if "races" in line)


@pytest.mark.parametrize("scheduled", [
    sums().stream_by("t"), sums().stream_by(lambda t: 2 * t.t + 5), sums().streams(1), sums().stream_by(lambda t: 0),
    sums().stream_by("t").dispatch(DispatchPolicy.round_robin(4)), sums(lambda b, t: b + t).stream_by(lambda k: k.b + k.t),
    sums().streams(2).stream_by("t"), sums(lambda b, t: b // 2).stream_by(lambda k: k.b // 2),
    sums().stream_by(lambda t: t.t * N),
], ids=range(9))
def test_tasks_that_touch_one_element_are_of_one_stream(scheduled: Workload) -> None:
    assert races(scheduled).startswith("proved") and races(scheduled).endswith("or streams order them)")


@pytest.mark.parametrize("scheduled", [
    sums().stream_by("b"), sums().streams(2), sums().stream_by(lambda t: t.t + t.b), sums(lambda b, t: t // 2).stream_by("t"),
    sums().stream_by(lambda t: t.b * N), sums().dispatch(DispatchPolicy.affinity("t", 4)),
], ids=range(6))
def test_other_streams_leave_a_race(scheduled: Workload) -> None:
    with pytest.raises(PtoError, match="W201"):
        scheduled.compile(target="interp")


@pytest.mark.parametrize("deps", [Deps.hybrid(), Deps.infer_bytes_overlap(), Deps.explicit()], ids=lambda deps: deps.kind)
@pytest.mark.parametrize("calendar", [
    lambda t: (t.t, t.b), lambda t: (0, t.b * 4 + t.t), [(k % 4, k // 4) for k in range(16)],
], ids=range(3))
def test_a_calendar_orders_nothing(deps: Deps, calendar: object) -> None:
    """Tasks of one row are on one executor and in program order: it is held to an order, and is none (design note 21)."""
    with pytest.raises(PtoError, match="W201"):
        sums().calendar(calendar).task_graph(deps=deps).compile(target="interp")


@pytest.mark.slow
def test_what_a_calendar_would_order_is_written_with_seq() -> None:
    Y = Tensor(np.zeros((4, 4), np.float32), name="Y")

    @workload
    def whole() -> None:
        for b in P.seq(4):
            for t in P(4):
                add_one[b, t](y=Y[t:t + 1])

    w = whole().task_graph(deps=Deps.infer_bytes_overlap())      # edges of the data alone: a column after the other is legal
    program = w.calendar(lambda k: (0, k.t * 4 + k.b)).compile(threads=2).run()
    assert (Y.data == 4).all() and len(program.graph.edges) == 12
    with pytest.raises(PtoError, match="S106"):
        w.calendar(lambda k: (0, k.t * 4 - k.b)).compile(threads=2).run()      # which is held to the edges


def test_streams_alone_order_what_they_are_proved_to_order() -> None:
    Y = Tensor(np.zeros((4, 4), np.float32), name="Y")

    @workload
    def whole() -> None:
        for b in P(4):
            for t in P(4):
                add_one[b, t](y=Y[t:t + 1])

    program = whole().stream_by("t").task_graph(deps=Deps.explicit()).compile(threads=2)
    for seed in (1, 2, 3):
        program.replay(seed)
    assert (Y.data == 12).all()
    assert {edge.reasons for edge in program.graph.edges} == {("stream",)}
