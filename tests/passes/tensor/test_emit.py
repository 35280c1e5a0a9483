"""Functions on tensors are printed as kernels and a workload with the same results, and errors there point at the functions' lines."""

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, Injective, InOut, Monotone, PtoError, Scalar, Tensor, tt
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.ir import workload as wl
from pto_wsp.ir.view import Permute
from pto_wsp.passes.tensor.emit import emit
from pto_wsp.passes.tensor.emitted import EmittedModule
from pto_wsp.passes.tensor.passes import run_tensor_passes
from pto_wsp.passes.tensor.planned import PlannedFunction, TensorContext
from pto_wsp.run.tensor_evaluate import evaluate
from pto_wsp.schedule.tiling import TilePlan
from pto_wsp.trace.tensor.signature import signature_of
from pto_wsp.trace.tensor.traced import trace_function
from pto_wsp.tt.library import rms_norm, rope, silu, softmax
from tests.tensor_functions import FunctionBuilder

F32, F16, I32, I64 = DType.F32, DType.F16, DType.I32, DType.I64
RNG = np.random.default_rng(5)


def draw(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def numbers(stop: int, *shape: int, dtype: Any = np.int32) -> Any:
    return RNG.integers(0, stop, shape).astype(dtype)


def context() -> TensorContext:
    return TensorContext(builtin_arch("ascend_910b"), "interp", {})


def traced(function: Callable[..., object], arrays: Sequence[object]) -> Any:
    return trace_function(function, signature_of(function, vars(inspect.getmodule(function))).bind(tuple(arrays), {})).function


def emitted(function: Callable[..., object], arrays: Sequence[object]) -> EmittedModule:
    made = traced(function, arrays)
    plan = TilePlan(made.name, "ascend_910b", "interp")
    return emit(run_tensor_passes(PlannedFunction(made, plan), context()), context())


def results_of(module: EmittedModule, arrays: Sequence[Any], target: str = "interp") -> list[Any]:
    """Run a module's workload on arrays, which are written where it writes them; return the results."""
    tensors = {one.name: Tensor(array) for one, array in zip((b for b in module.bound if not b.is_result), arrays, strict=True)}
    workload = module.workload(tensors)
    workload.compile(target=target).run()
    named = {tensor.name: tensor for tensor in workload.tensors if tensor is not None and tensor.name in module.results}
    return [named[name].data for name in module.results]


# -- functions ---------------------------------------------------------------------------------------------------------
def rms_norm_linear(x: Tensor["t", 64, F32], g: Tensor[64, F32], w: Tensor[64, 48, F32]):
    return rms_norm(x, g) @ w


def swiglu(x: Tensor["t", 32, F32], up: Tensor[32, 64, F32], down: Tensor[32, 32, F32]):
    gate, lift = np.split(x @ up, 2, axis=-1)
    return silu(gate) * lift @ down + x


def attention(q: Tensor["h", "s", 16, F32], k: Tensor["h", "n", 16, F32], v: Tensor["h", "n", 16, F32]):
    out = tt.empty(q.shape)
    for h in tt.each(q.shape[0]):
        acc, seen = tt.zeros((q.shape[1], 16)), tt.zeros((q.shape[1], 1))
        top = tt.full((q.shape[1], 1), -math.inf)
        for j in tt.loop(0, k.shape[1], 8):
            score = q[h] @ k[h, j:j + 8].T
            peak = np.maximum(top, np.max(score, axis=-1, keepdims=True))
            weight, fade = np.exp(score - peak), np.exp(top - peak)
            acc[:] = acc * fade + weight @ v[h, j:j + 8]
            seen[:] = seen * fade + np.sum(weight, axis=-1, keepdims=True)
            top[:] = peak
        out[h] = acc / seen
    return out


def sums(x: Tensor["t", "n", F32]):
    return np.sum(x, axis=0), np.mean(x, axis=1), np.max(x)


def what_was_given(x: Tensor["t", 40, F32]):
    y = x + 1
    return x, y, y, y.T, x[:, 3]


def turned(x: Tensor[4, 6, 8, F32]):
    return np.transpose(x, (1, 0, 2)) * 2, np.swapaxes(x, 1, 2) + 1


def heads(x: Tensor["t", 32, F32], w: Tensor[32, 48, F32]):
    q = (x @ w).reshape(x.shape[0], 4, 12)
    return q * 2, np.transpose(q, (1, 0, 2)) + 1


def by_head(q: Tensor["t", 4, 16, F32], w: Tensor[4, 16, 8, F32]):
    return np.einsum("thd,hdc->thc", q, w)


def in_order(x: Tensor["t", 20, F32]):
    best, places = tt.topk(x, 4)
    return best, places, np.argmax(x, axis=-1), np.sort(x, axis=-1), np.cumsum(x, axis=-1)


def reversed_parts(x: Tensor["t", 20, F32]):
    return np.flip(x, axis=1), x[:, ::2], np.flip(x, axis=1)[:, 3:9], np.flip(x, axis=1)[:, 4]


def framed(x: Tensor["t", 20, F32]):
    out = tt.zeros((x.shape[0], 30))
    out[:, 5:25] = x
    return out


def joined(x: Tensor["t", 20, F32], y: Tensor["t", 8, F32]):
    return np.concatenate([x, y], axis=1), np.stack([y, y * 2], axis=0)


def rotated(x: Tensor["t", 4, 16, F32], cos: Tensor["t", 16, F32], sin: Tensor["t", 16, F32]):
    return rope(x, cos[:, None], sin[:, None])


def added_to(x: Tensor["t", 8, F32], total: InOut[Tensor["t", 8, F32]]):
    total += x


def of_halves(x: Tensor["t", 32, F16], w: Tensor[32, 16, F16]):
    return softmax(x @ w), np.mean(x, axis=-1)


def ragged(q: Tensor["t", 16, F32], starts: Monotone[Tensor["b1", I32]]):
    out, total = tt.zeros(q.shape), tt.zeros((starts.shape[0] - 1, 16))
    for b in tt.each(starts.shape[0] - 1):
        rows = slice(starts[b], starts[b + 1])
        out[rows] = q[rows] * 2
        total[b] = np.sum(q[rows], axis=0)
    return out, total


def cached(x: Tensor["t", 16, F32], slots: Injective[Tensor["t", I64]], cache: InOut[Tensor["rows", 16, F32]]):
    cache[slots] = x * 2


def picked(x: Tensor["n", 16, F32], table: Tensor["t", I32]):
    return x[table] + 1


def either(x: Tensor["t", 16, F32], n: Tensor[1, I32]):
    out = tt.empty(x.shape)
    with tt.when(n[0] > 3):
        out[:] = x * 2
    with tt.otherwise():
        out[:] = x + 1
    return out


def counted(x: Tensor["t", 16, F32]):
    return x + tt.arange(16, dtype=F32), tt.arange(x.shape[0])


def carried(x: Tensor[5, "t", 16, F32]):
    state = tt.zeros((x.shape[1], 16))
    for i in tt.loop(5):
        state[:] = state * 0.5 + x[i]
    return state


def as_often_as_data_says(x: Tensor["t", 16, F32], lengths: Tensor[4, I32]):
    n = lengths + 1
    out = tt.zeros((4, 16))
    for b in tt.each(4):
        for j in tt.loop(n[b]):
            out[b] += x[j]
    return out


def pages(q: Tensor[4, 16, F32], cache: Tensor["p", 8, 16, F32], table: Tensor[4, "m", I32], lengths: Tensor[4, I32]):
    out = tt.zeros((4, 16))
    for b in tt.each(4):
        for j in tt.loop(lengths[b]):
            out[b] += np.sum(cache[table[b, j]], axis=0) * q[b]
    return out


def experts(x: Tensor["t", 16, F32], router: Tensor[16, 4, F32], up: Tensor[4, 16, 32, F32], down: Tensor[4, 16, 16, F32]):
    score, expert = tt.topk(x @ router, 2)
    share, pairs = softmax(score), tt.rows_of(expert, 4)
    each = tt.empty((x.shape[0] * 2, 16))
    for e in tt.each(4):
        mine = pairs[e]
        gate, lift = np.split(x[mine // 2] @ up[e], 2, axis=-1)
        each[mine] = silu(gate) * lift @ down[e]
    return np.sum(each.reshape(x.shape[0], 2, -1) * share[..., None], axis=1)


STARTS = np.array([0, 3, 3, 10, 30], np.int32)
CASES: list[tuple[Callable[..., object], Callable[[], list[Any]]]] = [
    (rms_norm_linear, lambda: [draw(37, 64), draw(64), draw(64, 48)]),
    (swiglu, lambda: [draw(37, 32), draw(32, 64), draw(32, 32)]),
    (attention, lambda: [draw(2, 19, 16), draw(2, 21, 16), draw(2, 21, 16)]),
    (sums, lambda: [draw(37, 90)]),
    (what_was_given, lambda: [draw(33, 40)]),
    (turned, lambda: [draw(4, 6, 8)]),
    (heads, lambda: [draw(37, 32), draw(32, 48)]),
    (by_head, lambda: [draw(37, 4, 16), draw(4, 16, 8)]),
    (in_order, lambda: [draw(37, 20)]),
    (reversed_parts, lambda: [draw(37, 20)]),
    (framed, lambda: [draw(37, 20)]),
    (joined, lambda: [draw(37, 20), draw(37, 8)]),
    (rotated, lambda: [draw(37, 4, 16), draw(37, 16), draw(37, 16)]),
    (added_to, lambda: [draw(37, 8), draw(37, 8)]),
    (of_halves, lambda: [draw(37, 32).astype(np.float16), draw(32, 16).astype(np.float16)]),
    (ragged, lambda: [draw(35, 16), STARTS]),
    (cached, lambda: [draw(20, 16), RNG.permutation(50)[:20].astype(np.int64), draw(50, 16)]),
    (picked, lambda: [draw(20, 16), numbers(20, 50)]),
    (either, lambda: [draw(20, 16), np.array([4], np.int32)]),
    (either, lambda: [draw(20, 16), np.array([3], np.int32)]),
    (counted, lambda: [draw(20, 16)]),
    (carried, lambda: [draw(5, 20, 16)]),
    (as_often_as_data_says, lambda: [draw(20, 16), np.array([3, 0, 5, 7], np.int32)]),
    (pages, lambda: [draw(4, 16), draw(9, 8, 16), numbers(9, 4, 5), np.array([3, 0, 5, 1], np.int32)]),
    (experts, lambda: [draw(20, 16), draw(16, 4), draw(4, 16, 32), draw(4, 16, 16)]),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("function", "arguments"), CASES, ids=[function.__name__ for function, _ in CASES])
def test_a_module_gives_what_the_function_means(function: Callable[..., object], arguments: Callable[[], list[Any]]) -> None:
    arrays = arguments()
    before, after = [array.copy() for array in arrays], [array.copy() for array in arrays]
    wanted = evaluate(traced(function, arrays), before)
    found = results_of(emitted(function, arrays), after)
    tolerance = 1e-2 if arrays[0].dtype == np.float16 else 1e-5
    for one, other in zip([*wanted, *before], [*found, *after], strict=True):
        np.testing.assert_allclose(other, one, rtol=tolerance, atol=tolerance)
        assert other.dtype == one.dtype


def as_often_as_computed(x: Tensor[16, 8, F32], counts: Tensor[4, I32]):
    n = np.max(counts, keepdims=True) + 1
    out = tt.zeros((16, 8))
    for i in tt.loop(n[0]):
        out[i] = x[i] * 2
    return out


def rows_of_computed_lengths(x: Tensor[16, 8, F32], counts: Tensor[4, I32]):
    out = tt.zeros((4, 8))
    for j in tt.each(4):
        total = tt.zeros((1, 8))
        for i in tt.loop(4):
            total[:] = total + x[i:i + 1]
        n = counts[j:j + 1] + 1
        rows = tt.empty((np.minimum(n[0], 16), 8))
        rows[:] = total + 2
        total[:] = total * 2
        out[j] = total[0] + np.sum(rows, axis=0)
    return out


def memory_of_computed_lengths(x: Tensor[16, 8, F32], counts: Tensor[4, I32]):
    out = tt.zeros((4, 8))
    for j in tt.each(4):
        n = counts + 1
        rows = tt.empty((np.minimum(n[j], 16), 8))
        for _ in tt.loop(2):
            rows[:] = x[j:j + 1] * 3
        out[j] = np.sum(rows, axis=0)
    return out


@pytest.mark.parametrize("function", [as_often_as_computed, rows_of_computed_lengths, memory_of_computed_lengths])
def test_bounds_and_extents_wait_for_the_values_that_they_read(function: Callable[..., object]) -> None:
    arrays = [draw(16, 8), np.array([3, 0, 5, 7], np.int32)]
    (wanted,), (found,) = evaluate(traced(function, arrays), arrays), results_of(emitted(function, arrays), arrays)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


# -- the module --------------------------------------------------------------------------------------------------------
def uncut(x: Tensor[16, 8, F32], counts: Tensor[4, I32]):
    n = np.max(counts, keepdims=True) + 1
    out = tt.empty((16, 8))
    for i in tt.loop(n[0]):
        out[i] = x[i] * 2
    return out


def test_a_value_that_a_bound_alone_reads_lies_in_memory() -> None:
    arrays = [draw(16, 8), np.array([3, 0, 5, 7], np.int32)]
    module = emit(PlannedFunction(traced(uncut, arrays), TilePlan("uncut", "ascend_910b", "interp")), context())
    np.testing.assert_array_equal(results_of(module, arrays)[0][:8], arrays[0][:8] * 2)


def total(x: Tensor[4, 8, F32]):
    out = tt.empty((1,))
    out[:] = np.sum(x)
    return out


def test_no_kernel_makes_a_buffer_of_a_result() -> None:
    assert "pto.alloc" not in emitted(total, [draw(4, 8)]).source


def test_a_straight_function_is_one_kernel_a_group() -> None:
    """A function that no pass has cut is tiled form where all of it fits into a tile."""
    f = FunctionBuilder("scaled")
    x, g = f.param("x", (4, 8)), f.param("g", (8,))
    f.give(f.apply("mul", f.apply("div", x, f.apply("rowsum", x, name="total"), name="share"), g, name="out"))
    module = emit(PlannedFunction(f.function(), TilePlan("scaled", "ascend_910b", "interp")), context())
    assert module.source.split("@workload")[0].split("\n\n\n")[1] == (
        "@kernel\n"
        "def out(x: In[Tile[4, 8, F32]], g: In[Tile[1, 8, F32]], out_2: Out[Tile[4, 8, F32]]):\n"
        "    total = pto.rowsum(x)\n"
        "    share = x / total\n"
        "    out = share * g\n"
        "    pto.store(out_2, out)")
    x, g = draw(4, 8), draw(8)
    np.testing.assert_allclose(results_of(module, [x, g])[0], x / x.sum(1, keepdims=True) * g, rtol=1e-5)


def test_the_text_is_the_same_each_time() -> None:
    arrays = [draw(20, 16), draw(16, 4), draw(4, 16, 32), draw(4, 16, 16)]
    assert emitted(experts, arrays).source == emitted(experts, arrays).source


def twice(x: Tensor["t", 16, F32], y: Tensor["t", 16, F32]):
    with tt.group("first"):
        one = x * 2 + 1
    with tt.group("second"):
        other = y * 2 + 1
    return one, other


def test_kernels_that_differ_in_names_alone_are_printed_once() -> None:
    module = emitted(twice, [draw(4, 16), draw(4, 16)])
    assert module.source.count("@kernel") == 1
    assert [kernel.name for kernel in module.kernels] == ["first"]


def test_a_workload_takes_the_users_tensors() -> None:
    module = emitted(rms_norm_linear, [draw(4, 64), draw(64), draw(64, 48)])
    x, out = draw(5, 64), np.zeros((5, 48), np.float32)
    g, w = draw(64), draw(64, 48)
    module.workload({"x": Tensor(x), "g": Tensor(g), "w": Tensor(w), "out": Tensor(out)}).compile(target="interp").run()
    np.testing.assert_allclose(out, x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6) * g @ w, rtol=1e-4, atol=1e-4)
    assert module.results == ("out",) and module.parameters == ("x", "g", "w")


def scaled_by(x: Tensor["t", 16, F32], factor: Scalar[F32]):
    return x * factor


def test_numbers_of_a_call_are_symbols_of_the_workload() -> None:
    module = emitted(scaled_by, [draw(4, 16), 3.0])
    for rows in (7, 0, 300):        # one program for all sizes
        x = draw(rows, 16)
        np.testing.assert_array_equal(module.run(x, 1.5), x * np.float32(1.5))


@pytest.mark.parametrize(("function", "arguments"), [CASES[0], CASES[3]], ids=["rms_norm_linear", "sums"])
def test_modules_are_packages_of_the_npu(function: Callable[..., object], arguments: Callable[[], list[Any]]) -> None:
    arrays = arguments()
    module = emitted(function, arrays)
    tensors = {name: Tensor(array) for name, array in zip(module.parameters, arrays, strict=True)}
    package = module.workload(tensors).compile(target="ascend_npu").package
    assert package is not None


# -- lines of the user -------------------------------------------------------------------------------------------------
def line_of(function: Callable[..., object], text: str) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next(place for place, line in enumerate(lines) if text in line)


def test_tasks_have_the_lines_of_the_function() -> None:
    module = emitted(swiglu, [draw(37, 32), draw(32, 64), draw(32, 32)])
    for task in wl.tasks(module.workload().node.body):
        assert task.span.file == __file__
        assert line_of(swiglu, "np.split") <= task.span.line <= line_of(swiglu, "return")
        for statement in task.kernel.body:
            assert statement.span.file == __file__


def test_an_error_of_a_run_points_at_the_function() -> None:
    module = emitted(picked, [draw(20, 16), numbers(20, 50)])
    with pytest.raises(PtoError) as caught:
        results_of(module, [draw(20, 16), np.array([3, 20], np.int32)])
    assert (caught.value.span.file, caught.value.span.line) == (__file__, line_of(picked, "return"))


def test_what_has_no_form_is_refused_at_its_line() -> None:
    f = FunctionBuilder("turned")
    f.give(f.apply("neg", f.param("x", (4, 6, 8)).then(Permute((2, 1, 0))), name="out"))
    with pytest.raises(PtoError) as caught:
        emit(PlannedFunction(f.function(), TilePlan("turned", "ascend_910b", "interp")), context())
    assert caught.value.code == "J310" and "transposition" in str(caught.value.found) and caught.value.span.file == "function.py"


def test_a_stored_buffer_is_not_read_in_place_of_what_was_stored() -> None:
    """One kernel stores a buffer, changes the buffer, and reads what it stored."""
    f = FunctionBuilder("kept")
    x = f.param("x", (4, 8))
    kept = f.make("kept", (4, 8), None)
    total = f.make("total", (4, 8), None)
    f.put(total, f.apply("add", x, 1.0, name="more"))
    f.put(kept, total)
    f.put(total, f.apply("mul", total, 3.0, name="thrice"))
    other = f.make("other", (4, 8), None)
    f.put(other, f.apply("sub", total, kept, name="rest"))
    f.give(other)
    f.give(kept)
    module = emit(PlannedFunction(f.function(), TilePlan("kept", "ascend_910b", "interp")), context())
    x = draw(4, 8)
    rest, stored = results_of(module, [x])
    np.testing.assert_array_equal(stored, x + np.float32(1))
    np.testing.assert_array_equal(rest, (x + np.float32(1)) * 3 - (x + np.float32(1)))
