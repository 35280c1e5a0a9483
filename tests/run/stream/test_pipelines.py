"""Pipelines as they run, in the interpreter and in C: what goes where, when, and what else of a workload they get on with."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto_wsp import (
    Channel,
    Deps,
    DispatchPolicy,
    DType,
    Event,
    In,
    Out,
    P,
    Program,
    Scalar,
    Symbol,
    TaskWindow,
    Tensor,
    Tile,
    Workload,
    connect,
    consume,
    kernel,
    process,
    pto,
    query,
    receive,
    record,
    replicate,
    send,
    synchronize,
    workload,
)
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.arch.model import Channels
from pto_wsp.ir import codec
from pto_wsp.resources import csrc_dir
from pto_wsp.run.native import Engine

F32, I64 = DType.F32, DType.I64
N = 6
C = 12      # cycles of `inc`: four elements loaded, added, stored


@kernel
def inc(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]) -> None:
    pto.store(y, x + 1.0)


@kernel
def note(y: Out[Tile[1, 1, I64]], n: Scalar[I64]) -> None:
    pto.store(y, pto.full((1, 1), n, I64))


class Rows:
    """Fresh tensors: X counts up, T and Y and R are zeros."""

    def __init__(self) -> None:
        self.X = Tensor(np.arange(N * 4, dtype=np.float32).reshape(N, 4), name="X")
        self.T, self.Y = (Tensor(np.zeros((N + 2, 4), np.float32), name=name) for name in "TY")
        self.R, self.K = Tensor(np.zeros((N, N), np.int64), name="R"), Tensor(np.zeros((N, 1), np.int64), name="K")

    def row(self, tensor: Tensor, i: Any) -> Any:
        return tensor[i:i + 1]

    def load(self, i: Any, **more: Any) -> Any:
        return inc[i](x=self.row(self.X, i), y=self.row(self.T, i), **more)

    def finish(self, i: Any) -> Any:
        return inc[i](x=self.row(self.T, i), y=self.row(self.Y, i))


@pytest.fixture(params=["interp", "cpu_sim"])
def run(request: pytest.FixtureRequest) -> Callable[..., Program]:
    """Return a function that compiles for a target and runs once."""
    def run_once(body: Workload | Callable[[], None], arch: object = None, **bindings: object) -> Program:
        traced = body if isinstance(body, Workload) else workload(body)()
        return traced.compile(target=request.param, arch=arch).run(**bindings)

    return run_once


def slow(latency: int) -> object:
    """An arch whose tokens take their time."""
    return builtin_arch("unit").model_copy(update={"channels": Channels(latency_cycles=latency)})


def two_stages(rows: Rows, depth: int) -> Callable[[], None]:
    def body() -> None:
        tiles = Channel("tiles", depth)
        with P.pipe():
            for i in P.seq(N):
                send(tiles, rows.load(i))
            with consume(tiles) as i:
                rows.finish(i)

    return body


# ---- time, by hand ----

@pytest.mark.sampled(4)
@pytest.mark.parametrize("depth", [0, 1, 2, 5])
def test_equal_stages_overlap_but_for_the_first_and_the_last(run: Callable[..., Program], depth: int) -> None:
    rows = Rows()
    program = run(two_stages(rows, depth))
    assert program.stats.total_cycles == (N + 1) * C
    np.testing.assert_array_equal(rows.Y.data[:N], rows.X.data + 2)  # type: ignore[index, operator]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("depth, turns", [
    (0, 5 * (C + 30)),                      # each send waits until its own token is there
    (1, 5 * 30),                            # send k waits until token k - 1 has been taken, 30 cycles after it was sent
    (2, 12 + 18 + 12 + 18 + 12),            # every second one waits
    (3, 5 * C),                             # none does
])
def test_latency_is_hidden_by_depth(run: Callable[..., Program], depth: int, turns: int) -> None:
    program = run(two_stages(Rows(), depth), slow(30))
    assert program.stats.total_cycles == C + 30 + turns + C


def test_a_slow_stage_sets_the_pace_and_a_full_channel_holds_the_fast_one(run: Callable[..., Program]) -> None:
    rows, tiles = Rows(), Channel("tiles", 1)

    def body() -> None:
        with P.pipe():
            for i in P.seq(N):
                send(tiles, rows.load(i))
            with consume(tiles) as i:
                rows.finish(i)
                inc(x=rows.row(rows.Y, i), y=rows.row(rows.Y, i))

    program = run(body)
    assert program.stats.total_cycles == C + 2 * C * N
    stalls = {stall.reason: (stall.count, stall.cycles) for stall in program.stats.stalls}
    # the consumer waits for the first token alone; from the fourth on each send waits for a turn of it less a load
    assert stalls["CHANNEL_FULL_WAIT"] == (3, 3 * C) and stalls["CHANNEL_EMPTY_WAIT"] == (1, C)


def test_each_process_has_an_executor_of_its_own_unless_a_dispatch_says_otherwise(run: Callable[..., Program]) -> None:
    program = run(two_stages(Rows(), 2))
    assert [executor.tasks for executor in program.stats.executors] == [N, N]
    dispatched = run(workload(two_stages(Rows(), 2))().dispatch(DispatchPolicy.round_robin(1)))
    assert dispatched.stats.total_cycles == 2 * N * C and len(dispatched.stats.executors) == 1


def test_replicas_have_an_executor_each(run: Callable[..., Program]) -> None:
    rows, tiles, done = Rows(), Channel("tiles", 2), Channel("done", 2)

    def loading() -> None:
        for i in P.seq(N):
            send(tiles, i)

    def working() -> None:
        with consume(tiles) as i:
            send(done, rows.load(i))

    def ending() -> None:
        with consume(done) as i:
            rows.finish(i)

    program = run(connect([process("from").produces(tiles).body(loading),
                           replicate(process("work").consumes(tiles).produces(done).body(working), 3),
                           process("to").consumes(done).body(ending)], [tiles, done]))
    assert [executor.tasks for executor in program.stats.executors] == [2, 2, 2, N]
    # three work at once: their six tasks take two turns, and what follows is one after the other
    assert program.stats.total_cycles == C + N * C
    np.testing.assert_array_equal(rows.Y.data[:N], rows.X.data + 2)  # type: ignore[index, operator]


def test_a_full_window_is_a_stall_that_drains(run: Callable[..., Program]) -> None:
    rows = Rows()

    def body() -> None:
        tiles = Channel("tiles", 1)
        with P.pipe():
            for i in P(N):
                rows.load(i)
            for i in P(N):
                send(tiles, i)
            with consume(tiles) as i:
                inc(x=rows.row(rows.X, i), y=rows.row(rows.Y, i))

    program = run(workload(body)().task_graph(deps=Deps.hybrid(), window=TaskWindow(1)))
    assert program.stats.window.stalls > 0
    assert program.stats.total_cycles == N * C
    assert any("windows" in line and line.startswith("proved") for line in program.checks)


# ---- which token goes where ----

def test_tokens_are_merged_and_dealt_in_turn(run: Callable[..., Program]) -> None:
    rows, numbers = Rows(), Channel("numbers", 1)

    def three() -> None:
        for i in P.seq(3):
            send(numbers, i)

    def one() -> None:
        send(numbers, 100)

    def taking(row: int) -> Callable[[], None]:
        def body() -> None:
            for k in P.seq(2):
                note(y=rows.R[row:row + 1, k:k + 1], n=receive(numbers))

        return body

    run(connect([process("three").produces(numbers).body(three), process("one").produces(numbers).body(one),
                 process("a").consumes(numbers).body(taking(0)), process("b").consumes(numbers).body(taking(1))], [numbers]))
    # merged 0, 100, 1, 2; the first and third to a, the second and fourth to b
    assert rows.R.data[:2, :2].tolist() == [[0, 1], [100, 2]]  # type: ignore[index]


def test_a_consumer_ends_when_the_last_of_its_producers_has(run: Callable[..., Program]) -> None:
    rows, numbers, later = Rows(), Channel("numbers", 1), Channel("later", 1)

    def short() -> None:
        send(numbers, 1)

    def long() -> None:
        with consume(later) as k:
            send(numbers, k + 10)

    def starting() -> None:
        for k in P.seq(3):
            send(later, k)

    def counting() -> None:
        with consume(numbers) as k:
            note(y=rows.row(rows.K, k % 6), n=k)

    run(connect([process("short").produces(numbers).body(short), process("long").consumes(later).produces(numbers).body(long),
                 process("start").produces(later).body(starting), process("count").consumes(numbers).body(counting)], [numbers, later]))
    assert sorted(rows.K.data.ravel().tolist()) == [0, 0, 1, 10, 11, 12]  # type: ignore[union-attr]


def test_tokens_carry_indices_scalars_and_truth_values(run: Callable[..., Program]) -> None:
    rows, pairs = Rows(), Channel("pairs", 3)

    def body() -> None:
        with P.pipe():
            for i in P.seq(4):
                send(pairs, i * 3 - 2, i > 1)
            with consume(pairs) as (number, flag):
                note(y=rows.R[number // 3 + 1:number // 3 + 2, 0:1], n=number * 10 + flag)

    run(body)
    assert rows.R.data[:4, 0].tolist() == [-20, 10, 41, 71]  # type: ignore[index]


def test_what_a_token_carries_steers_its_consumer(run: Callable[..., Program]) -> None:
    rows, lengths = Rows(), Channel("lengths", 1)

    def body() -> None:
        with P.pipe():
            for i in P.seq(4):
                send(lengths, i, (i * 2) % 5)
            with consume(lengths) as (i, length), P.when(length > 1):
                for j in P(length):
                    note(y=rows.R[i:i + 1, j:j + 1], n=length)

    run(body)
    assert rows.R.data[:4, :4].tolist() == [[0, 0, 0, 0], [2, 2, 0, 0], [4, 4, 4, 4], [0, 0, 0, 0]]  # type: ignore[index]


def test_a_token_without_numbers_only_says_that_it_is_time(run: Callable[..., Program]) -> None:
    rows, go = Rows(), Channel("go", 1)

    def body() -> None:
        with P.pipe():
            send(go, inc(x=rows.row(rows.X, 0), y=rows.row(rows.T, 0)))
            with consume(go):
                rows.finish(0)

    assert run(body).stats.total_cycles == 2 * C
    np.testing.assert_array_equal(rows.Y.data[0], rows.X.data[0] + 2)  # type: ignore[index]


def test_a_stage_may_take_from_two_channels_in_turn(run: Callable[..., Program]) -> None:
    rows, left, right = Rows(), Channel("left", 1), Channel("right", 1)

    def body() -> None:
        with P.pipe():
            for i in P.seq(N):
                send(left, i)
            for i in P.seq(N):
                send(right, i * i)
            for i in P.seq(N):
                a = receive(left)
                b = receive(right)
                note(y=rows.row(rows.K, i), n=a + b)

    run(body)
    assert rows.K.data.ravel().tolist() == [i + i * i for i in range(N)]  # type: ignore[union-attr]


# ---- events ----

def test_the_nth_synchronize_waits_for_the_nth_record(run: Callable[..., Program]) -> None:
    rows, ready, other = Rows(), Event("ready"), Event("other")

    def body() -> None:
        with P.pipe():
            for i in P.seq(3):
                rows.load(i)
                record(ready)
            for i in P.seq(3):
                synchronize(ready)
                rows.finish(i)

    program = run(body)
    assert program.stats.total_cycles == 4 * C
    np.testing.assert_array_equal(rows.Y.data[:3], rows.X.data[:3] + 2)  # type: ignore[index]
    assert query(ready) and not query(other)
    assert {stall.reason: stall.cycles for stall in program.stats.stalls}["EVENT_WAIT"] == C


def test_without_structure_an_event_waits_for_all_tasks_before_it(run: Callable[..., Program]) -> None:
    rows, ready = Rows(), Event("ready")

    def body() -> None:
        with P.pipe():
            for _ in P.seq(1):
                for j in P(3):
                    rows.load(j)
                record(ready)
            for _ in P.seq(1):
                synchronize(ready)
                inc(x=rows.row(rows.X, 5), y=rows.row(rows.Y, 5))

    program = run(workload(body)().task_graph(deps=Deps.infer_bytes_overlap()))
    assert program.stats.total_cycles == 3 * C + C


# ---- with the rest of a workload ----

def test_a_loop_of_pipelines_has_new_channels_and_events_in_each_turn(run: Callable[..., Program]) -> None:
    rows, numbers, started = Rows(), Channel("numbers", 2), Event("started")

    def body() -> None:
        for b in P.seq(4):
            with P.pipe():
                for i in P.seq(b + 1):
                    send(numbers, i, b * 10 + i)
                for _ in P.seq(1):
                    record(started)
                with consume(numbers) as (i, n):
                    with P.when(i == 0):
                        synchronize(started)
                    note(y=rows.R[b:b + 1, i:i + 1], n=n + 1)

    run(body)
    expected = [[b * 10 + i + 1 if i <= b else 0 for i in range(N)] for b in range(4)]
    assert rows.R.data[:4].tolist() == expected  # type: ignore[index]


def test_a_pipeline_stands_between_what_comes_before_and_after_it(run: Callable[..., Program]) -> None:
    rows, tiles = Rows(), Channel("tiles", 1)

    def body() -> None:
        first = inc[0](x=rows.row(rows.X, 0), y=rows.row(rows.T, N))
        with P.pipe():
            for i in P.seq(2):
                rows.load(i, after=first)
                send(tiles, i)
            with consume(tiles) as i:
                rows.finish(i)
        inc(x=rows.row(rows.Y, 0), y=rows.row(rows.Y, N))

    program = run(body)
    assert program.stats.total_cycles == 5 * C      # one, then 3 turns of the pipeline, then one
    np.testing.assert_array_equal(rows.Y.data[N], rows.X.data[0] + 3)  # type: ignore[index]


def test_pipelines_read_what_tasks_compute_and_make_tensors_of_their_own(run: Callable[..., Program]) -> None:
    rows, tiles = Rows(), Channel("tiles", 2)

    def body() -> None:
        with P.pipe():
            for i in P.seq(4):
                send(tiles, note[i](y=rows.row(rows.K, i), n=i + 1))
            with consume(tiles) as i:
                own = Tensor.empty((1, 4), F32)
                inc(x=rows.row(rows.X, i), y=own)
                inc(x=own, y=rows.row(rows.Y, i))
                for j in P.seq(rows.K[i, 0]):
                    note(y=rows.R[i:i + 1, j:j + 1], n=rows.K[i, 0] * 10 + j)

    run(body)
    np.testing.assert_array_equal(rows.Y.data[:4], rows.X.data[:4] + 2)  # type: ignore[index]
    assert rows.R.data[:4].tolist() == [[(i + 1) * 10 + j if j <= i else 0 for j in range(N)] for i in range(4)]  # type: ignore[index]


def test_sizes_are_bound_anew_without_a_recompile(run: Callable[..., Program]) -> None:
    rows, tiles, n = Rows(), Channel("tiles", 1), Symbol("n")

    def body() -> None:
        with P.pipe():
            for i in P.seq(n):
                send(tiles, rows.load(i))
            with consume(tiles) as i:
                rows.finish(i)

    program = run(body, n=2)
    assert program.stats.task_count == 4 and program.stats.total_cycles == 3 * C
    program.run(n=5)
    assert program.stats.task_count == 10 and program.stats.total_cycles == 6 * C


def test_tasks_of_unordered_loops_are_sent_as_they_were_written(run: Callable[..., Program]) -> None:
    """Tokens go in the order of the loop; with nothing but data between them, loads do not wait for one another's sends."""
    rows, tiles = Rows(), Channel("tiles", N)

    def body() -> None:
        with P.pipe():
            for i in P(N):
                send(tiles, rows.load(i))
            with consume(tiles) as i:
                rows.finish(i)

    assert run(body).stats.total_cycles == (N + 1) * C
    np.testing.assert_array_equal(rows.Y.data[:N], rows.X.data + 2)  # type: ignore[index, operator]


