"""Values that tasks compute and the workload reads: both targets give what NumPy gives in program order."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto_wsp import (
    Dense,
    Deps,
    DispatchPolicy,
    DType,
    In,
    InOut,
    Out,
    P,
    Program,
    Ragged,
    Scalar,
    Sparse,
    TaskWindow,
    Tensor,
    Tile,
    Workload,
    combine,
    kernel,
    pto,
    slot_set_u64,
    slot_u64,
    workload,
)
from pto_wsp.errors import RunBoundsError, TaskFailedError
from tests.laws.generated_workloads import run_in_order_of, threads_of

F32, I32, I64 = DType.F32, DType.I32, DType.I64
TARGETS = ("interp", "cpu_sim")
ROOT = Path(__file__).resolve().parents[2]
Array = np.ndarray[Any, Any]


# ---- kernels ----

@kernel
def mix(x: In[Tile[1, 4, I64]], n: Scalar[I64], y: InOut[Tile[1, 4, I64]]) -> None:
    """No two of these commute: the order of tasks shows."""
    pto.store(y, y * 3 + x + n)


@kernel
def put(n: Scalar[I64], y: Out[Tile[1, 1, I64]]) -> None:
    pto.store(y, pto.full((1, 1), n, I64))


@kernel
def plus(n: Scalar[I64], y: InOut[Tile[1, 1, I64]]) -> None:
    pto.store(y, y + n)


@kernel
def total(x: In[Tile[1, 4, I64]], y: Out[Tile[1, 1, I64]]) -> None:
    pto.store(y, pto.rowsum(x))


@kernel
def step_of(seed: Scalar[I64], state: InOut[Tile[1, 1, I64]]) -> None:
    """A long walk of small numbers."""
    pto.store(state, pto.mod(state * 5 + seed, 7))


def mixed(y: Array, x: Array, n: int) -> None:
    """`mix` in NumPy."""
    y[:] = y * 3 + x + n


# ---- ways to run ----

def schedules(made: Workload) -> Iterator[tuple[str, Workload]]:
    yield "default", made
    yield "overlap", made.task_graph(deps=Deps.infer_bytes_overlap())
    yield "hybrid, window 1", made.task_graph(deps=Deps.hybrid(), window=TaskWindow(1)).dispatch(DispatchPolicy.round_robin(3))
    yield "overlap, window 1", made.task_graph(deps=Deps.infer_bytes_overlap(), window=TaskWindow(1))
    yield "overlap, window 3", made.task_graph(deps=Deps.infer_bytes_overlap(), window=TaskWindow(3)).dispatch(
        DispatchPolicy.round_robin(2))


def check(made: Workload, outputs: dict[Tensor, Callable[[], Array]]) -> Program:
    """Hold every target, number of threads and legal order against what is expected; return the last program.

    Besides the default schedule a workload is run under one other, which goes by its name: all of them have their turn in these tests.
    `outputs`: tensors to compare, with what must be in them. What all tensors hold before is restored for each run.
    """
    before = {id(t): (t, t.data.copy()) for t in made.tensors if t is not None and t.data is not None}
    expected = {t: value() for t, value in outputs.items()}

    def compare(program: Program, run: Callable[[], object], what: object) -> None:
        for tensor, data in before.values():
            tensor.data[...] = data  # type: ignore[index]
        run()
        for tensor, value in expected.items():
            np.testing.assert_array_equal(tensor.data, value, err_msg=f"{what}: {tensor.ref.shown}")  # type: ignore[arg-type]

    default, *others = schedules(made)
    for name, scheduled in (default, others[zlib.crc32(made.name.encode()) % len(others)]):
        oracle, program = scheduled.compile("interp"), scheduled.compile()
        compare(oracle, oracle.run, (name, "interp"))
        for threads in (1, 2, 4):
            with threads_of(program, threads):
                compare(program, program.run, (name, threads))
        check_same_record(program, oracle)
        for seed in (1, 2, 3):
            compare(program, lambda seed=seed, program=program: run_in_order_of(program, seed), (name, "order", seed))  # type: ignore[misc]
    return program


def check_same_record(program: Program, oracle: Program) -> None:
    """Hold the task stream in C against the one in Python: tasks, waits, edges, and what the simulator makes of them."""
    found, wanted = program.compiled.runner.recorder.columns(), oracle.compiled.runner.recorder.columns()
    for name in ("n_tasks", "task_kernel", "task_site", "task_worker", "task_cost", "task_stream", "index_begin", "index", "mark_delay",
                 "mark_stream", "mark_stall"):
        assert np.array_equal(getattr(found, name), getattr(wanted, name)), name
    assert program.graph.edges == oracle.graph.edges
    assert (program.stats.total_cycles, program.stats.stalls) == (oracle.stats.total_cycles, oracle.stats.stalls)
    assert np.array_equal(program.trace.start, oracle.trace.start) and np.array_equal(program.trace.end, oracle.trace.end)


def n_waits(program: Program) -> int:
    return len(program.compiled.runner.recorder.columns().mark_node)


def column(*values: int) -> Tensor:
    return Tensor(np.array(values, np.int64).reshape(-1, 1))


def zeros(*shape: int) -> Tensor:
    return Tensor(np.zeros(shape, np.int64))


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return Tensor(np.random.default_rng(seed).integers(-9, 9, shape))


# ---- what may be read ----

@pytest.mark.slow
def test_a_loop_runs_as_often_as_a_task_says() -> None:
    sizes, counts, X, Y = numbers(3, 4, seed=1), zeros(3, 1), numbers(20, 4), zeros(3, 4)
    sizes.data[:] = [[1, 2, 0, 0], [0, 0, 0, 0], [3, 1, 1, 4]]  # type: ignore[index]

    @workload
    def counted() -> None:
        for e in P(3):
            total[e](x=sizes[e], y=counts[e:e + 1])
        for e in P(3):
            for i in P.seq(counts[e, 0]):
                mix[e, i](x=X[i], n=e, y=Y[e])

    def expected() -> Array:
        y = np.zeros((3, 4), np.int64)
        for e, n in enumerate(sizes.data.sum(1)):  # type: ignore[union-attr]
            for i in range(n):
                mixed(y[e], X.data[i], e)  # type: ignore[index]
        return y
    program = check(counted(), {Y: expected, counts: lambda: sizes.data.sum(1, keepdims=True)})  # type: ignore[union-attr]
    assert n_waits(program) == 3 and program.stats.task_count == 3 + 12


def test_the_bound_of_a_loop_is_read_once_though_its_tasks_change_it() -> None:
    """They have run by the next turn, because the body reads what they write."""
    n, Y = column(3), zeros(10, 4)

    @workload
    def growing() -> None:
        for i in P.seq(n[0, 0]):
            plus(n=2, y=n)
            mix(x=Y[0], n=n[0, 0], y=Y[i])
    wanted = np.zeros((10, 4), np.int64)
    wanted[:3] = [[5], [5 + 7], [5 + 9]]
    program = check(growing(), {n: lambda: np.array([[9]]), Y: lambda: wanted})
    assert program.stats.task_count == 6 and n_waits(program) == 1 + 3


@pytest.mark.slow
@pytest.mark.parametrize("of", ["expression", "ragged"])
def test_every_kind_of_axis_may_go_as_far_as_a_task_says(of: str) -> None:
    n, Y, lens = column(2), zeros(12, 4), zeros(3)
    rows = Dense[3]()

    @kernel
    def lengths(k: Scalar[I64], y: Out[Tile[1, 3, I64]]) -> None:
        pto.store(y, pto.full((1, 3), k, I64))

    @workload
    def walked() -> None:
        plus(n=1, y=n)
        lengths(k=2, y=lens)
        match of:
            case "expression":
                for i in P.seq((n[0, 0] * 4 + 2) // 3):
                    mix[i](x=Y[0], n=i, y=Y[i])
            case "ragged":
                for b in P(rows):
                    for t in P.seq(Ragged(rows, lens)[b]):
                        mix[b, t](x=Y[0], n=b * 10 + t, y=Y[b * 2 + t])

    wanted = np.zeros((12, 4), np.int64)
    wanted[:4] = np.arange(4)[:, None]
    if of == "ragged":
        wanted[:6] = np.array([0, 1, 10, 11, 20, 21])[:, None]
    check(walked(), {Y: lambda: wanted})


@pytest.mark.slow
def test_what_is_picked_and_what_is_passed_may_be_computed() -> None:
    at, X, Y = zeros(5, 1), numbers(7, 4), zeros(5, 4)

    @workload
    def picked() -> None:
        for i in P(5):
            put[i](n=(i * 3 + 1) % 5, y=at[i:i + 1])
        for i in P.seq(5):
            mix[at[i, 0]](x=X[at[i, 0] + 2], n=at[at[i, 0], 0], y=Y[at[i, 0]])

    def expected() -> Array:
        y, a = np.zeros((5, 4), np.int64), [(i * 3 + 1) % 5 for i in range(5)]
        for i in range(5):
            mixed(y[a[i]], X.data[a[i] + 2], a[a[i]])  # type: ignore[index]
        return y
    program = check(picked(), {Y: expected})
    assert n_waits(program) == 5 * 2     # at[i], then at[at[i]]


@pytest.mark.slow
def test_the_extent_of_a_view_may_be_computed() -> None:
    n, X, Y = column(0), numbers(6, 4), zeros(6, 4)

    @kernel
    def copy(x: In[Tile[6, 4, I64]], y: Out[Tile[6, 4, I64]]) -> None:
        pto.store(y, x)

    @workload
    def short() -> None:
        put(n=3, y=n)
        copy(x=X[:n[0, 0]].clip(6, 4), y=Y[:n[0, 0]].clip(6, 4))
    wanted = np.zeros((6, 4), np.int64)
    wanted[:3] = X.data[:3]  # type: ignore[index]
    check(short(), {Y: lambda: wanted})


@pytest.mark.slow
def test_a_float_may_be_computed_and_passed_on() -> None:
    scale, X, Y = Tensor(np.zeros((1, 1), np.float32)), Tensor(np.arange(8, dtype=np.float32).reshape(2, 4)), Tensor(
        np.zeros((2, 4), np.float32))

    @kernel
    def mean(x: In[Tile[2, 4, F32]], y: Out[Tile[1, 1, F32]]) -> None:
        pto.store(y, pto.colsum(pto.rowsum(x)) * 0.125)

    @kernel
    def times(x: In[Tile[1, 4, F32]], by: Scalar[F32], y: Out[Tile[1, 4, F32]]) -> None:
        pto.store(y, x * by)

    @workload
    def scaled() -> None:
        mean(x=X, y=scale)
        for i in P(2):
            times[i](x=X[i], by=scale[0, 0] + 0.5, y=Y[i])
    check(scaled(), {Y: lambda: X.data * np.float32(4.0)})  # type: ignore[operator]


@pytest.mark.slow
def test_a_choice_follows_what_tasks_compute_and_reads_no_further_than_it_must() -> None:
    """The second condition reads outside its tensor where the first one does not hold back."""
    n, table, Y = zeros(4, 1), column(5, 7), zeros(4, 4)

    @workload
    def chosen() -> None:
        for b in P.seq(4):
            put[b](n=b, y=n[b:b + 1])
            plus(n=1, y=table[0:1])
            with P.when(n[b, 0] >= 2):
                mix[b](x=Y[0], n=1, y=Y[b])
            with P.elif_(table[n[b, 0], 0] == 6):
                mix[b](x=Y[0], n=table[n[b, 0], 0], y=Y[b])
            with P.otherwise():
                mix[b](x=Y[0], n=3, y=Y[b])
    wanted = np.zeros((4, 4), np.int64)
    wanted[:] = np.array([[6], [6 + 3], [6 + 1], [6 + 1]])     # Y[0] is 6 when the others are made
    program = check(chosen(), {Y: lambda: wanted})
    # n[b] each time; where it is below 2 the second condition: n[b], table[n[b]]; where that held the task: the same again
    assert n_waits(program) == 4 + 2 * 2 + 1 * 2


@pytest.mark.slow
def test_a_branch_that_is_not_taken_does_not_wait() -> None:
    n, far, Y = column(0), zeros(3, 1), zeros(3, 4)

    @workload
    def guarded() -> None:
        put(n=100, y=n)
        put(n=1, y=far[0:1])
        with P.when(Y[0, 0] > 0):
            for i in P.seq(far[n[0, 0], 0]):
                mix(x=Y[0], n=i, y=Y[far[n[0, 0], 0]])
        with P.otherwise():
            mix(x=Y[0], n=7, y=Y[1])
    wanted = np.zeros((3, 4), np.int64)
    wanted[1] = 7
    program = check(guarded(), {Y: lambda: wanted})
    assert n_waits(program) == 1          # of the condition alone


@pytest.mark.slow
def test_a_slot_keeps_what_was_computed() -> None:
    n, Y = column(4), zeros(4, 4)

    @workload
    def kept() -> None:
        plus(n=-1, y=n)
        slot_set_u64(2, n[0, 0])
        plus(n=-3, y=n)
        for i in P.seq(slot_u64(2)):
            mix[i](x=Y[3], n=slot_u64(2), y=Y[i])
    wanted = np.zeros((4, 4), np.int64)
    wanted[:3] = 3
    program = check(kept(), {Y: lambda: wanted, n: lambda: np.array([[0]])})
    assert n_waits(program) == 1


@pytest.mark.slow
def test_a_sparse_axis_may_be_computed() -> None:
    indptr, indices, X, Y = zeros(4), zeros(6), numbers(5, 4), zeros(3, 4)
    rows = Dense[3]()

    @kernel
    def route(rows_end: Out[Tile[1, 4, I64]], chosen: Out[Tile[1, 6, I64]]) -> None:
        pto.store(rows_end, pto.iota((1, 4), I64, axis=1) * 2)
        pto.store(chosen, pto.mod(pto.iota((1, 6), I64, axis=1) * 3, 5))

    @workload
    def routed() -> None:
        route(rows_end=indptr, chosen=indices)
        for b in P(rows):
            for e in P.sel.seq(Sparse(rows, indptr, indices)[b]):
                mix[b, e](x=X[e], n=e, y=Y[b])

    def expected() -> Array:
        y = np.zeros((3, 4), np.int64)
        for b in range(3):
            for p in range(2 * b, 2 * b + 2):
                mixed(y[b], X.data[p * 3 % 5], p * 3 % 5)  # type: ignore[index]
        return y
    check(routed(), {Y: expected})


# ---- whole programs ----

@pytest.mark.slow
def test_experts_run_on_as_many_tokens_as_the_router_gave_them() -> None:
    """A router's kernel chooses; the workload counts, loops over the counts and looks tokens up: nothing is padded."""
    n_tokens, n_experts, width = 12, 3, 4
    rng = np.random.default_rng(4)
    x, w = rng.integers(-5, 5, (n_tokens, width)), rng.integers(-3, 3, (n_experts, width, width))
    logits = Tensor(rng.standard_normal((n_tokens, n_experts)).astype(np.float32))
    choice, counts = Tensor(np.zeros((n_tokens, 1), np.int32)), zeros(n_experts, 1)
    lists, X, W, Y = zeros(n_experts, n_tokens, 1), Tensor(x), Tensor(w), zeros(n_tokens, width)

    @kernel
    def choose(scores: In[Tile[n_tokens, n_experts, F32]], chosen: Out[Tile[n_tokens, 1, I32]]) -> None:
        pto.store(chosen, pto.rowargmax(scores))

    @kernel
    def append(token: Scalar[I64], slot: Out[Tile[1, 1, I64]], count: InOut[Tile[1, 1, I64]]) -> None:
        pto.store(slot, pto.full((1, 1), token, I64))
        pto.store(count, count + 1)

    @kernel
    def expert(row: In[Tile[1, width, I64]], weights: In[Tile[width, width, I64]], out: Out[Tile[1, width, I64]]) -> None:
        pto.store(out, pto.colsum(pto.transpose(row) * weights))

    @workload
    def moe() -> None:
        choose(scores=logits, chosen=choice)
        for t in P.seq(n_tokens):
            e = choice[t, 0]
            append[t](token=t, slot=lists[e, counts[e, 0]:counts[e, 0] + 1], count=counts[e:e + 1])
        for e in P(n_experts):
            for i in P(counts[e, 0]):
                expert[e, i](row=X[lists[e, i, 0]], weights=W[e], out=Y[lists[e, i, 0]])

    routed = logits.data.argmax(1)  # type: ignore[union-attr]
    program = check(moe(), {Y: lambda: np.stack([x[t] @ w[routed[t]] for t in range(n_tokens)]),
                            counts: lambda: np.bincount(routed, minlength=n_experts)[:, None]})
    assert program.stats.task_count == 1 + 2 * n_tokens


