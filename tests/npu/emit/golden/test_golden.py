"""golden.py computes what interp computes: every op, generated kernels and workloads, examples; and it needs NumPy alone."""

from __future__ import annotations

import ast
import builtins
import ctypes
import keyword
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pto_wsp import DType, In, InOut, Out, P, Tensor, Tile, Workload, kernel, pto, workload
from pto_wsp.errors import InternalError
from pto_wsp.ir.names import Names
from pto_wsp.npu.emit.golden import emit_golden
from pto_wsp.npu.emit.golden_text import PYTHON_NAMES, python_ident
from pto_wsp.ops.spec import Elementwise
from pto_wsp.ops.table import ENTRIES
from tests.conftest import Golden
from tests.laws.generated_kernels import Recipe, recipes
from tests.laws.generated_workloads import Bench, WorkloadRecipe, workload_recipes
from tests.laws.test_kernels import DTYPES, Call, _like, _view, call_of, clipped, compare
from tests.npu.emit.golden.exec_golden import computed, execute, interpreted, plan_of, text_of
from tests.npu.emit.golden.ragged_rows import scaled
from tests.tolerances import Array, assert_identical

F32, BF16, I32 = DType.F32, DType.BF16, DType.I32


def many(calls: list[Call]) -> Workload:
    """Return a workload that runs each kernel as one task, on copies of its arrays."""
    copies = [{name: _like(value) if isinstance(value, np.ndarray) else value for name, value in args.items()} for _, args in calls]

    @workload
    def tasks() -> None:
        for number, ((made, _), args) in enumerate(zip(calls, copies, strict=True)):
            made[number](**{name: _view(made, name, value, f"{name}{number}") for name, value in args.items()})

    return tasks()


def both(w: Workload) -> list[tuple[str, Array, Array]]:
    """Return the name of each tensor of a workload, what golden.py makes of it and what interp does."""
    found = computed(w, text_of(w))
    names = [slot.ref.name for slot in plan_of(w).tensors]
    return list(zip(names, found, interpreted(w), strict=True))


# ---- the same numbers ----

def test_no_op_is_without_a_spelling() -> None:
    assert [op.name for op in ENTRIES if not op.numpy] == []
    assert all(variant.numpy for op in ENTRIES if isinstance(op, Elementwise) for variant in op.variants)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [pytest.param(dtype, marks=() if dtype is F32 else pytest.mark.slow)
                                   for dtype in DTYPES], ids=str)
def test_every_op_is_computed_as_interp_does(dtype: DType) -> None:
    """On values that go wrong first: NaN, infinities, the smallest and the largest."""
    cases = [(op, call) for op in ENTRIES if dtype in op.dtypes for call in call_of(op, dtype)]
    w = many([call for _, call in cases])
    outs = {name: (found, expected) for name, found, expected in both(w)}
    for number, (op, (_, args)) in enumerate(cases):
        found, expected = outs[f"out{number}"]
        compare(op, dtype, {**args, "out": found}, {**args, "out": expected})


@pytest.mark.slow
@given(st.lists(recipes(), min_size=1, max_size=8))
@settings(max_examples=10)
def test_generated_kernels_are_computed_to_the_bit(recipes: list[Recipe]) -> None:
    """Loops, branches, buffers, pieces with valid parts, rows picked by indices, transposed and strided arguments."""
    w = many([(recipe.build(k), clipped(recipe, recipe.arrays())) for k, recipe in enumerate(recipes)])
    for name, found, expected in both(w):
        assert_identical(np.ascontiguousarray(found), np.ascontiguousarray(expected), (name, recipes),
                         zeros_alike=any(recipe.zeros_alike for recipe in recipes))


@pytest.mark.usefixtures("races_allowed")
@pytest.mark.slow
@given(workload_recipes())
@settings(max_examples=20)
def test_many_generated_workloads_are_computed_to_the_bit(recipe: WorkloadRecipe) -> None:
    hold(recipe)


def hold(recipe: WorkloadRecipe) -> None:
    """Raise AssertionError unless golden.py computes every output of a workload as the interpreter does."""
    bench = Bench(recipe)
    bench.part = Tensor(bench.memory[2:, 1:].copy(), name="part")     # arguments of a package share no memory
    for name, found, expected in both(bench.trace()):
        assert_identical(found, expected, (name, recipe))


# ---- what it reads like ----

def test_it_reads_like_one_written_by_hand(golden: Golden) -> None:
    golden(text_of(scaled(np.array([2, 0, 1], np.int32))))


def test_it_is_reproducible_and_in_the_house_style() -> None:
    """The same text twice; no line that is too long but those of the data."""
    text = text_of(scaled(np.arange(3, dtype=np.int32) % 3))
    assert text == text_of(scaled(np.arange(3, dtype=np.int32) % 3))
    assert max(map(len, text.splitlines())) <= 140
    modules = {name.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import) for name in node.names}
    assert modules == {"ctypes", "numpy"}


