"""Every pass of the tensor level keeps what a function computes; the order of free iterations and of tasks shows nowhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import is_

import numpy as np
import pytest

from pto_wsp import Tensor, jit
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.errors import UnboundedAxisError
from pto_wsp.ir import flow
from pto_wsp.ir import tensor_function as t
from pto_wsp.ir.digest import tensor_digest
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Const
from pto_wsp.ir.tensor_function_text import print_function
from pto_wsp.ir.tensor_tags import dumps, loads
from pto_wsp.passes.tensor.passes import print_planned
from pto_wsp.passes.tensor.planned import PlannedFunction, TensorContext
from pto_wsp.passes.tensor.simplify import simplify
from pto_wsp.run.tensor_evaluate import evaluate
from pto_wsp.run.tensor_pass_check import check_tensor_passes, difference_of_arrays, difference_of_functions, is_exact
from pto_wsp.schedule.tiling import TilePlan
from tests.laws.generated_tensors import GeneratedTensors, generated
from tests.tensor_functions import FunctionBuilder

F32 = DType.F32
CONTEXT = TensorContext(builtin_arch("ascend_910b"), "cpu_sim", {"t": 16, "n": 16})
FAST, ALL = range(24), range(24, 160)
SEEDS = [*FAST, *(pytest.param(seed, marks=pytest.mark.slow) for seed in ALL)]


def planned(function: t.TensorFunction) -> PlannedFunction:
    return PlannedFunction(function, TilePlan(function.name, "ascend_910b", "cpu_sim"))


def copies(case: GeneratedTensors) -> list[np.ndarray]:
    return [array.copy() for array in case.arrays]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", SEEDS)
def test_every_pass_keeps_the_results(seed: int) -> None:
    case = generated(seed)
    try:
        after = check_tensor_passes(planned(case.function), CONTEXT, case.arrays, case.scalars)
    except UnboundedAxisError:
        return
    assert difference_of_functions(case.function, after.function, case.arrays, case.scalars, order=seed) is None
    assert loads(dumps(after.function)) == after.function


@pytest.mark.parametrize("seed", SEEDS)
def test_simplify_keeps_every_bit_and_finds_all_at_once(seed: int) -> None:
    case = generated(seed, 14)
    after = simplify(planned(case.function), CONTEXT)
    before_arrays, after_arrays = copies(case), copies(case)
    wanted = evaluate(case.function, before_arrays, case.scalars)
    found = evaluate(after.function, after_arrays, case.scalars)
    for one, other in zip([*wanted, *before_arrays], [*found, *after_arrays], strict=True):
        assert difference_of_arrays(other, one, 0) is None, print_planned(after)
    again = simplify(after, CONTEXT)
    assert again == after
    assert all(map(is_, flow.leaves(again.function.body), flow.leaves(after.function.body)))      # what is simple stays the same object
    assert len(list(flow.leaves(after.function.body))) <= len(list(flow.leaves(case.function.body)))


def test_what_an_unread_value_reads_does_not_stay_for_its_sake() -> None:
    @jit
    def shifted(x: Tensor[16, 4, DType.F32], n: Tensor[9, DType.I32]) -> object:
        at = n[1:] * 1
        _unread = x[at[0]] + 1
        return at + 2

    simple = simplify(planned(shifted.trace()), CONTEXT)
    assert [leaf.op for leaf in flow.leaves(simple.function.body) if isinstance(leaf, t.Apply)] == ["add"]


@pytest.mark.parametrize("seed", FAST)
def test_the_order_of_free_iterations_shows_nowhere(seed: int) -> None:
    case = generated(seed)
    assert difference_of_functions(case.function, case.function, case.arrays, case.scalars, order=seed) is None


@pytest.mark.parametrize("seed", FAST)
def test_a_function_drawn_again_has_the_same_digest(seed: int) -> None:
    assert tensor_digest(generated(seed).function) == tensor_digest(generated(seed).function)
    assert tensor_digest(generated(seed).function) != tensor_digest(generated(seed + 1).function)


# -- the evaluator against f64 -----------------------------------------------------------------------------------------
def in_f64(function: t.TensorFunction) -> t.TensorFunction:
    """The function with every f32 an f64."""
    text = dumps(function).replace('{"kind":"DType","value":"F32"}', '{"kind":"DType","value":"F64"}')
    return loads(text)


@pytest.mark.parametrize("seed", FAST)
def test_results_are_those_of_f64(seed: int) -> None:
    """Sums of halves are exact; a half that a cast made, or a function, rounds: 16 ulp of the largest, as for sums in `tolerances`."""
    case = generated(seed)
    wide = in_f64(case.function)
    constants = tuple(t.ArrayConstant(one.array, np.frombuffer(own.data, np.float32).astype(np.float64).tobytes())
                      for one, own in zip(wide.constants, case.function.constants, strict=True))
    wide = t.TensorFunction(wide.name, wide.params, wide.body, wide.results, wide.symbols, wide.scalars, constants, wide.assumptions)
    expected = evaluate(wide, [a.astype(np.float64) if a.dtype == np.float32 else a.copy() for a in case.arrays], case.scalars)
    if any(isinstance(leaf, t.Apply) and leaf.op in ("floor", "sign", "lt", "argsort", "topk", "cast") for leaf in flow.leaves(wide.body)):
        return                   # a rounding before these jumps
    for one, other in zip(evaluate(case.function, copies(case), case.scalars), expected, strict=True):
        scale = np.abs(other).max(initial=0)
        np.testing.assert_allclose(one, other, rtol=0, atol=64 * np.finfo(np.float32).eps * scale)


# -- simplify by hand --------------------------------------------------------------------------------------------------
def simple(f: FunctionBuilder) -> str:
    return print_function(simplify(planned(f.function()), CONTEXT).function)


def test_common_values_are_computed_once_unless_state_changed() -> None:
    f = FunctionBuilder()
    x, state = f.param("x", (4,)), f.make("state", (4,), 0)
    first, again = f.apply("exp", x), f.apply("exp", x)
    before = f.apply("exp", state)
    f.put(state, first)
    f.give(f.apply("add", first, again), f.apply("add", before, f.apply("exp", state)))
    assert simple(f) == """\