@pytest.mark.slow
def test_speculative_decoding_goes_on_where_the_target_stopped_accepting() -> None:
    """A draft proposes four tokens; a task says how many are right; the next draft starts behind those."""
    n_draft, length = 4, 20
    truth = np.random.default_rng(5).integers(0, 3, (1, length + n_draft))
    Truth, draft, out = Tensor(truth), zeros(1, n_draft), zeros(1, length + n_draft)
    at, accepted = column(0), column(0)

    @kernel
    def propose(seed: Scalar[I64], tokens: Out[Tile[1, 4, I64]]) -> None:
        pto.store(tokens, pto.mod(pto.iota((1, 4), I64, axis=1) * 2 + seed, 3))

    @kernel
    def verify(tokens: In[Tile[1, 4, I64]], right: In[Tile[1, 4, I64]], n: Out[Tile[1, 1, I64]]) -> None:
        """As many as agree from the first on, and one more: the target's own."""
        place = pto.iota((1, 4), I64, axis=1)
        same = pto.where(tokens == right, pto.ones((1, 4), I64), pto.zeros((1, 4), I64))
        a, b, c = (pto.rowsum(pto.where(place == k, same, pto.zeros((1, 4), I64))) for k in range(3))
        pto.store(n, a + a * b + a * b * c + 1)

    @kernel
    def accept(token: In[Tile[1, 1, I64]], to: Out[Tile[1, 1, I64]]) -> None:
        pto.store(to, token)

    @kernel
    def move_on(by: In[Tile[1, 1, I64]], to: InOut[Tile[1, 1, I64]]) -> None:
        pto.store(to, to + by)

    @workload
    def decode() -> None:
        for step in P.seq(length):
            with P.when(at[0, 0] < length):
                propose[step](seed=at[0, 0], tokens=draft)
                verify[step](tokens=draft, right=Truth[:, at[0, 0]:at[0, 0] + n_draft], n=accepted)
                for i in P(accepted[0, 0]):
                    accept[step, i](token=Truth[:, at[0, 0] + i:at[0, 0] + i + 1], to=out[:, at[0, 0] + i:at[0, 0] + i + 1])
                move_on[step](by=accepted, to=at)

    def walk() -> tuple[Array, int]:
        position, said = 0, np.zeros((1, length + n_draft), np.int64)
        while position < length:
            tokens = (np.arange(n_draft) * 2 + position) % 3
            same = tokens == truth[0, position:position + n_draft]
            n = 1 + (int(np.argmin(same)) if not same[:3].all() else 3)
            said[0, position:position + n] = truth[0, position:position + n]
            position += n
        return said, position
    program = check(decode(), {out: lambda: walk()[0], at: lambda: np.array([[walk()[1]]])})
    assert program.stats.task_count < 4 * length


