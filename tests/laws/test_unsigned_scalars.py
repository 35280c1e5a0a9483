"""Scalars of 64 bits, unsigned and signed, at the ends of their ranges: both targets do what Python's integers do, as long as a result
fits what it is held in, and else leave the same bits. Workload expressions, kernels' own, conditions, loop bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pto_wsp import DType, Out, P, PtoError, Scalar, Tensor, Tile, kernel, maximum, minimum, pto, workload
from tests.tolerances import Array

I64, U64 = DType.I64, DType.U64
UNSIGNED = (0, 1, 5, 7, 2**31, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1)
SIGNED = (-2**63, -2**63 + 1, -7, -1, 0, 1, 3, 2**62, 2**63 - 1)
LOW, HIGH = -2**63, 2**63 - 1


@dataclass(frozen=True)
class Leaf:
    """An element: `unsigned` tells of which tensor. Each task reads another one."""

    unsigned: bool
    step: int


@dataclass(frozen=True)
class Number:
    value: int


@dataclass(frozen=True)
class Apply:
    op: str
    args: tuple[Expr, ...]


Expr: TypeAlias = Leaf | Number | Apply

RING = ("+", "-", "*")
OTHERS = ("//", "%", "min", "max")
COMPARE = ("<", "<=", ">", ">=", "==", "!=")


class Wrapped(Exception):
    """A result does not fit what holds it: both targets wrap it, and no integer of Python's says to what."""


def by_hand(expr: Expr, unsigned: int, signed: int) -> tuple[int, bool]:
    """Return the value with Python's integers, and whether it is held as an unsigned number.

    Raises: Wrapped.
    """
    match expr:
        case Leaf(True):
            return unsigned, True
        case Leaf(False):
            return signed, False
        case Number(value):
            return value, False
        case Apply("where", (condition, then, other)):
            assert isinstance(condition, Apply)
            chosen = by_hand(then if holds(condition, unsigned, signed) else other, unsigned, signed)[0]
            return fitted(chosen, pair([then, other], unsigned, signed))
        case Apply(op, (lhs, rhs)):
            left, right = by_hand(lhs, unsigned, signed)[0], by_hand(rhs, unsigned, signed)[0]
            kinds = [is_unsigned(lhs), is_unsigned(rhs)]
            held = any(kinds) if op == "max" else False if op == "-" else pair([lhs, rhs], unsigned, signed)
            value = {"+": lambda: left + right, "-": lambda: left - right, "*": lambda: left * right, "min": lambda: min(left, right),
                     "max": lambda: max(left, right), "//": lambda: left // right if right else 0,
                     "%": lambda: left % right if right else 0}[op]()
            return fitted(value, held)
    raise AssertionError(expr)


def is_unsigned(expr: Expr) -> bool:
    match expr:
        case Leaf(unsigned):
            return unsigned
        case Apply("max", (lhs, rhs)):
            return is_unsigned(lhs) or is_unsigned(rhs)
        case Apply("where", (_, *sides)) | Apply("+" | "*" | "//" | "%" | "min", (*sides,)):
            return pair(sides, 0, 0)
        case _:
            return False


def pair(sides: list[Expr], unsigned: int, signed: int) -> bool:
    """Unsigned with unsigned stays so, and with a number that is not negative."""
    kinds = [is_unsigned(side) for side in sides]
    return any(kinds) and all(kind or (isinstance(side, Number) and side.value >= 0) for kind, side in zip(kinds, sides, strict=True))


def fitted(value: int, unsigned: bool) -> tuple[int, bool]:
    if not (0 <= value < 2**64 if unsigned else LOW <= value <= HIGH):
        raise Wrapped
    return value, unsigned


def holds(condition: Apply, unsigned: int, signed: int) -> bool:
    left, right = (by_hand(side, unsigned, signed)[0] for side in condition.args)
    return bool({"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right, "==": left == right,
                 "!=": left != right}[condition.op])


def spelled(expr: Expr, unsigned: Any, signed: Any) -> Any:
    """Return the expression as a user writes it."""
    match expr:
        case Leaf(kind):
            return unsigned if kind else signed
        case Number(value):
            return value
        case Apply("where", (condition, then, other)):
            return spelled(condition, unsigned, signed).where(spelled(then, unsigned, signed), spelled(other, unsigned, signed))
        case Apply(op, (lhs, rhs)):
            left, right = spelled(lhs, unsigned, signed), spelled(rhs, unsigned, signed)
            functions: dict[str, Callable[[], Any]] = {
                "+": lambda: left + right, "-": lambda: left - right, "*": lambda: left * right, "//": lambda: left // right,
                "%": lambda: left % right, "min": lambda: minimum(left, right), "max": lambda: maximum(left, right),
                "<": lambda: left < right, "<=": lambda: left <= right, ">": lambda: left > right, ">=": lambda: left >= right,
                "==": lambda: left == right, "!=": lambda: left != right}
            return functions[op]()
    raise AssertionError(expr)


@kernel
def keep(n: Scalar[U64], f: Scalar[DType.F64], y: Out[Tile[1, 2, U64]], z: Out[Tile[1, 1, DType.F64]]) -> None:
    pto.store(y, pto.full((1, 2), n, U64))
    pto.store(z, pto.full((1, 1), f, DType.F64))