# ---- one stream, whoever writes it ----

@pytest.mark.slow
@pytest.mark.parametrize("deps", [None, Deps.infer_bytes_overlap()], ids=["structure", "data alone"])
def test_the_orchestrator_in_c_writes_what_the_interpreter_writes(deps: Deps | None) -> None:
    rows, tiles, back, ready = Rows(), Channel("tiles", 1), Channel("back", 0), Event("ready")

    def loading() -> None:
        for i in P.seq(4):
            h = rows.load(i)
            send(tiles, h)
            with P.when(i > 1):
                record(ready)
            k = receive(back)
            note(y=rows.row(rows.K, k % 6), n=k)

    def working() -> None:
        with consume(tiles) as j:
            for k in P(2):
                note(y=rows.R[j:j + 1, k:k + 1], n=k)
            send(back, j + 1)
        synchronize(ready)

    traced = connect([process("load").consumes(back).produces(tiles).body(loading),
                      process("work").consumes(tiles).produces(back).body(working)], [tiles, back])
    if deps is not None:
        traced = traced.task_graph(deps=deps)
    one, other = (traced.compile(target=target).run().compiled.runner.recorder.columns() for target in ("interp", "cpu_sim"))
    for column in fields(one):
        np.testing.assert_array_equal(getattr(one, column.name), getattr(other, column.name), err_msg=column.name)
    assert len(one.mark_node) > 20


