"""Sparse walks and slots as they are written: names, text, and what has no meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import (
    Dense,
    DenseDyn,
    DType,
    InOut,
    P,
    PtoError,
    Scalar,
    Sparse,
    Symbol,
    Tensor,
    Tile,
    axis,
    kernel,
    pto,
    slot_load_u64,
    slot_set_u64,
    slot_u64,
    workload,
)
from pto_wsp.ir import flow

I64 = DType.I64
Y = Tensor(np.zeros((6, 1), np.int64), name="Y")
T = Tensor(np.arange(12).reshape(3, 4), name="T")
F = Tensor(np.zeros((3, 4), np.float32), name="F")
batch = Dense[3]()
indptr, indices = np.array([0, 2, 2, 3]), np.array([1, 4, 0])
routing = Sparse(batch, indptr, indices)
n = Symbol("n")


@kernel
def add(y: InOut[Tile[1, 1, I64]], k: Scalar[I64]) -> None:
    pto.store(y, y + k)


def text(body: Callable[[], object]) -> str:
    """Trace a body and return the workload's text without its first line."""
    return "\n".join(line[4:] for line in str(workload(body)()).splitlines()[1:])


ROW = "routing: indices[indptr[b]:indptr[b + 1]]"


@pytest.mark.parametrize("walk, shown", [(P, "P.sel"), (P.sel, "P.sel"), (P.seq, "P.sel.seq"), (P.sel.seq, "P.sel.seq")],
                         ids=["P", "P.sel", "P.seq", "P.sel.seq"])
def test_a_row_is_walked_by_its_columns(walk: Any, shown: str) -> None:
    def body() -> None:
        for b in P(batch):
            for e in walk(routing[b]):
                add[b, e](Y[e], e.position + axis("e"))
    assert text(body) == f"for b in P(batch: 3):\n    for e in {shown}({ROW}):\n        add[b, e](y=Y[e], k=e.position + e)"


def test_a_matrix_has_two_variables() -> None:
    def unpacked() -> None:
        for b, e in P(routing):
            add(Y[e], b)

    def whole() -> None:
        for be in P(routing):
            add(Y[be[1]], be[0])

    def named() -> None:
        for b, column in P(routing, names=("row", "e")):
            add(Y[column], b)
    assert text(unpacked) == f"for b in P(batch: 3):\n    for e in P.sel({ROW}):\n        add(y=Y[e], k=b)"
    assert "for be1 in P.sel(routing: indices[indptr[be0]:indptr[be0 + 1]]):" in text(whole)
    assert "for row in P(batch: 3):" in text(named) and "add(y=Y[e], k=row)" in text(named)


def test_axes_stand_beside_a_matrix() -> None:
    def body() -> None:
        for i, b, e, j in P(2, routing, 4):
            add(Y[e], i + b + j)
    assert text(body).splitlines()[:4] == ["for i in P(2):", "    for b in P(batch: 3):", f"        for e in P.sel({ROW}):",
                                           "            for j in P(4):"]


def test_the_loop_says_where_its_variable_comes_from() -> None:
    def body() -> None:
        for b, e in P(routing):
            add(Y[e], b)
    _, row = (node for node in flow.walk(workload(body)().node.body) if isinstance(node, flow.Loop))
    assert row.through is not None and (row.var.name, row.through.var.name) == ("e.position", "e")
    assert [ref.name for ref in row.note.axis.tensors] == ["indptr", "indices"] and row.note.axis.label == "Sparse"


def test_an_inner_axis_may_depend_on_a_column() -> None:
    lens = Tensor(np.arange(6), name="lens")

    def body() -> None:
        for b in P(batch):
            for e in P(routing[b]):
                for t in P(lens[e] + e.position):
                    add(Y[e], t)
    assert "for t in P(lens[e] + e.position):" in text(body)


@pytest.mark.parametrize("body, code", [
    (lambda: P.sel(), "W102"), (lambda: P.sel(4), "W102"), (lambda: P.sel(batch), "W102"), (lambda: P.sel.seq(n), "W102"),
    (lambda: P.sel(routing[0], names=("a", "b")), "W102"), (lambda: P(routing, names=("a",)), "W102"),
    (lambda: [add(Y[b.position], b) for b in P(batch)], "T206"),
    (lambda: [add(Y[0], b) for b in P(Sparse(DenseDyn(n), indptr, indices)[n + 0.5])], "T302"),
])
def test_a_walk_that_has_no_meaning_is_refused(body: Callable[[], object], code: str) -> None:
    with pytest.raises(PtoError) as caught:
        workload(body)()
    assert caught.value.code == code


# ---- slots ----

def test_slots_are_set_from_anything_whole() -> None:
    def body() -> None:
        for b in P(batch):
            slot_set_u64(0, b * 2)
            slot_set_u64(np.int64(63), slot_u64(0) + n)  # type: ignore[arg-type]
            slot_load_u64(1, T, b, 3)
            slot_load_u64(1, T[b], col=2)
            slot_load_u64(1, T[0:2, b])
            slot_set_u64(2, T.item(b, 1))
            slot_set_u64(3, b > 1)
            slot_set_u64(4, -7)
    assert text(body).splitlines()[1:] == [f"    slot_set_u64({slot}, {value})" for slot, value in (
        (0, "b * 2"), (63, "slot_u64(0) + n"), (1, "T[b, 3]"), (1, "T[b, 2]"), (1, "T[0, b]"), (2, "T[b, 1]"), (3, "b > 1"), (4, "-7"))]


@pytest.mark.parametrize("call, code", [
    (lambda: slot_set_u64(64, 1), "W102"), (lambda: slot_set_u64(-1, 1), "W102"), (lambda: slot_set_u64(True, 1), "W102"),
    (lambda: slot_set_u64("0", 1), "W102"),  # type: ignore[arg-type]
    (lambda: slot_u64(64), "W102"), (lambda: slot_u64(1.0), "W102"),  # type: ignore[arg-type]
    (lambda: slot_set_u64(0, 1.5), "T209"), (lambda: slot_set_u64(0, F[0, 0]), "T209"), (lambda: slot_set_u64(0, T[0]), "T206"),
    (lambda: slot_set_u64(0, None), "T205"), (lambda: slot_set_u64(0, 1 << 63), "T209"),
    (lambda: slot_load_u64(0, F, 0, 0), "T209"), (lambda: slot_load_u64(0, T[0, 0]), "W102"),
    (lambda: slot_load_u64(0, np.zeros((2, 2), int), 0, 0), "W102"),  # type: ignore[arg-type]
    (lambda: slot_load_u64(0, T[0], 1, 0), "W102"), (lambda: slot_load_u64(0, T, 3, 0), "T301"),
    (lambda: slot_load_u64(0, Tensor(np.zeros((2, 2, 2), int)), 0, 0), "W102"),
])
def test_a_slot_that_cannot_be_is_refused(call: Callable[[], object], code: str) -> None:
    with pytest.raises(PtoError) as caught:
        workload(call)()
    assert caught.value.code == code


@pytest.mark.parametrize("call", [lambda: slot_set_u64(0, 1), lambda: slot_load_u64(0, T, 0, 0)])
def test_slots_are_set_in_workloads(call: Callable[[], object]) -> None:
    with pytest.raises(PtoError) as caught:
        call()
    assert caught.value.code == "K105"
    assert repr(slot_u64(5) + 1) == "Symbolic(slot_u64(5) + 1)"