@pytest.mark.slow
def test_a_loop_ends_early_when_it_has_converged() -> None:
    state, steps = column(3), column(0)

    @workload
    def converge() -> None:
        for _ in P.seq(50):
            with P.when(state[0, 0] != 1):
                step_of(seed=1, state=state)
                plus(n=1, y=steps)

    value, count = 3, 0
    while value != 1:
        value, count = (value * 5 + 1) % 7, count + 1
    program = check(converge(), {state: lambda: np.array([[1]]), steps: lambda: np.array([[count]])})
    assert program.stats.task_count == 2 * count and n_waits(program) == 50


# ---- order ----

def test_a_read_waits_for_all_that_wrote_the_element_and_for_nothing_else() -> None:
    """Two add to n[0], one writes beside it, one is far away: the wait has edges from the two."""
    n, Y = zeros(2, 1), zeros(1, 4)

    @workload
    def several() -> None:
        plus(n=2, y=n[0:1])
        plus(n=5, y=n[1:2])
        mix(x=Y[0], n=1, y=Y[0])
        plus(n=1, y=n[0:1])
        for i in P.seq(n[0, 0]):
            mix[i](x=Y[0], n=i, y=Y[0])
    program = check(several().task_graph(deps=Deps.infer_bytes_overlap()), {n: lambda: np.array([[3], [5]])})
    into = {(edge.source, edge.target): edge.reasons for edge in program.graph.edges}
    assert into[3, 4] == ("read",) and (1, 4) not in into
    assert (0, 3) in into and "RAW" in into[2, 4]