# ---- at once ----

@kernel(c_src="""
    /* has the other task come too? Looked for some seconds at most. */
    int64_t *const come = (int64_t *)x;
    __atomic_add_fetch(come, 1, __ATOMIC_SEQ_CST);
    for (int64_t turn = 0; turn < 2000000000 && __atomic_load_n(come, __ATOMIC_SEQ_CST) < 2; ++turn)
        ;
    y[0] = __atomic_load_n(come, __ATOMIC_SEQ_CST) >= 2;
""")
def meet(x: In[Tile[128, 128, I64]], y: Out[Tile[128, 128, I64]]) -> None:
    """Tell whether two tasks run at the same time: each waits until the other has begun. Large ones: small runs stay on one thread."""


@pytest.mark.slow
def test_tasks_of_two_processes_run_at_once() -> None:
    """The producer is at its second token while the consumer works on the first: neither of the two could end alone."""
    come, met = Tensor(np.zeros((128, 128), np.int64), name="come"), Tensor(np.zeros((2, 128, 128), np.int64), name="met")
    tiles = Channel("tiles", 1)

    @workload
    def body() -> None:
        with P.pipe():
            for i in P.seq(2):
                with P.when(i == 1):
                    meet(x=come, y=met[0])
                send(tiles, i)
            with consume(tiles) as i, P.when(i == 0):
                meet(x=come, y=met[1])

    body().compile(threads=2).run()
    assert met.data[:, 0, 0].tolist() == [1, 1]  # type: ignore[index]


