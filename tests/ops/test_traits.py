"""Every trait of every entry of the op table, held to its statement on numbers that go wrong first: NaN of both signs, zeros of both
signs, infinities, the smallest and the largest. Each statement is written in NumPy here, and reads nothing but the op's meaning.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from pto_wsp import InOut, P, Tensor, Tile, kernel, pto, workload
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel import Compute
from pto_wsp.ir.kernel_walk import walk
from pto_wsp.ir.tile import TileType
from pto_wsp.ops.entry import Attrs, CFunction, OpEntry
from pto_wsp.ops.rounding import ALL
from pto_wsp.ops.spec import ColReduce, Convert, Elementwise, Expand, Iota, Op, RowReduce, evaluate
from pto_wsp.ops.table import ENTRIES
from pto_wsp.ops.traits import Side
from pto_wsp.ops.whole import Movement, TileFunction
from pto_wsp.passes.kernel.passes import run_kernel_passes

Array = npt.NDArray[Any]
WIDE = {"int": DType.I64, "uint": DType.I64}


def numbers(dtype: DType) -> Array:
    """Return the numbers of a dtype that laws break on, as a row."""
    if dtype is DType.BOOL:
        return np.array([[False, True]])
    if dtype.np.kind in "iu":
        limits = np.iinfo(dtype.np)
        wanted = {limits.min, limits.min + 1, -129, -8, -7, -3, -2, -1, 0, 1, 2, 3, 7, 8, 31, 100, limits.max - 1, limits.max}
        return np.array([sorted(n for n in wanted if limits.min <= n <= limits.max)], dtype.np)
    limits = ml_dtypes.finfo(dtype.np)
    plain = [0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 7.0, 20.0, float(limits.max), float(limits.tiny),
             float(limits.smallest_subnormal), math.inf, math.nan]
    row: Array = np.array([[sign * number for number in plain for sign in (1, -1)]], np.float64).astype(dtype.np)
    return row


def finite(dtype: DType) -> Array:
    """Return the finite ones."""
    row = numbers(dtype)
    return row[:, np.isfinite(row[0].astype(np.float64))]


def bits(x: Array) -> Array:
    """Return numbers as their bits."""
    x = np.ascontiguousarray(x)
    return x.view(f"u{x.dtype.itemsize}")


def apply(op: Op, *operands: Array, attrs: Attrs = ()) -> Array:
    """Return what the op means."""
    types = [TileType(*x.shape, DType.from_numpy(x.dtype)) for x in operands]
    return evaluate(op, operands, op.infer(types, attrs), attrs)


def pairs(x: Array) -> tuple[Array, Array]:
    """Return each number of a row beside each."""
    left, right = np.meshgrid(x[0], x[0])
    return left.reshape(1, -1), right.reshape(1, -1)


def stated(trait: Callable[[Op], Sequence[DType]]) -> list[Any]:
    """Return the entries and dtypes that a trait names."""
    return [pytest.param(op, dtype, id=f"{op.name}-{dtype}") for op in ENTRIES for dtype in trait(op)]


def attrs_of(op: Op) -> Attrs:
    """Return attributes that a call without options has."""
    return ((op.option, op.variants[0].value),) if isinstance(op, Elementwise) and op.option else ()


# ---- what rewrites rely on ----

@pytest.mark.parametrize(("op", "dtype"), stated(lambda op: op.undoes_itself))
def test_done_twice_gives_the_operand_back(op: Op, dtype: DType) -> None:
    x = numbers(dtype)
    assert (bits(apply(op, apply(op, x))) == bits(x)).all()


@pytest.mark.parametrize(("op", "dtype"), stated(lambda op: op.idempotent))
def test_done_again_changes_nothing(op: Op, dtype: DType) -> None:
    x = numbers(dtype)
    assert isinstance(op, Elementwise)
    if len(op.params) == 2:
        assert (bits(apply(op, x, x)) == bits(x)).all()
    else:
        once = apply(op, x)
        assert (bits(apply(op, once)) == bits(once)).all()


NEUTRAL = [pytest.param(op, one.value, side, dtype, id=f"{op.name}-{one.value}-{side.value}-{dtype}")
           for op in ENTRIES for one in op.neutral for side in one.sides for dtype in one.dtypes]


@pytest.mark.parametrize(("op", "value", "side", "dtype"), NEUTRAL)
def test_a_neutral_number_leaves_every_bit(op: Op, value: int, side: Side, dtype: DType) -> None:
    x, number = numbers(dtype), np.full((1, 1), value, dtype.np)
    found = apply(op, number, x) if side is Side.LEFT else apply(op, x, number)
    assert (bits(found) == bits(x)).all()
    assert op.is_neutral(value, dtype, side)
    assert not op.is_neutral(value + 1, dtype, side) and not op.is_neutral(-0.0 if value == 0 else -value, dtype, side)


@pytest.mark.parametrize(("op", "dtype"), stated(lambda op: op.selects))
def test_each_element_is_one_of_an_operand_behind_the_mask(op: Op, dtype: DType) -> None:
    x, y = pairs(numbers(dtype))
    for mask in (np.array([[True]]), np.array([[False]]), np.arange(x.size)[None] % 3 == 0):
        found = bits(apply(op, mask, x, y))
        assert ((found == bits(x)) | (found == bits(y))).all()
    same = apply(op, np.arange(x.size)[None] % 2 == 0, x, x)
    assert (bits(same) == bits(x)).all()


MOVEMENTS = [op for op in ENTRIES if isinstance(op, Movement)]


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in MOVEMENTS if op.transposes])
@pytest.mark.parametrize("dtype", ALL)
def test_a_transposition_exchanges_rows_and_columns(op: Movement, dtype: DType) -> None:
    x = np.resize(numbers(dtype), (3, 5))
    found = apply(op, x)
    assert found.shape == (5, 3) and all(bits(found)[c, r] == bits(x)[r, c] for r in range(3) for c in range(5))


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in MOVEMENTS if op.keeps_order])
@pytest.mark.parametrize("dtype", ALL)
def test_elements_that_keep_their_order_keep_their_places_row_by_row(op: Movement, dtype: DType) -> None:
    x = np.resize(numbers(dtype), (4, 6))
    for shape in ((4, 6), (6, 4), (1, 24), (24, 1)):
        found = apply(op, x, attrs=(("shape", shape),))
        assert found.shape == shape and (bits(found).ravel() == bits(x).ravel()).all()


# ---- numbers folded when a kernel is compiled: what NumPy gives is what C gives ----

def folded() -> list[tuple[Elementwise, DType]]:
    """Return the ops and dtypes that are computed on numbers alone."""
    return [(op, dtype) for op in ENTRIES if isinstance(op, Elementwise) for dtype in op.folds]


def elementwise_kernel(op: Elementwise, dtype: DType, cols: int) -> Any:
    """Return a kernel that does one op on rows of operands, and the rows."""
    x = numbers(dtype)
    rows = pairs(x) if len(op.params) == 2 else (np.resize(x, (1, cols)),)
    width = rows[0].shape[1]
    tile = Tile[1, width, dtype]

    if len(op.params) == 2:
        @kernel
        def run(a: InOut[tile], b: InOut[tile], out: InOut[tile]) -> None:  # type: ignore[valid-type]
            pto.store(out, op(a, b))
    else:
        @kernel
        def run(a: InOut[tile], out: InOut[tile]) -> None:  # type: ignore[valid-type, no-redef]
            pto.store(out, op(a))
    return run, rows


@pytest.mark.slow
def test_c_gives_the_bits_that_folding_gives() -> None:
    """Finite ones: no other number is folded."""
    made = [(op, *elementwise_kernel(op, dtype, 40)) for op, dtype in folded()]
    outs = [Tensor(np.zeros_like(rows[0])) for _, _, rows in made]
    ins = [[Tensor(row.copy()) for row in rows] for _, _, rows in made]

    @workload
    def each() -> None:
        for _ in P(1):
            for (_, run, _), given, out in zip(made, ins, outs, strict=True):
                run(**dict(zip("ab", given, strict=False)), out=out)

    each().compile(target="cpu_sim").run()
    for (op, _, rows), out in zip(made, outs, strict=True):
        folds = apply(op, *rows)
        known = np.isfinite(folds)
        assert known.any() and (bits(folds)[known] == bits(out.data)[known]).all(), (op.name, rows[0].dtype)


def test_the_larger_of_two_zeros_is_left_to_run() -> None:
    """NumPy and C take different ones of 0.0 and -0.0."""
    @kernel
    def larger(x: InOut[Tile[1, 8, DType.F32]]) -> None:
        pto.store(x, x * pto.maximum(pto.constant(0.0), pto.constant(-0.0)))

    @kernel
    def known(x: InOut[Tile[1, 8, DType.F32]]) -> None:
        pto.store(x, x * (pto.constant(0.0) + pto.constant(-0.0)))

    ops = [[stmt.op for stmt in walk(run_kernel_passes(made.specialise()).body) if isinstance(stmt, Compute)] for made in (larger, known)]
    assert ops == [["maximum", "mul"], ["mul"]]


def test_an_op_that_folds_is_of_single_elements() -> None:
    assert all(isinstance(op, Elementwise | Expand) for op in ENTRIES if op.folds)


# ---- what vector cores rely on ----

def narrow_calls(op: Op, dtype: DType) -> Iterator[tuple[tuple[Array, ...], Attrs]]:
    """Yield operands and attributes of calls on integers of a dtype."""
    x = numbers(dtype)
    match op:
        case Elementwise() if op.mask_first:
            yield (np.arange(x.size)[None] % 2 == 0, x, x[:, ::-1].copy()), ()
        case Elementwise() if len(op.params) == 2:
            yield pairs(x), ()
        case Elementwise() | RowReduce() | ColReduce():
            yield (x,), ()
            yield (x.T.copy(),), ()
        case TileFunction():
            index = np.zeros((1, 2), np.int32)
            yield ((x, index) if len(op.signature.parameters) == 3 else (x, index, x[:, :2].copy())), (("axis", 1),)
        case _:
            pytest.fail(f"no calls of {op.name}")


IN_RANGE = [param for param in stated(lambda op: op.keeps_range) if not isinstance(param.values[0], Movement | Expand)]


@pytest.mark.parametrize(("op", "dtype"), IN_RANGE)
def test_integers_computed_in_a_wider_dtype_stay_within_their_own(op: Op, dtype: DType) -> None:
    if dtype.nbytes == 8:
        return      # none is wider
    limits = np.iinfo(dtype.np)
    for operands, attrs in narrow_calls(op, dtype):
        wide = [x.astype(np.int64) if x.dtype == dtype.np else x for x in operands]
        found = apply(op, *wide, attrs=attrs)
        assert limits.min <= found.min() and found.max() <= limits.max


def test_movements_only_put_elements_elsewhere_and_so_keep_their_range() -> None:
    for op in ENTRIES:
        assert not isinstance(op, Iota | Convert) or op.keeps_range == ()
        assert not isinstance(op, Movement | Expand) or set(op.keeps_range) <= set(op.dtypes)


HALVES = [op for op in ENTRIES if op.exact_in_f16]


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in HALVES])
def test_f16_computed_in_f16_is_f32_rounded(op: Op) -> None:
    """f64 has more than four times the digits of f16: what it gives, rounded to f16, is f16's own result."""
    rng = np.random.default_rng(3)
    drawn = rng.integers(0, 1 << 16, 400).astype(np.uint16).view(np.float16)[None]
    x = np.concatenate((numbers(DType.F16), drawn), axis=1)
    operands = pairs(x) if isinstance(op, Elementwise) and len(op.params) == 2 else (x,)
    with np.errstate(all="ignore"):
        own = apply(op, *(x.astype(np.float64) for x in operands)).astype(np.float16)
        single = apply(op, *(x.astype(np.float32) for x in operands)).astype(np.float16)
    assert ((bits(own) == bits(single)) | (np.isnan(own) & np.isnan(single))).all()
    assert ((bits(own) == bits(apply(op, *operands))) | (np.isnan(own) & np.isnan(single))).all()


