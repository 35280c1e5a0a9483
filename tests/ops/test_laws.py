"""Every op against a formula of one element in Python's own arithmetic, over dtypes, shapes and special values."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pto_wsp.ir.dtype import DType
from pto_wsp.ir.tile import TileType
from pto_wsp.ops.rounding import ALL, BITS, FLOATS, INTEGERS, NUMBERS
from pto_wsp.ops.spec import Elementwise, evaluate
from pto_wsp.ops.table import ENTRIES, TABLE, find

Number = float | int | bool
Array = npt.NDArray[np.generic]

SPECIALS = {
    "float": [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 3.7, 1e-30, 88.0, -90.0, 1e30, math.inf, -math.inf, math.nan],
    "int": [0, 1, -1, 2, 3, -7, 100],
}
# Python and NumPy may round a transcendental differently in the last place of f64, and NumPy's f32 functions keep to 4 ulp.
# Halves differ by at most one rounding to the half.
RELATIVE = {DType.F32: 1e-6, DType.F64: 1e-14, DType.F16: 2.0 ** -10, DType.BF16: 2.0 ** -7}
SMALLEST = {DType.F32: 1e-37, DType.F64: 1e-37, DType.F16: 2.0 ** -24, DType.BF16: 1e-37}


def samples(dtype: DType) -> Array:
    """Return one value of each kind that matters for `dtype`."""
    if dtype.is_bool:
        return np.array([False, True])
    if dtype.is_real:
        with np.errstate(all="ignore"):
            return np.array(SPECIALS["float"], np.float64).astype(dtype.np)
    limits = np.iinfo(dtype.np)
    values = (*SPECIALS["int"], limits.min, limits.max, limits.max - 1)
    return np.array([v for v in values if limits.min <= v <= limits.max], dtype.np)


def apply(name: str, *operands: Array) -> Array:
    """Evaluate an op of the table on arrays."""
    entry = find(name)
    types = [TileType(*operand.shape, DType.from_numpy(operand.dtype)) for operand in operands]
    return evaluate(entry, operands, entry.infer(types, ()))


def test_gelu_by_tanh() -> None:
    x = np.linspace(-12, 8, 200)
    expected = [v / (1 + math.exp(-2 * math.sqrt(2 / math.pi) * (v + 0.044715 * v ** 3))) for v in x.tolist()]
    found = evaluate(find("gelu"), [x[None]], TileType(1, 200, DType.F64), (("approximate", "tanh"),))
    np.testing.assert_allclose(found[0], expected, rtol=1e-12)


def held(value: float, dtype: DType) -> float:
    """Return a number as a float dtype holds it."""
    number: float = np.array(value).astype(dtype.np).item()
    return number


def wrap(value: int, dtype: DType) -> int:
    """Return a whole number as `dtype` holds it."""
    limits = np.iinfo(dtype.np)
    span = int(limits.max) - int(limits.min) + 1
    return (value - int(limits.min)) % span + int(limits.min)


def check(name: str, dtype: DType, arity: int, formula: Callable[..., Number], *, exact: bool) -> None:
    """Compare an op on all combinations of samples with a formula of Python numbers."""
    values = samples(dtype)
    grids = np.meshgrid(*[values] * arity, indexing="ij")
    operands = [grid.reshape(values.size, -1) for grid in grids]
    found = apply(name, *operands)
    for index in np.ndindex(found.shape):
        items = [operand[index].item() for operand in operands]
        expected = formula(*items)
        got = found[index].item()
        where = f"{name}({', '.join(map(repr, items))}) {dtype}"
        if isinstance(expected, float):
            with np.errstate(all="ignore"):
                expected = np.float64(expected).astype(found.dtype).item()
        if isinstance(expected, float) and math.isnan(expected):
            assert math.isnan(got), where
        elif exact or not math.isfinite(expected):
            assert got == expected, where
        else:
            assert got == pytest.approx(expected, rel=RELATIVE[dtype], abs=SMALLEST[dtype]), where


def real(formula: Callable[..., float]) -> Callable[..., float]:
    """Return a formula with IEEE results where Python raises."""
    def guarded(*items: float) -> float:
        try:
            return formula(*items)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf
    return guarded


def nan_max(x: float, y: float) -> float:
    """Return the larger, NaN if either is."""
    return math.nan if math.isnan(x) or math.isnan(y) else max(x, y)


def divide(x: float, y: float) -> float:
    """Return x / y as IEEE defines it."""
    if y == 0:
        return math.nan if x == 0 or math.isnan(x) else math.copysign(math.inf, x) * math.copysign(1, y)
    return x / y


def floor_mod(x: float, y: float) -> float:
    """Return x mod y with the sign of y."""
    return math.nan if y == 0 or math.isinf(x) else x % y


def sigmoid(x: float) -> float:
    """Return the logistic function."""
    return math.nan if math.isnan(x) else 1 / (1 + math.exp(-x)) if x > -700 else math.exp(x)


def half_even(x: float) -> float:
    """Return x rounded, halves to even."""
    return float(round(x)) if math.isfinite(x) else x


FLOAT_EXACT: dict[str, Callable[..., Number]] = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "div": divide, "maximum": nan_max,
    "minimum": lambda x, y: -nan_max(-x, -y), "neg": lambda x: -x, "abs": abs, "relu": lambda x: nan_max(x, 0.0),
    "sign": lambda x: x if math.isnan(x) else float((x > 0) - (x < 0)), "sqrt": real(math.sqrt),
    "recip": lambda x: divide(1.0, x), "floor": lambda x: float(math.floor(x)) if math.isfinite(x) else x,
    "ceil": lambda x: float(math.ceil(x)) if math.isfinite(x) else x, "round": half_even,
    "eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "lt": lambda x, y: x < y, "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y,
}
FLOAT_NEAR: dict[str, Callable[..., Number]] = {
    "exp": real(math.exp), "log": lambda x: -math.inf if x == 0 else real(math.log)(x), "tanh": math.tanh, "sigmoid": sigmoid,
    "exp2": real(lambda x: 2.0 ** x), "log2": lambda x: -math.inf if x == 0 else real(math.log2)(x),
    "silu": lambda x: x * sigmoid(x), "rsqrt": lambda x: divide(1.0, real(math.sqrt)(x)),
    "sin": real(math.sin), "cos": real(math.cos), "erf": math.erf, "gelu": lambda x: 0.5 * x * math.erfc(-x / math.sqrt(2)),
}
INT_EXACT: dict[str, Callable[..., int]] = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "maximum": max, "minimum": min,
    "floordiv": lambda x, y: x // y if y else 0, "mod": lambda x, y: x % y if y else 0, "neg": lambda x: -x, "abs": abs,
    "relu": lambda x: max(x, 0), "sign": lambda x: (x > 0) - (x < 0),
    "and_": lambda x, y: x & y, "or_": lambda x, y: x | y, "xor": lambda x, y: x ^ y, "not_": lambda x: ~x,
    "shl": lambda x, y: x << y, "shr": lambda x, y: x >> y,
    "eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "lt": lambda x, y: x < y, "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y,
}
BOOL_EXACT: dict[str, Callable[..., bool]] = {
    "and_": lambda x, y: x and y, "or_": lambda x, y: x or y, "xor": lambda x, y: x != y, "not_": lambda x: not x,
    "eq": lambda x, y: x == y, "ne": lambda x, y: x != y,
}
OTHERWISE_TESTED = {"where", "pow", "floordiv", "mod"}


def arity(name: str) -> int:
    """Return how many operands an elementwise op takes."""
    entry = find(name)
    assert isinstance(entry, Elementwise)
    return len(entry.params)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FLOAT_EXACT)
def test_exact_on_floats(name: str, dtype: DType) -> None:
    check(name, dtype, arity(name), FLOAT_EXACT[name], exact=True)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FLOAT_NEAR)
def test_near_on_floats(name: str, dtype: DType) -> None:
    check(name, dtype, 1, FLOAT_NEAR[name], exact=False)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", INT_EXACT)
def test_exact_and_wrapping_on_integers(name: str, dtype: DType) -> None:
    def wrapped(*items: int) -> Number:
        if name in ("shl", "shr") and not 0 <= items[1] < 8 * dtype.nbytes:
            return 0
        result = INT_EXACT[name](*items)
        return result if isinstance(result, bool) else wrap(result, dtype)
    check(name, dtype, arity(name), wrapped, exact=True)


@pytest.mark.parametrize("name", BOOL_EXACT)
def test_exact_on_masks(name: str) -> None:
    check(name, DType.BOOL, arity(name), BOOL_EXACT[name], exact=True)


@pytest.mark.parametrize("dtype", FLOATS)
def test_mod_has_the_sign_of_the_divisor(dtype: DType) -> None:
    check("mod", dtype, 2, floor_mod, exact=False)


@pytest.mark.parametrize("dtype", FLOATS)
def test_floordiv_rounds_down(dtype: DType) -> None:
    x = np.array([[7.0, -7.0, 7.0, 0.5]], dtype.np)
    y = np.array([[2.0, 2.0, -2.0, 1.0]], dtype.np)
    assert apply("floordiv", x, y).tolist() == [[3.0, -4.0, -4.0, 0.0]]


@pytest.mark.parametrize("dtype", FLOATS)
def test_pow(dtype: DType) -> None:
    x = np.array([[2.0, 9.0, -2.0, -8.0, 0.0]], dtype.np)
    y = np.array([[3.0, 0.5, 2.0, 0.5, 0.0]], dtype.np)
    np.testing.assert_allclose(apply("pow", x, y), [[8.0, 3.0, 4.0, math.nan, 1.0]], rtol=1e-6)


def test_every_elementwise_op_has_a_law() -> None:
    names = {entry.name for entry in ENTRIES if isinstance(entry, Elementwise)}
    assert names == {*FLOAT_EXACT, *FLOAT_NEAR, *INT_EXACT, *BOOL_EXACT, *OTHERWISE_TESTED}


@pytest.mark.parametrize("dtype", ALL)
def test_where_takes_by_mask(dtype: DType) -> None:
    values = samples(dtype)[None, :2]
    mask = np.array([[True, False], [False, True]])
    found = apply("where", mask, values, values[:, ::-1].copy())
    assert found.dtype == dtype.np
    assert found.astype(object).tolist() == [[values[0, 0], values[0, 0]], [values[0, 1], values[0, 1]]]


@pytest.mark.parametrize("lhs, rhs", [((3, 4), (3, 4)), ((3, 4), (3, 1)), ((3, 1), (1, 4)), ((1, 1), (3, 4)), ((1, 4), (3, 4))])
def test_shapes_broadcast(lhs: tuple[int, int], rhs: tuple[int, int]) -> None:
    x = np.arange(lhs[0] * lhs[1], dtype=np.int32).reshape(lhs)
    y = 10 * np.arange(rhs[0] * rhs[1], dtype=np.int32).reshape(rhs)
    found = apply("add", x, y)
    assert found.shape == (3, 4)
    for row, col in np.ndindex(3, 4):
        assert found[row, col] == x[row % lhs[0], col % lhs[1]] + y[row % rhs[0], col % rhs[1]]


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (5, 1), (3, 4), (16, 33)])
def test_reductions(shape: tuple[int, int], dtype: DType) -> None:
    x = np.random.default_rng(0).integers(0, 100, shape).astype(dtype.np)
    rows = [[item.item() for item in row] for row in x]
    cols = [list(col) for col in zip(*rows, strict=True)]
    for prefix, lines, result_shape in (("row", rows, (shape[0], 1)), ("col", cols, (1, shape[1]))):
        total = [held(sum(line), dtype) if dtype.is_float else wrap(sum(line), dtype) for line in lines]
        for suffix, expected in (("sum", total), ("max", list(map(max, lines))), ("min", list(map(min, lines)))):
            found = apply(prefix + suffix, x)
            assert found.shape == result_shape and found.dtype == dtype.np
            assert found.ravel().tolist() == expected
        if dtype.is_float:
            wide = np.float64 if dtype is DType.F64 else np.float32   # halves are divided in f32 and rounded once
            mean = [held(wide(sum(line)) / wide(len(line)), dtype) for line in lines]
            assert apply(prefix + "mean", x).ravel().tolist() == mean


@pytest.mark.parametrize("name", ["rowsum", "rowmax", "rowmin", "rowmean", "colsum", "colmax", "colmin", "colmean"])
def test_reductions_propagate_nan(name: str) -> None:
    assert np.isnan(apply(name, np.array([[math.nan]], np.float32))).all()
    x = np.array([[1.0, math.nan], [math.nan, 2.0]], np.float32)
    assert np.isnan(apply(name, x)).all()


@pytest.mark.parametrize("dtype, result", [(DType.F32, DType.F32), (DType.F64, DType.F64), (DType.I8, DType.I32),
                                           (DType.I32, DType.I32), (DType.I64, DType.I64)])
def test_matmul(dtype: DType, result: DType) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(-100, 100, (3, 5)).astype(dtype.np), rng.integers(-100, 100, (5, 2)).astype(dtype.np)
    acc = rng.integers(-100, 100, (3, 2)).astype(result.np)
    product = [[sum(int(a[m, k]) * int(b[k, n]) for k in range(5)) for n in range(2)] for m in range(3)]
    assert apply("matmul", a, b).tolist() == product
    assert apply("matmul", a, b).dtype == result.np
    assert apply("matmul", a, b, acc).tolist() == (np.array(product) + acc).tolist()


def test_integer_matmul_wraps() -> None:
    big = np.array([[2 ** 31 - 1, 2]], np.int32)
    assert apply("matmul", big, np.array([[3], [1]], np.int32)).item() == wrap(3 * (2 ** 31 - 1) + 2, DType.I32)


def test_transpose() -> None:
    x = np.arange(6, dtype=np.uint8).reshape(2, 3)
    assert apply("transpose", x).tolist() == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", FLOATS)
def test_cast_of_floats_saturates(source: DType, target: DType) -> None:
    limits = np.iinfo(target.np)
    x = np.array([[0.0, 2.9, -2.9, math.inf, -math.inf, math.nan, 127.0, *([1e30, -1e30] if source is not DType.F16 else [])]], source.np)
    expected = [0, 2, max(-2, limits.min), limits.max, limits.min, 0, 127, limits.max, limits.min]
    assert cast(x, target).tolist() == [expected[:x.size]]


@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", INTEGERS)
def test_cast_of_integers_wraps(source: DType, target: DType) -> None:
    x = samples(source)[None]
    assert cast(x, target).tolist() == [[wrap(int(v), target) for v in x[0]]]


def test_cast_to_and_from_masks() -> None:
    floats = np.array([[0.0, -0.0, 0.5, math.nan, math.inf]], np.float32)
    assert cast(floats, DType.BOOL).tolist() == [[False, False, True, True, True]]
    assert cast(np.array([[0, 256, -1]], np.int32), DType.BOOL).tolist() == [[False, True, True]]
    assert cast(np.array([[False, True]]), DType.F32).tolist() == [[0.0, 1.0]]


def test_cast_of_doubles_rounds_and_overflows() -> None:
    assert cast(np.array([[0.1, 1e300]]), DType.F32).tolist() == [[np.float32(0.1).item(), math.inf]]


@given(st.floats(-3e9, 3e9) | st.integers(-2 ** 63, 2 ** 63 - 1).map(float), st.sampled_from(INTEGERS))
def test_cast_drops_the_fraction(value: float, target: DType) -> None:
    limits = np.iinfo(target.np)
    assert cast(np.array([[value]]), target).item() == min(max(math.trunc(value), int(limits.min)), int(limits.max))


def test_no_numpy_warning_leaves_an_op() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in FLOAT_NEAR:
            apply(name, samples(DType.F32)[None])
        apply("floordiv", np.array([[-128, 1]], np.int8), np.array([[-1, 0]], np.int8))


def test_aliases_are_free_names() -> None:
    names = [name for entry in ENTRIES for name in (entry.name, *entry.aliases)]
    assert len(names) == len(set(names)) and len(TABLE) == len(ENTRIES)


def test_bit_ops_take_what_they_say() -> None:
    assert find("and_").dtypes == BITS


def cast(x: Array, target: DType) -> Array:
    """Evaluate the cast of an array."""
    return evaluate(find("cast"), [x], TileType(*x.shape, target), (("dtype", target),))
