"""The translation of scalar expressions: what evaluate() gives is always allowed, and where nothing is opaque, nothing else is."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from pto_wsp.check.affine.linear import LinExpr, System, Variable, VarKind, closed
from pto_wsp.check.affine.scalars import Application, Translator
from pto_wsp.check.affine.solve import Sat, Unknown, Unsat, implies, reach, solve
from pto_wsp.check.verdict import Verdict
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.layout import TensorRef
from pto_wsp.ir.scalar import Binary, Const, Op, Scalar, Select, Unary, Var, print_scalar

A, B = Var("a", 1), Var("b", 2)
N = s.SymbolRef("n", 3)
TABLE = TensorRef(7, (4, 8), DType.I32, "table")
LENS = TensorRef(8, (16,), DType.U32, "lens")


def binary(op: Op) -> Callable[[Scalar, Scalar], Scalar]:
    return lambda lhs, rhs: Binary(op, lhs, rhs)


add, sub, mul, div, mod = map(binary, (Op.ADD, Op.SUB, Op.MUL, Op.FLOORDIV, Op.MOD))
low, high, lt, le, eq, ne, both, any_, bits = map(binary, (Op.MIN, Op.MAX, Op.LT, Op.LE, Op.EQ, Op.NE, Op.AND, Op.OR, Op.AND))


def kinds(system: System) -> set[VarKind]:
    return {key.kind for key in closed(system).variables() if isinstance(key, Variable)}


# ---- against evaluate ----

def leaf(rng: random.Random, most: int) -> Scalar:
    """Return a or b or a constant."""
    choices: tuple[Scalar, ...] = (A, B, Const(rng.randint(-most, most)))
    return rng.choice(choices)


def number(rng: random.Random, depth: int) -> Scalar:
    """Return a random integer expression of a and b."""
    if depth == 0 or rng.random() < 0.15:
        return leaf(rng, 6)
    kind = rng.randrange(10)
    left = number(rng, depth - 1)
    if kind < 3:
        return Binary(rng.choice([Op.ADD, Op.SUB, Op.MIN, Op.MAX]), left, number(rng, depth - 1))
    if kind < 6:
        return Binary(rng.choice([Op.MUL, Op.FLOORDIV, Op.MOD]), left, Const(rng.randint(-4, 5)))
    if kind == 6:
        return Unary(rng.choice([Op.NEG, Op.NOT]), left)
    if kind == 7:
        return Binary(Op.AND, left, Const(rng.choice([0, 1, 7])))
    if kind == 8:
        return Binary(Op.ADD, left, truth(rng, depth - 1))
    return Select(truth(rng, depth - 1), left, number(rng, depth - 1))


def truth(rng: random.Random, depth: int) -> Scalar:
    """Return a random condition on a and b."""
    if depth <= 0 or rng.random() < 0.5:
        return Binary(rng.choice(sorted(s.COMPARISONS, key=str)), number(rng, max(depth - 1, 0)), number(rng, max(depth - 1, 0)))
    kind = rng.randrange(4)
    if kind == 0:
        return Unary(Op.NOT, truth(rng, depth - 1))
    if kind == 3:
        return Select(truth(rng, depth - 1), truth(rng, depth - 1), truth(rng, depth - 1))
    return Binary(rng.choice([Op.AND, Op.OR]), truth(rng, depth - 1), truth(rng, depth - 1))


def here(a: int, b: int) -> tuple[Translator, System, Callable[[Scalar], int]]:
    translator = Translator()
    scope = translator.scope({})
    place = System().equal(scope.linear(A), a).equal(scope.linear(B), b)
    return translator, place, lambda node: int(s.evaluate(node, lambda leaf: {A: a, B: b}[leaf]))  # type: ignore[index]


@pytest.mark.parametrize("block", range(8))
def test_numbers_have_the_value_that_evaluate_gives_and_no_other(block: int) -> None:
    for seed in range(50 * block, 50 * block + 50):
        rng = random.Random(seed)
        node = number(rng, 3)
        translator, place, value = here(rng.randint(-9, 9), rng.randint(-9, 9))
        expr = translator.scope({}).linear(node)
        assert isinstance(solve(place.branch().equal(expr, value(node))), Sat), print_scalar(node)
        assert solve(place.branch().differ(expr, value(node))) == Unsat(), print_scalar(node)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("block", range(8))
def test_conditions_hold_where_evaluate_says_so_and_nowhere_else(block: int) -> None:
    for seed in range(50 * block, 50 * block + 50):
        rng = random.Random(1000 + seed)
        node = truth(rng, 3)
        translator, place, value = here(rng.randint(-9, 9), rng.randint(-9, 9))
        scope = translator.scope({})
        holds = bool(value(node))
        assert isinstance(solve(place.branch().include(scope.condition(node, holds))), Sat), print_scalar(node)
        assert solve(place.branch().include(scope.condition(node, not holds))) == Unsat(), print_scalar(node)
        assert solve(place.branch().equal(scope.linear(node), int(not holds))) == Unsat()


def wild(rng: random.Random, depth: int) -> Scalar:
    """Return a random integer expression with products, divisors that are not constant, bits and a hash."""
    if depth == 0:
        return leaf(rng, 3)
    op = rng.choice([Op.MUL, Op.MUL, Op.FLOORDIV, Op.MOD, Op.AND, Op.OR, Op.HASHMOD, Op.ADD, Op.SUB])
    right = Const(rng.randint(1, 9)) if op is Op.HASHMOD else wild(rng, depth - 1)
    return Binary(op, wild(rng, depth - 1), right)


@pytest.mark.parametrize("block", range(6))
def test_what_a_run_reaches_is_never_excluded(block: int) -> None:
    for seed in range(50 * block, 50 * block + 50):
        rng = random.Random(2000 + seed)
        first, second = wild(rng, 2), wild(rng, 2)
        translator, place, value = here(rng.randint(-5, 5), rng.randint(-5, 5))
        scope = translator.scope({})
        place.equal(scope.linear(first), value(first)).equal(scope.linear(second), value(second))
        assert isinstance(solve(place), Sat), (print_scalar(first), print_scalar(second))


# ---- by hand ----

def test_polarity_needs_no_variable() -> None:
    scope = Translator().scope({})
    assert not scope.condition(lt(A, low(N, Const(8)))).clauses
    assert not scope.condition(le(high(A, B), N)).clauses
    assert len(scope.condition(lt(A, high(N, Const(8)))).clauses) == 1
    assert not scope.condition(lt(A, high(N, Const(8))), holds=False).clauses


def test_quotients_split_off_what_divides() -> None:
    scope = Translator().scope({})
    assert str(scope.linear(div(add(mul(A, Const(16)), Const(35)), Const(16)))) == "a + 2"
    assert str(scope.linear(mod(add(mul(A, Const(16)), Const(35)), Const(16)))) == "3"
    tiles = scope.linear(div(add(N, Const(63)), Const(64)))
    n = scope.linear(N)
    assert implies(System(), 64 * tiles - n) is Verdict.PROVED
    assert implies(System(), n + 63 - 64 * tiles) is Verdict.PROVED
    assert implies(System(), n + 62 - 64 * tiles) is Verdict.COUNTEREXAMPLE


def test_rows_of_a_flattened_table_are_disjoint() -> None:
    """i·n + j with j < n names each element once, for every n."""
    translator = Translator()
    a, b, c, d = (LinExpr.of(name) for name in ("i", "j", "i2", "j2"))
    one, two = translator.scope({A: a, B: b}), translator.scope({A: c, B: d})
    flat = add(mul(A, N), B)
    n = one.linear(N)
    system = System().within(b, 0, n).within(d, 0, n).equal(one.linear(flat), two.linear(flat))
    assert solve(system.branch().below(a, c)) == Unsat()
    assert solve(system.branch().below(b, d)) == Unsat()
    assert VarKind.OPAQUE in kinds(system)


def test_neighbouring_blocks_of_a_symbolic_size_are_disjoint() -> None:
    translator = Translator()
    i, k, e = (LinExpr.of(name) for name in "ike")
    one, two = translator.scope({A: i}), translator.scope({A: k})
    start, stop = mul(A, N), mul(add(A, Const(1)), N)
    system = System()
    for scope in (one, two):
        system.within(e, scope.linear(start), scope.linear(stop))
    assert solve(system.branch().below(i, k)) == Unsat()
    assert isinstance(solve(system), Sat)


def test_equal_opaque_expressions_share_their_variable() -> None:
    translator = Translator()
    scope, other = translator.scope({A: LinExpr.of("i")}), translator.scope({A: LinExpr.of("k")})
    node = Binary(Op.OR, A, N)
    assert scope.linear(node) == scope.linear(node)
    assert scope.linear(node) != other.linear(node)
    assert scope.linear(mul(A, N)) == scope.linear(mul(N, A))


def test_what_belongs_to_a_task_is_never_the_same_twice() -> None:
    scope = Translator().scope({})
    for leaf in (s.TaskIndex(), s.SlotValue(3), s.ParamExtent("x", 0), s.BracketIndex(0)):
        assert scope.linear(leaf) != scope.linear(leaf)
    assert scope.linear(s.DimOf(TABLE, 0)) == scope.linear(s.DimOf(TABLE, 0))
    assert Translator().scope({s.SlotValue(3): LinExpr.known(5)}).linear(s.SlotValue(3)) == LinExpr.known(5)


def test_floats_are_only_compared_with_themselves() -> None:
    scope = Translator().scope({})
    node = lt(s.SymbolRef("x", 9, DType.F32), Const(0.5))
    assert solve(scope.condition(node).include(scope.condition(node, False))) == Unsat()
    assert isinstance(solve(scope.condition(node)), Sat)
    assert isinstance(solve(scope.condition(node, False)), Sat)


def test_extents_are_not_negative() -> None:
    scope = Translator().scope({})
    assert implies(System(), scope.linear(s.DimOf(TABLE, 0))) is Verdict.PROVED
    assert implies(System(), scope.linear(N)) is Verdict.COUNTEREXAMPLE
    assert implies(System(), scope.linear(s.SymbolRef("u", 4, DType.U32))) is Verdict.PROVED


def test_long_sums_are_no_deeper_than_they_look() -> None:
    node: Scalar = A
    for _ in range(400):
        node = add(mul(node, Const(1)), B)
    scope = Translator().scope({})
    assert scope.linear(node) == scope.linear(A) + scope.linear(B) * 400


# ---- elements of tables ----

def element(tensor: TensorRef, *index: Scalar) -> Scalar:
    return s.Element(tensor, index)


def test_elements_at_equal_indices_are_equal() -> None:
    translator = Translator()
    scope = translator.scope({})
    one, two = scope.linear(element(TABLE, A, Const(1))), scope.linear(element(TABLE, B, Const(1)))
    a, b = scope.linear(A), scope.linear(B)
    assert one != two
    apart = System().differ(one, two)
    assert isinstance(solve(apart), Sat)
    assert solve(apart.equal(a, b)) == Unsat()
    assert [application.tensor for application in translator.applications[TABLE]] == [TABLE, TABLE]


def test_elements_of_a_table_that_changes_are_not() -> None:
    scope = Translator(is_stable=lambda tensor: tensor is not TABLE).scope({})
    one, two = scope.linear(element(TABLE, A, B)), scope.linear(element(TABLE, A, B))
    assert isinstance(solve(System().differ(one, two)), Sat)
    assert kinds(System().at_least(one)) == {VarKind.OPAQUE}


def test_elements_have_the_range_of_their_dtype() -> None:
    scope = Translator().scope({})
    flags = TensorRef(9, (4,), DType.BOOL, "flags")
    assert implies(System(), scope.linear(element(LENS, A))) is Verdict.PROVED
    assert implies(System(), scope.linear(element(TABLE, A, B))) is Verdict.COUNTEREXAMPLE
    wide = TensorRef(10, (4,), DType.U64, "wide")   # a run sees the upper half as negative
    assert implies(System(), scope.linear(element(wide, A))) is Verdict.COUNTEREXAMPLE
    flag = element(flags, A)
    assert implies(System(), 1 - scope.linear(flag)) is Verdict.PROVED
    assert solve(scope.condition(flag).include(scope.condition(Unary(Op.NOT, flag)))) == Unsat()


def test_a_law_holds_of_two_elements() -> None:
    def injective(first: Application, second: Application) -> System | None:
        if first.tensor is not TABLE:
            return None
        same = System()
        for one, two in zip(first.index, second.index, strict=True):
            same.equal(one, two)
        return System().either(System().below(first.value, 0), System().below(second.value, 0),
                               System().differ(first.value, second.value), same)

    scope = Translator(law=injective).scope({})
    one, two = scope.linear(element(TABLE, A, Const(0))), scope.linear(element(TABLE, B, Const(0)))
    system = System().equal(one, two).differ(scope.linear(A), scope.linear(B))
    assert isinstance(solve(system), Sat)
    assert solve(system.at_least(one)) == Unsat()


# ---- points that a run can come to ----

def test_a_point_over_a_product_is_mended() -> None:
    """Rows of n elements read with a halo of one: they meet, and the point has the products that n gives."""
    translator = Translator()
    i, j, k, m = (LinExpr.of(name) for name in ("i", "j", "k", "m"))
    one, two = translator.scope({A: i, B: j}), translator.scope({A: k, B: m})
    flat = add(mul(A, N), B)
    n = one.linear(N)
    system = System().within(j, 0, n + 1).within(m, 0, n).below(i, k).at_least(i, 2).at_least(n, 3)
    system.equal(one.linear(flat), two.linear(flat))
    answer = reach(system)
    assert isinstance(answer, Sat)
    at = {str(key): value for key, value in answer.point.items()}
    assert at["i"] * at["n"] + at["j"] == at["k"] * at["n"] + at["m"]
    assert (at["i"], at["j"], at["k"], at["m"], at["n"]) == (2, 3, 3, 0, 3)


@pytest.mark.parametrize("op", [Op.MUL, Op.FLOORDIV, Op.MOD, Op.OR, Op.AND])
def test_a_reached_point_is_what_evaluate_says(op: Op) -> None:
    reached = 0
    for seed in range(20):
        rng = random.Random(seed)
        scope = Translator().scope({})
        a, b = scope.linear(A), scope.linear(B)
        target = rng.randint(-4, 9)
        answer = reach(System().equal(scope.linear(Binary(op, A, B)), target).within(a, -9, 20).within(b, rng.choice([-9, 1]), 20))
        if isinstance(answer, Sat):
            reached += 1
            assert s.apply_binary(op, a.value(answer.point), b.value(answer.point)) == target
    assert reached >= 15


def test_a_hash_is_reached_by_trying() -> None:
    scope = Translator().scope({})
    wanted = [number for number in range(5) if s.fnv1a64(number) % 3 == 1]
    answer = reach(System().equal(scope.linear(Binary(Op.HASHMOD, A, Const(3))), 1))
    assert isinstance(answer, Sat)
    assert scope.linear(A).value(answer.point) == wanted[0]
    assert reach(System().equal(scope.linear(Binary(Op.HASHMOD, A, Const(3))), 3)) == Unsat()


def test_products_of_two_unknown_numbers_reach_a_square() -> None:
    scope = Translator().scope({})
    answer = reach(System().equal(scope.linear(mul(A, A)), 9).at_least(scope.linear(A)))
    assert isinstance(answer, Sat)
    assert list(answer.point.values()) == [9, 3]


def test_what_is_not_known_is_never_reached() -> None:
    scope = Translator().scope({})
    assert isinstance(solve(System().equal(scope.linear(s.TaskIndex()), 3)), Sat)
    assert reach(System().equal(scope.linear(s.TaskIndex()), 3)) == Unknown()
    assert reach(System().equal(scope.linear(s.TaskIndex()), -3)) == Unsat()
    assert isinstance(reach(System().equal(scope.linear(element(TABLE, A, B)), 3)), Sat)


def test_products_are_multiplied_out_but_for_what_is_not_constant() -> None:
    scope = Translator().scope({})
    a, n = scope.linear(A), scope.linear(N)
    both_ways = scope.linear(mul(A, N))
    left, right = add(mul(A, Const(3)), Const(2)), add(mul(N, Const(-4)), Const(5))
    assert scope.linear(mul(left, right)) == both_ways * -12 + a * 15 + n * -8 + 10
    assert scope.linear(mul(right, left)) == scope.linear(mul(left, right))


def test_floats_of_a_table_that_changes_are_never_the_same() -> None:
    weights = TensorRef(11, (16,), DType.F32, "weights")
    node = lt(element(weights, A), Const(0.5))
    for stable in (True, False):
        scope = Translator(is_stable=lambda tensor, stable=stable: stable).scope({})   # type: ignore[misc]
        answer = solve(scope.condition(node).include(scope.condition(node, False)))
        assert isinstance(answer, Unsat if stable else Sat)