# ---- what golden.py relies on ----

@pytest.mark.parametrize(("op", "dtype"), [param for param in stated(lambda op: op.scales) if param.values[1].is_float])
def test_a_small_relative_change_stays_one(op: Op, dtype: DType) -> None:
    """Each operand changed by 1/16 of itself: each result changes by a quarter of itself at most, and an ulp or two."""
    x = finite(dtype).astype(np.float64)
    x = x[:, (np.abs(x[0]) < 2.0 ** 10) & (np.abs(x[0]) > 2.0 ** -8)]
    slack = 0.25 + 3 * float(ml_dtypes.finfo(dtype.np).eps)
    for factors in itertools.product((1.0, 1 + 2.0 ** -4, 1 - 2.0 ** -4), repeat=2):
        match op:
            case Convert():
                calls = [((x,), (("dtype", dtype),))]
            case Elementwise() if op.mask_first:
                calls = [((np.arange(x.size ** 2)[None] % 2 == 0, *pairs(x)), ())]
            case Elementwise() if len(op.params) == 2:
                calls = [(pairs(x), ())]
            case _:
                calls = [((x,), ())]
        for operands, attrs in calls:
            changed = [o * f if o.dtype == np.float64 else o for o, f in zip(operands, factors * 2, strict=False)]
            before, after = (apply(op, *(o.astype(dtype.np) if o.dtype == np.float64 else o for o in given), attrs=attrs).astype(np.float64)
                             for given in (operands, changed))
            known = ~np.isnan(before)
            assert (np.isnan(before) == np.isnan(after)).all()
            assert (np.abs(after - before)[known] <= slack * np.abs(before)[known]).all()