def outcomes(exprs: list[Expr], condition: Apply) -> Iterator[tuple[str, Array, Array]]:
    """Yield what each target leaves of expressions in the workload, in a kernel, and behind a condition; one row for a pair of leaves."""
    pairs = [(a, b) for a in UNSIGNED for b in SIGNED]
    T = Tensor(np.array([a for a, _ in pairs], np.uint64), name="T")
    S = Tensor(np.array([b for _, b in pairs], np.int64), name="S")
    y, z = np.zeros((len(exprs) + 2, len(pairs), 2), np.uint64), np.zeros((len(exprs), len(pairs), 1))
    Y, Z = Tensor(y, name="Y"), Tensor(z, name="Z")

    @kernel
    def inside(t: Scalar[U64], s: Scalar[I64], out: Out[Tile[1, 2, U64]]) -> None:
        pto.store(out, pto.full((1, 2), spelled(exprs[0], t, s), U64))

    @kernel
    def told(n: Scalar[U64], out: Out[Tile[1, 2, U64]]) -> None:
        pto.store(out, pto.full((1, 2), n, U64))

    @workload
    def all_of_them() -> None:
        for k in P(len(pairs)):
            for row, expr in enumerate(exprs):
                value = spelled(expr, T[k], S[k])
                keep[k](value, value, Y[row, k:k + 1], Z[row, k:k + 1])
            inside[k](T[k], S[k], Y[len(exprs), k:k + 1])
            with P.when(spelled(condition, T[k], S[k])):
                told[k](1, Y[len(exprs) + 1, k:k + 1])
            with P.otherwise():
                told[k](2, Y[len(exprs) + 1, k:k + 1])

    for target in ("interp", "cpu_sim"):
        y[...], z[...] = 0, 0
        program = all_of_them().compile(target=target).run()
        assert program.stats.total_cycles > 0
        yield target, y[..., 0].copy(), z[..., 0].copy()


def check(exprs: list[Expr], condition: Apply) -> None:
    """Raise AssertionError unless both targets leave what Python's integers say, and the same where a result wraps."""
    (_, wanted, reals), (_, found, other_reals) = outcomes(exprs, condition)
    assert np.array_equal(wanted, found), (exprs, condition)
    assert np.array_equal(reals, other_reals), (exprs, condition)
    for column, (a, b) in enumerate((a, b) for a in UNSIGNED for b in SIGNED):
        for row, expr in enumerate([*exprs, exprs[0]]):
            try:
                value = by_hand(expr, a, b)[0]
            except Wrapped:
                continue
            assert int(found[row, column]) == value % 2**64, (expr, a, b)
            assert row == len(exprs) or float(reals[row, column]) == float(value), (expr, a, b)
        try:
            truth = holds(condition, a, b)
        except Wrapped:
            continue
        assert int(found[len(exprs) + 1, column]) == (1 if truth else 2), (condition, a, b)


def exprs(depth: int) -> st.SearchStrategy[Any]:
    """Draw an expression of some operations; one that reads no element is no scalar of a run."""
    leaf = st.one_of(st.builds(Leaf, st.booleans(), st.just(0)), st.builds(Leaf, st.just(True), st.just(0)),
                     st.builds(Number, st.sampled_from((-3, -1, 0, 1, 2, 7, 2**62))))
    if depth == 0:
        return leaf
    inner = exprs(depth - 1)
    return st.one_of(leaf, st.builds(Apply, st.sampled_from((*RING, *OTHERS, *OTHERS)), st.tuples(inner, inner)),
                     st.builds(lambda c, a, b: Apply("where", (c, a, b)), conditions(depth - 1), inner, inner))


def conditions(depth: int) -> st.SearchStrategy[Any]:
    inner = exprs(depth)
    return st.builds(Apply, st.sampled_from(COMPARE), st.tuples(st.builds(Leaf, st.booleans(), st.just(0)), inner))


def reads(expr: Expr) -> bool:
    return isinstance(expr, Leaf) or (isinstance(expr, Apply) and any(map(reads, expr.args)))


T, S = Leaf(True, 0), Leaf(False, 0)
BASIC: list[Expr] = [Apply(op, args) for op in (*RING, *OTHERS) for args in ((T, S), (S, T), (T, T), (T, Number(7)), (T, Number(-3)))]


@pytest.mark.slow
@pytest.mark.parametrize("op", COMPARE)
def test_operations_at_the_ends_of_the_ranges(op: str) -> None:
    part = len(BASIC) // len(COMPARE) + 1
    k = COMPARE.index(op)
    check(BASIC[k * part:(k + 1) * part], Apply(op, ((T, S) if k % 2 else (S, T))))


@pytest.mark.slow
@given(st.lists(exprs(3).filter(reads), min_size=3, max_size=3), conditions(2))
@settings(max_examples=10)
def test_expressions_at_the_ends_of_the_ranges(drawn: list[Expr], condition: Apply) -> None:
    check(drawn, condition)


@pytest.mark.parametrize("target", ["interp", "cpu_sim"])
def test_a_length_past_the_signed_ones_is_refused_with_the_number(target: str) -> None:
    lens, y = Tensor(np.array([2**63 + 3], np.uint64), name="lens"), Tensor(np.zeros((4, 2), np.uint64), name="Y")

    @kernel
    def told(out: Out[Tile[1, 2, U64]]) -> None:
        pto.store(out, pto.full((1, 2), 1, U64))

    @workload
    def long() -> None:
        for k in P(lens[0]):
            told[k](y[k:k + 1])

    with pytest.raises(PtoError) as caught:
        long().compile(target=target).run()
    assert caught.value.code == "R104" and str(2**63 + 3) in str(caught.value.found)
