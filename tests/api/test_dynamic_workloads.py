"""Dynamic work as it comes: routed tokens, recorded lengths and page tables, each held against NumPy on both targets.

Lengths are those of the Azure LLM inference trace 2023 (CC-BY 4.0) and pages those of the Mooncake trace (Apache-2.0) where
PTO_WSP_TRACES names their folder, else numbers of the same shape from a seed.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

from pto_wsp import (
    Dense,
    DenseDyn,
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
    Symbol,
    Tensor,
    Tile,
    ceildiv,
    kernel,
    pto,
    workload,
)

F32 = DType.F32
TARGETS = ("interp", "cpu_sim")
Array: TypeAlias = npt.NDArray[Any]
WIDTH = 8        # of a token; all numbers are small whole ones, so sums are exact in any order


# ---- tokens routed to experts ----

@kernel
def expert(x: In[Tile[1, WIDTH, F32]], w: In[Tile[WIDTH, WIDTH, F32]], gate: Scalar[F32], y: Out[Tile[1, WIDTH, F32]]) -> None:
    pto.store(y, (x @ w) * gate)


@kernel
def gather_back(part: In[Tile[1, WIDTH, F32]], y: InOut[Tile[1, WIDTH, F32]]) -> None:
    pto.store(y, y + part)


def routed(n_tokens: int, n_experts: int, seed: int) -> tuple[Array, Array, Array]:
    """Return a skewed router's choice, two experts a token, as CSR by expert: indptr, tokens and gates."""
    rng = np.random.default_rng(seed)
    skew = 1 / np.arange(1, n_experts + 1) ** 1.2      # the first experts are the favourites
    picked = np.array([rng.choice(n_experts, 2, replace=False, p=skew / skew.sum()) for _ in range(n_tokens)])
    chosen = np.zeros((n_experts, n_tokens), bool)
    chosen[picked, np.arange(n_tokens)[:, None]] = True
    indptr = np.concatenate([[0], np.cumsum(chosen.sum(1))])
    return indptr, np.nonzero(chosen)[1], rng.integers(1, 4, 2 * n_tokens).astype(np.float32)


def by_token(tokens: Array, n_tokens: int) -> tuple[Array, Array]:
    """Return the same choice as CSR by token: where in the experts' order its parts stand."""
    order = np.argsort(tokens, kind="stable")
    return np.concatenate([[0], np.cumsum(np.bincount(tokens, minlength=n_tokens))]), order


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_experts_take_the_tokens_that_are_routed_to_them(target: str) -> None:
    n_experts, n_tokens = 6, 40
    rng = np.random.default_rng(1)
    weights = rng.integers(-2, 3, (n_experts, WIDTH, WIDTH)).astype(np.float32)
    x = rng.integers(-4, 5, (n_tokens, WIDTH)).astype(np.float32)
    indptr, tokens, gates = routed(n_tokens, n_experts, 0)
    assert np.diff(indptr).max() > 3 * np.diff(indptr).min()          # skewed indeed
    X, W, G = Tensor(x, name="X"), Tensor(weights, name="W"), Tensor(gates, name="gates")
    parts, out = (Tensor(np.zeros((n, WIDTH), np.float32), name=name) for n, name in ((2 * n_tokens, "parts"), (n_tokens, "out")))
    experts, batch = Dense[n_experts](), DenseDyn(n_tokens)
    routing, back = Sparse(experts, indptr, tokens), Sparse(batch, *by_token(tokens, n_tokens))

    @workload
    def mixture() -> None:
        for e in P(experts):
            for t in P.sel(routing[e]):
                expert[e, t](X[t], W[e], G[t.position], parts[t.position])
        for t in P(batch):
            for p in P.sel.seq(back[t]):
                gather_back[t, p](parts[p], out[t])

    program = mixture().dispatch(DispatchPolicy.affinity(lambda t: t.t, 3)).compile(target)

    def check(indptr: Array, tokens: Array, gates: Array, x: Array, out: Array) -> None:
        wanted = np.zeros_like(out)
        for e in range(n_experts):
            for p in range(indptr[e], indptr[e + 1]):
                wanted[tokens[p]] += (x[tokens[p]] @ weights[e]) * gates[p]
        np.testing.assert_array_equal(out, wanted)
        assert program.stats.task_count == 2 * len(tokens)

    program.run()
    assert out.data is not None
    check(indptr, tokens, gates, x, out.data)
    for n, seed in ((64, 2), (7, 3)):          # other routing, other numbers of tokens, the same program
        again = routed(n, n_experts, seed)
        fresh = rng.integers(-4, 5, (n, WIDTH)).astype(np.float32)
        result = np.zeros((n, WIDTH), np.float32)
        program.run(X=fresh, gates=again[2], parts=np.zeros((2 * n, WIDTH), np.float32), out=result,
                    routing=Sparse(experts, again[0], again[1]), back=Sparse(DenseDyn(n), *by_token(again[1], n)))
        check(*again, fresh, result)