@pytest.mark.slow
def test_a_later_write_does_not_wait_for_the_read() -> None:
    """The orchestrator has read before it makes the later task: there is nothing to wait for, and the value is the old one."""
    n, Y = column(2), zeros(4, 4)

    @workload
    def later() -> None:
        plus(n=0, y=n)
        for i in P(n[0, 0]):
            mix[i](x=Y[3], n=1, y=Y[i])
        plus(n=2, y=n)
    program = check(later().task_graph(deps=Deps.infer_bytes_overlap()), {n: lambda: np.array([[4]])})
    assert program.stats.task_count == 4


def test_explicit_edges_order_the_read_behind_what_stands_before_it() -> None:
    n, X, Y = zeros(2, 1), zeros(1, 4), zeros(4, 4)

    @workload
    def stated() -> None:
        for i in P(2):
            put[i](n=i + 1, y=n[i:i + 1])
        for i in P(n[1, 0] + n[0, 0]):
            mix[i](x=X[0], n=1, y=Y[i])
    made = stated().task_graph(deps=Deps.explicit())
    programs = [made.compile(target) for target in TARGETS]
    for program in programs:
        for array in (n.data, Y.data):
            array[...] = 0  # type: ignore[index]
        program.run()
        assert (Y.data[:3] == 1).all()  # type: ignore[index]
    check_same_record(programs[1], programs[0])
    for seed in range(1, 20):
        n.data[...] = 0  # type: ignore[index]
        Y.data[...] = 0  # type: ignore[index]
        run_in_order_of(programs[1], seed)
        assert (Y.data[:3] == 1).all()  # type: ignore[index]