function f(x: [4] f32):
    state[4] f32 = 0
    exp[4] f32 = exp(x)
    exp_3[4] f32 = exp(state)
    state[:] = exp
    add[4] f32 = add(exp, exp)
    exp_4[4] f32 = exp(state)
    add_2[4] f32 = add(exp_3, exp_4)
    return add, add_2"""


def test_a_loop_that_writes_what_it_reads_computes_in_each_iteration() -> None:
    f = FunctionBuilder()
    state = f.make("state", (4,), 1)
    before = f.apply("neg", state)
    with f.loop(3):
        f.put(state, f.apply("add", f.apply("neg", state), before))
    f.give(state)
    assert simple(f).count("neg(state)") == 2


def test_zeros_of_both_signs_and_truth_values_are_different_numbers() -> None:
    f = FunctionBuilder()
    x = f.param("x", (4,))
    f.give(f.apply("add", f.apply("mul", x, 0.0), f.apply("mul", x, -0.0)))
    assert "mul[4] f32 = mul(x, 0.0)\n    mul_2[4] f32 = mul(x, -0.0)" in simple(f)


def test_what_nothing_reads_goes_with_its_loops() -> None:
    f = FunctionBuilder()
    x, lost = f.param("x", (4,)), f.make("lost", (4,), 0)
    with f.loop(3), f.when(Const(True)):
        f.put(lost, f.apply("exp", lost))
    f.give(f.apply("mul", f.apply("add", x, f.apply("full", 0, shape=(4,))), f.apply("full", 1, shape=(4,))))
    assert simple(f) == "function f(x: [4] f32):\n    add[4] f32 = add(x, 0)\n    return add"


def test_sides_that_never_run_go() -> None:
    f = FunctionBuilder()
    out = f.make("out", (4,), 0)
    with f.when(Const(False)):
        f.put(out, 1)
    with f.when(Const(True)):
        f.put(out, 2)
    with f.loop(0):
        f.put(out, 3)
    f.give(out)
    assert simple(f) == "function f():\n    out[4] f32 = 0\n    out[:] = 2\n    return out"


def test_an_operand_that_is_returned_unchanged_is_read_itself_unless_it_is_state() -> None:
    f = FunctionBuilder()
    x, state = f.param("x", (4,)), f.make("state", (4,), 0)
    kept = f.apply("mul", state, 1)
    f.put(state, f.apply("mul", x, 1))
    f.give(kept, state)
    assert simple(f) == """\
function f(x: [4] f32):
    state[4] f32 = 0
    mul[4] f32 = mul(state, 1)
    state[:] = x
    return mul, state"""


# -- mutants -----------------------------------------------------------------------------------------------------------
def mutants(function: t.TensorFunction) -> Iterator[t.TensorFunction]:
    """Functions with one statement left out."""
    leaves: Sequence[t.Statement] = list(flow.leaves(function.body))
    for gone in leaves:
        if isinstance(gone, t.Put):
            body = flow.rewrite(function.body, lambda item, gone=gone: flow.Sequence() if item == flow.Do(gone) else item)  # type: ignore[misc]
            yield t.TensorFunction(function.name, function.params, body, function.results, function.symbols, function.scalars,
                                   function.constants, function.assumptions)


def test_a_write_that_a_pass_loses_is_found() -> None:
    found = count = 0
    for seed in range(8):
        case = generated(seed)
        after = simplify(planned(case.function), CONTEXT).function
        for mutant in mutants(after):
            count += 1
            found += difference_of_functions(case.function, mutant, case.arrays, case.scalars) is not None
    assert count > 10 and found > 0.8 * count


def test_exactness_is_known() -> None:
    f = FunctionBuilder()
    x = f.param("x", (4, 4))
    f.give(f.apply("rowmax", f.apply("add", x, 1)))
    assert is_exact(f.function())
    f.give(f.apply("rowsum", x))
    assert not is_exact(f.function())