# ---- requests of recorded lengths ----

BLOCK = 16


@kernel
def piece(x: In[Tile[BLOCK, WIDTH, F32]], y: Out[Tile[1, WIDTH, F32]]) -> None:
    pto.store(y, pto.colsum(x))


@kernel
def small(x: In[Tile[2 * BLOCK, WIDTH, F32]], y: Out[Tile[1, WIDTH, F32]]) -> None:
    pto.store(y, pto.colsum(x))


@kernel
def total(x: In[Tile[1, WIDTH, F32]], y: InOut[Tile[1, WIDTH, F32]]) -> None:
    pto.store(y, y + x)


@kernel
def clear(y: Out[Tile[1, WIDTH, F32]]) -> None:
    pto.store(y, pto.zeros((1, WIDTH), F32))


def request_lengths(folder: Path | None, first: int, count: int) -> Array:
    """Return the context lengths of requests in units of 16 tokens, at most 200 of them each."""
    if folder is None:
        tokens = np.random.default_rng(first).lognormal(6.5, 1, count).astype(np.int64)
    else:
        with (folder / "azure_llm_conv_2023.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))[first:first + count]
        tokens = np.array([int(row["ContextTokens"]) for row in rows])
    return np.minimum(tokens // 16, 200)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_long_requests_are_summed_in_pieces_and_short_ones_at_once(target: str, trace_dir: Path | None) -> None:
    rng = np.random.default_rng(0)
    lens = request_lengths(trace_dir, 0, 30)
    x = rng.integers(-4, 5, (30, 200, WIDTH)).astype(np.float32)
    X, Y = Tensor(x, name="X"), Tensor(np.zeros((30, WIDTH), np.float32), name="Y")
    sums = Tensor.empty((64, ceil(200), WIDTH), F32, name="sums")
    batch, limit = DenseDyn(30), Symbol("limit")
    L = Tensor(lens, name="lens")

    @workload
    def summed() -> None:
        for b in P(batch):
            with P.when(L[b] == 0):
                clear[b](Y[b])
            with P.elif_(L[b] <= limit):
                small[b](X[b, :L[b]].clip(2 * BLOCK, WIDTH), Y[b])
            with P.otherwise():
                for i in P(ceildiv(L[b], BLOCK)):
                    piece[b, i](X[b, :L[b]][i * BLOCK:].clip(BLOCK, WIDTH), sums[b, i])
                clear[b](Y[b])
                for i in P.seq(ceildiv(L[b], BLOCK)):
                    total[b, i](sums[b, i], Y[b])

    program = summed().compile(target)
    more = request_lengths(trace_dir, 30, 50)
    for case, numbers in ((lens, x), (more, rng.integers(-4, 5, (50, 200, WIDTH)).astype(np.float32))):
        found = np.zeros((len(case), WIDTH), np.float32)
        program.run(batch=len(case), lens=case, X=numbers, Y=found, limit=2 * BLOCK)
        assert (case > 2 * BLOCK).any() and (case <= 2 * BLOCK).any()
        np.testing.assert_array_equal(found, np.array([numbers[b, :n].sum(0) for b, n in enumerate(case)]))
        blocks = -(-case[case > 2 * BLOCK] // BLOCK)
        assert program.stats.task_count == (case <= 2 * BLOCK).sum() + 2 * blocks.sum() + len(blocks)


def ceil(length: int) -> int:
    """Return how many blocks a length has."""
    return -(-length // BLOCK)


# ---- pages that requests share ----

def page_table(folder: Path | None, first: int, count: int) -> tuple[Array, int]:
    """Return which pages each request reads, -1 behind the last, and how many pages there are."""
    if folder is None:
        rng = np.random.default_rng(first)
        prefix, used = [0, 1, 2], 3
        pages = []
        for _ in range(count):
            own = int(rng.integers(1, 12))
            pages.append([*prefix[:rng.integers(0, 4)], *range(used, used + own)])
            used += own
    else:
        lines = (folder / "mooncake_conversation_400.jsonl").read_text().splitlines()[first:first + count]
        pages = [json.loads(line)["hash_ids"][:24] for line in lines]
    ids = {page: k for k, page in enumerate(dict.fromkeys(page for row in pages for page in row))}
    table = np.full((count, max(map(len, pages))), -1)
    for b, row in enumerate(pages):
        table[b, :len(row)] = [ids[page] for page in row]
    return table, len(ids)


def paged(table: Array, n_pages: int, target: str) -> tuple[Program, Tensor]:
    """Return a program that sums the pages of each request, and its output."""
    rng = np.random.default_rng(7)
    K = Tensor(rng.integers(-4, 5, (n_pages, WIDTH)).astype(np.float32), name="K")
    Y = Tensor(np.zeros((len(table), WIDTH), np.float32), name="Y")
    pages = Tensor(table, name="pages")
    batch, width = DenseDyn(table.shape[0]), DenseDyn(table.shape[1])

    @workload
    def attention() -> None:
        for b in P(batch):
            clear[b](Y[b])
            for j in P.seq(width):
                with P.when(pages[b, j] >= 0):            # a page that is none is never read
                    total[b, j](K[pages[b, j]], Y[b])

    return attention().compile(target), Y


@pytest.mark.parametrize("target", TARGETS)
def test_pages_are_read_through_the_table_where_there_are_any(target: str, trace_dir: Path | None) -> None:
    table, n_pages = page_table(trace_dir, 0, 20)
    assert len(np.unique(table[table >= 0])) < (table >= 0).sum()          # prefixes are shared
    program, Y = paged(table, n_pages, target)
    program.run()
    keys: Any = np.random.default_rng(7).integers(-4, 5, (n_pages, WIDTH)).astype(np.float32)
    assert Y.data is not None
    np.testing.assert_array_equal(Y.data, np.array([keys[row[row >= 0]].sum(0) for row in table]))
    more, n_more = page_table(trace_dir, 20, 35)
    keys, found = np.random.default_rng(8).integers(-4, 5, (n_more, WIDTH)).astype(np.float32), np.zeros((35, WIDTH), np.float32)
    program.run(pages=more, K=keys, Y=found, batch=35, width=more.shape[1])
    np.testing.assert_array_equal(found, np.array([keys[row[row >= 0]].sum(0) for row in more]))


def test_a_page_that_is_none_ends_the_run_where_its_branch_is_taken() -> None:
    table = np.array([[0, 2], [1, -1]])
    program, Y = paged(table, 2, "interp")
    with pytest.raises(Exception, match=r"an index lies outside its tensor: `K\[pages\[b, j\]\]`") as caught:
        program.run()
    assert Y.data is not None and not Y.data.any() and "b = 0, j = 1" in str(caught.value)


# ---- pieces of requests of other lengths ----

@pytest.mark.sampled(3)
@pytest.mark.parametrize("flat", [False, True], ids=["padded", "flat"])
@pytest.mark.parametrize("target", TARGETS)
def test_rows_of_rows_are_walked(target: str, flat: bool) -> None:
    lens, counts = np.array([2, 0, 3]), np.array([[1, 2, 0], [0, 0, 0], [3, 0, 1]])
    packed, offsets = np.array([1, 2, 3, 0, 1]), np.array([0, 2, 2])
    Y = Tensor(np.zeros((3, 3, 3, 1), np.float32), name="Y")
    batch = Dense[3]()
    tokens = Ragged(batch, lens)
    pieces = Ragged(tokens, packed, offsets=offsets) if flat else Ragged(tokens, counts)

    @kernel
    def mark(y: InOut[Tile[1, 1, F32]]) -> None:
        pto.store(y, y + 1)

    @workload
    def walked() -> None:
        for b in P(batch):
            for t in P(tokens[b]):
                for c in P(pieces[b][t]):
                    mark[b, t, c](Y[b, t, c])

    program = walked().compile(target).run()

    def wanted(lens: Array, counts: Array) -> set[tuple[int, ...]]:
        return {(b, t, c) for b in range(3) for t in range(lens[b]) for c in range(counts[b][t])}

    def marked() -> set[tuple[int, ...]]:
        assert Y.data is not None
        found = {tuple(int(n) for n in place[:3]) for place in np.argwhere(Y.data)}
        Y.data[...] = 0
        return found

    assert marked() == wanted(lens, counts)
    other = np.array([1, 1, 0])
    second = Ragged(Ragged(batch, other), np.array([2, 3]), offsets=np.array([0, 1, 2])) if flat else Ragged(
        Ragged(batch, other), np.array([[2, 0, 0], [3, 0, 0], [0, 0, 0]]))
    program.run(pieces=second)
    assert marked() == {(0, 0, 0), (0, 0, 1), (1, 0, 0), (1, 0, 1), (1, 0, 2)}
    with pytest.raises(Exception, match="a loop's extent is negative"):
        program.run(**({"packed": np.array([1, 2, -3, 0, 1])} if flat else {"counts": np.array([[1, -2, 0], [0, 0, 0], [3, 0, 1]])}))