# ---- inputs ----

def test_inputs_are_seeded_small_in_some_rows_and_zero_for_outputs() -> None:
    w = scaled(np.array([2, 0, 1], np.int32))
    module = execute(text_of(w))
    with pytest.raises(KeyError, match="`rate` had no value when the package was made"):
        module["generate_inputs"]()
    first, second = (dict(module["generate_inputs"]({"rate": 0.5})) for _ in range(2))
    other = dict(module["generate_inputs"]({"rate": 0.5, "seed": 1}))
    x = first["x"]
    assert x.shape == (3, 4, 32) and x.dtype == np.float32
    assert (x == second["x"]).all() and not (x == other["x"]).all()
    sizes = np.abs(x.reshape(-1, 32)).max(axis=1)
    assert (sizes[0::2] > 0.5).all() and (sizes[1::4] < 1e-2).all() and (sizes[3::4] < 1e-5).all() and sizes.min() > 0
    assert not first["y"].any() and module["__outputs__"] == ["y"]
    assert first["steering"].tolist() == [2, 0, 1] and first["steering"].dtype == np.int32
    assert isinstance(first["rate"], ctypes.c_float) and first["rate"].value == 0.5
    assert list(first) == ["steering", "x", "y", "batch", "rate"]


def test_a_run_of_it_takes_symbols_as_they_are_given() -> None:
    """As ctypes numbers among the arguments, or from params; the workload's own numbers otherwise."""
    module = execute(text_of(scaled(np.array([2, 0, 1], np.int32))))
    given = dict(module["generate_inputs"]({"rate": 2.0}))
    x = given["x"]
    module["compute_golden"](given)
    expected = np.zeros_like(x)
    for b, count in enumerate((2, 0, 1)):
        for i in range(count):
            rows = x[b, 2 * i:2 * i + 2].astype(np.float64)
            total = 1 + (i + 1) * rows.sum(axis=1, keepdims=True)
            expected[b, 2 * i:2 * i + 2] = rows / (total * (0.5 if i + 1 > 2 else 1)) * 2
    np.testing.assert_allclose(given["y"], expected, rtol=1e-5)
    again = {**given, "y": np.zeros_like(x)}
    del again["rate"]
    module["compute_golden"](again, {"rate": 2.0})
    assert (again["y"] == given["y"]).all()


def test_operands_of_roots_and_logarithms_are_positive() -> None:
    """And stay what they are where a square makes them so."""
    x, z, y = (Tensor(np.zeros((4, 8), np.float32), name=name) for name in "xzy")

    @kernel
    def roots(x: In[Tile[4, 8, F32]], z: In[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]]) -> None:
        pto.store(y, pto.log(x + 1.0) + pto.sqrt(pto.rowmean(z * z)))

    @workload
    def one() -> None:
        roots(x=x, z=z, y=y)

    given = dict(execute(text_of(one()))["generate_inputs"]())
    assert (given["x"] > 0).all() and (given["z"] < 0).any()


def picks(kind: type) -> Workload:
    """Return a workload that takes rows by an index that it computes from a tensor."""
    table, index, out = Tensor(np.ones((6, 8), np.float32)), Tensor(np.array([[3], [0]], kind)), Tensor(np.zeros((2, 8), np.float32))

    @kernel
    def pick(table: In[Tensor], index: In[Tile[2, 1, DType.from_numpy(kind)]], out: Out[Tile[2, 8, F32]]) -> None:  # type: ignore[valid-type]
        pto.store(out, pto.gather(table, pto.maximum(index, 1) - 1, cols=8))

    @workload
    def one() -> None:
        pick(table=table, index=index, out=out)

    return one()


def test_indices_are_those_that_were_bound() -> None:
    given = dict(execute(text_of(picks(np.int64)))["generate_inputs"]())
    assert given["index"].tolist() == [[3], [0]] and given["index"].dtype == np.int64
    with pytest.raises(InternalError, match="no elements are given"):
        emit_golden(plan_of(picks(np.int32)), {}, {})


# ---- tolerances ----

def elementwise(*ops: str, dtype: DType = F32, cols: int = 8) -> Workload:
    """Return a workload of one kernel that applies ops one after the other."""
    x, y = (Tensor(np.ones((4, cols), dtype.np), name=name) for name in "xy")

    @kernel
    def chain(x: In[Tile[4, cols, dtype]], y: InOut[Tile[4, cols, dtype]]) -> None:
        value = pto.load(x)
        for op in ops:
            value = getattr(pto, op)(value)
        pto.store(y, value if value.shape == (4, cols) else pto.expand(value, (4, cols)))

    @workload
    def one() -> None:
        chain(x=x, y=y)

    return one()


