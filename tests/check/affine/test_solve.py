"""The solver by hand: each case says what a person would conclude, and why it is not obvious."""

from __future__ import annotations

import pytest

from pto_wsp.check.affine.linear import LinExpr, System, Variable, fresh_variable
from pto_wsp.check.affine.solve import Sat, Unknown, Unsat, counterexample, implies, solve
from pto_wsp.check.verdict import Verdict


def var(name: str) -> LinExpr:
    return LinExpr.of(name)


def point(system: System) -> dict[object, int]:
    answer = solve(system)
    assert isinstance(answer, Sat), answer
    assert system.holds(answer.point)
    return dict(answer.point)


def is_empty(system: System) -> bool:
    answer = solve(system)
    assert not isinstance(answer, Unknown)
    return isinstance(answer, Unsat)


x, y, z, n = var("x"), var("y"), var("z"), var("n")


def test_nothing_demanded_always_holds() -> None:
    assert point(System()) == {}


def test_a_constant_alone_decides() -> None:
    assert is_empty(System().at_least(LinExpr.known(-1)))
    assert is_empty(System().equal(LinExpr.known(1)))
    assert point(System().at_least(LinExpr.known(0)).equal(LinExpr.known(0))) == {}


def test_a_clause_of_nothing_never_holds() -> None:
    assert is_empty(System().either())


def test_even_is_not_odd() -> None:
    assert is_empty(System().equal(2 * x - 2 * y, 1))
    assert is_empty(System().equal(6 * x + 10 * y + 15 * z, 1).equal(y, 2 * x).equal(z, 2 * y))   # 86x == 1


def test_three_and_five_reach_one() -> None:
    assert point(System().equal(3 * x + 5 * y, 1)) == {"x": 2, "y": -1}


def test_three_and_five_of_not_negative_numbers_do_not_reach_seven() -> None:
    both = System().at_least(x).at_least(y)
    assert is_empty(both.branch().equal(3 * x + 5 * y, 7))
    assert point(both.branch().equal(3 * x + 5 * y, 8)) == {"x": 1, "y": 1}


def test_a_range_between_two_multiples_is_empty() -> None:
    assert is_empty(System().within(4 * x, 5, 8))
    assert point(System().within(4 * x, 5, 9)) == {"x": 2}


def test_the_real_shadow_is_not_enough() -> None:
    # Pugh's example: a thin lozenge with real points but no integer ones.
    lozenge = System().within(11 * x + 13 * y, 27, 46).within(7 * x - 9 * y, -10, 5)
    assert is_empty(lozenge)
    assert point(System().within(11 * x + 13 * y, 24, 46).within(7 * x - 9 * y, -10, 5)) == {"x": 1, "y": 1}


def test_large_strides_of_a_dense_tensor_keep_elements_apart() -> None:
    # [64, 128] rows of 4096 batches: equal addresses only for equal indices.
    left, right = [[var(f"{name}{side}") for name in ("b", "h", "d")] for side in (0, 1)]
    system = System()
    for b, h, d in (left, right):
        system.within(b, 0, 4096).within(h, 0, 64).within(d, 0, 128)
    address = [4096 * 64 * 128 * b + 128 * 4096 * h + 4096 * d for b, h, d in (left, right)]
    system.equal(address[0], address[1])
    assert is_empty(system.branch().differ(left[0], right[0]))
    assert is_empty(system.branch().differ(left[2], right[2]))
    assert not is_empty(system)


def test_numbers_beyond_64_bits_stay_exact() -> None:
    huge = 1 << 200
    assert is_empty(System().equal(huge * x, huge * y + 1))
    assert point(System().equal(x, huge)) == {"x": huge}


def test_tiles_of_a_symbolic_number_are_disjoint() -> None:
    i, j, e = var("i"), var("j"), var("e")
    tiles = System().within(i, 0, n).within(j, 0, n).within(e, 16 * i, 16 * i + 16).within(e, 16 * j, 16 * j + 16)
    assert is_empty(tiles.branch().below(i, j))
    halo = System().within(i, 0, n).within(j, 0, n).within(e, 16 * i, 16 * i + 17).within(e, 16 * j, 16 * j + 16).below(i, j)
    assert point(halo) == {"i": 0, "j": 1, "e": 16, "n": 2}


def test_points_are_small() -> None:
    assert point(System().at_least(x, -7).at_least(-x, -9)) == {"x": 0}
    assert point(System().at_least(x, 100)) == {"x": 100}
    assert point(System().at_least(-x, 3)) == {"x": -3}
    assert point(System().differ(x, 0)) == {"x": 1}


def test_a_point_is_the_same_each_time() -> None:
    system = System().within(3 * x - 5 * y, 1, n).within(n, 4, 90).differ(x, y)
    assert point(system) == point(system.branch())


