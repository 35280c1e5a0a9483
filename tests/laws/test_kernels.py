"""Kernels in C against kernels in NumPy: generated ones and every op of the table, to the bit where the ops are exact.

A compiler run costs more than a kernel, so one workload holds many kernels, a task each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pto_wsp import DType, In, Kernel, Out, Tensor, Tile, kernel, pto, workload
from pto_wsp.errors import NotFiniteError
from pto_wsp.ops.rounding import ALL, FLOATS, MATMUL_RESULT
from pto_wsp.ops.spec import ColReduce, Convert, Elementwise, Expand, Iota, Matmul, Op, RowReduce
from pto_wsp.ops.table import ENTRIES, find
from pto_wsp.ops.whole import Movement, TileFunction
from pto_wsp.trace.kernel.annotations import TileAnnotation
from tests.compilers import compilers
from tests.laws.generated_kernels import Recipe, recipes, specials
from tests.laws.index_ops import index_cases
from tests.laws.movements import MOVEMENT_CASES
from tests.tolerances import FUNCTIONS, PRODUCTS, SUMS, Array, assert_identical, assert_near

Call = tuple[Kernel, Mapping[str, Any]]


def run(target: str, calls: Sequence[Call], **options: Any) -> list[dict[str, Array]]:
    """Run each kernel as one task of one workload, on copies of its arrays that keep their layout; return the arrays."""
    copies = [{name: _like(value) if isinstance(value, np.ndarray) else value for name, value in args.items()} for _, args in calls]

    @workload
    def many() -> None:
        for number, ((made, _), args) in enumerate(zip(calls, copies, strict=True)):
            made[number](**{name: _view(made, name, value, f"{name}{number}") for name, value in args.items()})

    many().compile(target=target, **options).run()
    return [{name: value for name, value in args.items() if isinstance(value, np.ndarray)} for args in copies]


def _view(made: Kernel, name: str, value: Any, called: str) -> Any:
    """Return the argument of a kernel call: an array as a tensor, transposed and clipped as its kernel wants it."""
    if not isinstance(value, np.ndarray):
        return value
    lies = value.shape[-1] == 1 or value.strides[-1] == value.itemsize
    wrapped = Tensor(value, name=called) if lies else Tensor(value.T, name=called).T
    annotation = made.__wrapped__.__annotations__[name]
    return wrapped.clip(*annotation.type.shape) if isinstance(annotation, TileAnnotation) else wrapped


def _like(array: Array) -> Array:
    """Return a copy with the strides of `array`."""
    low, high = np.lib.array_utils.byte_bounds(array)
    memory = np.zeros(high - low, np.uint8)
    copy: Array = np.ndarray(array.shape, array.dtype, memory, 0, array.strides)
    copy[...] = array
    return copy


def clipped(recipe: Recipe, arrays: Mapping[str, Array]) -> dict[str, Any]:
    """Return the arguments of a generated kernel."""
    return {**arrays, "row": recipe.offset[0], "n": recipe.rest[0]}


def compare_generated(recipes: Sequence[Recipe]) -> None:
    """Raise AssertionError unless both targets leave the same bits in all arrays of the kernels."""
    calls = [(recipe.build(k), clipped(recipe, recipe.arrays())) for k, recipe in enumerate(recipes)]
    for k, (found, expected) in enumerate(zip(run("cpu_sim", calls), run("interp", calls), strict=True)):
        for name in found:
            assert_identical(found[name], expected[name], (name, recipes[k]), zeros_alike=recipes[k].zeros_alike)


def checked_run(target: str, call: Call) -> str | list[dict[str, Array]]:
    """Return what a run with check_finite names, without the values, which round differently; the arrays of one that ends well."""
    try:
        return run(target, [call], check_finite=True)
    except NotFiniteError as fault:
        return str(fault).split(" = found")[0]


@pytest.mark.slow
@given(recipes())
@settings(max_examples=8)
def test_both_targets_name_the_same_fault_for_many_kernels(recipe: Recipe) -> None:
    compare_faults(recipe)


def compare_faults(recipe: Recipe) -> None:
    """Raise AssertionError unless runs that look for numbers that are not finite find the same, or leave the same bits."""
    arrays = {name: np.where(np.isnan(array), array.dtype.type(1), array) if array.dtype.kind == "f" else array
              for name, array in recipe.arrays().items()}       # a NaN would be found where it is loaded
    call = (recipe.build(0), clipped(recipe, arrays))
    found, expected = (checked_run(target, call) for target in ("cpu_sim", "interp"))
    if isinstance(expected, str) or isinstance(found, str):
        assert found == expected
        return
    for others in (expected[0], run("cpu_sim", [call])[0]):
        for name in others:
            assert_identical(found[0][name], others[name], (name, recipe), zeros_alike=recipe.zeros_alike)


@pytest.mark.slow
@given(st.lists(recipes(max_steps=20), min_size=1, max_size=20))
@settings(max_examples=4)
def test_many_generated_kernels_agree_to_the_bit(recipes: list[Recipe]) -> None:
    compare_generated(recipes)


# ---- every op of the table, on the values that go wrong first ----

EXACT = frozenset({
    "add", "sub", "mul", "div", "maximum", "minimum", "neg", "abs", "sign", "relu", "sqrt", "rsqrt", "recip", "floor", "ceil", "round",
    "floordiv", "mod", "and_", "or_", "xor", "not_", "shl", "shr", "eq", "ne", "lt", "le", "gt", "ge", "where", "rowmax", "rowmin",
    "colmax", "colmin", *MOVEMENT_CASES, "expand", "iota", "cast", "argsort", "topk", "rowargmax", "rowargmin", "gather", "scatter",
    "scatter_add"})
ADDED_UP = frozenset({"rowsum", "rowmean", "colsum", "colmean", "matmul"})
ZEROS_ALIKE = frozenset({"maximum", "minimum", "relu", "rowmax", "rowmin", "colmax", "colmin"})
ROWS, COLS = 20, 24


def tricky(dtype: DType, seed: int, shape: tuple[int, int] = (ROWS, COLS)) -> Array:
    """Return a tile in which special values meet each other and plain ones."""
    rng = np.random.default_rng(seed)
    plain = rng.standard_normal(shape) * 20 if dtype.is_real else rng.integers(-9, 9, shape)
    return np.where(rng.random(shape) < 0.7, rng.choice(specials(dtype), shape), plain.astype(dtype.np))


def tame(dtype: DType, seed: int, shape: tuple[int, int] = (ROWS, COLS)) -> Array:
    """Return a tile of numbers that can be added up without overflow."""
    rng = np.random.default_rng(seed)
    return rng.uniform(-3, 3, shape).astype(dtype.np) if dtype.is_float else tricky(dtype, seed, shape)


def call_of(op: Op, dtype: DType) -> list[Call]:
    """Return kernels that do nothing but the op on that dtype, with their arguments."""
    match op:
        case Elementwise():
            types = [DType.BOOL if op.mask_first and k == 0 else dtype for k in range(len(op.params))]
            arrays = [tricky(t, 10 + k) for k, t in enumerate(types)]
            shapes = [(ROWS, COLS)] * len(types)
            result = DType.BOOL if op.to_mask else dtype
            narrow = [(ROWS, COLS), (ROWS, 1), (1, COLS)][:len(types)]
            if op.name in ("sin", "cos"):   # an angle of more than 2^30 counts as 0 in C
                arrays = [np.where(np.abs(a.astype(np.float64)) < 2.0 ** 30, a, a.dtype.type(1)) for a in arrays]
            calls = [_call(op, (), arrays, shapes, (ROWS, COLS), result)]
            calls += [_call(op, (variant.value,), arrays, shapes, (ROWS, COLS), result) for variant in op.variants[1:]]
            if len(types) > 1:
                cut = [array[:r, :c].copy() for array, (r, c) in zip(arrays, narrow, strict=True)]
                calls.append(_call(op, (), cut, narrow, (ROWS, COLS), result))
            return calls
        case RowReduce() | ColReduce():
            shape = (ROWS, 1) if isinstance(op, RowReduce) else (1, COLS)
            arrays = [tricky(dtype, 1)] if op.name in EXACT else [tame(dtype, 1)]
            specials_too = tame(dtype, 2)
            specials_too[0, 0], specials_too[3, 5], specials_too[4, 6] = ((np.nan, np.inf, -np.inf) if dtype.is_float else (0, 0, 0))
            return [_call(op, (), [a], [(ROWS, COLS)], shape, dtype) for a in (*arrays, specials_too)]
        case Matmul():
            a, b, acc = tame(dtype, 1, (13, COLS)), tame(dtype, 2, (COLS, 18)), tame(MATMUL_RESULT[dtype], 3, (13, 18))
            return [_call(op, (), [a, b], [a.shape, b.shape], (13, 18), MATMUL_RESULT[dtype]),
                    _call(op, (), [a, b, acc], [a.shape, b.shape, acc.shape], (13, 18), MATMUL_RESULT[dtype])]
        case Movement():
            return [_call(op, extra, [tricky(dtype, 5 + k, shape) for k, shape in enumerate(shapes)], shapes, result, dtype)
                    for shapes, extra, result in MOVEMENT_CASES[op.name]]
        case TileFunction():
            sample = tame if op.name == "scatter_add" and dtype.is_float else tricky
            return [_call(op, extra, arrays, [a.shape for a in arrays], result, result_dtype)
                    for arrays, extra, result, result_dtype in index_cases(op.name, dtype, sample)]
        case Convert():
            ways: list[tuple[Any, ...]] = [(to,) for to in ALL]
            if dtype.is_real:
                ways += [(DType.I8, "floor", False), (DType.BF16, "odd"), (DType.FP8E4M3, "ceil", True), (DType.F32, "round"),
                         (dtype, None, True)]
            elif dtype is not DType.BOOL:
                ways += [(DType.I16, None, True), (DType.F16, None, True)]
            return [_call(op, way, [tricky(dtype, 1)], [(ROWS, COLS)], (ROWS, COLS), way[0]) for way in ways]
        case Expand():
            return [_call(op, ((ROWS, COLS),), [tricky(dtype, 1, shape)], [shape], (ROWS, COLS), dtype)
                    for shape in ((ROWS, 1), (1, COLS), (1, 1))]
        case Iota():
            return [_call(op, ((300, 3), dtype, axis), [], [], (300, 3), dtype) for axis in (0, 1)]


def _call(op: Op, extra: tuple[Any, ...], arrays: Sequence[Array], shapes: Sequence[tuple[int, int]], result: tuple[int, int],
          dtype: DType) -> Call:
    def apply(a: Any, b: Any, c: Any, out: Any) -> None:
        result = getattr(pto, op.name)(*[pto.load(x) for x in (a, b, c)[:len(arrays)]], *extra)
        pto.store(out, result[1] if isinstance(result, tuple) else result)

    given = {name: array for name, array in zip("abc", arrays, strict=False)}
    filled = {name: given.get(name, np.zeros((1, 1), np.float32)) for name in "abc"}
    apply.__annotations__ = {name: In[Tile[a.shape[0], a.shape[1], DType.from_numpy(a.dtype)]] for name, a in filled.items()}
    apply.__annotations__["out"] = Out[Tile[result[0], result[1], dtype]]
    apply.__name__ = op.name.rstrip("_")
    return kernel(apply), {**filled, "out": np.zeros(result, dtype.np)}


DTYPES = sorted({dtype for op in ENTRIES for dtype in op.dtypes}, key=str)
FAST = (DType.F32,)   # the others are slow tests


def runs(ops: Iterable[Op], dtype: DType, **options: Any) -> list[tuple[Op, dict[str, Array], dict[str, Array]]]:
    """Return ops with the arrays that cpu_sim and interp leave: one artifact for all of them."""
    calls = [(op, call) for op in ops if dtype in op.dtypes for call in call_of(op, dtype)]
    kernels = [call for _, call in calls]
    both = zip(run("cpu_sim", kernels, **options), run("interp", kernels), strict=True)
    return [(op, found, expected) for (op, _), (found, expected) in zip(calls, both, strict=True)]


def compare(op: Op, dtype: DType, found: Mapping[str, Array], expected: Mapping[str, Array]) -> None:
    """Raise AssertionError unless the results agree as the op promises."""
    where = (op.name, dtype, [found[name].shape for name in "abc"])
    if not DType.from_numpy(expected["out"].dtype).is_float or op.name in EXACT:
        assert_identical(found["out"], expected["out"], where, zeros_alike=op.name in ZEROS_ALIKE)
    elif op.name == "rowprod":
        assert_near(found["out"], expected["out"], PRODUCTS[dtype], where)
    elif op.name in ADDED_UP:
        assert_near(found["out"], expected["out"], SUMS[dtype], where, scale=COLS * 9.0)
    else:
        assert_near(found["out"], expected["out"], FUNCTIONS[dtype], where)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [dtype if dtype in FAST else pytest.param(dtype, marks=pytest.mark.slow) for dtype in DTYPES], ids=str)
def test_every_op_means_in_c_what_it_means_in_numpy(dtype: DType) -> None:
    """One test a dtype: the kernels of all ops are one artifact, and workers that share cases would each trace and run them all."""
    for op, found, expected in runs(ENTRIES, dtype):
        compare(op, dtype, found, expected)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [DType.BF16, DType.I16], ids=str)
def test_a_portable_build_means_the_same(dtype: DType) -> None:
    names = ("add", "div", "exp", "gelu", "round", "mod", "where", "rowsum", "colmax", "matmul", "transpose")
    for op, found, expected in runs(map(find, names), dtype, portable=True):
        compare(op, dtype, found, expected)


@pytest.mark.slow
@pytest.mark.usefixtures("same_runtime")
@pytest.mark.parametrize("compiler, portable, dtype", [
    (name, portable, dtype) for name in compilers()
    for portable, dtypes in ((False, (DType.BF16, DType.FP8E5M2)), (True, (DType.F32, DType.I8))) for dtype in dtypes
    if portable or name != next(iter(compilers()))])   # that one makes the laws above
def test_every_compiler_means_the_same(compiler: str, portable: bool, dtype: DType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", compilers()[compiler])
    for op, found, expected in runs(ENTRIES, dtype, portable=portable):
        compare(op, dtype, found, expected)


def test_every_op_is_exact_or_has_a_tolerance() -> None:
    functions = {op.name for op in ENTRIES if isinstance(op, Elementwise) and op.ulp is not None} - EXACT
    assert {op.name for op in ENTRIES} == EXACT | ADDED_UP | functions | {"rowprod"}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_sums_and_products_are_the_same_in_every_run(dtype: DType) -> None:
    calls = [call for name in ("rowsum", "colmean", "matmul") for op in ENTRIES if op.name == name and dtype in op.dtypes
             for call in call_of(op, dtype)]
    first, second = run("cpu_sim", calls), run("cpu_sim", calls)
    for one, two in zip(first, second, strict=True):
        assert_identical(one["out"], two["out"])


# ---- one fact each, where generated kernels found a mistake or would seldom look ----

def one(body: Any, **args: Any) -> tuple[dict[str, Array], dict[str, Array]]:
    """Run one kernel on both targets; return what it leaves."""
    call = (kernel(body), args)
    return run("cpu_sim", [call])[0], run("interp", [call])[0]


@pytest.mark.parametrize("cols", [0, 2])
def test_a_constant_valid_part_smaller_than_its_piece(cols: int) -> None:
    def body(x: In[Tensor], y: Out[Tensor]) -> None:
        piece = pto.load(x, (0, 0), shape=(2, 3), valid=(1, cols), fill=9)
        pto.store(y, piece, (0, 0), valid=(2, 3))
        pto.store(y, piece * 10, (3, 0), valid=(None, cols))
    x, y = np.arange(12, dtype=np.float32).reshape(4, 3), np.full((6, 3), -1, np.float32)
    found, expected = one(body, x=x, y=y)
    by_hand = y.copy()
    by_hand[:2] = 9
    by_hand[0, :cols] = x[0, :cols]
    by_hand[3:5, :cols] = by_hand[:2, :cols] * 10
    assert_identical(expected["y"], by_hand)
    assert_identical(found["y"], by_hand)