def floats_of(op: Elementwise, dtype: DType) -> tuple[Array, ...]:
    return pairs(finite(dtype)) if len(op.params) == 2 else (finite(dtype),)


FLOAT_OPS = [pytest.param(op, dtype, id=f"{op.name}-{dtype}") for op in ENTRIES
             if isinstance(op, Elementwise) and not op.mask_first and not op.to_mask for dtype in op.dtypes if dtype.is_float]


@pytest.mark.parametrize(("op", "dtype"), FLOAT_OPS)
def test_a_nan_comes_of_a_sign_exactly_where_the_trait_says(op: Elementwise, dtype: DType) -> None:
    first, *rest = floats_of(op, dtype)
    below = first < 0
    nan, of_size = (np.isnan(apply(op, x, *rest, attrs=attrs_of(op))) for x in (first, np.abs(first)))
    assert (dtype in op.nan_below_zero) == (nan & ~of_size & below).any()


@pytest.mark.parametrize(("op", "dtype"), stated(lambda op: op.non_negative))
def test_no_result_is_below_zero(op: Op, dtype: DType) -> None:
    assert not (apply(op, numbers(dtype)).astype(np.float64) < 0).any()


@pytest.mark.parametrize(("op", "dtype"), stated(lambda op: op.non_negative_of_equals))
def test_no_result_of_equal_operands_is_below_zero(op: Op, dtype: DType) -> None:
    x = numbers(dtype)
    assert not (apply(op, x, x).astype(np.float64) < 0).any()