@pytest.mark.parametrize("w, tolerance", [
    (lambda: elementwise(), 0.0), (lambda: elementwise("relu", "exp"), 1e-5), (lambda: elementwise("floor"), 1e-6),
    (lambda: elementwise("neg", "exp"), 1e-5), (lambda: elementwise("rowsum", cols=256), 1e-4),
    (lambda: elementwise("exp", dtype=BF16), 1.6e-2), (lambda: elementwise("neg", dtype=I32), 0.0)])
def test_tolerances_follow_the_ops(w: Any, tolerance: float) -> None:
    module = execute(text_of(w()))
    assert module["RTOL"] == module["ATOL"] == tolerance


def test_results_that_are_only_scaled_are_compared_in_small_rows_too() -> None:
    """Where nothing cancels, a millionth counts as much as one."""
    module = execute(text_of(elementwise("neg", "sqrt", "relu")))
    assert (module["RTOL"], module["ATOL"]) == (1e-5, 1e-11)
    module = execute(text_of(elementwise("neg", dtype=DType.F16)))
    assert (module["RTOL"], module["ATOL"]) == (2e-3, 6e-8)


def scan(factor: float, *, watched: bool = False) -> Workload:
    """A state that grows by a factor in every iteration, and what is left of it in each; `watched`: how often it grew is an output."""
    s, a, y = (Tensor(np.zeros(shape, np.float32), name=name) for name, shape in (("s", (8, 16)), ("a", (12, 8, 16)), ("y", (12, 8, 16))))
    n = Tensor(np.zeros((8, 16), np.float32), name="n")

    @kernel
    def step(s: InOut[Tile[8, 16, F32]], a: In[Tile[8, 16, F32]], y: Out[Tile[8, 16, F32]]) -> None:
        value = s * factor + a
        pto.store(s, value)
        pto.store(y, value - s * 2)

    @kernel
    def count(n: InOut[Tile[8, 16, F32]]) -> None:
        pto.store(n, pto.minimum(pto.abs(n) + 1, 4))

    @workload
    def turns() -> None:
        for i in P.seq(12):
            step[i](s, a[i], y[i])
            if watched:
                count[i](n)
    return turns()


def test_a_tolerance_knows_how_large_results_get() -> None:
    """A scan of factor 3 gets to 10^6: what cancels is as exact as that, and a wrong term is not taken for it."""
    module = execute(text_of(scan(3)))
    given = dict(module["generate_inputs"]())
    module["compute_golden"](given)
    largest = float(np.abs(given["s"]).max())
    assert largest > 1e5 and module["RTOL"] == 1e-6
    assert float(np.abs(given["y"]).max()) * 1e-6 * 0.9 < module["ATOL"] < largest * 1e-6 * 1.1

    def is_near(found: Array) -> bool:
        return bool(np.allclose(found, given["y"], rtol=module["RTOL"], atol=module["ATOL"]))
    assert is_near(given["y"] + np.float32(2e-7 * largest))
    assert not is_near(given["y"] * np.float32(1 + 1e-5)) and not is_near(np.roll(given["y"], 1, axis=0))
    for turn in range(8):                     # a term of any but the last turns, which have not grown
        wrong = dict(module["generate_inputs"]())
        wrong["a"][turn] = 0
        module["compute_golden"](wrong)
        assert not is_near(wrong["y"]), turn


def test_results_that_stay_small_are_compared_as_before() -> None:
    """An output that stays small keeps the tolerance for all; 16 is where results count as large."""
    for module in (execute(text_of(scan(0.5))), execute(text_of(scan(3, watched=True)))):
        assert module["ATOL"] == module["RTOL"] < 1e-5


@pytest.mark.slow
@given(st.lists(st.text(max_size=6) | st.sampled_from(("class", "np", "rng", "print", "_floats", "{7}", "#1", "__init__", "\n", "*/")),
                min_size=1, max_size=6))
def test_any_names_become_identifiers_of_their_own(wanted: list[str]) -> None:
    scope = Names((*PYTHON_NAMES, "_floats"))
    names = [scope.take(python_ident(name, "tensor")) for name in wanted]
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() and not keyword.iskeyword(name) and not hasattr(builtins, name) for name in names)


# ---- bodies in other languages ----

def test_a_kernel_without_a_meaning_in_python_says_so_when_it_is_computed() -> None:
    x, y = (Tensor(np.ones((4, 8), np.float32), name=name) for name in "xy")

    @kernel(cpp_src="(void)args;")
    def own(x: In[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]]) -> None: ...

    @workload
    def one() -> None:
        own(x=x, y=y)

    module = execute(text_of(one()))
    given = dict(module["generate_inputs"]())
    with pytest.raises(RuntimeError, match="kernel `own` has a body in C\\+\\+ alone: write here what it computes"):
        module["compute_golden"](given)