# ---- whatever the names, and however long ----

@pytest.mark.slow
def test_processes_and_channels_may_be_called_anything() -> None:
    rows, tiles = Rows(), Channel("tiles */ 1 ü", 1)

    def loading() -> None:
        for i in P.seq(N):
            send(tiles, rows.load(i))

    def finishing() -> None:
        with consume(tiles) as i:
            rows.finish(i)

    traced = connect([process("7").produces(tiles).body(loading), process("für */ x-y").consumes(tiles).body(finishing)], [tiles])
    traced.compile().run()
    np.testing.assert_array_equal(rows.Y.data[:N], rows.X.data + 2)  # type: ignore[index, operator]


def test_a_run_longer_than_a_record_keeps_is_the_same() -> None:
    rows = Rows()
    program = workload(two_stages(rows, 2))().compile()
    runner = program.compiled.runner
    assert isinstance(runner, Engine)
    short = Engine(runner.artifact, program.plan, 2, max_tasks=3)
    short.run(program.bind())
    assert short.simulate(keep_trace=False).total_cycles == (N + 1) * C
    np.testing.assert_array_equal(rows.Y.data[:N], rows.X.data + 2)  # type: ignore[index, operator]


def test_the_kernels_of_a_pipeline_can_be_written_for_a_device() -> None:
    program = workload(two_stages(Rows(), 2))().compile(target="pto")
    assert program.artifact_dir is not None and list(program.artifact_dir.rglob("*.pto"))


