"""What is known of results: it holds of what a run computes, and where it is called exact, of nothing else."""

from __future__ import annotations

import itertools

import pytest

from pto_wsp.check.affine.linear import LinExpr, System
from pto_wsp.check.affine.scalars import Result, extreme_facts, product_facts, quotient_facts, same_where_equal
from pto_wsp.check.affine.solve import Sat, Unsat, solve
from pto_wsp.ir.scalar import Op, apply_binary

A, B, V, W = (LinExpr.of(name) for name in "abvw")
PLACES = list(itertools.product(range(-5, 6), repeat=2))


def at(a: int, b: int, v: int) -> dict[object, int]:
    return {"a": a, "b": b, "v": v}


@pytest.mark.parametrize("op", [Op.MIN, Op.MAX])
def test_extremes_are_exact(op: Op) -> None:
    facts = extreme_facts(op is Op.MIN, A, B, V)
    for a, b in PLACES:
        assert [v for v in range(-6, 7) if facts.holds(at(a, b, v))] == [apply_binary(op, a, b)]


def test_products_are_bounded_by_their_signs() -> None:
    facts = product_facts(A, B, V)
    for a, b in PLACES:
        allowed = [v for v in range(-30, 31) if facts.holds(at(a, b, v))]
        assert a * b in allowed
        least = abs(a) + abs(b) - 1
        assert allowed == ([0] if a * b == 0 else [v for v in range(-30, 31) if v * a * b > 0 and abs(v) >= least])


@pytest.mark.parametrize("op", [Op.FLOORDIV, Op.MOD])
def test_quotients_are_bounded_by_cases(op: Op) -> None:
    facts = quotient_facts(op is Op.MOD, A, B, V)
    for a, b in PLACES:
        allowed = [v for v in range(-8, 9) if facts.holds(at(a, b, v))]
        assert apply_binary(op, a, b) in allowed
        if b == 0 or (abs(a) < abs(b) and a * b >= 0):
            assert allowed == [apply_binary(op, a, b)]
        if op is Op.MOD:
            assert all(v == 0 or (abs(v) < abs(b) and v * b > 0) for v in allowed)
        else:
            assert all(abs(v) <= abs(a) for v in allowed)


def test_the_bounds_of_quotients_are_taken() -> None:
    """The least and the greatest value that the facts allow do occur for some divisor."""
    for a in range(-6, 7):
        quotients, rests = quotient_facts(False, A, B, V), quotient_facts(True, A, B, V)
        reached = {a // b for b in range(1, 20)}
        allowed = {v for v in range(-9, 10) for b in range(1, 20) if quotients.holds(at(a, b, v))}
        assert {min(reached), max(reached)} == {min(allowed), max(allowed)}
        assert all(rests.holds(at(a, b, a % b)) and not rests.holds(at(a, b, b)) for b in range(1, 20))


def test_elements_are_equal_where_all_indices_are() -> None:
    facts = same_where_equal(V, [A, B], W, [A + 1, LinExpr.known(2)])
    assert facts.holds({"v": 1, "w": 2, "a": 0, "b": 2})
    facts = same_where_equal(V, [A, B], W, [A, LinExpr.known(2)])
    assert not facts.holds({"v": 1, "w": 2, "a": 0, "b": 2})
    assert facts.holds({"v": 1, "w": 1, "a": 0, "b": 2})
    assert facts.holds({"v": 1, "w": 2, "a": 0, "b": 3})


@pytest.mark.sampled(3)
@pytest.mark.parametrize("op", [Op.MUL, Op.FLOORDIV, Op.MOD, Op.AND, Op.OR, Op.HASHMOD])
def test_the_cases_of_a_result_leave_the_value_of_a_run(op: Op) -> None:
    result = Result(op, A, B, V)
    for a, b in PLACES[::3]:
        cases = list(result.cases(at(a, b, 0)))
        assert cases
        for case in cases:
            for here in (case, case.branch().equal(A, a), case.branch().equal(B, b)):
                answer = solve(here)
                if here is not case and answer == Unsat():   # fixed at another number
                    continue
                assert isinstance(answer, Sat)
                found = {**at(a, b, 0), **answer.point}
                assert found["v"] == result.value(found) == apply_binary(op, found["a"], found["b"])
                assert solve(case.branch().equal(A, found["a"]).equal(B, found["b"]).differ(V, found["v"])) == Unsat()
        if op in (Op.MUL, Op.FLOORDIV, Op.MOD):   # the first fixes the divisor, or a factor, as it is there
            real = System().include(cases[0]).equal(A, a).equal(B, b)
            assert isinstance(solve(real), Sat)
