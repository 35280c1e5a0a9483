"""Tensors that a workload makes in a body: another one each time, so that iterations have nothing in common through them."""

from __future__ import annotations

import os
import subprocess
import sys
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
    TaskWindow,
    Tensor,
    Tile,
    Workload,
    kernel,
    pto,
    workload,
)
from pto_wsp.errors import BindingError
from tests.api.test_data_dependent import check, column, n_waits, numbers, plus, put, zeros

F32, I64 = DType.F32, DType.I64
ROOT = Path(__file__).resolve().parents[2]
TARGETS = ("interp", "cpu_sim")


@kernel
def copy(x: In[Tile[1, 4, I64]], y: Out[Tile[1, 4, I64]]) -> None:
    pto.store(y, x)


@kernel
def mix(x: In[Tile[1, 4, I64]], n: Scalar[I64], y: InOut[Tile[1, 4, I64]]) -> None:
    pto.store(y, y * 3 + x + n)


def conflicts(program: Program) -> set[tuple[int, int]]:
    """Return the edges that regions gave."""
    return {(edge.source, edge.target) for edge in program.graph.edges if set(edge.reasons) & {"RAW", "WAR", "WAW"}}


def overlap(made: Workload) -> Workload:
    return made.task_graph(deps=Deps.infer_bytes_overlap())


# ---- order ----

def by_way_of(where: str, X: Tensor, Y: Tensor) -> Workload:
    """Copy four rows by way of a tensor made in the loop, in front of it, or indexed by it."""
    @workload
    def rows() -> None:
        outside = Tensor.empty((4, 4), I64)
        for b in (P.seq if where == "shared" else P)(4):
            tmp = Tensor.empty((1, 4), I64) if where == "inside" else outside[b] if where == "indexed" else outside[0]
            copy[b](x=X[b], y=tmp)
            copy[b](x=tmp, y=Y[b])
    return rows()


def test_iterations_have_no_edge_through_what_each_makes() -> None:
    X, Y = numbers(4, 4), zeros(4, 4)
    pairs = {(0, 1), (2, 3), (4, 5), (6, 7)}
    for target in TARGETS:
        program = overlap(by_way_of("inside", X, Y)).compile(target).run()
        assert conflicts(program) == pairs == {(edge.source, edge.target) for edge in program.graph.edges}
        assert conflicts(overlap(by_way_of("shared", X, Y)).compile(target).run()) > pairs


@pytest.mark.slow
def test_time_is_that_of_a_tensor_with_one_more_dimension() -> None:
    X, Y = numbers(4, 4), zeros(4, 4)
    cycles = {where: overlap(by_way_of(where, X, Y)).dispatch(DispatchPolicy.affinity(lambda t: t.b, 4)).compile().run().stats.total_cycles
              for where in ("inside", "indexed", "shared")}
    assert cycles["inside"] == cycles["indexed"] < cycles["shared"]