def test_the_graph_of_a_pipeline_grows_with_its_tasks_alone(run: Callable[..., Program]) -> None:
    tiles, rows = Channel("tiles", 1), Rows()

    def body() -> None:
        with P.pipe():
            for i in P.seq(50):
                send(tiles, inc[i](x=rows.row(rows.X, 0), y=rows.row(rows.T, i % 4)))
            with consume(tiles) as i:
                inc[i](x=rows.row(rows.X, 1), y=rows.row(rows.Y, i % 4))

    edges = run(body).graph.edges
    assert len(edges) <= 50 * 6 and {"channel"} <= {reason for edge in edges for reason in edge.reasons}


def test_a_pipeline_reads_back_from_json_and_from_its_repr() -> None:
    ready = Event("ready")

    def body() -> None:
        two_stages(Rows(), 2)()
        with P.pipe():
            for _ in P.seq(2):
                record(ready)
            synchronize(ready)

    traced = workload(body)()
    assert Workload.from_json(traced.to_json()) == traced
    assert eval(repr(traced.node), dict(codec.NAMES)) == traced
    assert [task.kernel for task in traced.tasks()].count("inc") == 2 * N


def test_a_sanitized_run_takes_channels_for_order() -> None:
    rows = Rows()
    program = workload(two_stages(rows, 2))().compile(sanitize=True).run()
    np.testing.assert_array_equal(rows.Y.data[:N], rows.X.data + 2)  # type: ignore[index, operator]
    assert program.stats.total_cycles == (N + 1) * C


