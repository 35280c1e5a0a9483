"""Expressions over columns give what `evaluate` gives task by task."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import COMPARISONS, LOGICAL, Number, Op, print_scalar
from pto_wsp.timing.columns import UnknownColumn, constant, evaluate_columns

A, B, N = s.Var("a", 0), s.Var("b", 1), s.Var("n", 2)
F, G = s.ParamScalar("f", DType.F32), s.ParamScalar("g", DType.F32)
P, Q = s.ParamScalar("p", DType.BOOL), s.ParamScalar("q", DType.BOOL)
EDGES = (0, 1, -1, 2, -7, 255, (1 << 63) - 1, -(1 << 63), 1 << 40, -(1 << 40) - 3)
BINARY = [op for op in Op if op not in (Op.NOT, Op.NEG)]

Leaf = Callable[[s.Scalar], Any]


def columns() -> dict[s.Scalar, np.ndarray[Any, Any]]:
    draw = random.Random(7)
    pairs = [(a, b) for a in EDGES for b in EDGES]
    pairs += [(draw.getrandbits(64) - (1 << 63), draw.choice((draw.getrandbits(64) - (1 << 63), draw.randint(-9, 9)))) for _ in range(200)]
    numbers = [0.0, -0.0, 1.5, -2.25, 7.0, -7.0, math.inf, -math.inf, math.nan, 1e300]
    return {
        A: np.array([a for a, _ in pairs], np.int64), B: np.array([b for _, b in pairs], np.int64),
        N: np.array([k % 5 for k in range(len(pairs))], np.int64),
        F: np.array([draw.choice(numbers) for _ in pairs]), G: np.array([draw.choice(numbers) for _ in pairs]),
        P: np.array([draw.random() < 0.5 for _ in pairs]), Q: np.array([draw.random() < 0.5 for _ in pairs]),
    }


COLUMNS = columns()


def check(node: s.Scalar) -> None:
    """Compare with the one definition, on every row."""
    found = np.broadcast_to(evaluate_columns(node, COLUMNS.get), (len(COLUMNS[A]),)).tolist()
    for row, value in enumerate(found):
        expected: Number = s.evaluate(node, lambda leaf, row=row: COLUMNS[leaf][row].item())  # type: ignore[misc]
        same = value == expected or (isinstance(expected, float) and math.isnan(expected) and math.isnan(value))
        assert same and isinstance(value, type(expected)), (print_scalar(node), row, value, expected)


@pytest.mark.parametrize("op", BINARY)
def test_every_operation_on_integers(op: Op) -> None:
    check(s.Binary(op, A, B))
    check(s.Binary(op, A, s.Const(3)))
    check(s.Binary(op, s.Const(-5), B))


@pytest.mark.parametrize("op", [op for op in BINARY if op not in LOGICAL and op is not Op.HASHMOD])
def test_every_operation_on_floats(op: Op) -> None:
    check(s.Binary(op, F, G))
    if op not in COMPARISONS:      # which Python makes exactly, and C as floats
        check(s.Binary(op, F, N))
    check(s.Binary(op, N, s.Const(0.5)))


@pytest.mark.parametrize("op", [*(op for op in BINARY if op not in (Op.DIV, Op.HASHMOD))])
def test_every_operation_on_conditions(op: Op) -> None:
    check(s.Binary(op, P, Q))
    check(s.Binary(op, P, N))


def test_operations_on_one_number() -> None:
    for value in (A, F, P):
        check(s.Unary(Op.NEG, value))
    check(s.Unary(Op.NOT, A))
    check(s.Unary(Op.NOT, P))


def test_a_choice_has_one_kind_whichever_side_holds() -> None:
    check(s.Select(P, A, B))
    check(s.Select(s.Binary(Op.LT, A, B), N, F))
    check(s.Select(s.Binary(Op.LT, A, B), P, A))


def test_sums_whose_bounds_and_bodies_differ_from_task_to_task() -> None:
    k = s.Var("k", 9)
    check(s.Sum(k, s.Const(0), N, s.Const(1), s.Binary(Op.ADD, k, N)))
    check(s.Sum(k, s.Const(2), s.Binary(Op.MUL, N, s.Const(3)), s.Const(2), s.Binary(Op.MUL, k, k)))
    check(s.Sum(k, N, s.Const(-1), s.Const(-1), k))
    check(s.Sum(k, s.Const(0), s.Const(4), s.Const(1), s.Binary(Op.MUL, k, F)))
    inner = s.Var("j", 10)
    check(s.Sum(k, s.Const(0), N, s.Const(1), s.Sum(inner, k, N, s.Const(1), s.Binary(Op.ADD, inner, s.Binary(Op.MUL, k, N)))))


def test_a_sum_of_more_turns_than_are_laid_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pto_wsp.timing.columns.TURNS_AT_A_TIME", 7)
    k = s.Var("k", 9)
    check(s.Sum(k, s.Const(0), N, s.Const(1), s.Binary(Op.ADD, k, N)))


def test_what_is_known_as_a_whole_is_not_taken_apart() -> None:
    whole = s.Binary(Op.ADD, A, s.Element(None, ()))  # type: ignore[arg-type]
    known = {whole: np.arange(3)}
    assert np.asarray(evaluate_columns(s.Binary(Op.MUL, whole, s.Const(2)), known.get)).tolist() == [0, 2, 4]


def test_what_nothing_knows_is_named() -> None:
    with pytest.raises(UnknownColumn, match=r"^n$"):
        evaluate_columns(s.Binary(Op.ADD, A, N), {A: np.arange(3)}.get)


def test_constants_wrap_as_64_bits_do() -> None:
    assert constant(1 << 63) == -(1 << 63) and constant(True).dtype == np.bool_ and constant(2.5) == 2.5
