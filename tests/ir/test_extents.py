"""Extents in normal form: equality, simplification, products and exact division, against their values on numbers."""

import random

import pytest

from pto_wsp.ir.dtype import DType
from pto_wsp.ir.extents import difference, divided, product, same, simplified
from pto_wsp.ir.layout import TensorRef
from pto_wsp.ir.scalar import (
    Binary,
    Const,
    Element,
    Op,
    Scalar,
    SymbolRef,
    Var,
    add,
    binary,
    ceil_div,
    evaluate,
    maximum,
    minimum,
    mul,
    print_scalar,
    sub,
)

N, T, J = SymbolRef("n", 0), SymbolRef("t", 1), Var("j", 0)
STARTS = TensorRef(7, (9,), DType.I32, "starts")


def whole(number: int) -> Const:
    return Const(number)


@pytest.mark.parametrize(("a", "b"), [
    (mul(add(N, whole(1)), add(T, whole(2))), add(add(mul(N, T), mul(whole(2), N)), add(T, whole(2)))),
    (sub(add(J, N), J), N),
    (sub(minimum(add(J, whole(16)), N), J), minimum(whole(16), sub(N, J))),
    (maximum(N, T), sub(add(N, T), minimum(N, T))),
    (Binary(Op.MOD, N, whole(16)), sub(N, mul(binary(Op.FLOORDIV, N, whole(16)), whole(16)))),
    (binary(Op.FLOORDIV, add(mul(N, whole(32)), whole(5)), whole(16)), mul(N, whole(2))),
    (binary(Op.FLOORDIV, binary(Op.FLOORDIV, N, whole(4)), whole(2)), binary(Op.FLOORDIV, N, whole(8))),
    (minimum(N, add(N, whole(4))), N),
    (sub(Element(STARTS, (add(J, whole(1)),)), Element(STARTS, (add(whole(1), J),))), whole(0)),
])
def test_equal_extents_are_same(a: Scalar, b: Scalar) -> None:
    assert same(a, b) and same(b, a)


@pytest.mark.parametrize(("a", "b"), [(N, T), (mul(N, whole(2)), mul(N, N)), (minimum(N, T), N), (ceil_div(N, whole(2)), N),
                                      (N, SymbolRef("n", 5)), (Element(STARTS, (J,)), Element(STARTS, (whole(0),)))])
def test_different_extents_are_not_same(a: Scalar, b: Scalar) -> None:
    assert not same(a, b)
    assert difference(a, b) is None


def test_the_difference_of_shifted_extents_is_a_number() -> None:
    assert difference(add(mul(N, T), whole(7)), mul(T, N)) == 7


@pytest.mark.parametrize(("extent", "text"), [
    (sub(add(N, add(J, N)), whole(3)), "j + n * 2 - 3"),
    (minimum(N, minimum(whole(16), whole(8))), "min(8, n)"),
    (sub(whole(0), N), "-n"),
    (mul(add(N, whole(1)), N), "n * n + n"),
    (add(binary(Op.FLOORDIV, mul(N, whole(4)), whole(8)), whole(0)), "n // 2"),
    (binary(Op.FLOORDIV, add(mul(N, whole(4)), whole(3)), whole(8)), "n // 2"),
])
def test_simplified_extents_read_well(extent: Scalar, text: str) -> None:
    assert print_scalar(simplified(extent)) == text


def test_a_minimum_keeps_its_number_first() -> None:
    found = simplified(minimum(minimum(N, whole(16)), T))
    assert isinstance(found, Binary) and found.lhs == whole(16)


def test_products_and_their_exact_division() -> None:
    assert product(()) == whole(1)
    whole_size = product((N, whole(6), add(T, whole(1))))
    assert divided(whole_size, product((N, whole(2)))) == simplified(mul(whole(3), add(T, whole(1))))
    assert divided(whole_size, add(T, whole(1))) == mul(N, whole(6))
    assert divided(whole_size, whole(4)) is None and divided(whole_size, T) is None and divided(N, whole(0)) is None
    assert divided(whole(0), N) == whole(0)


def test_floats_and_conditions_stay_as_they_are() -> None:
    for node in (Binary(Op.DIV, N, whole(2)), Binary(Op.LT, N, T), Const(1.5)):
        assert simplified(node) is node


def generated(seed: random.Random, depth: int) -> Scalar:
    if depth == 0 or seed.random() < 0.2:
        return seed.choice((N, T, J, whole(seed.randint(-5, 9)), Element(STARTS, (J,))))
    kind = seed.choice(("add", "sub", "mul", "floor", "mod", "min", "max"))
    lhs = generated(seed, depth - 1)
    if kind in ("floor", "mod"):
        return Binary(Op.FLOORDIV if kind == "floor" else Op.MOD, lhs, whole(seed.randint(1, 9)))
    op = {"add": Op.ADD, "sub": Op.SUB, "mul": Op.MUL, "min": Op.MIN, "max": Op.MAX}[kind]
    return Binary(op, lhs, generated(seed, depth - 1))


@pytest.mark.slow
def test_simplification_keeps_values_and_equality() -> None:
    seed = random.Random(3)
    for _ in range(400):
        extent = generated(seed, 4)
        shorter = simplified(extent)
        assert same(extent, shorter) and simplified(shorter) == shorter
        for _ in range(4):
            numbers = {N: seed.randint(-3, 30), T: seed.randint(0, 30), J: seed.randint(-4, 20)}
            def leaf(node: Scalar, numbers: dict[Scalar, int] = numbers) -> int:
                return numbers[node] if node in numbers else 11 + 3 * numbers[J]
            assert evaluate(shorter, leaf) == evaluate(extent, leaf), print_scalar(extent)


def test_what_is_same_has_equal_values() -> None:
    seed = random.Random(4)
    compared = 0
    for _ in range(300):
        a, b = generated(seed, 3), generated(seed, 3)
        apart = difference(a, b)
        for _ in range(3):
            numbers = {N: seed.randint(0, 30), T: seed.randint(0, 30), J: seed.randint(0, 20)}
            def leaf(node: Scalar, numbers: dict[Scalar, int] = numbers) -> int:
                return numbers[node] if node in numbers else 11 + 3 * numbers[J]
            if apart is not None:
                compared += 1
                assert int(evaluate(a, leaf)) - int(evaluate(b, leaf)) == apart
    assert compared > 10