@pytest.mark.slow
def test_an_after_is_waited_for_too() -> None:
    """With explicit edges nothing but after= says that the other side's task comes first."""
    n, Y = column(0), zeros(4, 4)

    @workload
    def sides() -> None:
        first = put(n=3, y=n)
        mix[n[0, 0]](x=Y[3], n=1, y=Y[0], after=[first])
    program = check(sides(), {Y: lambda: np.array([[1] * 4, [0] * 4, [0] * 4, [0] * 4])})
    assert program.graph.edges and n_waits(program) == 1


@pytest.mark.slow
def test_sides_that_read_what_they_write_themselves() -> None:
    n, Y = zeros(2, 1), zeros(4, 4)

    @workload
    def side(k: Any) -> None:
        put(n=k + 1, y=n[k:k + 1])
        for i in P.seq(n[k, 0]):
            mix[k, i](x=Y[3], n=i + 1, y=Y[k])

    @workload
    def both() -> None:
        combine(side(0), side(1))
    wanted = np.zeros((4, 4), np.int64)
    wanted[0], wanted[1] = 1, 5
    check(both(), {Y: lambda: wanted})


# ---- cycles ----

def test_time_stands_still_while_the_orchestrator_waits() -> None:
    """By hand, on the unit arch: the second part cannot be submitted before the first has run."""
    n, Y = column(0), zeros(4, 4)

    @workload
    def waiting() -> None:
        put(n=2, y=n)
        for i in P(n[0, 0]):
            mix[i](x=Y[3], n=1, y=Y[i])
    program = waiting().dispatch(DispatchPolicy.round_robin(2)).task_graph(deps=Deps.infer_bytes_overlap()).compile().run()
    trace, stats = program.trace, program.stats
    cost = trace.end - trace.start
    assert trace.start.tolist() == [0, cost[0], cost[0]] and stats.total_cycles == cost[0] + cost[1]
    assert [(stall.count, stall.cycles) for stall in stats.stalls] == [(1, cost[0])]


