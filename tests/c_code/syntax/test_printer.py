"""Printing C: what the printer spells means what the tree says."""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np
import pytest

from pto_wsp.c import syntax as c
from pto_wsp.c.printer import print_block, print_expr
from pto_wsp.ir.scalar import wrap_i64

from ..conftest import Compile

VARIABLES = {"a": 7, "b": -3, "d": 1 << 40, "e": 0}
_INFIX = ("*", "+", "-", "&", "|", "^", "<<", ">>", "<", "<=", ">", ">=", "==", "!=", "&&", "||")


def _random_expr(rnd: random.Random, depth: int) -> c.Expr:
    if depth == 0 or rnd.random() < 0.1:
        return rnd.choice([c.Name(rnd.choice(list(VARIABLES))), c.Int(rnd.randint(-9, 9), "LL")])
    kind = rnd.random()
    if kind < 0.65:
        op = rnd.choice(_INFIX)
        rhs = c.Int(rnd.randint(0, 9), "LL") if op in ("<<", ">>") else _random_expr(rnd, depth - 1)
        return c.Infix(op, _random_expr(rnd, depth - 1), rhs)
    if kind < 0.85:
        return c.Prefix(rnd.choice("-~!"), _random_expr(rnd, depth - 1))
    if kind < 0.92:
        return c.Cast("int64_t", _random_expr(rnd, depth - 1))
    return c.Ternary(*(_random_expr(rnd, depth - 1) for _ in range(3)))


def _value(expr: c.Expr, names: Mapping[str, int]) -> int:
    """Evaluate by the tree alone, in wrapping 64-bit integers."""
    match expr:
        case c.Name(text):
            return names[text]
        case c.Int(value):
            return value
        case c.Cast(_, operand):
            return _value(operand, names)
        case c.Prefix(op, operand):
            inner = _value(operand, names)
            return wrap_i64({"-": -inner, "~": ~inner, "!": int(inner == 0)}[op])
        case c.Ternary(condition, then, other):
            return _value(then if _value(condition, names) else other, names)
        case c.Infix(op, left, right):
            x, y = _value(left, names), _value(right, names)
            table = {"*": x * y, "+": x + y, "-": x - y, "&": x & y, "|": x | y, "^": x ^ y, "<": x < y, "<=": x <= y,
                     ">": x > y, ">=": x >= y, "==": x == y, "!=": x != y, "&&": bool(x and y), "||": bool(x or y)}
            return wrap_i64(int(table[op] if op in table else x << y if op == "<<" else x >> y))
        case _:
            raise AssertionError(expr)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(3))
def test_printed_expressions_keep_the_structure_of_the_tree(compile_c: Compile, seed: int) -> None:
    rnd = random.Random(seed)
    trees = [_random_expr(rnd, 5) for _ in range(150)]
    lines = "\n".join(f"    out[{n}] = {print_expr(tree)};" for n, tree in enumerate(trees))
    params = ", ".join(f"int64_t {name}" for name in VARIABLES)
    text = f"#include <stdint.h>\nvoid all(int64_t *out, {params})\n{{\n{lines}\n}}\n"
    library = compile_c(text, f"void all(int64_t *out, {params});", quiet=True)
    out = np.zeros(len(trees), np.int64)
    library.lib.all(library.pointer("int64_t *", out), *VARIABLES.values())
    for tree, found in zip(trees, out, strict=True):
        assert int(found) == _value(tree, VARIABLES), print_expr(tree)


@pytest.mark.parametrize(("tree", "text"), [
    (c.Infix("-", c.Name("a"), c.Infix("-", c.Name("b"), c.Name("d"))), "a - (b - d)"),
    (c.Infix("-", c.Infix("-", c.Name("a"), c.Name("b")), c.Name("d")), "a - b - d"),
    (c.Infix("*", c.Infix("+", c.Name("a"), c.Int(1)), c.Name("b")), "(a + 1) * b"),
    (c.Prefix("-", c.Prefix("-", c.Name("a"))), "- -a"),
    (c.Prefix("-", c.Int(-1)), "- -1"),
    (c.Infix("&", c.Infix("<", c.Name("a"), c.Name("b")), c.Name("d")), "(a < b) & d"),
    (c.Index(c.Infix("+", c.Name("p"), c.Int(1)), c.Name("i")), "(p + 1)[i]"),
    (c.Member(c.Index(c.Name("args"), c.Int(0)), "data"), "args[0].data"),
    (c.Float(0.1, single=True), "0.1f"), (c.Float(0.1), "0.1"), (c.Float(3.0, single=True), "3.0f"),
    (c.Float(1e-6, single=True), "1e-06f"), (c.Float(float("-inf"), single=True), "-PTO_INF"),
])
def test_expression_reads_like(tree: c.Expr, text: str) -> None:
    assert print_expr(tree) == text


@pytest.mark.slow
def test_float_constants_read_back_exactly(compile_c: Compile) -> None:
    rng = np.random.default_rng(0)
    singles = rng.integers(0, 1 << 32, 400, dtype=np.uint64).astype(np.uint32).view(np.float32)
    doubles = rng.integers(0, 1 << 63, 400, dtype=np.uint64).view(np.float64)
    singles, doubles = singles[np.isfinite(singles)], doubles[np.isfinite(doubles)]
    body = "".join(f"    f[{n}] = {print_expr(c.Float(float(v), True))};\n" for n, v in enumerate(singles))
    body += "".join(f"    d[{n}] = {print_expr(c.Float(float(v)))};\n" for n, v in enumerate(doubles))
    text = f"void all(float *f, double *d)\n{{\n{body}}}\n"
    library = compile_c(text, "void all(float *f, double *d);")
    f, d = np.zeros_like(singles), np.zeros_like(doubles)
    library.lib.all(library.pointer("float *", f), library.pointer("double *", d))
    assert np.array_equal(f, singles)
    assert np.array_equal(d, doubles)


def test_comment_cannot_be_ended_by_its_text() -> None:
    assert print_block([c.Comment("x */ int y;")], 0).count("*/") == 1


def test_identifiers_avoid_keywords_and_odd_characters() -> None:
    assert [c.c_ident(name) for name in ("int", "2x", "naïve", "ok")] == ["int_", "_2x", "na_ve", "ok"]
