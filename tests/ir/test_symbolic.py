"""Symbolic values: Python's operators build expressions, Python's questions are refused at the user's line."""

from __future__ import annotations

import copy
import math
import operator
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pto_wsp.errors import ArgumentKindError, PtoError, SymbolicControlError
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Const, Op, SymbolRef, evaluate
from pto_wsp.ir.symbolic import Symbol, Symbolic, as_scalar, ceildiv, maximum, minimum
from pto_wsp.source import Span

N = Symbol("n")
INTEGER = (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.and_, operator.or_)
COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)


def value(expression: Symbolic, n: float) -> float:
    """Evaluate with a value for n."""
    return evaluate(expression.node, lambda _: n)


@pytest.mark.parametrize("op", [*INTEGER, *COMPARISONS, operator.truediv], ids=lambda op: op.__name__)
@pytest.mark.parametrize("other", [3, np.int64(3), np.int8(3)], ids=["int", "int64", "int8"])
def test_operators_take_numbers_on_either_side(op: Callable[..., Symbolic], other: int) -> None:
    assert value(op(N, other), 13) == op(13, 3)
    assert value(op(other, N), 13) == op(3, 13)


def test_unary_operators() -> None:
    assert (value(-N, 5), value(+N, 5), value(~N, 5), value(~(N > 3), 5)) == (-5, 5, -6, False)


def test_methods_give_min_max_where_and_ceildiv() -> None:
    assert value(N.min(4), 9) == 4 and value(N.max(4), 9) == 9 and value(N.ceildiv(4), 9) == 3
    assert value((N > 3).where(N, 0), 9) == 9 and value((N > 3).where(N, 0), 2) == 0


def test_functions_take_numbers_and_give_numbers() -> None:
    assert (ceildiv(9, 4), minimum(9, 4), maximum(9, 4), ceildiv(-9, 4), ceildiv(5, 0)) == (3, 4, 9, -2, 0)


def test_functions_take_symbolic_values() -> None:
    found = (ceildiv(N, 4), ceildiv(40, N), minimum(N, 4), maximum(4, N))
    assert [value(f, 9) for f in found if isinstance(f, Symbolic)] == [3, 5, 4, 9]


@pytest.mark.parametrize("n", [-7, 0, 3, 9, -(1 << 63)])
@pytest.mark.parametrize("of", [
    abs, round, math.floor, math.ceil, math.trunc, lambda n: abs(n - 5), lambda n: divmod(n, 4)[0], lambda n: divmod(n, 4)[1],
    lambda n: divmod(7, n - 100)[1], lambda n: np.minimum(n, 3), lambda n: np.maximum(np.int64(3), n), lambda n: np.add(n, np.int32(2)),
    lambda n: np.int64(2) * n, lambda n: np.abs(n), lambda n: np.negative(n), lambda n: np.float64(2) + n])
def test_functions_of_python_and_numpy_mean_what_they_say(of: Callable[..., object], n: int) -> None:
    with np.errstate(over="ignore"):
        expected = n if of in (round, math.trunc) else of(np.int64(n))
    made = of(N)
    assert isinstance(made, Symbolic) and value(made, n) == (expected if isinstance(expected, float) else int(expected))  # type: ignore[call-overload]


REFUSED: dict[str, Callable[[Symbolic], object]] = {
    "bool": lambda n: 1 if n > 2 else 0,
    "and": lambda n: n and 1,
    "not": lambda n: not n,
    "chain": lambda n: 0 < n < 4,
    "int": int,
    "float": float,
    "floor": lambda n: math.floor(n / 2),
    "round": lambda n: round(n / 2),
    "len": len,
    "complex": complex,
    "numpy element": lambda n: np.array([1, 2, 3])[n],
    "numpy array": lambda n: np.asarray([n, 1]),
    "numpy function": lambda n: np.where(n > 1, 2, 3),
    "numpy sum": lambda n: np.sum(n),
    "index": lambda n: [1, 2][n],
    "range": range,
    "hash": lambda n: {n: 1},
    "set": lambda n: {n},
    "str": str,
    "format": lambda n: f"{n}",
    "percent": lambda n: "%s" % n,  # noqa: UP031
    "print": print,
    "iter": list,
    "unpack": lambda n: [*n],
    "in": lambda n: 3 in n,
    "numpy": lambda n: np.zeros(n),
}


@pytest.mark.parametrize("how", REFUSED)
def test_a_question_about_the_value_is_refused_here(how: str) -> None:
    with pytest.raises(SymbolicControlError) as caught:
        REFUSED[how](N)
    span = caught.value.span
    assert caught.value.code == "K103"
    assert isinstance(span, Span) and Path(span.file).name == "test_symbolic.py"


def test_the_span_is_the_line_and_column_of_the_question() -> None:
    with pytest.raises(SymbolicControlError) as caught:
        _ = 1 + int(N)
    span = caught.value.span
    assert isinstance(span, Span)
    text = Path(span.file).read_text().splitlines()[span.line - 1]
    assert text[span.column - 1:span.end_column - 1] == "int(N)"


def test_repr_stays() -> None:
    assert repr(N * 2 + 1) == "Symbolic(n * 2 + 1)" and repr(N) == "Symbol(n)"


@pytest.mark.parametrize("name", ["", "1a", "a b", 3, None])
def test_a_symbol_needs_a_name(name: object) -> None:
    with pytest.raises(ArgumentKindError):
        Symbol(name)  # type: ignore[arg-type]


def test_a_symbols_dtype_is_a_dtype() -> None:
    with pytest.raises(ArgumentKindError):
        Symbol("n", "nope")
    for dtype in (DType.F32, "f32"):
        node = Symbol("n", dtype).node
        assert isinstance(node, SymbolRef) and node.dtype is DType.F32


@pytest.mark.parametrize("given, expected", [
    (3, Const(3)), (True, Const(True)), (2.5, Const(2.5)), (np.int32(3), Const(3)), (np.float32(0.5), Const(0.5)),
    (np.bool_(True), Const(True)), (np.array(7), Const(7)),
], ids=repr)
def test_numbers_are_scalars(given: object, expected: Const) -> None:
    found = as_scalar(given)
    assert isinstance(found, Const) and found == expected and type(found.value) is type(expected.value)


@pytest.mark.parametrize("given", ["3", None, [1], (1,), np.zeros(2), object(), 1j], ids=lambda g: type(g).__name__)
def test_other_things_are_no_scalars(given: object) -> None:
    with pytest.raises(ArgumentKindError) as caught:
        as_scalar(given)
    assert caught.value.code == "T205"


def test_a_bad_operand_is_an_error_of_ours_at_the_line() -> None:
    with pytest.raises(PtoError) as caught:
        _ = N + "3"
    assert 'N + "3"' in str(caught.value)


def test_symbols_of_one_name_are_told_apart() -> None:
    assert Symbol("m").node != Symbol("m").node


def test_a_symbolic_value_can_be_copied_and_pickled() -> None:
    for made in (copy.copy(N + 1), pickle.loads(pickle.dumps(N + 1))):
        assert made.node == (N + 1).node


def test_every_operation_has_an_operator() -> None:
    built = {op(N, 3).node.op for op in (*INTEGER, *COMPARISONS, operator.truediv)}
    assert built | {Op.MIN, Op.MAX, Op.NOT, Op.NEG, Op.HASHMOD} == set(Op)