COLUMNS = [op for op in ENTRIES if isinstance(op, TileFunction) and op.gives_columns]


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in COLUMNS])
def test_what_gives_columns_stays_within_the_operand(op: TileFunction) -> None:
    for dtype in op.dtypes:
        x = np.resize(numbers(dtype), (3, 7))
        for descending in (False, True):
            attrs: Attrs = tuple((name, {"k": 4}.get(name, descending)) for name in ("k", "descending")
                                 if op.sorts and (name == "descending" or "k" in op.signature.parameters))
            found = apply(op, x, attrs=attrs)
            assert ((found >= 0) & (found < 7)).all()
            if op.sorts and dtype is DType.I32:
                taken = np.take_along_axis(x, found.astype(np.int64), 1)
                ordered = np.sort(x, axis=1)[:, ::-1] if descending else np.sort(x, axis=1)
                assert (taken == ordered[:, :found.shape[1]]).all()


def test_what_sorts_gives_columns() -> None:
    assert all(op.gives_columns for op in ENTRIES if isinstance(op, TileFunction) and op.sorts)


# ---- no trait without a law, and none that names what the op does not take ----

LAWS: dict[str, Callable[..., None]] = {
    "undoes_itself": test_done_twice_gives_the_operand_back, "idempotent": test_done_again_changes_nothing,
    "neutral": test_a_neutral_number_leaves_every_bit, "folds": test_c_gives_the_bits_that_folding_gives,
    "selects": test_each_element_is_one_of_an_operand_behind_the_mask, "scales": test_a_small_relative_change_stays_one,
    "keeps_range": test_integers_computed_in_a_wider_dtype_stay_within_their_own, "exact_in_f16": test_f16_computed_in_f16_is_f32_rounded,
    "nan_below_zero": test_a_nan_comes_of_a_sign_exactly_where_the_trait_says, "non_negative": test_no_result_is_below_zero,
    "non_negative_of_equals": test_no_result_of_equal_operands_is_below_zero,
}
FACTS = {"name", "doc", "npu", "unit", "work", "dtypes", "aliases", "synonyms", "hint", "numpy"}


def test_every_trait_has_a_law() -> None:
    assert {field.name for field in fields(OpEntry)} == FACTS | set(LAWS)


def test_traits_name_dtypes_that_the_op_takes() -> None:
    for op in ENTRIES:
        groups: Sequence[tuple[DType, ...]] = [getattr(op, name) for name in LAWS if name not in ("neutral", "exact_in_f16")]
        for dtypes in (*groups, *(one.dtypes for one in op.neutral)):
            assert set(dtypes) <= set(op.dtypes), op.name
        assert not op.exact_in_f16 or DType.F16 in op.dtypes


def test_what_is_simple_is_no_function_of_a_series() -> None:
    """A bound of units in the last place is stated of functions, which are not simple."""
    for op in ENTRIES:
        if isinstance(op, Elementwise) and isinstance(op.c, CFunction):
            assert not (op.c.simple and op.ulp is not None), op.name
