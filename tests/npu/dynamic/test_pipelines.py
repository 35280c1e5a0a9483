"""Pipelines on the device: processes take turns on the control processor, tasks are told to wait for what tokens wait for."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto_wsp import (
    Channel,
    Dense,
    Deps,
    Event,
    P,
    PtoError,
    Sparse,
    Tensor,
    Workload,
    connect,
    consume,
    process,
    receive,
    record,
    replicate,
    send,
    synchronize,
    workload,
)
from tests.laws.generated_pipelines import random_network, workload_of
from tests.npu.dynamic.cases import F32, add, grow, mix, move, run_package, run_with, tensors
from tests.npu.harness import A2A3_FAST, check_package
from tests.npu.submits import compare_orders, npu_plan, submit


def two(depth: int) -> Workload:
    """A loop that makes tiles, and one that takes them."""
    X, Y, Z = tensors("XYZ", 6, 8, 16)
    tokens = Channel("tokens", depth)

    @workload
    def load() -> None:
        for b in P.seq(6):
            send(tokens, move[b](X[b], Y[b]))

    @workload
    def use() -> None:
        with consume(tokens) as b:
            add[b](Y[b], Z[b])

    @workload
    def case() -> None:
        grow(X[0])
        with P.pipe():
            load()
            use()
        grow(Z[5])
    return case()


@pytest.mark.slow
@pytest.mark.parametrize("family", A2A3_FAST)
@pytest.mark.parametrize("depth", [0, 1, 2, 9])
def test_one_loop_gives_and_another_takes(depth: int, family: str) -> None:
    graph, _ = run_package(two(depth), family)
    assert len([task for task in graph.tasks if task.arguments]) == 14


@pytest.mark.slow
def test_a_slot_holds_its_sender_until_it_is_taken() -> None:
    """With room for two, the third tile waits for the first to be taken, which waits for its task; with room for all nothing does."""
    narrow, wide = (run_package(two(depth).task_graph(deps=Deps.hybrid()))[0] for depth in (1, 9))
    moves = {graph: [number for number, task in enumerate(graph.tasks) if task.kernels == (1,)] for graph in (narrow, wide)}
    adds = {graph: [number for number, task in enumerate(graph.tasks) if task.kernels == (2,)] for graph in (narrow, wide)}
    assert all(narrow.ancestors[moves[narrow][k]] >> adds[narrow][k - 3] & 1 for k in (3, 4, 5))
    assert not any(wide.ancestors[moves[wide][k]] >> adds[wide][j] & 1 for k in range(6) for j in range(6))
    assert all(graph.ancestors[adds[graph][k]] >> moves[graph][k] & 1 for graph in (narrow, wide) for k in range(6))


@pytest.mark.slow
@pytest.mark.parametrize("initial", [2, [4, 9]], ids=str)
def test_a_channel_that_begins_with_tokens_may_end_with_as_many(initial: object) -> None:
    X, Y, Z = tensors("XYZ", 6, 8, 16)
    free, full = Channel("free", 2, initial=initial), Channel("full", 2)  # type: ignore[arg-type]

    @workload
    def case() -> None:
        with P.pipe():
            for b in P.seq(6):
                receive(free)
                send(full, move[b](X[b], Y[b % 2]))
            for b in P.seq(6):
                receive(full)
                send(free, add[b](Y[b % 2], Z[b]))

    graph, _ = run_package(case().task_graph(deps=Deps.hybrid()))
    assert len([task for task in graph.tasks if task.arguments]) == 12


def stages() -> Workload:
    """Three stages, one in two copies; a token that one way sends and another does not; numbers by token; rows of a sparse matrix."""
    X, Y, Z = tensors("XYZ", 8, 8, 16)
    A, B, C = tensors("ABC", 8, 16, 16)
    lens = Tensor(np.array([0, 5, 3, 9, 1, 0, 2, 4], np.int32), name="lens")
    routing = Sparse(Dense[8](), Tensor(np.array([0, 2, 2, 3, 5, 6, 6, 7, 8], np.int32), name="indptr"),
                     Tensor(np.array([1, 5, 0, 3, 4, 2, 6, 7], np.int32), name="indices"))
    made, done = Channel("made", 2), Channel("done", 1)

    def load() -> None:
        for b in P.seq(8):
            with P.when(lens[b] > 2):
                task = move[b](X[b], Y[b])
                send(made, b, lens[b] - 2)
                grow[b](X[b], after=task)
            with P.otherwise():
                send(made, b, 0)

    def work() -> None:
        with consume(made) as (b, n):
            for i in P.seq(n):
                add[b, i](X[i], Y[b])
            for _ in P.seq(1):
                square = Tensor.empty((16, 16), F32)
                mix[b](A[b], B[b], square)
                mix[b](square, B[b], C[b])
            for e in P.sel.seq(routing[b]):
                grow[b, e](Y[b])
            send(done, b)

    def store() -> None:
        for _ in P.seq(8):
            b = receive(done)
            add[b](Y[b], Z[b])

    return connect([process("load").produces(made).body(load), replicate(process("work").consumes(made).produces(done).body(work), 2),
                    process("store").consumes(done).body(store)], [made, done])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*do not race on `[XYC]`")     # its order is that of the orchestration
@pytest.mark.parametrize("deps", [Deps.hybrid(), Deps.infer_bytes_overlap()], ids=["hybrid", "overlap"])
def test_stages_are_copied_and_tokens_carry_numbers(deps: Deps) -> None:
    run_package(stages().task_graph(deps=deps))


def events() -> Workload:
    """A process that waits for another one twice, in a loop of the main program."""
    X, Y, Z = tensors("XYZ", 4, 8, 16)
    ready = Event("ready")

    @workload
    def first(i: Any) -> None:
        for b in P.seq(2):
            move[i, b](X[2 * i + b], Y[2 * i + b])
            record(ready)

    @workload
    def then(i: Any) -> None:
        for b in P.seq(2):
            synchronize(ready)
            add[i, b](Y[2 * i + b], Z[b])

    @workload
    def case() -> None:
        for i in P.seq(2):
            with P.pipe():
                first(i)
                then(i)
    return case()


@pytest.mark.slow
def test_events_order_processes() -> None:
    run_package(events().task_graph(deps=Deps.hybrid()))
    run_package(events())


@pytest.mark.slow
def test_what_a_token_brings_is_checked_where_it_is_used() -> None:
    """Row 9 of Y is none: what came before is done, what comes behind is not."""
    X, Y = tensors("XY", 4, 8, 16)
    rows, tokens = Tensor(np.array([1, 0, 3], np.int32), name="rows"), Channel("tokens", 3)

    @workload
    def give() -> None:
        for b in P.seq(3):
            send(tokens, rows[b])

    @workload
    def take() -> None:
        with consume(tokens) as row:
            add[row](X[0], Y[row])

    @workload
    def case() -> None:
        with P.pipe():
            give()
            take()
        grow(X[1])
    run_package(case())
    program = case().compile(target="ascend_npu")
    assert any("Y[row]" in str(check) and "no more tasks are submitted" in str(check) for check in program.checks)
    assert isinstance(program.artifact_dir, Path)
    outcome, given = run_with(program.artifact_dir, rows=[1, 9, 3])
    assert len(outcome.graph.tasks) == 1 and (outcome.tensors["X"] == given["X"]).all()


def test_a_tensor_of_a_body_that_waits_is_refused() -> None:
    X, Y = tensors("XY", 4, 8, 16)
    tokens = Channel("tokens", 1)

    @workload
    def give() -> None:
        for b in P.seq(4):
            tmp = Tensor.empty((8, 16), F32)
            move[b](X[b], tmp)
            send(tokens, add[b](tmp, Y[b]))

    @workload
    def take() -> None:
        with consume(tokens) as b:
            grow[b](Y[b])

    @workload
    def case() -> None:
        with P.pipe():
            give()
            take()
    with pytest.raises(PtoError, match=r"(?s)N106.*pipeline\.fresh.*tmp = Tensor\.empty.*scopes nest"):
        case().compile(target="ascend_npu")
    assert case().compile(target="pto").artifact_dir is not None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*do not race on `[XYC]`")     # its order is that of the orchestration
def test_other_numbers_of_tokens_and_lost_edges_are_noticed(tmp_path: Path) -> None:
    root = stages().compile(target="ascend_npu").artifact_dir
    assert root is not None
    for number, (file, before, after) in enumerate((
            ("include/pto_wsp_channels.h", "numbers_.data() + n_received_ * N", "numbers_.data() + (n_received_ > 2 ? 2 : 0) * N"),
            ("orchestration", "readers_X.find(", "(void)0; // "))):
        copy = tmp_path / str(number)
        shutil.copytree(root, copy)
        path = copy / file if (copy / file).is_file() else next((copy / file).iterdir())
        path.chmod(0o644)
        text = path.read_text()
        assert before in text
        path.write_text(text.replace(before, after))
        with pytest.raises(AssertionError, match=r"output `|nothing orders them"):
            check_package(copy, "a2a3")


@pytest.mark.slow
@pytest.mark.usefixtures("races_allowed")
@pytest.mark.parametrize(("seed", "merges", "structure"), [(1, False, False), (3, True, True), (10, False, True), (7, True, False)])
def test_orders_of_networks_are_those_of_cpu_sim(seed: int, merges: bool, structure: bool, tmp_path: Path) -> None:
    acc = np.ones((8, 8), np.int64)
    value = workload_of(random_network(seed, merges=merges), Tensor(acc, name="acc"))
    value = value if structure else value.task_graph(deps=Deps.infer_bytes_overlap())
    program = value.compile()
    program.run()
    graph = submit(tmp_path, npu_plan(value), {"acc": acc}).graph
    found = compare_orders(value, graph, program)
    assert found.found == found.wanted and found.wanted
    assert not list(graph.unordered_conflicts())
    assert len(graph.tasks) <= 2 * len(program.graph.tasks)      # few of them only join others


@pytest.mark.slow
def test_the_other_runtime_takes_pipelines_that_read_no_elements() -> None:
    """Processes take turns while tasks are made; no task has to run for that."""
    root = two(2).compile(target="ascend_npu", options={"runtime": "host_build_graph"}).artifact_dir
    assert root is not None
    check_package(root, "a2a3", "host_build_graph")


@pytest.mark.slow
def test_processes_that_cannot_go_on_end_the_orchestration(tmp_path: Path) -> None:
    """Both wait for the token of the other one: what stands behind is not submitted."""
    X, Y = tensors("XY", 4, 8, 16)
    there, back = Channel("there", 1), Channel("back", 1)

    @workload
    def one() -> None:
        n = receive(back)
        send(there, n)

    @workload
    def other() -> None:
        n = receive(there)
        send(back, n)

    @workload
    def case() -> None:
        move(X[0], Y[0])
        with P.pipe():
            one()
            other()
        grow(Y[1])
    outcome = submit(tmp_path, npu_plan(case()), {name: np.ones((4, 8, 16), np.float32) for name in "XY"})
    assert len(outcome.graph.tasks) == 1
