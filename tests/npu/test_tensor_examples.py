"""Every function of examples/tensors as a package, on the emulated core: it gives the numbers of its reference in float64.

tests/examples holds cpu_sim and interp to the same reference.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, Injective, InOut, Tensor, jit, tt
from tests.examples.tensors import EXAMPLES
from tests.npu.harness import ORDERS, Target, build, check_graph, run
from tests.npu.package import Array, load_package

FAST = "softmax"


def flat(data: dict[str, Any]) -> dict[str, Array]:
    """The arrays of the arguments, by the names that the module has for them."""
    found: dict[str, Array] = {}
    for name, value in data.items():
        found.update(flat({f"{name}_{key}": one for key, one in value._asdict().items()}) if hasattr(value, "_asdict") else {name: value})
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name == FAST else pytest.mark.slow) for name in EXAMPLES])
def test_a_function_on_tensors_gives_its_numbers_as_a_package(name: str) -> None:
    example = EXAMPLES[name]
    given = example.module.draw()
    for order, data, results in runs_of(example.function, given):
        example.check(data, given, results if len(results) > 1 else results[0], f"{name}, order {order}")


def runs_of(function: Any, given: dict[str, Any], orders: Sequence[tuple[str, int]] = ORDERS[::2],
            ) -> Iterator[tuple[tuple[str, int], dict[str, Any], tuple[Array, ...]]]:
    """Yield each order of tasks, the arguments after the run of the package, and the results."""
    meant = function.reference(**copy.deepcopy(given))
    several = isinstance(meant, tuple)
    outs = tuple(Tensor(np.zeros_like(one), name=f"result_{k}") for k, one in enumerate(meant if several else (meant,)))
    plan = function.plan(**given, arch="ascend_910b", target="ascend_npu")
    lowered = function.lower(plan, **given, out=outs if several else outs[0])
    program = lowered.compile(target="ascend_npu", arch="ascend_910b")
    assert program.artifact_dir is not None
    package = load_package(program.artifact_dir)
    declared, scalars = package.inputs(None)
    arrays = flat(given)
    known = {key: key.removesuffix("_tensor") for key in declared}       # a tensor that is called like a kernel
    tensors = {key: np.ascontiguousarray(arrays.get(known[key], value)) for key, value in declared.items()}
    outcomes = run(package, build(package, Target("a2a3", package.runtime)), tensors, scalars, orders)
    check_graph(package, outcomes[0].graph)
    for outcome, order in zip(outcomes, orders, strict=True):
        found = {known[key]: value for key, value in outcome.tensors.items()}
        data = {key: found[key].reshape(value.shape) if key in found else value for key, value in given.items()}
        yield order, data, tuple(outcome.tensors[one.name].reshape(one.ref.shape) for one in outs)


@pytest.mark.slow
@pytest.mark.parametrize("n", [8192, 4001])
def test_long_rows_that_must_be_whole_fit_a_core(n: int) -> None:
    """A row in order, its best and its running sums take the memory of a few rows, not 32 bytes for each element."""
    @jit
    def rows(x):
        best, places = tt.topk(x, 40)
        return np.sort(x, axis=-1), best, places, np.cumsum(x, axis=-1)

    rng = np.random.default_rng(n)
    x = np.stack([rng.permutation(n) for _ in range(3)]).astype(np.float32) - n // 2
    for _, _, (ordered, best, places, sums) in runs_of(rows, {"x": x}, ORDERS[:1]):
        np.testing.assert_array_equal(ordered, np.sort(x))
        np.testing.assert_array_equal(best, -np.sort(-x)[:, :40])
        np.testing.assert_array_equal(places, np.argsort(-x)[:, :40])
        np.testing.assert_allclose(sums, np.cumsum(x.astype(np.float64), axis=1), rtol=1e-6, atol=4)


@jit
def causal_in_parts(q, k, v):
    """Causal attention: a loop over the keys that all queries of a block see, then the diagonal in parts of rows, all on one state."""
    out = tt.empty(q.shape)
    for i in tt.each(q.shape[0] // 32):
        mine = slice(i * 32, (i + 1) * 32)
        rows, keys, values = q[mine] * 0.25, k[mine], v[mine]
        acc, seen, top = tt.zeros(rows.shape), tt.zeros((32, 1)), tt.full((32, 1), -np.inf)
        for j in tt.loop(0, i * 32, 32):
            _meet((acc, seen, top), rows @ k[j:j + 32].T, v[j:j + 32])
        for start in range(0, 32, 16):
            part = slice(start, start + 16)
            sees = tt.arange(start + 16) <= tt.arange(16)[:, None] + start
            _meet((acc[part], seen[part], top[part]), np.where(sees, rows[part] @ keys[:start + 16].T, -np.inf), values[:start + 16])
        out[mine] = acc / seen
    return out


def _meet(state, score, v):
    acc, seen, top = state
    peak = np.maximum(top, np.max(score, axis=-1, keepdims=True))
    weight, fade = np.exp(score - peak), np.exp(top - peak)
    acc[:] = acc * fade + weight @ v
    seen[:] = seen * fade + np.sum(weight, axis=-1, keepdims=True)
    top[:] = peak


@pytest.mark.slow
def test_state_that_a_loop_and_statements_on_its_parts_update_is_in_one_kernel() -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((96, 16)).astype(np.float32) for _ in range(3))
    score = np.where(np.tri(96, dtype=bool), q.astype(np.float64) @ k.T * 0.25, -np.inf)
    weight = np.exp(score - score.max(axis=1, keepdims=True))
    for _, _, (out,) in runs_of(causal_in_parts, {"q": q, "k": k, "v": v}, ORDERS[:1]):
        np.testing.assert_allclose(out, weight @ v / weight.sum(axis=1, keepdims=True), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("target", "inside"), [("ascend_npu", "kernel"), ("pto", "tasks")])
def test_state_that_is_written_in_parts_is_in_memory_where_buffers_have_no_parts(target: str, inside: str) -> None:
    given = {name: Tensor[96, 16, DType.F32] for name in "qkv"}
    plan = causal_in_parts.plan(**given, arch="ascend_910b", target=target)
    loops = plan.said("loops", "j")
    assert loops is not None and loops.value == inside
    causal_in_parts.lower(plan, **given).compile(target=target, arch="ascend_910b")


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(20,), (11, 2)])
def test_places_that_are_put_in_order_on_a_core(shape: tuple[int, ...]) -> None:
    @jit
    def routed(x, ids):
        pairs, out = tt.rows_of(ids, 4), tt.zeros(x.shape)
        for e in tt.each(4):
            out[pairs[e]] = x[pairs[e]] * (e + 1)
        return out

    rng = np.random.default_rng(1)
    x, ids = rng.standard_normal((math.prod(shape), 16), np.float32), rng.integers(0, 4, shape).astype(np.int32)
    for _, _, (found,) in runs_of(routed, {"x": x, "ids": ids}, ORDERS[:1]):
        np.testing.assert_array_equal(found, x * (ids.reshape(-1, 1) + 1).astype(np.float32))


@pytest.mark.slow
def test_tables_of_i64_name_rows_though_cores_compute_on_no_8_bytes() -> None:
    """A task binds the row that an entry names, which the orchestration reads."""
    def move(x: Tensor[5, 8, DType.F32], slots: Injective[Tensor[5, DType.I64]], cache: InOut[Tensor[12, 8, DType.F32]]):
        cache[slots] = x
        return x[slots]

    x, slots, cache = np.arange(40, dtype=np.float32).reshape(5, 8), np.array([4, 3, 0, 2, 1]), np.full((12, 8), 7, np.float32)
    for _, data, (taken,) in runs_of(jit(move), {"x": x, "slots": slots, "cache": cache}, ORDERS[:1]):
        wanted = cache.copy()
        wanted[slots] = x
        np.testing.assert_array_equal(data["cache"], wanted)
        np.testing.assert_array_equal(taken, x[slots])