def test_clauses_are_all_looked_at() -> None:
    system = System()
    for name in "abcdef":
        system.either(System().equal(var(name), 1), System().equal(var(name), -1))
    total = sum((var(name) for name in "abcdef"), LinExpr.known(0))
    assert is_empty(system.branch().equal(total, 3))
    assert sorted(point(system.branch().equal(total, 4)).values()) == [-1, 1, 1, 1, 1, 1]


def test_many_clauses_end() -> None:
    """A million ways to add up to an odd number, none of which does: given up, soon."""
    system = System()
    names = [f"v{at}" for at in range(20)]
    for name in names:
        system.either(System().equal(var(name), 1), System().equal(var(name), -1))
    total = sum((var(name) for name in names), LinExpr.known(0))
    assert solve(system.branch().equal(total, 1)) == Unknown()
    assert isinstance(solve(system.branch().equal(total, 16)), Sat)


def test_clauses_inside_of_clauses() -> None:
    inner = System().either(System().equal(x, 5), System().equal(x, 7))
    system = System().either(inner, System().equal(x, 9)).at_least(x, 6)
    assert point(system) == {"x": 7}
    assert point(system.branch().at_least(x, 8)) == {"x": 9}
    assert is_empty(system.branch().at_least(x, 10))


def test_a_branch_grows_on_its_own() -> None:
    stem = System().at_least(x, 1)
    branch = stem.branch().at_least(-x, 0)
    assert is_empty(branch)
    assert point(stem) == {"x": 1}


def test_facts_of_variables_hold_wherever_they_occur() -> None:
    half, rest = Variable("half"), Variable("rest")
    half.facts.within(x - 2 * LinExpr.of(half), 0, 2)
    rest.facts.equal(LinExpr.of(rest), x - 2 * LinExpr.of(half))
    assert point(System().equal(LinExpr.of(rest), 1).at_least(x, 6)) == {"x": 7, half: 3, rest: 1}
    assert is_empty(System().equal(LinExpr.of(rest), 2))
    assert point(System().at_least(x, 6)) == {"x": 6}


def test_facts_of_two_variables_hold_where_both_occur() -> None:
    first, second = Variable("first"), Variable("second")
    second.together.append((first, System().below(LinExpr.of(first), LinExpr.of(second))))
    assert point(System().at_least(LinExpr.of(second), -3)) == {second: 0}
    assert point(System().at_least(LinExpr.of(first), 4).at_least(LinExpr.of(second), -3)) == {first: 4, second: 5}


def test_fresh_variables_are_different() -> None:
    assert fresh_variable("q") != fresh_variable("q")


def test_what_a_system_implies() -> None:
    system = System().within(x, 0, n).below(n, 10)
    assert implies(system, 8 - x) is Verdict.PROVED
    assert implies(system, 7 - x) is Verdict.COUNTEREXAMPLE
    assert counterexample(system, 7 - x) == Sat({"x": 8, "n": 9})


def test_without_a_budget_nothing_is_said() -> None:
    system = System().within(11 * x + 13 * y, 27, 46).within(7 * x - 9 * y, -10, 5)
    assert solve(system, budget=0) == Unknown()
    assert implies(system, LinExpr.known(-1), budget=0) is Verdict.NOT_PROVED


@pytest.mark.parametrize("expr, text", [
    (2 * x - n + 3, "2*x - n + 3"), (-x, "-x"), (LinExpr.known(0), "0"), (LinExpr.known(-4), "-4"), (5 - x, "-x + 5"), (x - x, "0"),
])
def test_expressions_print(expr: LinExpr, text: str) -> None:
    assert str(expr) == text


def test_a_system_prints() -> None:
    assert str(System().equal(x, y).at_least(x, 2).differ(x, 3)) == "x - y == 0\nx - 2 >= 0\n(x - 4 >= 0) or (-x + 2 >= 0)"
    assert str(System()) == "always"


@pytest.mark.parametrize("n_loops", [1, 2, 3, 4, 6])
def test_tiles_of_a_nest_take_few_steps(n_loops: int) -> None:
    """Tiles of a nest with symbolic sizes, in as many dimensions: a small part of the budget, so that hundreds fit a compile."""
    one, two = ([var(f"{side}{at}") for at in range(n_loops)] for side in "ij")
    system = System()
    for at, (i, j) in enumerate(zip(one, two, strict=True)):
        where = var(f"e{at}")
        system.within(i, 0, var(f"n{at}")).within(j, 0, var(f"n{at}")).within(where, 0, var(f"s{at}"))
        system.within(where, 16 * i, 16 * i + 16).within(where, 16 * j, 16 * j + 16)
    for first in range(n_loops):
        apart = system.branch().below(one[first], two[first])
        for at in range(first):
            apart.equal(one[at], two[at])
        assert solve(apart, budget=200) == Unsat()
    assert isinstance(solve(system, budget=400), Sat)
