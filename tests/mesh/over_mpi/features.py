"""Run programs of every kind over MPI, one after the other; each rank holds its part against NumPy, and says what it has done.

    mpirun -n 2 python -m mpi4py tests/mesh/over_mpi/features.py
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable

import numpy as np
from mpi4py import MPI

from pto_wsp import (
    Deps,
    DType,
    In,
    Mesh,
    Out,
    P,
    ReadyPolicy,
    Tensor,
    TensorLayout,
    Tile,
    all_to_all,
    allreduce,
    copy,
    kernel,
    pto,
    relayout,
    timeline,
    workload,
)
from pto_wsp.errors import RunBoundsError

F32 = DType.F32
comm = MPI.COMM_WORLD
p, rank = comm.size, comm.rank
mesh = Mesh(x=p)
ROWS, COLS, WHOLE = TensorLayout.sharded(0, 2, "x"), TensorLayout.sharded(1, 2, "x"), TensorLayout.replicated(2)
rng = np.random.default_rng(3)


@kernel
def product(x: In[Tile[16, 8, F32]], w: In[Tile[8, 32, F32]], y: Out[Tile[16, 32, F32]]):
    pto.store(y, x @ w)


@kernel(c_src="""
    extern int usleep(unsigned int us);
    usleep(5000000);
    for (int64_t r = 0; r < y_rows; ++r)
        y[r * y_row_step] = x[r * x_row_step] + 1;
