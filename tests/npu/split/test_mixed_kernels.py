"""Kernels that mix products and vector work: their parts, one after the other, give what the whole gives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, In, InOut, Kernel, Out, P, Scalar, Tensor, Tile, kernel, pto, workload
from pto_wsp.ir import kernel as k
from pto_wsp.ir.flow import leaves
from pto_wsp.ir.kernel_walk import walk
from pto_wsp.npu.plan.model import NpuPlan, Scope
from pto_wsp.ops.entry import Unit
from pto_wsp.ops.rounding import Array
from tests.npu.split.numpy_plan import npu_plan, run_npu_plan

F32, F16, I32, I8 = DType.F32, DType.F16, DType.I32, DType.I8
S = 16


def both(made: Kernel, short: tuple[str, ...] = (), **args: Any) -> NpuPlan:
    """Run one task of a kernel by the interpreter and as its parts; compare every array; return the plan for the NPU.

    `short`: arrays with fewer rows than their tile of S x S.
    """
    copies = {name: value.copy() for name, value in args.items() if isinstance(value, np.ndarray)}
    expected = {name: value.copy() for name, value in copies.items()}

    def one(arrays: dict[str, Array]) -> Any:
        bound = {name: Tensor(arrays[name], name=name) if name in arrays else value for name, value in args.items()}

        @workload
        def task() -> None:
            made[0](**{name: value.clip(S, S) if name in short else value for name, value in bound.items()})

        return task()

    one(expected).compile(target="interp").run()
    plan = npu_plan(one(copies))
    run_npu_plan(plan, copies)
    for name, want in expected.items():
        np.testing.assert_allclose(copies[name].astype(np.float64), want.astype(np.float64), rtol=1e-4, atol=1e-4, err_msg=name)
    return plan


def cores(plan: NpuPlan) -> list[str]:
    """Return the core of each launch, v or c, in order."""
    return ["c" if plan.kernels[launch.kernel].core is Unit.CUBE else "v" for launch in leaves(plan.body)]


def names(plan: NpuPlan) -> list[str]:
    return [plan.kernels[launch.kernel].kernel.name for launch in leaves(plan.body)]


def random(*shape: int, dtype: type = np.float32, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed + sum(shape))
    return rng.integers(-4, 5, shape).astype(dtype) if np.issubdtype(dtype, np.integer) else rng.standard_normal(shape).astype(dtype)


TILE = Tile[S, S, F32]


@kernel
def dense(x: In[TILE], w: In[TILE], bias: In[Tile[1, S, F32]], y: Out[TILE]) -> None:
    pto.store(y, pto.relu(x @ w + bias))


def test_a_product_with_bias_and_relu_is_a_cube_part_and_a_vector_part() -> None:
    plan = both(dense, x=random(S, S), w=random(S, S), bias=random(1, S), y=np.zeros((S, S), np.float32))
    assert cores(plan) == ["c", "v"]
    assert names(plan) == ["dense_product", "dense_y"]


def test_rows_outside_of_the_valid_part_are_those_of_the_fill() -> None:
    """What crosses is whole: a column maximum over products of zero rows sees them."""
    @kernel
    def tall(x: In[TILE], w: In[TILE], y: Out[Tile[1, S, F32]]) -> None:
        pto.store(y, pto.colmax(x @ w))

    x = -np.abs(random(5, S))
    plan = both(tall, short=("x",), x=x, w=np.abs(random(S, S)), y=np.ones((1, S), np.float32))
    assert cores(plan) == ["c", "v"]


def test_a_product_alone_is_one_part() -> None:
    @kernel
    def alone(a: In[Tensor], b: In[Tensor], y: Out[TILE]) -> None:
        acc = pto.alloc((S, S), F32, init=0)
        for at in pto.range(0, a.shape[1], S):
            acc += pto.load(a, (0, at), shape=(S, S)) @ pto.load(b, (at, 0), shape=(S, S))
        pto.store(y, acc)

    plan = both(alone, a=random(S, 3 * S), b=random(3 * S, S), y=np.zeros((S, S), np.float32))
    assert cores(plan) == ["c"] and names(plan) == ["alone"]
    assert any(isinstance(stmt, k.Accumulate) for stmt in walk(plan.kernels[0].kernel.body))


def test_products_that_are_added_up_stay_on_the_cube_core() -> None:
    @kernel
    def added(x: In[TILE], w: In[TILE], y: Out[TILE]) -> None:
        pto.store(y, x @ w + w @ x + x @ x)

    plan = both(added, x=random(S, S), w=random(S, S, seed=1), y=np.zeros((S, S), np.float32))
    assert cores(plan) == ["c"]


def test_an_accumulator_that_starts_from_a_tile_belongs_to_the_vector_core() -> None:
    @kernel
    def started(x: In[TILE], w: In[TILE], y: InOut[TILE]) -> None:
        pto.store(y, pto.matmul(x, w, acc=y))

    plan = both(started, x=random(S, S), w=random(S, S, seed=1), y=random(S, S, seed=2))
    assert cores(plan) == ["c", "v"]


def test_a_half_precision_result_is_cast_by_the_vector_core() -> None:
    @kernel
    def halves(x: In[Tile[S, S, F16]], w: In[TILE], y: Out[Tile[S, S, F16]]) -> None:
        pto.store(y, pto.cast(x @ pto.cast(w, F16), F16))

    plan = both(halves, x=random(S, S, dtype=np.float16), w=random(S, S), y=np.zeros((S, S), np.float16))
    assert cores(plan) == ["v", "c", "v"]


def test_integers_go_straight_from_the_accumulator() -> None:
    @kernel
    def bytes_(x: In[Tile[S, 32, I8]], w: In[Tile[32, S, I8]], y: Out[Tile[S, S, I32]], z: Out[Tile[S, S, I32]]) -> None:
        product = x @ w
        pto.store(y, product)
        pto.store(z, product + 1)

    plan = both(bytes_, x=random(S, 32, dtype=np.int8), w=random(32, S, dtype=np.int8), y=np.zeros((S, S), np.int32),
                z=np.zeros((S, S), np.int32))
    assert cores(plan) == ["c", "v"]
    assert {stmt.param for stmt in walk(plan.kernels[0].kernel.body) if isinstance(stmt, k.Store)} == {"y", "product"}


def test_transposed_operands_are_loads_of_the_cube_core() -> None:
    @kernel
    def turned(x: In[TILE], w: In[Tensor], y: Out[TILE]) -> None:
        half = pto.load(w, (0, 0), shape=(S, S))
        pto.store(y, pto.exp(x * 0.1).T @ half.T + pto.load(w, (0, 0), shape=(S, S), transpose=True) @ half.T.T)

    plan = both(turned, x=random(S, S), w=random(S, S), y=np.zeros((S, S), np.float32))
    assert cores(plan) == ["v", "c"]
    assert not [stmt for stmt in walk(plan.kernels[1].kernel.body) if isinstance(stmt, k.Compute) and stmt.op == "transpose"]


def test_a_product_of_a_product_is_a_part_of_its_own() -> None:
    @kernel
    def chain(x: In[TILE], w: In[TILE], y: Out[TILE]) -> None:
        pto.store(y, (x @ w).T @ w)

    plan = both(chain, x=random(S, S), w=random(S, S, seed=1), y=np.zeros((S, S), np.float32))
    assert cores(plan) == ["c", "c"]


def test_masks_cross_as_numbers() -> None:
    @kernel
    def masked(x: In[TILE], w: In[TILE], y: Out[TILE]) -> None:
        hot = pto.rowmax(x) > pto.rowmean(w)
        score = pto.where(hot, x, w) @ w
        pto.store(y, pto.where(hot, score, 0.0))

    plan = both(masked, x=random(S, S), w=random(S, S, seed=1), y=np.zeros((S, S), np.float32))
    assert cores(plan) == ["v", "c", "v"]
    assert not [param for made in plan.kernels for param in made.kernel.memory_params
                if (param.dtype if isinstance(param, k.TensorParam) else param.type.dtype) is DType.BOOL]


def test_a_fill_that_the_cube_core_cannot_give_is_given_by_the_vector_core() -> None:
    @kernel
    def filled(x: In[Tensor], w: In[TILE], y: Out[TILE]) -> None:
        pto.store(y, pto.load(x, (0, 0), shape=(S, S), valid=(5, None), fill=1) @ w)

    assert cores(both(filled, x=random(S, S), w=random(S, S, seed=1), y=np.zeros((S, S), np.float32))) == ["v", "c"]


@pytest.mark.parametrize("n", [0, 1, 3])
def test_each_turn_of_nested_loops_hands_on_rows_of_its_own(n: int) -> None:
    @kernel
    def nested(x: In[Tensor], w: In[TILE], n: Scalar[I32], y: InOut[Tensor]) -> None:
        for i in pto.range(0, n):
            for j in pto.range(i, n, 2):
                with pto.when(j > 0):
                    score = pto.load(x, (i * S, 0), shape=(S, S)) @ w
                    pto.store(y, pto.load(y, (j * S, 0), shape=(S, S)) + pto.exp(score * 0.1) @ w, (j * S, 0))

    plan = both(nested, x=random(3 * S, S), w=random(S, S, seed=1), n=n, y=random(3 * S, S, seed=2))
    assert cores(plan) == ["c", "v", "c", "v"]


def test_a_branch_keeps_the_side_that_a_part_needs() -> None:
    @kernel
    def branched(x: In[TILE], w: In[TILE], n: Scalar[I32], y: Out[TILE]) -> None:
        with pto.when(n > 2):
            pto.store(y, pto.exp(x))
        with pto.otherwise():
            pto.store(y, pto.relu(x @ w))

    for n in (1, 5):
        plan = both(branched, x=random(S, S), w=random(S, S, seed=1), n=n, y=np.zeros((S, S), np.float32))
        assert cores(plan) == ["c", "v"]


def test_stores_and_loads_of_what_may_overlap_keep_their_order() -> None:
    @kernel
    def in_place(x: In[TILE], w: In[TILE], out: Out[TILE], y: Out[TILE]) -> None:
        before = pto.load(x)
        pto.store(out, before + 1)                 # may be where x is
        pto.store(y, pto.relu(before @ w))

    a = random(2, S, S)

    def one(array: Array, w: Array, y: Array) -> Any:
        A, W, Y = Tensor(array, name="A"), Tensor(w, name="W"), Tensor(y, name="Y")

        @workload
        def task() -> None:
            in_place[0](x=A[0], w=W, out=A[0], y=Y)

        return task()

    runs = [(a.copy(), random(S, S, seed=1), np.zeros((S, S), np.float32)) for _ in range(2)]
    one(*runs[0]).compile(target="interp").run()
    plan = npu_plan(one(*runs[1]))
    run_npu_plan(plan, dict(zip("AWY", runs[1], strict=True)))
    for want, found in zip(*runs, strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-5)


def test_cheap_work_is_done_where_it_is_used() -> None:
    """What rests on parameters alone does not make a part in front."""
    @kernel
    def late(x: In[TILE], w: In[TILE], bias: In[Tile[1, S, F32]], y: Out[TILE]) -> None:
        scale = pto.rowsum(pto.exp(bias))
        pto.store(y, x @ w * scale)

    plan = both(late, x=random(S, S), w=random(S, S, seed=1), bias=random(1, S), y=np.zeros((S, S), np.float32))
    assert cores(plan) == ["c", "v"]
    assert [len(launch.arguments) for launch in leaves(plan.body)] == [3, 3]


def test_flash_attention_is_five_parts() -> None:
    @kernel
    def attend(q: In[TILE], keys: In[Tensor], values: In[Tensor], out: Out[TILE]) -> None:
        acc, row_max, row_sum = (pto.alloc((S, n), F32, init=first) for n, first in ((S, 0), (1, -math.inf), (1, 0)))
        scaled = q * 0.25
        for start in pto.range(0, keys.shape[0], S):
            there = (keys.shape[0] - start, None)
            key, value = (pto.load(t, (start, 0), shape=(S, S), valid=(there[0].min(S), None)) for t in (keys, values))
            score = pto.where(pto.iota((1, S), I32, axis=1) < there[0], scaled @ key.T, -math.inf)
            new_max = pto.maximum(row_max, pto.rowmax(score))
            shrink, weight = pto.exp(row_max - new_max), pto.exp(score - new_max)
            acc[:] = acc * shrink + weight @ value
            row_sum[:] = row_sum * shrink + pto.rowsum(weight)
            row_max[:] = new_max
        pto.store(out, acc / row_sum)

    for tokens in (16, 40):
        plan = both(attend, short=("q", "out"), q=random(7, S), keys=random(tokens, S), values=random(tokens, S, seed=1),
                    out=np.zeros((7, S), np.float32))
        assert cores(plan) == ["v", "c", "v", "c", "v"]


def test_tasks_of_a_split_kernel_repeat_in_a_loop() -> None:
    x, w, y = random(4, S, S), random(S, S), np.zeros((4, S, S), np.float32)
    X, W, Y = Tensor(x, name="X"), Tensor(w, name="W"), Tensor(y, name="Y")
    bias = Tensor(random(1, S), name="bias")

    @workload
    def layer() -> None:
        for b in P(4):
            dense[b](x=X[b], w=W, bias=bias, y=Y[b])

    plan = npu_plan(layer())
    run_npu_plan(plan, {"X": x, "W": w, "Y": y, "bias": random(1, S)})
    np.testing.assert_allclose(y, np.maximum(x @ w + random(1, S), 0), rtol=1e-4, atol=1e-4)
    assert len(plan.kernels) == 2




@pytest.mark.slow
def test_more_values_than_a_task_takes_tensors_cross_in_one() -> None:
    @kernel
    def unrolled(x: In[TILE], w: In[TILE], n: Scalar[I32], out: Out[Tensor]) -> None:
        for i in range(17):
            pto.store(out, pto.relu(pto.exp(x * (i / 10)) @ w), (i * S, 0))
        for j in pto.range(n):
            for i in range(17):
                pto.store(out, pto.relu(pto.exp(x * (i / 20)) @ w), ((17 + i + j) * S, 0))

    for n in (0, 2):
        plan = both(unrolled, x=random(S, S), w=random(S, S, seed=1), n=n, out=np.zeros((36 * S, S), np.float32))
        assert cores(plan) == ["v", "c", "v"]
        (scope,) = plan.body.items
        assert isinstance(scope, Scope)
        assert len(scope.intermediates) == 2


def test_products_of_a_loop_are_added_up_before_what_a_buffer_held() -> None:
    """From a bias, and anew in each iteration of an outer loop: one sum crosses for each of them."""
    @kernel
    def biased(a: In[Tensor], b: In[Tensor], bias: In[TILE], y: Out[Tensor]) -> None:
        acc = pto.alloc((S, S), F32, init=0)
        for i in pto.range(0, a.shape[0], S):
            acc[:] = bias
            for at in pto.range(0, a.shape[1], S):
                acc += pto.load(a, (i, at), shape=(S, S)) @ pto.load(b, (at, 0), shape=(S, S))
            pto.store(y, acc, (i, 0))

    plan = both(biased, a=random(2 * S, 3 * S), b=random(3 * S, S), bias=random(S, S), y=np.zeros((2 * S, S), np.float32))
    assert cores(plan) == ["c", "v"]
    (scope,) = plan.body.items
    assert isinstance(scope, Scope)
    assert [made.name for made in scope.intermediates] == ["acc_sum"]
    assert any(isinstance(stmt, k.Accumulate) for stmt in walk(plan.kernels[0].kernel.body))


@pytest.mark.parametrize("rows", [1, 9, 16])
def test_an_expert_gathers_multiplies_and_scatters(rows: int) -> None:
    @kernel
    def expert(x: In[Tensor], which: In[Tile[S, 1, I32]], w1: In[Tile[S, 32, F32]], w3: In[Tile[S, 32, F32]], w2: In[Tile[32, S, F32]],
               share: In[Tile[S, 1, F32]], y: InOut[Tensor]) -> None:
        n = which.valid[0]
        token = pto.gather(x, which, cols=S, valid=n)
        hidden = pto.silu(token @ w1) * (token @ w3)
        pto.scatter_add(y, which, hidden @ w2 * share, valid=n)

    which = np.random.default_rng(rows).permutation(40)[:rows].astype(np.int32)[:, None]
    x, w1, w3, w2, y = random(40, S), random(S, 32), random(S, 32, seed=1), random(32, S), random(40, S, seed=2)
    share = random(rows, 1)

    def bound(out: Array) -> Any:
        given = {"x": x, "which": which, "w1": w1, "w3": w3, "w2": w2, "share": share, "y": out}
        t = {name: Tensor(array, name=name) for name, array in given.items()}

        @workload
        def task() -> None:
            expert[0](**{**t, "which": t["which"].clip(S, 1), "share": t["share"].clip(S, 1)})

        return task(), given

    made, given = bound(y.copy())
    plan = npu_plan(made)
    run_npu_plan(plan, given)
    gate, up = x[which[:, 0]] @ w1, x[which[:, 0]] @ w3
    expected = y.copy()
    np.add.at(expected, which[:, 0], gate / (1 + np.exp(-gate)) * up @ w2 * share)
    np.testing.assert_allclose(given["y"], expected, rtol=1e-3, atol=1e-3)
    assert cores(plan) == ["v", "c", "v", "c", "v"]


def test_each_part_reads_the_items_that_its_pieces_are_at() -> None:
    @kernel
    def attends(x: In[TILE], cache: In[Tensor], table: In[Tensor], n: Scalar[I32], out: Out[TILE]) -> None:
        total, top = pto.alloc((S, S), F32, init=0), pto.alloc((S, 1), F32, init=-math.inf)
        for j in pto.range(n):
            page = pto.item(table, 0, j)
            with pto.when(j % 2 == 0):
                held = pto.load(cache, (page * S, 0), shape=(S, S), valid=(pto.item(table, 1, page), S))
                score = x @ held.T
                peak = pto.maximum(top, pto.rowmax(score))
                total[:] = total * pto.exp(pto.maximum(top - peak, -9)) + pto.exp(score - peak) @ held * page
                top[:] = peak
        pto.store(out, total)

    @kernel
    def chained(x: In[TILE], cache: In[Tensor], table: In[Tensor], out: Out[TILE]) -> None:
        total = pto.alloc((S, S), F32, init=1)
        for j in pto.range(3):      # each product waits for vector work on the one before: the loop is written out
            total[:] = pto.tanh(total @ pto.load(cache, (pto.item(table, 0, j) * S, 0), shape=(S, S)) + x)
        pto.store(out, total)

    cache, table = random(4 * S, S), np.array([[2, 0, 3, 1], [S, 5, S, 1]], np.int32)
    for n in (0, 1, 4):
        plan = both(attends, x=random(S, S), cache=cache, table=table, n=n, out=np.zeros((S, S), np.float32))
        assert cores(plan) == ["c", "v", "c", "v"]
    score, *_ = plan.kernels
    assert {param.name for param in score.kernel.memory_params} == {"x", "cache", "table", "score"}
    both(chained, x=random(S, S), cache=cache, table=table, out=np.zeros((S, S), np.float32))


def test_a_sum_of_products_of_which_items_say_the_rows_is_kept_whole() -> None:
    @kernel
    def summed(cache: In[Tensor], table: In[Tensor], w: In[TILE], n: Scalar[I32], out: Out[TILE]) -> None:
        total = pto.alloc((S, S), F32, init=0)
        for j in pto.range(n):
            rows = pto.item(table, 0, j)
            total += pto.load(cache, (j * S, 0), shape=(S, S), valid=(rows, S)) @ w
        pto.store(out, pto.relu(total))

    table = np.array([[S, 3, 0, 7]], np.int32)
    for n in (0, 1, 4):
        plan = both(summed, cache=random(4 * S, S), table=table, w=random(S, S), n=n, out=np.zeros((S, S), np.float32))
    assert ["table" in {param.name for param in made.kernel.memory_params} for made in plan.kernels] == [True, True]


def test_a_part_without_items_takes_no_table() -> None:
    @kernel
    def last(cache: In[Tensor], table: In[Tensor], w: In[TILE], n: Scalar[I32], out: Out[Tensor]) -> None:
        for j in pto.range(n):
            page = pto.item(table, 0, j)
            pto.store(out, pto.relu(pto.load(cache, (page * S, 0), shape=(S, S)) @ w), (j * S, 0))

    plan = both(last, cache=random(4 * S, S), table=np.array([[2, 0, 3, 1]], np.int32), w=random(S, S), n=4,
                out=np.zeros((4 * S, S), np.float32))
    assert ["table" in {param.name for param in made.kernel.memory_params} for made in plan.kernels] == [True, False]
