"""Pieces of a region by hand: rows scattered through tables, blocks at offsets of a task, and what leaves them open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import (
    Deps,
    DispatchPolicy,
    DType,
    In,
    Injective,
    InOut,
    Out,
    P,
    Program,
    PtoError,
    Scalar,
    Symbol,
    Tensor,
    Tile,
    Workload,
    combine,
    kernel,
    pto,
    workload,
)

F32, I32, I64 = DType.F32, DType.I32, DType.I64
N, K, ROWS, COLS = 6, 4, 64, 8


@kernel
def rows(x: In[Tile[K, COLS, F32]], at: In[Tile[1, K, I32]], out: Out[Tensor]) -> None:
    pto.scatter(out, at.T, x)


@kernel
def update(x: In[Tile[K, COLS, F32]], at: In[Tile[1, K, I32]], out: InOut[Tensor]) -> None:
    pto.scatter(out, at.T, pto.gather(out, at.T, cols=COLS) * 2 + x)


@kernel
def added(x: In[Tile[K, COLS, F32]], at: In[Tile[1, K, I32]], out: InOut[Tensor]) -> None:
    pto.scatter_add(out, at.T, x)


@kernel
def first(x: In[Tile[K, COLS, F32]], at: In[Tile[1, K, I32]], n: Scalar[I32], out: Out[Tensor]) -> None:
    pto.scatter(out, at.T, x, valid=n)


@kernel
def page(x: In[Tile[K, COLS, F32]], at: In[Tile[1, 1, I32]], out: Out[Tensor]) -> None:
    pto.scatter(out, pto.cast(at, I64) * K + pto.iota((K, 1), axis=0, dtype=I64), x)


@kernel
def narrow_page(x: In[Tile[K, COLS, F32]], at: In[Tile[1, 1, I32]], out: Out[Tensor]) -> None:
    pto.scatter(out, at * K + pto.iota((K, 1), axis=0), x)


@kernel
def block(x: In[Tile[K, COLS, F32]], at: Scalar[I32], out: Out[Tensor]) -> None:
    pto.store(out, x, (at * K, 0))


@kernel
def item_block(x: In[Tile[K, COLS, F32]], at: In[Tile[1, K, I32]], out: Out[Tensor]) -> None:
    for i in pto.range(2):
        pto.store(out, x[0:2], (pto.item(at, 0, 2 * i) * 2, 0))


@kernel
def close_block(x: In[Tile[K, COLS, F32]], at: Scalar[I32], out: Out[Tensor]) -> None:
    pto.store(out, x, (at * (K - 1), 0))


@kernel
def turned(x: In[Tile[K, COLS, F32]], at: In[Tensor], begin: Scalar[I64], out: Out[Tensor]) -> None:
    pto.scatter(out, pto.load(at, (0, begin), shape=(1, K), transpose=True), x)


@kernel
def columns(x: In[Tile[K, COLS, F32]], at: In[Tile[1, K, I32]], c: Scalar[I64], out: Out[Tensor]) -> None:
    pto.scatter(out, at.T, x[:, 0:1], cols=(c, 1))


class Data:
    """Tensors of one program: rows to write, two injective tables without common entries, a plain one, and the rows that are written."""

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        entries = rng.permutation(ROWS)
        self.x = Tensor(rng.integers(-8, 8, (N, K, COLS)).astype(np.float32), name="X")
        self.slots = Injective(Tensor(entries[:N * K].astype(np.int32), name="slots"))
        self.others = Injective(Tensor(entries[N * K:2 * N * K].astype(np.int32), name="others"))
        self.pages = Injective(Tensor(rng.permutation(ROWS // K)[:N].astype(np.int32), name="pages"))
        self.halves = Injective(Tensor(rng.permutation(ROWS // 2)[:N * K].astype(np.int32), name="halves"))
        self.plain = Tensor(entries[:N * K].astype(np.int32), name="plain")
        self.out = Tensor(rng.integers(-8, 8, (ROWS, COLS)).astype(np.float32), name="OUT")

    def part(self, j: Any, table: Tensor | None = None) -> Any:
        """The entries of one task."""
        return (self.slots if table is None else table)[K * j:K * j + K]


def over(body: Callable[[Data, Any], object], d: Data, n: object = N) -> Workload:
    """Return a parallel loop over `body`."""
    @workload
    def program() -> None:
        for j in P(n):
            body(d, j)
    return program()


def line_of(program: Program) -> str:
    """Return the line on races on the written rows."""
    return next(str(line) for line in program.checks if "`OUT`" in str(line) and "races" in str(line))


PROVED: list[tuple[Callable[[Data, Any], object], str]] = [
    (lambda d, j: rows[j](x=d.x[j], at=d.part(j), out=d.out), "given injective slots"),
    (lambda d, j: update[j](x=d.x[j], at=d.part(j), out=d.out), "given injective slots"),
    (lambda d, j: added[j](x=d.x[j], at=d.part(j), out=d.out), "given injective slots"),
    (lambda d, j: rows[j](x=d.x[j], at=d.slots.reshape(2, N // 2, K)[j // 3, j % 3], out=d.out), "given injective slots"),
    (lambda d, j: rows[j](x=d.x[j], at=d.slots.reshape(K, N)[:, j], out=d.out), "given injective slots"),
    (lambda d, j: turned[j](x=d.x[j], at=d.slots, begin=K * j, out=d.out), "given injective slots"),
    (lambda d, j: page[j](x=d.x[j], at=d.pages[j:j + 1], out=d.out), "given injective pages"),
    (lambda d, j: block[j](x=d.x[j], at=d.pages[j], out=d.out), "given injective pages"),
    (lambda d, j: item_block[j](x=d.x[j], at=d.halves[K * j:K * j + K], out=d.out), "given injective halves"),
    (lambda d, j: block[j](x=d.x[j], at=j, out=d.out), "touch different elements"),
    (lambda d, j: columns[j](x=d.x[j], at=d.part(0, d.plain), c=j, out=d.out), "touch different elements"),
]
OPEN: list[tuple[Callable[[Data, Any], object], str]] = [
    (lambda d, j: rows[j](x=d.x[j], at=d.part(j, d.plain), out=d.out), "Injective(plain) promises"),
    (lambda d, j: rows[j](x=d.x[j], at=d.slots[3 * j:3 * j + K], out=d.out), "P.seq"),
    (lambda d, j: turned[j](x=d.x[j], at=d.slots, begin=3 * j, out=d.out), "P.seq"),
    (lambda d, j: item_block[j](x=d.x[j], at=d.halves[2 * j:2 * j + K], out=d.out), "P.seq"),
    (lambda d, j: rows[j](x=d.x[j], at=d.part(j // 2), out=d.out), "P.seq"),
    (lambda d, j: close_block[j](x=d.x[j], at=d.pages[j], out=d.out), "P.seq"),
    (lambda d, j: close_block[j](x=d.x[j], at=j, out=d.out), "P.seq"),
    (lambda d, j: narrow_page[j](x=d.x[j], at=d.pages[j:j + 1], out=d.out), "cast the index to I64"),
    (lambda d, j: (rows[j](x=d.x[j], at=d.part(j), out=d.out), rows[j](x=d.x[j], at=d.part(j, d.others), out=d.out)), "others"),
    (lambda d, j: (rows[j](x=d.x[j], at=d.part(j), out=d.out), block[j](x=d.x[j], at=j, out=d.out)), "P.seq"),
    # the last part is short: the fill of its tile is row 0
    (lambda d, j: rows[j](x=d.x[j], at=d.slots[:N * K - 1][K * j:].clip(K), out=d.out), "P.seq"),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("body", "why"), PROVED, ids=range(len(PROVED)))
def test_tasks_with_rows_of_their_own_are_proved_apart(body: Callable[[Data, Any], object], why: str) -> None:
    """The proof lets tasks run without edges; the result stays that of program order."""
    free, ordered = Data(), Data()
    target = "cpu_sim" if body is PROVED[1][0] else "interp"
    program = over(body, free).task_graph(deps=Deps.explicit()).dispatch(DispatchPolicy.work_steal(3)).compile(target)
    assert why in line_of(program) and line_of(program).startswith("proved")
    program.run()
    over(body, ordered).compile("interp").run()
    assert not list(program.graph.edges)
    assert np.array_equal(free.out.data, ordered.out.data) and not np.array_equal(free.out.data, Data().out.data)


@pytest.mark.parametrize(("body", "text"), OPEN, ids=range(len(OPEN)))
def test_tasks_that_some_legal_table_lets_meet_are_refused(body: Callable[[Data, Any], object], text: str) -> None:
    with pytest.raises(PtoError, match="W201") as caught:
        over(body, Data()).compile("interp")
    assert text in f"{caught.value.help} {caught.value.notes}"


def test_a_size_known_at_run_time() -> None:
    n, d = Symbol("n"), Data()
    program = over(PROVED[0][0], d, n).compile("interp")
    assert line_of(program).startswith("proved")
    program.run(n=2)
    want = Data().out.data.copy()
    want[d.slots.data[:2 * K]] = d.x.data[:2].reshape(-1, COLS)
    assert np.array_equal(d.out.data, want)


def test_entries_that_nobody_uses() -> None:
    """Padding may repeat: only the entries that count are promised to differ, and only those are written."""
    n, d = Symbol("n"), Data()
    d.slots.data.reshape(N, K)[:, 2:] = -1
    program = over(lambda d, j: first[j](x=d.x[j], at=d.part(j), n=n, out=d.out), d).compile("interp")
    assert line_of(program).startswith("proved")
    program.run(n=2)
    want = Data().out.data.copy()
    want[d.slots.data.reshape(N, K)[:, :2]] = d.x.data[:, :2]
    assert np.array_equal(d.out.data, want)
    with pytest.raises(PtoError, match="-1"):
        program.run(n=3)


def test_a_table_that_breaks_its_contract_is_refused_when_bound() -> None:
    program = over(PROVED[0][0], Data()).compile("interp")
    with pytest.raises(PtoError, match="R110"):
        program.run(slots=np.zeros(N * K, np.int32))


def test_sides_with_parts_of_one_table() -> None:
    d = Data()

    def side(begin: int) -> Workload:
        @workload
        def half() -> None:
            for j in P(N // 2):
                rows[j](x=d.x[j], at=d.part(j + begin), out=d.out)
        return half()

    assert line_of(combine(side(0), side(N // 2)).compile("interp")).startswith("proved")
    with pytest.raises(PtoError, match="W201"):
        combine(side(0), side(N // 2 - 1)).compile("interp")


@pytest.mark.parametrize(("first", "second", "apart"), [(0, 2, True), (2, 0, True), (0, 1, False), (2, 2, False)])
def test_parts_of_an_index_tile(first: int, second: int, apart: bool) -> None:
    """Two sides scatter two entries each of the same four."""
    d = Data()

    def side(begin: int) -> Workload:
        @kernel
        def part(x: In[Tile[K, COLS, F32]], at: In[Tile[1, K, I32]], out: Out[Tensor]) -> None:
            pto.scatter(out, at[:, begin:begin + 2].T, x[begin:begin + 2])

        return over(lambda d, j: part[j](x=d.x[j], at=d.part(j), out=d.out), d)

    if apart:
        assert line_of(combine(side(first), side(second)).compile("interp")).startswith("proved")
    else:
        with pytest.raises(PtoError, match="W201"):
            combine(side(first), side(second)).compile("interp")


def test_a_branch_of_a_kernel_counts() -> None:
    """Both branches may run: one of them writes rows of a neighbour."""
    @kernel
    def either(x: In[Tile[K, COLS, F32]], at: Scalar[I32], out: Out[Tensor]) -> None:
        with pto.when(at > 2):
            pto.store(out, x, (at * K, 0))
        with pto.otherwise():
            pto.store(out, x, (at * K + 1, 0))

    with pytest.raises(PtoError, match="W201"):
        over(lambda d, j: either[j](x=d.x[j], at=j, out=d.out), Data()).compile("interp")


def test_own_bodies_reach_all_of_their_regions() -> None:
    @kernel(c_src="out[0] = x[0];")
    def own(x: In[Tile[K, COLS, F32]], at: Scalar[I32], out: Out[Tensor]) -> None:
        pto.store(out, x, (at * K, 0))

    with pytest.raises(PtoError, match="W201"):
        over(lambda d, j: own[j](x=d.x[j], at=j, out=d.out), Data()).compile("interp")


def test_a_table_that_tasks_write_promises_nothing() -> None:
    @kernel
    def fill(to: Out[Tile[1, K, I32]]) -> None:
        pto.store(to, pto.zeros((1, K), I32))

    def body(d: Data, j: Any) -> None:
        fill[j](to=d.part(j, d.plain))
        rows[j](x=d.x[j], at=d.part(j, d.plain), out=d.out)

    with pytest.raises(PtoError, match="W201"):
        over(body, Data()).compile("interp")


def test_a_sanitized_run_knows_what_is_proved() -> None:
    program = over(PROVED[1][0], Data()).compile("cpu_sim", sanitize=True)
    program.run()
    assert program.sanitized is not None and program.sanitized.races == 0


def test_a_sanitized_run_still_finds_what_is_not_proved() -> None:
    """Blocks that a view places by a plain table are left to the run; rows scattered through another table are not excused for them."""
    @kernel
    def whole(x: In[Tile[K, COLS, F32]], out: Out[Tile[K, COLS, F32]]) -> None:
        pto.store(out, x)

    def body(d: Data, j: Any) -> None:
        rows[j](x=d.x[j], at=d.part(j), out=d.out[0:32])
        whole[j](x=d.x[j], out=d.out[d.plain[j] + 32:d.plain[j] + 36])

    d = Data()
    d.slots.data[:] = np.arange(N * K)
    d.plain.data[:] = 0
    program = over(body, d).compile("cpu_sim", sanitize=True)
    assert "not proved" in line_of(program)
    with pytest.raises(PtoError, match="R201") as caught:
        program.run()
    assert "whole[j=0]" in str(caught.value) and "rows[" not in str(caught.value)


@kernel
def triangle(x: In[Tile[1, COLS, F32]], at: Scalar[I64], out: Out[Tensor]) -> None:
    """Rows at + 10 * (i - 3) for each i with a part of the inner loop: none for i = 0."""
    for i in pto.range(4):
        for j in pto.range(i):
            pto.store(out, x, (at + 10 * (i - 1) + j, 0))


def test_an_iteration_without_pieces_says_nothing() -> None:
    """The first iteration of the outer loop stores nothing: row `at` - 10 need not lie inside, so `at` = 0 and 1 may meet."""
    with pytest.raises(PtoError, match="W201"):
        over(lambda d, j: triangle[j](x=d.x[j, 0:1], at=j, out=d.out), Data(), 2).compile("interp")
