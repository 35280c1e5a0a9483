"""Rings: channels of buffers, proved for every number of buffers and tokens, with the numbers of NumPy on every target."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pto_wsp import (
    Channel,
    DType,
    In,
    Out,
    P,
    Program,
    PtoError,
    Ring,
    Symbol,
    Tensor,
    Tile,
    Workload,
    connect,
    consume,
    kernel,
    process,
    produce,
    pto,
    receive,
    replicate,
    workload,
)

F32 = DType.F32
N = 24


@kernel
def load(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]) -> None:
    pto.store(y, x)


@kernel
def scale(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]) -> None:
    pto.store(y, x * 10)


@kernel
def plus(a: In[Tile[1, 4, F32]], b: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]) -> None:
    pto.store(y, a + b)


X = Tensor(np.arange(N * 4, dtype=np.float32).reshape(N, 4) + 1, name="X")
Y = Tensor(np.zeros((N, 4), np.float32), name="Y")


def run(work: Workload, target: str = "cpu_sim", **bindings: int) -> Program:
    Y.data[...] = 0
    return work.compile(target=target).run(**bindings)


def proved(program: Program) -> list[bool]:
    """Return for each ring whether its races are proved."""
    return [str(line).startswith("proved") for line in program.checks if "races on `ring" in str(line)]


def stages(slots: int, second: int) -> Workload:
    one, two = Ring((1, 4), F32, slots, name="ring1"), Ring((1, 4), F32, second, name="ring2")

    @workload
    def three() -> None:
        with P.pipe():
            for i in P.seq(N):
                with produce(one, i) as tile:
                    load[i](X[i], tile)
            with consume(one) as (tile, i), produce(two, i) as scaled:
                scale[i](tile, scaled)
            with consume(two) as (tile, i):
                load[i](tile, Y[i])

    return three()


@pytest.mark.slow
@pytest.mark.parametrize("slots", [1, 2, 3])
@pytest.mark.parametrize("target", ["cpu_sim", "interp"])
def test_stages_with_rings_are_proved_and_right(slots: int, target: str) -> None:
    program = run(stages(slots, 4 - slots), target)
    assert proved(program) == [True, True] and np.array_equal(Y.data, X.data * 10)


@pytest.mark.slow
def test_a_double_buffer_hides_the_load() -> None:
    single, double = (run(stages(slots, slots)).stats.total_cycles for slots in (1, 2))
    load_cycles, scale_cycles = load.cost().total, scale.cost().total
    assert double == 2 * load_cycles + N * scale_cycles < single


def test_any_order_that_credits_allow_means_the_same() -> None:
    program = run(stages(2, 2))
    for seed in range(1, 6):
        Y.data[...] = 0
        program.replay(seed)
        assert np.array_equal(Y.data, X.data * 10)


@pytest.mark.slow
def test_the_sanitizer_finds_nothing() -> None:
    Y.data[...] = 0
    program = stages(2, 1).compile(sanitize=True).run()
    assert program.sanitized is not None and program.sanitized.races == 0 and np.array_equal(Y.data, X.data * 10)


@pytest.mark.parametrize("target", ["ascend_npu", "pto"])
def test_there_is_a_package_for_the_npu(target: str) -> None:
    folder = stages(2, 2).compile(target=target).artifact_dir
    assert (folder / "manifest.json").exists() and any(folder.rglob("*"))


@pytest.mark.slow
def test_nested_loops_count_buffers_through() -> None:
    ring, n, m = Ring((1, 4), F32, 3, name="ring"), Symbol("n"), Symbol("m")

    @workload
    def nested() -> None:
        with P.pipe():
            for b in P.seq(n):
                for i in P.seq(m):
                    with produce(ring, b * m + i) as tile:
                        load[b, i](X[b * m + i], tile)
            with consume(ring) as (tile, k):
                scale[k](tile, Y[k])

    program = run(nested(), n=4, m=6)
    assert proved(program) == [True] and np.array_equal(Y.data, X.data * 10)


@pytest.mark.slow
def test_loops_with_a_start_and_a_step_count_from_zero() -> None:
    ring = Ring((1, 4), F32, 2, name="ring")

    @workload
    def even() -> None:
        with P.pipe():
            for b in P.seq(range(5, 8)):
                for i in P.seq(range(2, 18, 2)):
                    with produce(ring, (b - 5) * 8 + (i - 2) // 2) as tile:
                        load[b, i](X[(b - 5) * 8 + (i - 2) // 2], tile)
            with consume(ring) as (tile, k):
                scale[k](tile, Y[k])

    program = run(even())
    assert proved(program) == [True] and np.array_equal(Y.data, X.data * 10)


@pytest.mark.slow
def test_a_stage_takes_one_buffer_of_each_of_two_rings() -> None:
    one, two = Ring((1, 4), F32, 2, name="ring1"), Ring((1, 4), F32, 3, name="ring2")

    @workload
    def joined() -> None:
        with P.pipe():
            for i in P.seq(N):
                with produce(one) as tile:
                    load[i](X[i], tile)
            for i in P.seq(N):
                with produce(two) as tile:
                    scale[i](X[i], tile)
            for i in P.seq(N):
                with receive(one) as a, receive(two) as b:
                    plus[i](a, b, Y[i])

    program = run(joined())
    assert proved(program) == [True, True] and np.array_equal(Y.data, X.data * 11)


@pytest.mark.slow
def test_processes_by_name_take_rings_where_channels_stand() -> None:
    ring = Ring((1, 4), F32, 2, name="ring")

    def loading() -> None:
        for i in P.seq(N):
            with produce(ring, i) as tile:
                load[i](X[i], tile)

    def scaling() -> None:
        consume(ring, lambda tile, i: scale[i](tile, Y[i]))

    source, sink = process("load").produces(ring).body(loading), process("scale").consumes(ring).body(scaling)
    program = run(connect([source, sink], [ring]))
    assert proved(program) == [True] and np.array_equal(Y.data, X.data * 10)
    run(connect([source, replicate(sink, 3)], [ring]))
    assert np.array_equal(Y.data, X.data * 10)


@pytest.mark.slow
def test_several_tasks_fill_one_buffer() -> None:
    ring = Ring((2, 4), F32, 2, name="ring")

    @workload
    def rows() -> None:
        with P.pipe():
            for i in P.seq(N // 2):
                with produce(ring, i) as pair:
                    for k in P(2):
                        load[i, k](X[2 * i + k], pair[k])
            with consume(ring) as (pair, i):
                for k in P(2):
                    scale[i, k](pair[k], Y[2 * i + k])

    program = run(rows())
    assert np.array_equal(Y.data, X.data * 10) and program.stats.task_count == 2 * N


RING, OTHER = Ring((1, 4), F32, 2, name="tiles"), Ring((1, 4), F32, 2, name="other")


def in_order() -> None:
    for i in P.seq(N):
        with produce(RING, i) as tile:
            load[i](X[i], tile)


def unordered() -> None:
    for i in P(N):
        with produce(RING, i) as tile:
            load[i](X[i], tile)


def conditional() -> None:
    for i in P.seq(N):
        with P.when(i > 2), produce(RING, i) as tile:
            load[i](X[i], tile)


def triangle() -> None:
    for i in P.seq(N):
        for _ in P.seq(i):
            with produce(RING, i) as tile:
                load[i](X[i], tile)


def by_tokens() -> None:
    with consume(Channel("plain")) as i, produce(RING, i) as tile:
        load[i](X[i], tile)


def nothing() -> None:
    for i in P.seq(N):
        with produce(RING, i):
            pass


def never_opened() -> None:
    for i in P.seq(N):
        produce(RING, i)


def left() -> None:
    for i in P.seq(N):
        with produce(RING, i) as tile:
            load[i](X[i], tile)
            break


def no_number() -> None:
    for _ in P.seq(N):
        with produce(RING, 1.5) as tile:
            load(X[0], tile)


@workload
def part() -> None:
    for i in P.seq(2):
        with produce(RING, i) as tile:
            load[i](X[i], tile)


def called() -> None:
    for _ in P.seq(2):
        part()


@pytest.mark.parametrize(("filling", "code", "message"), [
    (unordered, "W115", "ring `tiles` is filled in an unordered loop"),
    (conditional, "W115", "ring `tiles` is filled under a condition"),
    (triangle, "W115", "ring `tiles` is filled in a loop whose length differs between iterations"),
    (by_tokens, "W115", "ring `tiles` is filled in the body of another channel"),
    (called, "W115", "ring `tiles` is filled in a workload that another one calls"),
    (nothing, "W115", "no task fills the buffer of `tiles`"),
    (never_opened, "K103", "`produce(tiles)` stands without a `with`"),
    (left, "K103", "the body of produce(tiles) is left early"),
    (no_number, "T209", "send to `tiles`: a token carries whole numbers and truth values"),
])
def test_where_a_ring_is_not_filled(filling: Callable[[], None], code: str, message: str) -> None:
    @workload
    def pipeline() -> None:
        with P.pipe():
            filling()
            with consume(RING) as (tile, i):
                scale[i](tile, Y[i])

    with pytest.raises(PtoError) as caught:
        pipeline()
    assert (caught.value.code, caught.value.message) == (code, message)
    assert caught.value.span.file == __file__


@pytest.mark.parametrize(("mistake", "code"), [
    (lambda: Ring((1, 4), F32, 0), "W115"),
    (lambda: Ring((1, 4), F32, True), "W115"),
    (lambda: Ring(4, F32), "W115"),          # type: ignore[arg-type]
    (lambda: Ring((1, 4)), "T101"),          # type: ignore[call-arg]
    (lambda: Ring((1, 4), "nope"), "D101"),  # type: ignore[arg-type]
    (lambda: Ring((1, 4), F32, name=" "), "W109"),
    (lambda: produce(RING), "K105"),
    (lambda: consume(RING), "K105"),
    (lambda: receive(RING), "K105"),
    (lambda: list(RING), "W115"),            # type: ignore[call-overload]
])
def test_what_is_no_ring_or_no_place_for_one(mistake: Callable[[], object], code: str) -> None:
    with pytest.raises(PtoError) as caught:
        mistake()
    assert caught.value.code == code


def test_a_channel_is_not_filled() -> None:
    @workload
    def pipeline() -> None:
        produce(Channel("plain"))      # type: ignore[arg-type]

    with pytest.raises(PtoError, match="produce takes a ring"):
        pipeline()