""")
def slow(x: In[Tile[64, 64, F32]], y: Out[Tile[64, 64, F32]]):
    pto.store(y, x + 1)


@kernel
def shown(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]):
    pto.print("x", x)
    pto.store(y, x + 1)


x, w = rng.integers(-4, 5, (16, 8 * p)).astype(np.float32), rng.integers(-4, 5, (8 * p, 32)).astype(np.float32)


def layers(n: int, algorithm: str, out: np.ndarray):
    """Return n layers, each a product over the cut inner dimension and an allreduce, in one result each."""
    X, W = Tensor(x, name="X", layout=COLS), Tensor(w, name="W", layout=ROWS)

    @workload
    def stack() -> None:
        for k in range(n):
            Y = Tensor.empty((16, 32), F32, layout=TensorLayout.partial_of(2, "x"))
            for r in P(mesh):
                product[r](X.on(r), W.on(r), Y.on(r))
            allreduce(Y, out=Tensor(out[k], name=f"Z{k}", layout=WHOLE), algorithm=algorithm)

    return stack()


def layers_by_every_algorithm() -> None:
    for algorithm in ("ring", "tree", "direct"):
        out = np.zeros((3, 16, 32), np.float32)
        program = layers(3, algorithm, out).compile(mesh=mesh, comm=comm, threads=2)
        for _ in range(3):
            out[:] = -1
            program.run()
            assert all(np.array_equal(one, x @ w) for one in out)
        alone = layers(3, algorithm, out).compile(mesh=mesh).run()
        assert program.stats.total_cycles == alone.stats.total_cycles
        assert np.array_equal(program.bytes_sent, alone.bytes_sent)


def priorities() -> None:
    given, around = rng.integers(-9, 9, (p, 16, 8)).astype(np.float32), np.zeros((p, 16, 32), np.float32)
    own = TensorLayout.sharded(0, 3, "x")
    A, B = Tensor(given, layout=own), Tensor(around, layout=own)
    W = Tensor(w[:8].copy(), layout=WHOLE)

    @workload
    def passed_on() -> None:
        Y = Tensor.empty((p, 16, 32), F32, layout=own)
        for r in P(mesh):
            product[r](A.on(r)[0], W.on(r), Y.on(r)[0])
        for r in P(mesh):
            copy(Y.on(r)[0], B.on((r + 1) % p)[0])

    ordered = passed_on().task_graph(deps=Deps.infer_bytes_overlap(), ready=ReadyPolicy.priority(lambda t: t.r))
    ordered.compile(mesh=mesh, comm=comm, threads=2).run()
    assert np.array_equal(around[rank], given[(rank - 1) % p] @ w[:8])


def strided_parts() -> None:
    given = rng.integers(0, 99, (12, 10 * p)).astype(np.float32)
    turned, around = np.zeros_like(given), np.zeros_like(given)
    A, B, C = (Tensor(a, layout=layout) for a, layout in ((given, COLS), (turned, ROWS), (around, COLS)))

    @workload
    def moved() -> None:
        for r in P(mesh):
            copy(A.on(r), C.on((r + 1) % p))
        relayout(A, ROWS, out=B)

    moved().compile(mesh=mesh, comm=comm).run()
    rows = -(-12 // p)
    assert np.array_equal(turned[rank * rows:(rank + 1) * rows], given[rank * rows:(rank + 1) * rows])
    before = (rank - 1) % p
    assert np.array_equal(around[:, rank * 10:(rank + 1) * 10], given[:, before * 10:(before + 1) * 10])


def ragged_rows(target: str) -> None:
    rows, capacity = 8, 8 * p
    given = rng.integers(0, 99, (p * rows, 4)).astype(np.float32)
    counts = np.array([[(r + q) % 3 for q in range(p)] for r in range(p)], np.int32)
    seen = np.full((p * capacity, 4), -1, np.float32)
    X, C, S = (Tensor(array, name=name, layout=ROWS) for array, name in ((given, "X"), (counts, "C"), (seen, "S")))

    @workload
    def exchanged() -> None:
        arrived = all_to_all(X, C, capacity=capacity, mesh=mesh)
        for r in P(mesh):
            copy(arrived.on(r), S.on(r))

    mine = counts.copy()
    counts[:] = -7                                       # a rank knows its own row alone
    counts[rank] = mine[rank]
    program = exchanged().compile(target, mesh=mesh, comm=comm)
    for turn in range(2):
        program.run()
        expected = np.concatenate([given[of * rows + mine[of, :rank].sum():][:mine[of, rank]] for of in range(p)])
        assert np.array_equal(seen[rank * capacity:][:len(expected)], expected), (turn, seen, expected)
        mine = np.roll(mine, 1, axis=0)
        counts[rank] = mine[rank]
    counts[rank] = 0
    counts[rank, 0] = capacity
    try:
        program.run()
    except RunBoundsError:
        return
    raise AssertionError("more rows than the capacity arrived")


def counts_of_tasks(target: str) -> None:
    """Tasks count what each rank sends; all ranks get the counts, of which the tasks behind depend."""
    rows, capacity = 8, 8 * p
    given = rng.integers(0, 99, (p * rows, 4)).astype(np.float32)
    scores, seen = np.full((p, p), -9, np.int32), np.full((p * capacity, 4), -1, np.float32)
    X, S, Z = (Tensor(array, name=name, layout=ROWS) for array, name in ((given, "X"), (scores, "S"), (seen, "O")))

    @kernel
    def count(s: In[Tile[1, p, DType.I32]], c: Out[Tile[1, p, DType.I32]]):
        pto.store(c, s + 1)

    @kernel
    def twice(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]):
        pto.store(y, x * 2)

    @workload
    def exchanged() -> None:
        C = Tensor.empty((p, p), DType.I32, name="C", layout=ROWS)
        for r in P(mesh):
            count[r](S.on(r), C.on(r))
        arrived = all_to_all(X, C, capacity=capacity, mesh=mesh)
        counts = relayout(C, WHOLE, mesh=mesh)
        for r in P(mesh):
            for k in P(counts.on(r)[0, r] + counts.on(r)[1, r]):
                twice[r, k](arrived.on(r)[k:k + 1], Z.on(r)[k:k + 1])

    program = exchanged().compile(target, mesh=mesh, comm=comm)
    for turn in range(2):
        scores[rank] = [(rank + q + turn) % 2 for q in range(p)]        # a rank knows its own row alone
        seen[:] = -1
        program.run()
        counts = np.array([[(of + q + turn) % 2 + 1 for q in range(p)] for of in range(p)])
        rows_of = [given[of * rows + counts[of, :rank].sum():][:counts[of, rank]] for of in range(2)]
        mine = seen[rank * capacity:(rank + 1) * capacity]
        expected = 2 * np.concatenate(rows_of)
        assert np.array_equal(mine[:len(expected)], expected) and np.all(mine[len(expected):] == -1), (turn, mine, expected)


def prints_and_clocks() -> None:
    given = np.arange(4 * p, dtype=np.float32).reshape(p, 4)
    A, B = Tensor(given, layout=ROWS), Tensor(np.zeros_like(given), layout=ROWS)

    @workload
    def said() -> None:
        for r in P(mesh):
            shown[r](A.on(r), B.on(r))

    program = said().compile(mesh=mesh, comm=comm, wall_trace=True, check_finite=True).run()
    assert np.array_equal(np.asarray(B)[rank], given[rank] + 1)
    wall = program.wall_trace           # of p tasks, of which this rank ran its own
    assert len(wall) == p and wall.n_ran == sum(wall.tasks_run) == 1 and wall.spans.task.tolist() == [rank]
    assert 0 == wall.start[rank] < wall.end[rank] == wall.total_ns == sum(wall.busy_ns)
    assert str(wall).startswith("1 task on 1 of ") and "1 tasks on 1 of" in wall.card.subtitle and "100% busy" in str(timeline(wall))


def verified() -> None:
    out = np.zeros((2, 16, 32), np.float32)
    found = layers(2, "ring", out).compile(mesh=mesh, comm=comm).verify()
    assert found.n_tasks > 0 and not out.any()


def slow_kernels_are_no_hang() -> None:
    """One rank computes for 5 s, longer than peer_timeout, and the others wait for its copy."""
    A, B, C = (Tensor(np.zeros((64 * p, 64), np.float32), layout=ROWS) for _ in range(3))

    @workload
    def waited() -> None:
        for r in P(mesh):
            copy(A.on(r), C.on(r))
        Y = Tensor.empty((64 * p, 64), F32, layout=ROWS)
        slow[0](A.on(0), Y.on(0))
        for r in P(mesh):
            copy(Y.on(0), B.on(r))

    waited().compile(mesh=mesh, comm=comm, peer_timeout=3).run()
    assert np.asarray(B)[64 * rank, 0] == 1


def memory_is_a_ranks_own() -> None:
    """Copies of all ranks have addresses in every process, and this rank's alone have memory."""
    n = 1 << 24
    A, B = Tensor(np.zeros((p, n), np.float32), layout=ROWS), Tensor(np.zeros((p, 64), np.float32), layout=ROWS)

    @workload
    def copies() -> None:
        Y = Tensor.empty((1, n), F32, layout=TensorLayout.partial_of(2, "x"))
        for r in P(mesh):
            copy(A.on(r), Y.on(r))
            copy(Y.on(r)[:, :64], B.on((r + 1) % p))

    np.asarray(A)[rank] = 1.0
    program = copies().compile(mesh=mesh, comm=comm)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    program.run()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert np.all(np.asarray(B)[rank] == 1)
    assert grown < 1.5 * n * 4 / 2**20, f"{grown} MiB"


TESTS: dict[str, Callable[[], None]] = {
    "layers": layers_by_every_algorithm, "priorities": priorities, "strided parts": strided_parts,
    "ragged rows": lambda: ragged_rows("cpu_sim"), "ragged rows in NumPy": lambda: ragged_rows("interp"),
    "counts of tasks": lambda: counts_of_tasks("cpu_sim"), "counts of tasks in NumPy": lambda: counts_of_tasks("interp"),
    "prints and clocks": prints_and_clocks, "verified": verified, "slow kernels": slow_kernels_are_no_hang, "memory": memory_is_a_ranks_own}

if __name__ == "__main__":
    for name in sys.argv[1:] or TESTS:
        comm.Barrier()
        TESTS[name]()
        print(f"rank {rank}: {name}", flush=True)