# ---- again ----

@pytest.mark.parametrize("target", TARGETS)
def test_each_run_makes_its_tasks_anew(target: str) -> None:
    n, Y = column(0), zeros(8, 4)

    @workload
    def growing() -> None:
        plus(n=1, y=n)
        for i in P(n[0, 0]):
            mix[i](x=Y[7], n=1, y=Y[i])
    program = growing().compile(target)
    for run in range(1, 5):
        program.run()
        assert program.stats.task_count == 1 + run and len(program.trace.start) == 1 + run
        assert {edge.target for edge in program.graph.edges} == set(range(1, 1 + run))
    np.testing.assert_array_equal(Y.data[:4, 0], [(3 ** k - 1) // 2 for k in (4, 3, 2, 1)])  # type: ignore[index]


def test_tasks_are_made_anew_though_all_that_the_orchestrator_sees_before_is_the_same() -> None:
    """The sum of other data decides; the element that is read begins with the same value in both runs."""
    X, n, Y = numbers(1, 4), column(0), zeros(8, 4)

    @workload
    def summed() -> None:
        total(x=X[0], y=n)
        for i in P(n[0, 0]):
            mix[i](x=Y[7], n=1, y=Y[i])
    program = summed().compile()
    for wanted in (3, 5, 2):
        X.data[...] = [[wanted, 0, 0, 0]]  # type: ignore[index]
        n.data[...] = 0  # type: ignore[index]
        assert program.run().stats.task_count == 1 + wanted


@pytest.mark.parametrize("target", TARGETS)
def test_what_it_holds_before_the_first_task_may_be_read(target: str) -> None:
    n, Y = Tensor(np.array([[3]]), name="n"), zeros(4, 4)

    @workload
    def first() -> None:
        for i in P(n[0, 0]):
            mix[i](x=Y[3], n=1, y=Y[i])
        put(n=0, y=n)
    program = first().compile(target).run()
    assert program.stats.task_count == 4
    assert program.run().stats.task_count == 1 and program.run(n=np.array([[2]])).stats.task_count == 3


# ---- failures ----

@pytest.mark.parametrize("target", TARGETS)
def test_a_check_that_fails_behind_a_wait_says_that_tasks_have_run(target: str) -> None:
    n, Y = column(0), zeros(4, 4)

    @workload
    def outside() -> None:
        mix(x=Y[3], n=1, y=Y[0])
        put(n=9, y=n)
        mix(x=Y[3], n=1, y=Y[n[0, 0]])
    program = outside().compile(target)
    with pytest.raises(RunBoundsError) as caught:
        program.run()
    assert "2 tasks made before it had run, and what they wrote stays" in str(caught.value)
    assert (Y.data[0] == 1).all() and n.data[0, 0] == 9  # type: ignore[index]


@pytest.mark.parametrize("target", TARGETS)
def test_a_check_that_fails_before_all_waits_leaves_everything_as_it_was(target: str) -> None:
    n, m, Y = column(7), column(5), zeros(4, 4)

    @workload
    def outside() -> None:
        mix(x=Y[3], n=1, y=Y[0])
        mix(x=Y[3], n=1, y=Y[m[0, 0]])
        put(n=9, y=n)
        mix(x=Y[3], n=1, y=Y[n[0, 0]])
    with pytest.raises(RunBoundsError) as caught:
        outside().compile(target).run()
    assert "had run" not in str(caught.value) and not Y.data.any() and n.data[0, 0] == 7  # type: ignore[union-attr,index]


@pytest.mark.parametrize("target", TARGETS)
def test_a_negative_bound_that_was_computed_is_an_error(target: str) -> None:
    n, Y = column(0), zeros(4, 4)

    @workload
    def negative() -> None:
        put(n=-2, y=n)
        for i in P(n[0, 0]):
            mix[i](x=Y[3], n=1, y=Y[i])
    with pytest.raises(RunBoundsError, match="a loop's extent is negative"):
        negative().compile(target).run()


@pytest.mark.parametrize("target", TARGETS)
def test_an_index_that_was_computed_is_checked_before_it_is_used(target: str) -> None:
    """The element behind it would be read far outside."""
    n, table = column(0), zeros(3, 1)

    @workload
    def far() -> None:
        put(n=1 << 40, y=n)
        put(n=0, y=table[0:1])
        for _ in P(table[n[0, 0], 0]):
            put(n=0, y=table[1:2])
    with pytest.raises(RunBoundsError) as caught:
        far().compile(target).run()
    assert caught.value.found == f"n[0, 0] = {1 << 40}"


@pytest.mark.parametrize("target", TARGETS)
def test_a_task_that_fails_before_a_wait_is_the_error(target: str) -> None:
    n, table, Y = column(0), zeros(4, 4), zeros(4, 4)

    @kernel
    def load_row(row: Scalar[I64], x: In[Tensor], y: Out[Tile[1, 1, I64]]) -> None:
        pto.store(y, pto.rowsum(pto.load(x, (row, 0), shape=(1, 4))))

    @workload
    def failing() -> None:
        put(n=50, y=n)
        load_row[7](row=n[0, 0], x=table, y=n)
        for i in P(n[0, 0]):
            mix[i](x=Y[3], n=1, y=Y[i])
    program = failing().compile(target)
    with pytest.raises(TaskFailedError, match=r"load_row\[7\] failed"):
        program.run()
    assert not Y.data.any()  # type: ignore[union-attr]
    with pytest.raises(TaskFailedError):
        program.run()


def test_a_long_stream_is_executed_in_pieces_and_read_between_them() -> None:
    n, Y = column(0), zeros(1, 4)

    @workload
    def long() -> None:
        for i in P.seq(40):
            for j in P.seq(10):
                mix[i, j](x=Y[0], n=j, y=Y[0])
            plus(n=1, y=n)
            with P.when(n[0, 0] % 2 == 0):
                mix[i](x=Y[0], n=100, y=Y[0])
    program = long().compile()
    engine: Any = program.compiled.runner
    small = type(engine)(engine.artifact, engine.plan, 2, max_tasks=32)
    program.run()
    wanted, cycles = Y.data.copy(), program.stats.total_cycles  # type: ignore[union-attr]
    n.data[...] = 0  # type: ignore[index]
    Y.data[...] = 0  # type: ignore[index]
    small.run(program.bind())
    np.testing.assert_array_equal(Y.data, wanted)  # type: ignore[arg-type]
    assert small.simulate(keep_trace=False).total_cycles == cycles


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(1, 6))
def test_the_sanitizer_finds_nothing_where_reads_are_in_order(seed: int) -> None:
    """It takes the structure for all the order that there is, and runs ready tasks in any."""
    n, table, X, Y = zeros(4, 1), zeros(4, 1), numbers(4, 4), zeros(4, 4)

    @workload
    def ordered() -> None:
        for b in P(4):
            put[b](n=3 - b, y=n[b:b + 1])
        for b in P(4):
            put[b](n=n[b, 0] + 1, y=table[b:b + 1])
            for i in P.seq(table[b, 0]):
                mix[b, i](x=X[b], n=i, y=Y[n[b, 0]])
    ordered().compile(sanitize=True).replay(seed)
    wanted = np.zeros((4, 4), np.int64)
    for b in range(4):
        for i in range(4 - b):
            mixed(wanted[3 - b], X.data[b], i)  # type: ignore[index]
    np.testing.assert_array_equal(Y.data, wanted)  # type: ignore[arg-type]


LONG = '''
import os, signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)   # a shell starts its background jobs with Ctrl-C ignored
import numpy as np
from pto_wsp import DType, In, InOut, P, Tensor, Tile, kernel, pto, workload

@kernel
def slow(x: In[Tile[64, 64, DType.F32]], y: InOut[Tile[64, 64, DType.F32]], n: InOut[Tile[1, 1, DType.I64]]):
    pto.store(y, pto.tanh(y + x) @ x)
    pto.store(n, n + 1)

X, Y = Tensor(np.ones((64, 64), np.float32)), Tensor(np.zeros((64, 64), np.float32))
n = Tensor(np.zeros((1, 1), np.int64))

@workload
def endless(length):
    for i in P.seq(length):
        with P.when(n[0, 0] >= 0):
            slow[i](x=X, y=Y, n=n)

long, short = endless(1_000_000).compile(threads=2), endless(3).compile(threads=2)
short.run()

def press():
    while n.data[0, 0] < 20:
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT)

try:
    threading.Thread(target=press, daemon=True).start()
    long.run()
    print("finished", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
short.run()
print("usable", flush=True)
'''


@pytest.mark.slow
def test_ctrl_c_ends_a_run_that_waits_again_and_again(tmp_path: Path) -> None:
    script = tmp_path / "long.py"
    script.write_text(LONG)
    done = subprocess.run([sys.executable, str(script)], env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True, capture_output=True,
                          timeout=300)
    assert done.stdout.split() == ["interrupted", "usable"], done.stderr
