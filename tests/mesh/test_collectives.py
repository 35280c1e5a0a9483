"""Broadcast and halo, in full; what a collective leaves on every rank; the order of its sums."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import (
    Deps,
    DispatchPolicy,
    DType,
    Mesh,
    P,
    Program,
    Replicate,
    Shard,
    Tensor,
    TensorLayout,
    Workload,
    all_to_all,
    allreduce,
    broadcast,
    copy,
    halo,
    relayout,
    workload,
)
from pto_wsp.errors import CollectiveError, RunBoundsError

F32 = DType.F32


def counted(program: Program, w: Workload) -> bool:
    """Tell whether the bytes that ranks sent are those that the collectives say."""
    sent = program.bytes_sent.copy()
    np.fill_diagonal(sent, 0)
    return sent.sum(axis=1).tolist() == [sum(one.bytes_sent(rank) for one in w.collectives) for rank in range(len(sent))]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("algorithm", ["ring", "tree", "direct"])
@pytest.mark.parametrize("p, root", [(1, 0), (2, 1), (3, 0), (4, 3), (5, 2), (7, 6)])
def test_a_broadcast_gives_every_rank_the_roots(algorithm: str, p: int, root: int) -> None:
    mesh = Mesh(x=p)
    terms = np.arange(p * 6, dtype=np.float32).reshape(p, 2, 3)
    seen = np.zeros((p, 2, 3), np.float32)
    own = TensorLayout((Shard("x"), Replicate(), Replicate()))
    given, shown = Tensor(terms, layout=own), Tensor(seen, layout=own)

    @workload
    def spread() -> None:
        held = Tensor.empty((2, 3), F32, layout=TensorLayout.replicated(2))
        for r in P(mesh):
            copy(given.on(r)[0], held.on(r))
        broadcast(held, root, algorithm=algorithm)   # type: ignore[arg-type]
        for r in P(mesh):
            copy(held.on(r), shown.on(r)[0])

    w = spread()
    program = w.compile(target="interp").run()
    assert all(np.array_equal(part, terms[root]) for part in seen) and counted(program, w)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("n, p, k, dim", [(8, 4, 1, 0), (8, 4, 2, 0), (10, 4, 1, 0), (10, 4, 3, 0), (9, 2, 4, 1), (5, 4, 2, 0),
                                          (3, 4, 1, 1), (6, 1, 2, 0)])
def test_a_halo_is_the_neighbours_nearest_rows_and_zeros_beyond_the_ends(n: int, p: int, k: int, dim: int) -> None:
    mesh, rows = Mesh(x=p), -(-n // p)
    high = rows + 2 * k
    shape = (n, 3) if dim == 0 else (3, n)
    whole = np.arange(1, 3 * n + 1, dtype=np.float32).reshape(shape)
    A = Tensor(whole, layout=TensorLayout.sharded(dim, 2, "x"))
    seen = np.full((p * high, 3) if dim == 0 else (3, p * high), -1, np.float32)
    shown = Tensor(seen, layout=TensorLayout.sharded(dim, 2, "x"))

    @workload
    def with_halo() -> None:
        held = halo(A, k, dim, mesh=mesh)
        for r in P(mesh):
            copy(held.on(r), shown.on(r))

    w = with_halo()
    program = w.compile(target="interp").run()
    for rank in range(p):
        first, size = rank * rows, max(0, min(rows, n - rank * rows))
        padded = np.pad(whole, [(k, k) if number == dim else (0, 0) for number in range(2)])      # zeros beyond the ends
        for row in range(size + 2 * k if size else 0):
            assert np.array_equal(seen.take(rank * high + row, axis=dim), padded.take(first + row, axis=dim)), (rank, row)
    assert counted(program, w)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("algorithm, order", [("ring", [1, 2, 3, 0]), ("direct", [0, 1, 2, 3])])
def test_an_element_is_summed_in_the_order_of_its_algorithm(algorithm: str, order: list[int]) -> None:
    mesh = Mesh(x=4)
    terms = np.random.default_rng(0).standard_normal((4, 4, 8)).astype(np.float32) * np.float32(10.0) ** np.arange(4)[:, None, None]
    terms = terms.astype(np.float32)
    out = np.zeros((4, 8), np.float32)
    given = Tensor(terms, layout=TensorLayout((Shard("x"), Replicate(), Replicate())))

    @workload
    def summed() -> None:
        held = Tensor.empty((4, 8), F32, layout=TensorLayout.partial_of(2, "x"))
        for r in P(mesh):
            copy(given.on(r)[0], held.on(r))
        allreduce(held, out=Tensor(out, layout=TensorLayout.replicated(2)), algorithm=algorithm)   # type: ignore[arg-type]

    summed().compile().run()
    for owner in range(4):                 # of the longest dimension, in chunks of two columns
        turn = [(owner + step) % 4 for step in order] if algorithm == "ring" else order
        total = terms[turn[0]][:, 2 * owner:2 * owner + 2].copy()
        for rank in turn[1:]:
            total = total + terms[rank][:, 2 * owner:2 * owner + 2]
        assert np.array_equal(out[:, 2 * owner:2 * owner + 2], total)


@pytest.mark.slow
def test_results_are_the_same_under_any_schedule() -> None:
    mesh = Mesh(x=3, y=2)
    terms = np.random.default_rng(1).standard_normal((3, 2, 7, 5)).astype(np.float32)
    given = Tensor(terms, layout=TensorLayout((Shard("x"), Shard("y"), Replicate(), Replicate())))
    found = []
    for schedule in (lambda w: w, lambda w: w.task_graph(deps=Deps.infer_bytes_overlap()),
                     lambda w: w.dispatch(DispatchPolicy.round_robin(3)), lambda w: w.streams(2)):
        out = np.zeros((7, 5), np.float32)

        @workload
        def summed(out: np.ndarray = out) -> None:
            term = Tensor.empty((7, 5), F32, layout=TensorLayout.partial_of(2, "x"))
            for r in P(mesh):
                copy(given.on(r)[0, 0], term.on(r))
            allreduce(term, out=Tensor(out, layout=TensorLayout.replicated(2)))

        schedule(summed()).compile().run()
        found.append(out)
    assert all(np.array_equal(found[0], other) for other in found[1:])


@pytest.mark.slow
@pytest.mark.parametrize("target", ["interp", "cpu_sim"])
def test_ragged_blocks_stand_by_source(target: str) -> None:
    p, rows, capacity = 3, 8, 14
    mesh, rng = Mesh(x=p), np.random.default_rng(0)
    x = rng.integers(0, 99, (p * rows, 4)).astype(np.float32)
    counts = np.array([[2, 3, 3], [0, 8, 0], [1, 1, 5]], np.int32)
    seen = np.full((p * capacity, 4), -1, np.float32)
    X, C, S = (Tensor(array, name=name, layout=TensorLayout.sharded(0, 2, "x")) for array, name in ((x, "X"), (counts, "C"), (seen, "S")))

    @workload
    def exchanged() -> None:
        arrived = all_to_all(X, C, capacity=capacity, mesh=mesh)
        for r in P(mesh):
            copy(arrived.on(r), S.on(r))

    program = exchanged().compile(target=target).run()
    for to in range(p):
        expected = np.concatenate([x[of * rows + counts[of, :to].sum():][:counts[of, to]] for of in range(p)])
        assert np.array_equal(seen[to * capacity:][:len(expected)], expected)
    sent = program.bytes_sent.copy()
    np.fill_diagonal(sent, 0)
    moved = counts * 16 * (1 - np.eye(p, dtype=np.int64)) + 4 * p * (1 - np.eye(p, dtype=np.int64))    # rows, and a row of counts
    assert np.array_equal(sent, moved)
    for given, problem, found, most in (
            ([[0, 8, 0], [0, 8, 0], [0, 0, 0]], "more rows of `X` arrive on rank 1 than its capacity", 16, capacity),
            ([[0, 0, 0], [0, 0, 0], [3, 2, 4]], "rank 2 sends more rows of `X` than it has", 9, rows)):
        counts[:], seen[:] = given, -1
        with pytest.raises(RunBoundsError) as caught:
            program.run()
        assert caught.value.message == f"all_to_all: {problem}" and caught.value.span.file == __file__
        assert (caught.value.expected, caught.value.found) == (f"at most {most}", f"{found}")
        assert np.all(seen == -1)       # known before a row moves


def test_counts_that_all_ranks_have_are_not_gathered() -> None:
    x, seen = np.arange(24, dtype=np.float32).reshape(6, 4), np.full((10, 4), -1, np.float32)
    X, S = (Tensor(array, layout=TensorLayout.sharded(0, 2, "x")) for array in (x, seen))
    C = Tensor(np.array([[1, 2], [3, 0]], np.int32), layout=TensorLayout.replicated(2))

    @workload
    def exchanged() -> None:
        arrived = all_to_all(X, C, capacity=5, mesh=Mesh(x=2))
        for r in P(Mesh(x=2)):
            copy(arrived.on(r), S.on(r))

    program = exchanged().compile(target="interp").run()
    assert np.array_equal(seen[:4], x[[0, 3, 4, 5]]) and np.array_equal(seen[5:7], x[1:3])
    assert program.bytes_sent[0, 1] == 32 and program.bytes_sent[1, 0] == 48          # rows alone


def test_counts_that_do_not_fit() -> None:
    X = Tensor(np.zeros((6, 4), np.float32), layout=TensorLayout.sharded(0, 2, "x"))
    for shape, kind, layout, capacity in (((3, 3), np.int32, 0, None), ((3, 3), np.int32, 0, 0), ((2, 3), np.int32, 0, 4),
                                          ((3, 3), np.float32, 0, 4), ((3, 3), np.int32, 1, 4)):
        counts = Tensor(np.zeros(shape, kind), layout=TensorLayout.sharded(layout, 2, "x"))
        with pytest.raises(CollectiveError):
            workload(lambda counts=counts, capacity=capacity: all_to_all(X, counts, capacity=capacity, mesh=Mesh(x=3)))()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("algorithm", ["ring", "direct"])
@pytest.mark.parametrize("n", [1, 2, 4])
def test_even_shards_send_what_the_table_says(algorithm: str, n: int) -> None:
    mesh, size = Mesh(x=n), 8 * 8 * 4
    rows, cols, whole, terms = (TensorLayout.sharded(0, 2, "x"), TensorLayout.sharded(1, 2, "x"), TensorLayout.replicated(2),
                                TensorLayout.partial_of(2, "x"))
    table = {(whole, rows): 0, (rows, whole): size * (n - 1) // n, (rows, cols): size // n * (n - 1) // n,
             (terms, whole): 2 * size * (n - 1) // n, (terms, rows): size * (n - 1) // n}
    for (before, after), expected in table.items():

        @workload
        def moved(before: TensorLayout = before, after: TensorLayout = after) -> None:
            relayout(Tensor.empty((8, 8), F32, layout=before), after, algorithm=algorithm, mesh=mesh)   # type: ignore[arg-type]

        assert [moved().collectives[0].bytes_sent(rank) for rank in range(n)] == [expected] * n, (before, after)
