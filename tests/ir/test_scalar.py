"""Scalar expressions: their meaning is that of Python's integers in 64 bits, and no simplification changes it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Binary, Const, Op, Unary, Var, apply_binary, binary, evaluate, print_scalar, unary

I64 = st.integers(-(1 << 63), (1 << 63) - 1)
SMALL = st.integers(-9, 9)
X, Y = Var("x", 0), Var("y", 1)
FLAG = Binary(Op.LT, X, Y)
FRACTION = s.SymbolRef("f", 7, DType.F64)
ARITHMETIC = (Op.ADD, Op.SUB, Op.MUL, Op.FLOORDIV, Op.MOD, Op.MIN, Op.MAX)
COMPARED = (Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE)


def value_of(node: s.Scalar, x: int = 0, y: int = 0, f: float = 0.0) -> s.Number:
    """Evaluate with values for the three leaves."""
    return evaluate(node, lambda leaf: {X: x, Y: y, FRACTION: f}[leaf])


def wrapped(value: int) -> int:
    """What 64 bits make of an integer, by NumPy."""
    return int(np.array([value % (1 << 64)], np.uint64).view(np.int64)[0])


# ---- meaning ----

@given(I64, I64)
def test_sums_and_products_wrap_as_numpys_do(a: int, b: int) -> None:
    left, right = np.array([a], np.int64), np.array([b], np.int64)
    with np.errstate(over="ignore"):
        expected = [int(found[0]) for found in (left + right, left - right, left * right)]
    assert [apply_binary(op, a, b) for op in (Op.ADD, Op.SUB, Op.MUL)] == expected


@given(I64, I64)
def test_floor_division_and_remainder_are_pythons(a: int, b: int) -> None:
    quotient, rest = (a // b, a % b) if b else (0, 0)
    assert (apply_binary(Op.FLOORDIV, a, b), apply_binary(Op.MOD, a, b)) == (wrapped(quotient), rest)


@pytest.mark.parametrize("a, b, quotient, rest", [
    (7, 2, 3, 1), (-7, 2, -4, 1), (7, -2, -4, -1), (-7, -2, 3, -1), (5, 0, 0, 0), (-(1 << 63), -1, -(1 << 63), 0),
])
def test_division_floors_and_by_zero_gives_zero(a: int, b: int, quotient: int, rest: int) -> None:
    assert (apply_binary(Op.FLOORDIV, a, b), apply_binary(Op.MOD, a, b)) == (quotient, rest)


@given(I64, I64)
def test_comparisons_are_pythons(a: int, b: int) -> None:
    found = [apply_binary(op, a, b) for op in COMPARED]
    assert found == [a == b, a != b, a < b, a <= b, a > b, a >= b]


def test_negating_the_smallest_integer_wraps() -> None:
    assert s.apply_unary(Op.NEG, -(1 << 63)) == -(1 << 63)


@pytest.mark.parametrize("value, expected", [(True, False), (False, True), (0, -1), (5, -6)])
def test_not_flips_a_condition_or_all_bits(value: s.Number, expected: s.Number) -> None:
    found = s.apply_unary(Op.NOT, value)
    assert found == expected and type(found) is type(expected)


def test_and_of_conditions_is_a_condition() -> None:
    assert apply_binary(Op.AND, True, False) is False
    assert apply_binary(Op.OR, True, False) is True
    assert apply_binary(Op.AND, 6, 3) == 2


@pytest.mark.parametrize("a, b, expected", [(1.0, 0.0, math.inf), (-1.0, 0.0, -math.inf), (1, 4, 0.25), (7, 0, math.inf)])
def test_true_division_is_that_of_doubles(a: s.Number, b: s.Number, expected: float) -> None:
    assert apply_binary(Op.DIV, a, b) == expected


def test_zero_over_zero_and_the_minimum_with_nan_are_nan() -> None:
    assert math.isnan(float(apply_binary(Op.DIV, 0.0, 0.0)))
    assert math.isnan(float(apply_binary(Op.MIN, math.nan, 1.0)))
    assert math.isnan(float(apply_binary(Op.MAX, 1.0, math.nan)))


@pytest.mark.parametrize("a, b", [(7.5, 2.0), (-7.5, 2.0), (7.5, -2.0), (-7.5, -2.0)])
def test_float_floor_division_and_remainder_are_numpys(a: float, b: float) -> None:
    assert apply_binary(Op.FLOORDIV, a, b) == np.floor_divide(a, b)
    assert apply_binary(Op.MOD, a, b) == np.mod(a, b)


def test_select_reads_only_the_side_that_it_takes() -> None:
    node = s.Select(FLAG, X, FRACTION)
    assert evaluate(node, lambda leaf: {X: 1, Y: 2}[leaf]) == 1


def test_a_condition_selected_beside_an_integer_is_an_integer() -> None:
    node = unary(Op.NOT, s.select(FLAG, FLAG, X))
    assert value_of(node, x=0, y=1) == -2


def test_sum_adds_its_body_over_the_range() -> None:
    k = Var("k", 9)
    node = s.Sum(k, Const(1), X, Const(3), Binary(Op.MUL, k, Y))
    assert value_of(node, x=8, y=10) == (1 + 4 + 7) * 10


def test_ceil_div_of_integers_rounds_up() -> None:
    for a in range(-9, 10):
        for b in (1, 2, 3, 7):
            assert value_of(s.ceil_div(X, Const(b)), x=a) == math.ceil(a / b)
            assert value_of(s.ceil_div(X, Y), x=a, y=b) == math.ceil(a / b)


def test_ceil_div_of_a_float_rounds_up() -> None:
    assert value_of(s.ceil_div(FRACTION, Const(4)), f=4.5) == 2


def test_ceil_div_by_zero_is_zero() -> None:
    assert value_of(s.ceil_div(X, Y), x=5, y=0) == 0


# ---- simplification ----

def trees(leaf_values: st.SearchStrategy[int]) -> st.SearchStrategy[s.Scalar]:
    """Expressions over x and y, unsimplified."""
    leaves = st.one_of(st.builds(Const, leaf_values), st.sampled_from([X, Y]))

    def grow(inner: st.SearchStrategy[s.Scalar]) -> st.SearchStrategy[s.Scalar]:
        comparison = st.builds(Binary, st.sampled_from(COMPARED), inner, inner)
        return st.one_of(st.builds(Binary, st.sampled_from(ARITHMETIC), inner, inner), st.builds(Unary, st.just(Op.NEG), inner),
                         comparison, st.builds(Unary, st.just(Op.NOT), comparison),
                         st.builds(Binary, st.sampled_from((Op.AND, Op.OR)), comparison, comparison),
                         st.builds(s.Select, comparison, inner, inner))
    return st.recursive(leaves, grow, max_leaves=12)


def rebuilt(node: s.Scalar) -> s.Scalar:
    """Build the tree again through the functions that simplify."""
    match node:
        case Unary(op, value):
            return unary(op, rebuilt(value))
        case Binary(op, lhs, rhs):
            return binary(op, rebuilt(lhs), rebuilt(rhs))
        case s.Select(condition, then, other):
            return s.select(rebuilt(condition), rebuilt(then), rebuilt(other))
        case _:
            return node


@given(trees(st.one_of(SMALL, I64)), I64, I64)
def test_simplified_expressions_keep_their_value(tree: s.Scalar, x: int, y: int) -> None:
    assert value_of(rebuilt(tree), x, y) == value_of(tree, x, y)


@given(trees(SMALL))
def test_simplified_expressions_keep_integers_in_64_bits(tree: s.Scalar) -> None:
    def constants(node: s.Scalar) -> list[int]:
        own = [int(node.value)] if isinstance(node, Const) else []
        return own + [c for child in s.children(node) for c in constants(child)]
    assert all(-(1 << 63) <= c < 1 << 63 for c in constants(rebuilt(tree)))


def test_constants_beyond_64_bits_never_appear_by_regrouping() -> None:
    top = (1 << 63) - 1
    node = s.add(s.add(X, Const(top)), Const(top))
    assert value_of(node, x=5) == wrapped(5 + 2 * top)
    assert print_scalar(node) == "x - 2"


@pytest.mark.parametrize("node, text", [
    (s.sub(s.mul(s.add(X, Const(1)), Const(16)), s.mul(X, Const(16))), "16"),
    (s.add(s.add(X, Const(1)), Const(2)), "x + 3"),
    (s.sub(s.add(X, Const(2)), Const(5)), "x - 3"),
    (s.sub(X, X), "0"),
    (s.add(X, Const(0)), "x"),
    (s.mul(Const(1), X), "x"),
    (s.mul(X, Const(0)), "0"),
    (binary(Op.FLOORDIV, X, Const(1)), "x"),
    (s.minimum(X, X), "x"),
    (s.sub(Const(5), X), "-x + 5"),
    (s.select(Const(False), X, Y), "y"),
], ids=str)
def test_expressions_become_simple(node: s.Scalar, text: str) -> None:
    assert print_scalar(node) == text


@pytest.mark.parametrize("build", [
    lambda: binary(Op.FLOORDIV, FRACTION, Const(1)),
    lambda: binary(Op.MUL, FRACTION, Const(0)),
    lambda: binary(Op.SUB, FRACTION, FRACTION),
])
def test_a_float_is_not_simplified_away(build: Callable[[], s.Scalar]) -> None:
    assert isinstance(build(), Binary)


def test_floor_division_of_a_float_by_one_drops_its_fraction() -> None:
    assert value_of(binary(Op.FLOORDIV, FRACTION, Const(1)), f=2.75) == 2.0


@pytest.mark.parametrize("build", [
    lambda flag: s.add(Const(0), flag), lambda flag: s.mul(flag, Const(1)), lambda flag: s.sub(s.add(flag, Const(1)), Const(1)),
    lambda flag: unary(Op.NEG, unary(Op.NEG, flag)),
])
def test_a_condition_in_arithmetic_is_an_integer(build: Callable[[s.Scalar], s.Scalar]) -> None:
    node = build(FLAG)
    assert s.scalar_dtype(node) is DType.I64
    assert value_of(unary(Op.NOT, node), x=0, y=1) == -2


@given(trees(SMALL), SMALL, SMALL)
def test_scalar_dtype_foretells_the_kind_of_value(tree: s.Scalar, x: int, y: int) -> None:
    node = rebuilt(tree)
    assert isinstance(value_of(node, x, y), bool) == (s.scalar_dtype(node) is DType.BOOL)


# ---- text ----

SCOPE = {"min": min, "max": max, "where": lambda condition, then, other: then if condition else other}


def division_free(node: s.Scalar) -> bool:
    """Python raises where we give 0, so divisions stay out of what Python evaluates."""
    own = isinstance(node, Binary) and node.op in (Op.FLOORDIV, Op.MOD)
    flips = isinstance(node, Unary) and node.op is Op.NOT   # Python's ~True is -2
    return not own and not flips and all(division_free(child) for child in s.children(node))


@given(trees(SMALL).filter(division_free), SMALL, SMALL)
def test_printed_expressions_mean_the_same_in_python(tree: s.Scalar, x: int, y: int) -> None:
    assert eval(print_scalar(tree), SCOPE, {"x": x, "y": y}) == value_of(tree, x, y)


@pytest.mark.parametrize("node, text", [
    (Binary(Op.MUL, Binary(Op.ADD, X, Y), Const(2)), "(x + y) * 2"),
    (Binary(Op.SUB, X, Binary(Op.SUB, Y, Const(1))), "x - (y - 1)"),
    (Binary(Op.SUB, Binary(Op.SUB, X, Y), Const(1)), "x - y - 1"),
    (Unary(Op.NEG, Binary(Op.MUL, X, Y)), "-(x * y)"),
    (Binary(Op.AND, FLAG, Unary(Op.NOT, FLAG)), "(x < y) & ~(x < y)"),
    (Binary(Op.MOD, X, Binary(Op.FLOORDIV, Y, Const(3))), "x % (y // 3)"),
    (Binary(Op.LT, FLAG, FLAG), "(x < y) < (x < y)"),
    (s.Select(FLAG, X, Const(1)), "where(x < y, x, 1)"),
], ids=str)
def test_printed_expressions_have_the_parentheses_that_they_need(node: s.Scalar, text: str) -> None:
    assert print_scalar(node) == text


# ---- walking ----

def test_substitute_simplifies_on_the_way() -> None:
    node = Binary(Op.ADD, Binary(Op.MUL, X, Const(4)), Y)
    assert print_scalar(s.substitute(node, lambda leaf: Const(3) if leaf == X else None)) == "y + 12"


def test_leaves_are_those_of_all_operands() -> None:
    node = s.Select(FLAG, Unary(Op.NEG, FRACTION), Const(2))
    assert s.leaves(node) == (X, Y, FRACTION)


# ---- the hash ----

def fnv(data: bytes) -> int:
    """FNV-1a as its authors write it."""
    state = 14695981039346656037
    for byte in data:
        state = ((state ^ byte) * 1099511628211) & 0xFFFFFFFFFFFFFFFF
    return state


def test_the_reference_hash_gives_the_published_values() -> None:
    assert fnv(b"") == 0xCBF29CE484222325
    assert fnv(b"a") == 0xAF63DC4C8601EC8C
    assert fnv(b"foobar") == 0x85944171F73967E8


@given(I64)
def test_fnv1a64_hashes_the_eight_little_endian_bytes(value: int) -> None:
    assert s.fnv1a64(value) == fnv(value.to_bytes(8, "little", signed=True))


@given(I64, st.integers(1, 64))
def test_hashmod_is_the_hash_modulo_n(value: int, n: int) -> None:
    assert apply_binary(Op.HASHMOD, value, n) == fnv(value.to_bytes(8, "little", signed=True)) % n
