"""Cards of workloads: sizes of loops as numbers, symbols, lengths and dots; counts of tasks; what is open; regions of a middle task."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from pto_wsp import (
    Dense,
    DenseDyn,
    DType,
    In,
    InOut,
    Out,
    P,
    Ragged,
    Sparse,
    Symbol,
    Tensor,
    Tile,
    Workload,
    ceildiv,
    kernel,
    pto,
    workload,
)
from pto_wsp.view.card import Box, BoxesPart, Card, Site
from pto_wsp.view.html import html_of
from tests.view.test_cards import text_of

F32, I64 = DType.F32, DType.I64
X = Tensor(np.zeros((8, 6, 16, 64), np.float32), name="X")
Y = Tensor(np.zeros((8, 6, 16, 64), np.float32), name="Y")
FOUND = Tensor(np.full(4, 3, np.int64), name="found")
LENS = Tensor(np.array([2, 0, 3]), name="lens")


@kernel
def work(x: In[Tile[16, 64, F32]], y: Out[Tile[16, 64, F32]]) -> None:
    pto.store(y, x * 2.0)


@kernel
def look(x: In[Tile[16, 64, F32]], n: InOut[Tile[1, 4, I64]]) -> None:
    pto.store(n, pto.load(n))


def boxes_of(card: Card) -> list[Box]:
    """Return the loops of a card, outer ones first, in program order."""
    def walk(items: Any) -> Any:
        for item in items:
            if isinstance(item, Box):
                yield item
                yield from walk(item.inside)

    return list(walk(_boxes(card)))


def _boxes(card: Card) -> Any:
    (part,) = [part for part in card.parts if isinstance(part, BoxesPart)]
    return part.boxes


def sites_of(card: Card) -> list[Site]:
    return [item for box in boxes_of(card) for item in box.inside if isinstance(item, Site)]


def sizes(made: Workload) -> list[str]:
    return [box.size for box in boxes_of(made.card)]


def test_sizes_are_numbers_and_their_product_is_the_count() -> None:
    @workload
    def plain() -> None:
        for a in P(8):
            for b in P.seq(6):
                work[a, b](X[a, b], Y[a, b])

    card = plain().card
    assert sizes(plain()) == ["8", "6"]
    assert card.subtitle == "Workload · 48 tasks with what is bound now, 1 call of 1 kernel"
    (site,) = sites_of(card)
    assert site.tasks == "48 tasks"
    read, written = (argument.region for argument in site.arguments)
    assert read is not None and written is not None
    # the middle iterations: a = 4 of 8, b = 3 of 6
    assert (read.region, read.use, read.y, read.height, read.x, read.width) == ("[4, 3, :, :]", "read", 500, 125, 500, 167)
    assert (written.tensor, written.use) == ("Y", "written")


def test_symbols_and_axes_say_what_is_bound_now() -> None:
    n, rows = Symbol("N"), DenseDyn(5)

    @workload
    def symbolic() -> None:
        for a in P(ceildiv(n, 4)):
            work[a](X[a, 0], Y[a, 0])
        for b in P(rows):
            work[b](X[b, 1], Y[b, 1])

    card = symbolic().card
    assert sizes(symbolic()) == ["open: N", "rows = 5 now"]
    assert card.sentence == "Open until bind: N." and "tasks" not in card.subtitle
    assert [site.tasks for site in sites_of(card)] == ["", "5 tasks"]


def test_ragged_rows_are_bars() -> None:
    rows = Ragged(Dense(3), LENS)

    @workload
    def ragged() -> None:
        for h in P(2):
            for b in P(3):
                for t in P(rows[b]):
                    work[h, b, t](X[h + b, t], Y[h + b, t])

    card = ragged().card
    assert sizes(ragged()) == ["2", "3", "ragged, 0 to 3, 10 in all"]      # h has 2 iterations: 2 * (2 + 0 + 3)
    assert boxes_of(card)[2].lengths is not None and boxes_of(card)[2].lengths.counts == (2, 0, 3)
    assert sites_of(card)[0].tasks == "10 tasks"
    assert ragged().tasks()[-1].name == "work[h=1, b=2, t=2]" and len(ragged().tasks()) == 10


def test_sparse_rows_are_dots() -> None:
    routes = Sparse(Dense(3), [0, 2, 2, 3], [1, 5, 3])

    @workload
    def sparse() -> None:
        for e in P(3):
            for t in P(routes[e]):
                work[e, t](X[e, t], Y[e, t])

    box = boxes_of(sparse().card)[1]
    assert box.size == "3 in 3 sparse rows" and box.dots is not None
    assert (box.dots.rows, box.dots.columns, box.dots.scale) == (((1, 5), (), (3,)), 6, 1)
    assert sites_of(sparse().card)[0].tasks == "3 tasks"


def test_branches_are_counted_by_their_iterations() -> None:
    @workload
    def branching() -> None:
        for a in P(6):
            with P.when(a > 3):
                work[a](X[a, 0], Y[a, 0])
            with P.otherwise():
                work[a](X[a, 1], Y[a, 1])

    assert [site.tasks for site in sites_of(branching().card)] == ["2 tasks", "4 tasks"]


def test_what_tasks_decide_is_not_what_arrays_hold_now() -> None:
    @workload
    def deciding() -> None:
        look(X[0, 0], FOUND.reshape(1, 4))
        for a in P(FOUND[0]):
            work[a](X[a, 0], Y[a, 0])

    card = deciding().card
    assert sizes(deciding()) == ["decided by tasks: found"]
    assert "Its tasks decide found" in card.sentence and sites_of(card)[0].tasks == ""


def test_many_iterations_are_counted_without_a_walk() -> None:
    @workload
    def large() -> None:
        for a in P(1_000_000):
            for b in P(1000):
                work[a, b](X[a % 8, b % 6], Y[a % 8, b % 6])

    @workload
    def triangle() -> None:
        for a in P(100_000):
            for b in P(a):
                work[a, b](X[a % 8, b % 6], Y[a % 8, b % 6])

    begin = time.process_time()
    assert "1000000000 tasks" in large().card.subtitle.replace(",", "")
    assert sizes(triangle()) == ["100,000", ""] and "tasks" not in triangle().card.subtitle
    assert time.process_time() - begin < 10.0      # 20 ms; a walk takes minutes


def test_a_workload_from_data_says_what_it_reads() -> None:
    rows = Ragged(Dense(3), LENS)

    @workload
    def ragged() -> None:
        for b in P(3):
            for t in P(rows[b]):
                work[b, t](X[b, t], Y[b, t])

    read = Workload.from_json(ragged().to_json())
    assert read.card.sentence == "Open until bind: lens." and sizes(read) == ["3", "open: lens"]


def test_cards_of_workloads_are_well_formed_and_read_back() -> None:
    n = Symbol("N")
    rows, routes = Ragged(Dense(3), LENS), Sparse(Dense(3), [0, 2, 2, 3], [1, 5, 3])

    @workload
    def all_of_it() -> None:
        for b in P(3):
            for t in P(rows[b]):
                work[b, t](X[b, t], Y[b, t])
            for t in P(routes[b]):
                work[b, t](X[b, t], Y[b, t])
        for a in P(n):
            work[a](X[a, 0], Y[a, 0])

    card = all_of_it().card
    assert Card.model_validate_json(card.model_dump_json()) == card
    text = text_of(html_of(card))
    assert "ragged, 0 to 3, 5 in all" in text and "3 in 3 sparse rows" in text and len(html_of(card)) < 20_000

    @workload
    def nothing() -> None:
        for b in P(0):
            work[b](X[b, 0], Y[b, 0])

    assert nothing().card.sentence == "It makes no task with what is bound now."


def test_sizes_have_text() -> None:
    rows, routes = Ragged(Dense(3), LENS), Sparse(Dense(3), [0, 2, 2, 3], [1, 5, 3])

    @workload
    def both() -> None:
        for b in P(3):
            for t in P(rows[b]):
                work[b, t](X[b, t], Y[b, t])
            for t in P(routes[b]):
                work[b, t](X[b, t], Y[b, t])

    text = str(both().card)
    for line in ("‖ for b in P(3):  3", "ragged, 0 to 3, 5 in all  ▆ █", "·●···●", "W work[b, t]  5 tasks   x in X[b, t]   y out Y[b, t]"):
        assert line in text