@pytest.mark.slow
def test_one_made_in_an_outer_body_is_one_for_the_inner_loop() -> None:
    X, Y = numbers(2, 4), zeros(2, 4)

    @workload
    def sums() -> None:
        for b in P(2):
            acc = Tensor.empty((1, 4), I64)
            copy[b](x=X[b], y=acc)
            for i in P.seq(3):
                tmp = Tensor.empty((1, 4), I64)
                copy[b, i](x=acc, y=tmp)
                mix[b, i](x=tmp, n=i, y=acc)
            copy[b](x=acc, y=Y[b])
    x = X.data.copy()  # type: ignore[union-attr]
    for i in range(3):
        x = x * 3 + x + i
    program = check(sums(), {Y: lambda: x})
    within = {(edge.source, edge.target) for edge in program.graph.edges}
    assert all(source // 8 == target // 8 for source, target in within)


# ---- whole programs ----

def attention(lens: list[int]) -> tuple[Workload, Tensor, Any]:
    """Scores, weights and sums of each sequence, block by block, in tensors that exist for one block."""
    rng = np.random.default_rng(7)
    n_batch, block, dim = len(lens), 4, 8
    q, k, v = (rng.standard_normal((n_batch, n * block, dim)).astype(np.float32) for n in (1, 3, 3))
    Q, K, V = (Tensor(array) for array in (q, k, v))
    Y, Lens = Tensor(np.zeros((n_batch, block, dim), np.float32)), Tensor(np.array(lens), name="lens")
    batch = Dense[n_batch]()

    @kernel
    def scores(a: In[Tile[4, 8, F32]], b: In[Tile[4, 8, F32]], s: Out[Tile[4, 4, F32]]) -> None:
        pto.store(s, a @ pto.transpose(b))

    @kernel
    def weights(s: In[Tile[4, 4, F32]], w: Out[Tile[4, 4, F32]], total: InOut[Tile[4, 1, F32]]) -> None:
        e = pto.exp(s)
        pto.store(w, e)
        pto.store(total, total + pto.rowsum(e))

    @kernel
    def add(w: In[Tile[4, 4, F32]], v: In[Tile[4, 8, F32]], acc: InOut[Tile[4, 8, F32]]) -> None:
        pto.store(acc, acc + w @ v)

    @kernel
    def clear(acc: Out[Tile[4, 8, F32]], total: Out[Tile[4, 1, F32]]) -> None:
        pto.store(acc, pto.zeros((4, 8), F32))
        pto.store(total, pto.zeros((4, 1), F32))

    @kernel
    def divide(acc: In[Tile[4, 8, F32]], total: In[Tile[4, 1, F32]], y: Out[Tile[4, 8, F32]]) -> None:
        pto.store(y, acc / total)

    @workload
    def attend() -> None:
        for b in P(batch):
            acc, total = Tensor.empty((4, 8), F32), Tensor.empty((4, 1), F32)
            clear[b](acc=acc, total=total)
            for t in P.seq(Ragged(batch, Lens)[b]):
                s = Tensor.empty((4, 4), F32)
                w = Tensor.empty((4, 4), F32)
                scores[b, t](a=Q[b], b=K[b, t * 4:t * 4 + 4], s=s)
                weights[b, t](s=s, w=w, total=total)
                add[b, t](w=w, v=V[b, t * 4:t * 4 + 4], acc=acc)
            divide[b](acc=acc, total=total, y=Y[b])

    def expected(lens: list[int]) -> Any:
        found = []
        for b, n in enumerate(lens):
            e = np.exp(q[b].astype(np.float64) @ k[b, :n * 4].T)
            found.append(e @ v[b, :n * 4] / e.sum(1, keepdims=True))
        return np.stack(found)
    return attend(), Y, expected


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_attention_over_ragged_blocks_needs_no_room_of_its_own(target: str) -> None:
    made, Y, expected = attention([3, 1, 2])
    program = made.dispatch(DispatchPolicy.affinity(lambda t: t.b, 3)).compile(target).run()
    np.testing.assert_allclose(Y.data, expected([3, 1, 2]), rtol=2e-5, atol=1e-5)  # type: ignore[arg-type]
    program.run(lens=np.array([1, 3, 3]))     # other tasks with the same artifact
    np.testing.assert_allclose(Y.data, expected([1, 3, 3]), rtol=2e-5, atol=1e-5)  # type: ignore[arg-type]
    assert program.stats.task_count == 3 * 2 + 3 * 7


@pytest.mark.slow
def test_a_record_that_is_kept_is_executed_again() -> None:
    made, Y, expected = attention([3, 1, 2])
    program = made.compile(threads=3)
    for _ in range(20):
        Y.data[...] = 0  # type: ignore[index]
        program.run()
        np.testing.assert_allclose(Y.data, expected([3, 1, 2]), rtol=2e-5, atol=1e-5)  # type: ignore[arg-type]


# ---- with what tasks compute ----

def test_what_is_in_one_may_be_read_by_the_workload() -> None:
    Y = zeros(4, 4)

    @workload
    def own_counts() -> None:
        for b in P(4):
            n = Tensor.empty((2, 1), I64)
            put[b](n=b, y=n[1:2])
            for i in P.seq(n[1, 0]):
                mix[b, i](x=Y[b], n=i, y=Y[b])
    wanted = np.zeros((4, 4), np.int64)
    for b in range(4):
        for i in range(b):
            wanted[b] = wanted[b] * 4 + i
    program = check(own_counts(), {Y: lambda: wanted})
    assert n_waits(program) == 4


@pytest.mark.slow
def test_a_branch_makes_its_own_and_only_when_it_is_taken() -> None:
    n, X, Y = column(0), numbers(4, 4), zeros(4, 4)

    @workload
    def chosen() -> None:
        for b in P.seq(4):
            plus(n=1, y=n)
            with P.when(n[0, 0] % 2 == 0):
                tmp = Tensor.empty((1, 4), I64)
                copy[b](x=X[b], y=tmp)
                mix[b](x=tmp, n=1, y=Y[b])
            with P.otherwise():
                tmp = Tensor.empty((1, 4), I64)
                copy[b](x=X[0], y=tmp)
                mix[b](x=tmp, n=2, y=Y[b])
    x = X.data
    assert x is not None
    check(chosen(), {Y: lambda: np.stack([x[0] + 2, x[1] + 1, x[0] + 2, x[3] + 1])})


# ---- memory ----

@pytest.mark.slow
def test_memory_stays_bounded_over_many_iterations(tmp_path: Path) -> None:
    """2 GB of tensors, one after another, in a process that may not grow by more than 800 MB."""
    script = tmp_path / "many.py"
    script.write_text("""
import resource
import numpy as np
from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload

@kernel
def fill(y: Out[Tile[1, 2048, DType.U8]]):
    pto.store(y, pto.full((1, 2048), 3, DType.U8))

@kernel
def last(x: In[Tile[1, 1, DType.U8]], y: Out[Tile[1, 1, DType.U8]]):
    pto.store(y, x)

Y = Tensor(np.zeros((1, 1), np.uint8))

@workload
def many(n):
    for i in P.seq(n):
        big = Tensor.empty((1, 2048), DType.U8)
        fill(y=big)
        last(x=big[:, 2047:], y=Y)

many(10).compile().run()
program = many(1_000_000).compile(threads=2)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
program.run()
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(Y.data[0, 0], program.stats.task_count, grown // 1024)
""")
    found = subprocess.run([sys.executable, str(script)], env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True, capture_output=True,
                           check=True, timeout=300)
    value, n_tasks, grown_mb = map(int, found.stdout.split())
    assert (value, n_tasks) == (3, 2_000_000)
    assert grown_mb < 800 * (1 if sys.platform == "linux" else 1024)      # elsewhere ru_maxrss counts bytes


@pytest.mark.parametrize("target", TARGETS)
def test_windows_do_not_change_what_it_holds(target: str) -> None:
    X, Y = numbers(4, 4), zeros(4, 4)
    for window in (1, 2, 3):
        Y.data[...] = 0  # type: ignore[index]
        overlap(by_way_of("inside", X, Y)).task_graph(window=TaskWindow(window)).compile(target).run()
        np.testing.assert_array_equal(Y.data, X.data)  # type: ignore[arg-type]


def test_the_interpreter_shows_what_was_not_written() -> None:
    Y = Tensor(np.zeros((1, 4), np.float32))

    @kernel
    def half(y: Out[Tile[1, 2, F32]]) -> None:
        pto.store(y, pto.ones((1, 2), F32))

    @kernel
    def whole(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]) -> None:
        pto.store(y, x)

    @workload
    def partly() -> None:
        for _ in P(1):
            tmp = Tensor.empty((1, 4), F32)
            half(y=tmp[:, :2])
            whole(x=tmp, y=Y)
    partly().compile("interp").run()
    assert Y.data is not None and np.isnan(Y.data[0, 2:]).all() and (Y.data[0, :2] == 1).all()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("shape", [(), (3,), (0, 4), (2, 3, 1, 4), (1,) * 8])