@pytest.mark.slow
def test_the_c_text_of_a_process_compiles_without_a_warning_and_does_not_grow_with_its_tokens(tmp_path: Path) -> None:
    texts = []
    for n in (3, 3000):
        rows, tiles = Rows(), Channel("tiles", 1)

        def body(n: int = n, rows: Rows = rows, tiles: Channel = tiles) -> None:
            for b in P.seq(2):
                with P.pipe():
                    for i in P.seq(n):
                        own = Tensor.empty((1, 4), F32)
                        h = inc(x=rows.row(rows.X, i % N), y=own)
                        inc[i](x=own, y=rows.row(rows.T, i % N), after=h)
                        send(tiles, i + b, i)
                    with consume(tiles) as (k, i), P.when(k > 1):
                        note(y=rows.row(rows.K, i % N), n=k)

        folder = workload(body)().compile().artifact_dir
        assert folder is not None
        texts.append((folder / "src" / "orchestrator.c").read_text())
        compiler = shlex.split(os.environ.get("CC", "cc"))
        done = subprocess.run([*compiler, "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{csrc_dir() / 'include'}", "-c",
                               str(folder / "src" / "orchestrator.c"), "-o", str(tmp_path / "orchestrator.o")],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert abs(len(texts[0]) - len(texts[1])) < 50
