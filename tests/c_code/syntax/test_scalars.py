"""Scalar expressions in C mean what `types.scalar.evaluate` says."""

from __future__ import annotations

import random

import numpy as np
import pytest

from pto_wsp.c import syntax as c
from pto_wsp.c.printer import print_expr
from pto_wsp.c.scalars import lower_scalar
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import COMPARISONS, Op, print_scalar

from ..conftest import Compile

INTS = {"i": 13, "j": -5, "big": (1 << 62) + 12345, "zero": 0}
FLOATS = {"x": 2.5, "y": -0.75, "nan": float("nan"), "inf": float("inf"), "none": 0.0}
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))]
_ARITHMETIC = (Op.ADD, Op.SUB, Op.MUL, Op.FLOORDIV, Op.MOD, Op.MIN, Op.MAX)


def _integer(rnd: random.Random, depth: int) -> s.Scalar:
    if depth == 0:
        return rnd.choice([s.Var(rnd.choice(list(INTS)), 0), s.Const(rnd.choice([0, 1, -1, 7, 1 << 31, (1 << 31) - 1, -(1 << 63)]))])
    kind = rnd.random()
    if kind < 0.7:
        op = rnd.choice((*_ARITHMETIC, Op.AND, Op.OR))
        return s.Binary(op, _integer(rnd, depth - 1), _integer(rnd, depth - 1))
    if kind < 0.85:
        return s.Unary(rnd.choice([Op.NEG, Op.NOT]), _integer(rnd, depth - 1))
    return s.Select(_condition(rnd, depth - 1), _integer(rnd, depth - 1), _integer(rnd, depth - 1))


def _floating(rnd: random.Random, depth: int) -> s.Scalar:
    if depth == 0:
        return rnd.choice([s.ParamScalar(rnd.choice(list(FLOATS)), DType.F64), s.Const(0.5)])
    if rnd.random() < 0.2:
        return s.Binary(Op.DIV, s.Var(rnd.choice("ij"), 0), s.Var(rnd.choice("ij"), 0))
    lhs = _floating(rnd, depth - 1)
    rhs = rnd.choice([_floating(rnd, depth - 1), s.Var("i", 0), s.Var("zero", 0)])
    return s.Binary(rnd.choice((*_ARITHMETIC, Op.DIV)), lhs, rhs)


def _condition(rnd: random.Random, depth: int) -> s.Scalar:
    kind = rnd.random()
    if depth == 0 or kind < 0.5:
        make = rnd.choice([_integer, _floating])
        return s.Binary(rnd.choice(sorted(COMPARISONS, key=str)), make(rnd, depth), make(rnd, depth))
    if kind < 0.7:
        return s.Unary(Op.NOT, _condition(rnd, depth - 1))
    return s.Binary(rnd.choice([Op.AND, Op.OR]), _condition(rnd, depth - 1), _condition(rnd, depth - 1))


def _leaf(node: s.Scalar) -> s.Number:
    match node:
        case s.Var(name):
            return INTS[name]
        case s.ParamScalar(name):
            return FLOATS[name]
        case _:
            raise AssertionError(node)


def _name(node: s.Scalar) -> c.Expr:
    assert isinstance(node, s.Var | s.ParamScalar)
    return c.Name(node.name)


def _run(compile_c: Compile, trees: list[s.Scalar], kind: str) -> list[s.Number]:
    names = [f"int64_t {n}" for n in INTS] + [f"double {n}" for n in FLOATS]
    lines = "\n".join(f"    out[{n}] = {print_expr(lower_scalar(tree, _name))};" for n, tree in enumerate(trees))
    head = f"void all({kind} *out, {', '.join(names)})"
    library = compile_c(f'#include "pto_math.h"\n{head}\n{{\n{lines}\n}}\n', head + ";", quiet=True)
    out = np.zeros(len(trees), np.float64 if kind == "double" else np.int64)
    library.lib.all(library.pointer(f"{kind} *", out), *INTS.values(), *FLOATS.values())
    return list(out.tolist())


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_integers_and_conditions_match_evaluate(compile_c: Compile, seed: int) -> None:
    rnd = random.Random(seed)
    trees = [_integer(rnd, rnd.randint(1, 4)) for _ in range(150)] + [_condition(rnd, rnd.randint(0, 3)) for _ in range(100)]
    for tree, found in zip(trees, _run(compile_c, trees, "int64_t"), strict=True):
        assert found == int(s.evaluate(tree, _leaf)), print_scalar(tree)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_floats_match_evaluate_bit_for_bit(compile_c: Compile, seed: int) -> None:
    rnd = random.Random(seed)
    trees = [_floating(rnd, rnd.randint(1, 3)) for _ in range(200)]
    for tree, found in zip(trees, _run(compile_c, trees, "double"), strict=True):
        expected = float(s.evaluate(tree, _leaf))
        assert found == expected or (found != found and expected != expected), print_scalar(tree)


def test_small_constants_do_not_overflow_32_bits(compile_c: Compile) -> None:
    tree = s.Binary(Op.MUL, s.Const(1 << 20), s.Const(1 << 20))
    assert _run(compile_c, [tree], "int64_t") == [1 << 40]


def test_sum_adds_the_body_over_its_range(compile_c: Compile) -> None:
    v = s.Var("v", 9)
    tree = s.Sum(v, s.Const(1), s.Var("i", 0), s.Const(3), s.Binary(Op.MUL, v, s.Const(2)))
    assert _run(compile_c, [tree], "int64_t") == [2 * (1 + 4 + 7 + 10)]