def test_it_may_have_any_shape(shape: tuple[int, ...]) -> None:
    Y = zeros(1, 4)

    count = int(np.prod(shape))

    @workload
    def shaped() -> None:
        for b in P(2):
            tmp = Tensor.empty(shape, I64)
            last = tmp.reshape(count) if shape else tmp
            if count and shape:
                put[b](n=b + 1, y=last[count - 1:])
                for i in P.seq(tmp[tuple(extent - 1 for extent in shape)]):
                    plus[b, i](n=1, y=Y[:, b:b + 1])
    wanted = np.array([[1, 2, 0, 0]]) * bool(count and shape)
    check(shaped(), {Y: lambda: wanted})


# ---- mistakes ----

@pytest.mark.parametrize("target", TARGETS)
def test_it_cannot_be_bound(target: str) -> None:
    X, Y = numbers(4, 4), zeros(4, 4)
    program = by_way_of("inside", X, Y).compile(target)
    with pytest.raises(BindingError, match="`tmp` is not bound: the workload makes it"):
        program.execute(tmp=np.zeros((1, 4), np.int64))
    with pytest.raises(BindingError) as caught:
        program.execute(other=np.zeros((1, 4), np.int64))
    assert caught.value.expected is not None and "X, " in caught.value.expected and "tmp" not in caught.value.expected


def test_a_view_outside_it_is_an_error_when_compiling() -> None:
    @workload
    def outside() -> None:
        for b in P(4):
            tmp = Tensor.empty((3, 4), I64)
            copy[b](x=tmp[b], y=tmp[b])
    with pytest.raises(Exception, match="T301"):
        outside().compile("interp")
