# ruff: noqa: F821, UP037      (a string in Tensor[...] is a symbol)
"""Plans that nobody wrote: no executor without a task where rows suffice, and no extent of an argument in a plan."""

from __future__ import annotations

import re
from collections import Counter
from inspect import signature
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, PtoError, Scalar, Tensor, TilePlan, jit, tt
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.tt.library import rms_norm, softmax
from tests.examples.tensors import EXAMPLES

F32 = DType.F32


@jit
def normed(x: Tensor["t", 32, F32], g: Tensor[32, F32], w: Tensor[32, 48, F32]) -> Any:
    return softmax(rms_norm(x, g) @ w)


def arguments(t: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(t)
    return tuple(rng.standard_normal(shape).astype(np.float32) for shape in ((t, 32), (32,), (32, 48)))


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["host_cpu", "ascend_910b"])
def test_an_extent_of_an_argument_changes_no_plan(arch: str) -> None:
    plans = {normed.plan(*arguments(t), arch=arch).digest for t in (1, 7, 301, 4096)}
    assert plans == {normed.plan(arch=arch).digest}
    if arch == "host_cpu":
        again = jit(normed.__wrapped__)
        for t in (1, 7, 301):
            again(*arguments(t))
        assert len(again.compiled) == 1


@pytest.mark.filterwarnings("ignore:.*nothing proves")       # the proof of writes knows whole numbers alone
def test_the_smallest_promised_bound_counts_and_a_fraction_keeps_its_whole_part() -> None:
    @jit
    def orders(x: Tensor[8, "n", F32], y: Tensor[8, "m", F32]) -> Any:
        tt.assume(x.shape[1] < 4.5)
        for most in (64, 4096):
            tt.assume(y.shape[1] <= most)
        return np.argsort(x), np.argsort(y)

    x, y = (np.random.default_rng(0).standard_normal((8, n)).astype(np.float32) for n in (4, 9))
    out, other = orders.using(target="interp")(x, y)
    np.testing.assert_array_equal(out, np.argsort(x))
    np.testing.assert_array_equal(other, np.argsort(y))
    assert "n = symbol (planned for 4), m = symbol (planned for 64)" in str(orders.plan())


def test_what_equal_values_decide_is_decided_before_groups_are_made() -> None:
    @jit
    def never(x: Tensor[4, DType.I32], y: Tensor["t", 8, F32]) -> Any:
        out, wide = tt.zeros(y.shape), np.exp(y)
        n, m = x + 1, x + 1
        with tt.when(n[0] < m[0]):      # n[0] < n[0], once both are one value; then nothing reads `wide`
            out[:] = wide
        return out

    assert never.plan().group_names == ("out.fill",)


def test_kernels_that_differ_in_names_alone_have_equal_tiles_under_their_own_names() -> None:
    @jit
    def pair(x: Tensor["t", 256, F32], w: Tensor[256, 512, F32], y: Tensor["s", 256, F32], v: Tensor[256, 512, F32]) -> Any:
        return x @ w, y @ v

    plan = pair.plan(arch="ascend_910b")
    chosen = [[(entry.axis, entry.value, entry.reason) for entry in plan.entries if entry.name == name and entry.key != "groups"]
              for name in plan.group_names]
    own = {"t": "s", "w:0": "v:0"}
    renamed = [(own.get(axis, axis), value, reason.replace("t=", "s=").replace("w:0=", "v:0=")) for axis, value, reason in chosen[0]]
    assert [axis for axis, _, _ in chosen[1]] == ["s", "1", "v:0"] and chosen[1] == renamed


@pytest.mark.slow
@pytest.mark.parametrize("with_product", [False, True])
def test_no_executor_is_without_a_task_where_rows_suffice(with_product: bool) -> None:
    """16 rows for each vector core: the kernel has a task for each core of its unit."""
    cores = builtin_arch("ascend_910b").cores
    wanted = cores.cube if with_product else cores.vector
    assert wanted is not None and cores.vector is not None
    t = 16 * int(cores.vector)
    x, g, w = arguments(t)

    @jit
    def fixed(x: Tensor[t, 32, F32], g: Tensor[32, F32], w: Tensor[32, 48, F32]) -> Any:
        return softmax(rms_norm(x, g) @ w) if with_product else rms_norm(x, g) * w[0, 0]

    plan = fixed.plan(arch="ascend_910b")
    program = fixed.lower(plan, x=x, g=g, w=w).compile(arch="ascend_910b")
    program.run()
    tasks = Counter(str(task).split("[")[0] for task in program.graph.tasks)
    assert (" cube " if with_product else " vector ") in str(plan) and min(tasks.values()) >= wanted, f"{tasks}\n{plan}"


def test_whole_axes_stand_in_the_order_of_their_appearance() -> None:
    """A plan is the same text in every process, whatever Python's seed of hashes."""
    @jit
    def sums(a: Tensor["t", 2, F32], b: Tensor["t", 3, F32], c: Tensor["t", 4, F32], d: Tensor["t", 5, F32], e: Tensor["t", 6, F32]) -> Any:
        with tt.group("all"):
            return np.sum(a, axis=1) + np.sum(b, axis=1) + np.sum(c, axis=1) + np.sum(d, axis=1) + np.sum(e, axis=1)

    assert sums.plan().costs[0].whole == ("a:1", "b:1", "c:1", "d:1")      # the longest sum may be walked


def test_an_update_of_state_in_a_loop_of_tasks_is_one_kernel() -> None:
    """acc[:] = acc * fade + weight @ v[...]: the copy into the state is no kernel of its own, which would read memory again."""
    function = EXAMPLES["paged_attention"].function
    plan = function.plan(arch="ascend_910b").but(loops={"j": "tasks"})
    assert plan.group_names == ("qg", "acc.fill", "seen.fill", "top.fill", "top", "out")
    default = function.plan(arch="ascend_910b")
    loop = default.said("loops", "j")
    assert default.group_names == ("out",)
    assert loop is not None and (loop.value, loop.reason) == ("kernel", "its state fits into a task")


# Its scores are one row of at most 32, its sums one row of 64: tasks for parts of these would cost more than they compute.
@pytest.mark.parametrize("arch", ["host_cpu", "ascend_910b"])
def test_one_row_meets_a_page_in_one_task(arch: str) -> None:
    @jit
    def decode(query: Tensor["b", 1, 64, F32], keys: Tensor["pages", 32, 64, F32], table: Tensor["b", "m", DType.I32],
               lens: Tensor["b", DType.I32]) -> Any:
        out = tt.empty(query.shape)
        for b in tt.each(query.shape[0]):
            acc, seen = tt.zeros((1, 64)), tt.zeros((1, 1))
            for j in tt.loop((lens[b] + 31) // 32):
                held = keys[table[b, j]][:lens[b] - j * 32]
                weight = np.exp(query[b] @ held.T)
                acc[:] = acc + weight @ held
                seen[:] = seen + np.sum(weight, axis=-1, keepdims=True)
            out[b] = acc / seen
        return out

    plan = decode.plan(arch=arch)
    assert plan.group_names == ("out",)
    groups = plan.but(loops={"j": "tasks"}).group_names
    assert len([name for name in groups if not name.endswith(".fill")]) == 2, groups


@jit
def many_rows(x: Tensor[4096, 4096, F32]) -> Any:
    return softmax(x)


def batches(plan: TilePlan) -> dict[str, object]:
    return {entry.name: entry.value for entry in plan.entries if entry.key == "batch"}


def test_tasks_of_small_tiles_compute_several_and_no_core_is_idle() -> None:
    plan = many_rows.plan(arch="ascend_910b")
    cores = builtin_arch("ascend_910b").cores.vector
    (cost,) = plan.costs
    assert batches(plan) == {"out": 16} and cost.n_tasks == 4096 // (4 * 16) >= int(cores or 0)
    single = plan.but(batch={"out": 1})
    assert single.costs[0].n_tasks == 1024 and single.costs[0].cycles > 2 * cost.cycles
    cheap = builtin_arch("ascend_910b").with_aicpu(submit_cycles=0)
    assert batches(many_rows.plan(arch=cheap)) == {}, "a task that costs nothing is best alone"


def test_what_a_person_says_of_tiles_takes_no_batch_along() -> None:
    plan = many_rows.plan(arch="ascend_910b")
    assert batches(plan.but(tiles={"out": {0: 4}})) == {} and batches(plan.but(tails={"out": {0: (4, 1)}})) == {}


def test_an_entry_that_changes_nothing_is_refused_beside_a_chosen_batch() -> None:
    """The choice of a batch looks at `keep`, and does not count as a use of the entry."""
    with pytest.raises(PtoError, match="changes nothing"):
        many_rows.plan(arch="ascend_910b").but(keep={"out": "whole"})


def test_a_symbol_takes_a_batch_only_where_somebody_says_how_many() -> None:
    @jit
    def rows(x: Tensor["t", 4096, F32]) -> Any:
        return softmax(x)

    assert batches(rows.plan(arch="ascend_910b")) == {}
    assert batches(rows.plan(arch="ascend_910b", sizes={"t": 4096})) == {"out": 16}


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cpu_sim", "interp"])
def test_a_chosen_batch_changes_no_bit_and_fewer_cycles_pass(target: str) -> None:
    x = np.random.default_rng(0).standard_normal((1001, 2500), np.float32)      # the last tile and the last batch are short

    @jit
    def ragged(x):
        return softmax(x)

    found: dict[str, np.ndarray] = {}
    cycles: dict[str, int] = {}
    default = ragged.plan(x, arch="ascend_910b")
    assert batches(default)
    for name, plan in (("default", default), ("single", default.but(batch={"out": 1}))):
        found[name] = np.full_like(x, np.nan)
        program = ragged.lower(plan, x=x, out=found[name]).compile(target, arch="ascend_910b")
        program.run()
        cycles[name] = program.simulate(overheads=True).stats.total_cycles
    np.testing.assert_array_equal(found["default"], found["single"])
    np.testing.assert_allclose(found["default"].sum(axis=1), 1, rtol=1e-5)
    assert cycles["default"] < cycles["single"]


def scaled(x, g):
    return rms_norm(x, g) * 2.0                # working memory of a sum, as large as a tile


def two(x):
    return np.sum(x, -1), x * 2                # rows that are padded to 32 bytes


def best(x):
    return np.argmax(x, axis=-1)               # several tiles beside the operand


def over_rows(x):
    return np.sum(x, axis=0)                   # fits with another step of the sum alone


def turned(x):
    return x.T * 2                             # copies that lie otherwise


def rest(x):
    return np.floor(x) % 3                     # a remainder in steps


def flipped(x):
    return np.sum(x[:, ::2], axis=-1), np.max(x[:, ::-1], axis=-1)      # an element in 32 bytes


def curve(x):
    return np.tanh(x.astype(DType.F16))        # halves are computed in f32


def in_order(x):
    return np.sort(x, axis=-1)                 # pairs of value and place, twice


def running(x):
    return np.cumsum(x, axis=-1)               # a row as the rows of a transposed tile


@pytest.mark.slow
@pytest.mark.parametrize(("function", "shapes"), [
    (curve, ((300, 8192),)), (in_order, ((300, 8192),)), (running, ((300, 8192),)),
    (scaled, ((2048, 2048), (2048,))), (two, ((7, 500, 3000),)), (best, ((300, 4000),)), (over_rows, ((3000, 70),)),
    (turned, ((3000, 4096),)), (rest, ((1000, 3000),)), (flipped, ((64, 8192),))])
def test_the_default_plan_of_a_package_leaves_room_for_what_instructions_need(function: Any, shapes: tuple[tuple[int, ...], ...]) -> None:
    arrays = dict(zip(signature(function).parameters, (np.ones(shape, np.float32) for shape in shapes), strict=True))
    made = jit(function)
    plan = made.plan(**arrays, arch="ascend_910b", target="ascend_npu")
    program = made.lower(plan, **arrays).compile(target="ascend_npu", arch="ascend_910b")
    assert program.artifact_dir is not None


@pytest.mark.slow
def test_entries_by_hand_leave_the_other_groups_of_a_package_room() -> None:
    made = jit(two)
    arrays = {"x": np.ones((7, 500, 3000), np.float32)}
    plan = made.plan(**arrays, arch="ascend_910b", target="ascend_npu").but(tiles={"out[1]": {1: 10, 2: 500}})
    assert made.lower(plan, **arrays).compile(target="ascend_npu", arch="ascend_910b").artifact_dir is not None
    made, arrays = jit(rest), {"x": np.ones((1000, 3000), np.float32)}
    plan = made.plan(**arrays, arch="ascend_910b", target="ascend_npu")
    with pytest.raises(PtoError) as caught:       # tiles that a person says stay, and are refused with who needs what
        plan.but(tiles={"out": {0: 20, 1: 1000}})
    assert caught.value.code == "J304" and "UB" in str(caught.value)
    most = re.search(r"0=(\d+)", str(caught.value.expected))
    assert most is not None
    wide = plan.but(tiles={"out": {0: int(most[1]), 1: 1000}})
    assert made.lower(wide, **arrays).compile(target="ascend_npu", arch="ascend_910b").artifact_dir is not None


@pytest.mark.slow
@pytest.mark.parametrize(("made", "longest"), [
    (lambda x: np.argmax(x, axis=-1), 11648), (lambda x: np.cumsum(x, axis=-1), 11264), (lambda x: tt.topk(x, 8), 8192)])
def test_a_row_of_any_length_is_planned_or_refused_with_the_longest_that_fits(made: Any, longest: int) -> None:
    """A symbol of rows leaves the trial of a package as it is: rows are counted at the machine's own instructions."""
    def planned(n: int, arch: str) -> Any:
        def ranked(x):
            return made(x)
        ranked.__annotations__["x"] = Tensor["t", n, F32]
        return jit(ranked).plan(arch=arch, target="ascend_npu")

    with pytest.raises(PtoError) as caught:
        planned(12000, "ascend_910b")
    assert caught.value.code == "J304" and f"of at most {longest:,}" in str(caught.value.expected)
    assert "12,000" in str(caught.value.found) and "working memory" in str(caught.value) and "_tmp" not in str(caught.value)
    assert "t=1" in str(planned(longest, "ascend_910b"))


@pytest.mark.slow
def test_a_row_too_long_inside_a_loop_or_reshaped_is_refused_and_a_length_said_only_where_it_was_tried() -> None:
    def in_loop(x: Tensor["t", 12000, F32]):
        out = tt.empty(x.shape)
        for i in tt.each(x.shape[0]):
            out[i] = np.sort(x[i]) + tt.cast(i, F32)
        return out

    def reshaped(x: Tensor[3, 4, 6000, F32]):
        return np.sort(x.reshape(3, 2, 12000), axis=-1)

    def of_numbers(x: Tensor["t", 12000, F32], ids: Tensor["t", DType.I32]):
        out = tt.zeros(x.shape)
        for e in tt.each(4):
            mine = tt.rows_of(ids, 4)[e]
            out[mine] = np.sort(x[mine], axis=-1)
        return out

    found = []
    for function in (in_loop, reshaped, of_numbers):
        with pytest.raises(PtoError) as caught:
            jit(function).plan(arch="ascend_910b", target="ascend_npu")
        found.append((caught.value.code, "of at most 8,192" in str(caught.value.expected), "of at most" in str(caught.value.expected)))
    assert found == [("J304", True, True), ("J304", False, False), ("J304", False, False)]


@pytest.mark.slow
def test_products_that_the_vector_core_adds_up_fit_its_memory() -> None:
    """Such a kernel is split in two, and the part with the sums needs a memory that the tiles of a product do not count in."""
    def first_rows(x: Tensor["t", "k", F32], w: Tensor["k", "m", F32], n: Scalar[DType.I32]):
        out = tt.zeros((x.shape[0], w.shape[1]))
        out[:n] = x[:n] @ w
        return out

    made = jit(first_rows)
    given = {"x": np.zeros((1024, 64), np.float32), "w": np.zeros((64, 128), np.float32), "n": 512}
    plan = made.plan(**given, arch="ascend_910b", target="ascend_npu")
    assert made.lower(plan, **given).lower("ascend_npu", arch="ascend_910b").irs


@pytest.mark.parametrize("made", [lambda x: np.argmax(x, axis=-1), lambda x: np.cumsum(x, axis=-1)])
def test_the_smallest_tiles_of_a_package_are_tried_where_instructions_take_most_of_the_memory(made: Any) -> None:
    def ranked(x: Tensor["t", 12000, F32]):
        return made(x)
    assert "t=1" in str(jit(ranked).plan(arch="ascend_950", target="ascend_npu"))


def test_a_plan_of_a_package_is_for_the_machine_that_compiling_takes() -> None:
    made, x = jit(curve), np.ones((16, 64), np.float32)
    plan = made.plan(x, target="ascend_npu")
    assert plan.arch == made.using(target="pto_runtime_host_build_graph").plan(x).arch == "ascend_910b"
    assert made.lower(plan, x=x).compile(target="ascend_npu").artifact_dir is not None
    assert made.plan(x).arch == made.using(target="interp").plan(x).arch == "host_cpu"
    assert made.plan(x, target="ascend_npu", arch="ascend_950").arch == "ascend_950"


@jit
def summed(x: Tensor["b", 16, 24, F32]) -> Any:
    return x.sum(axis=(0, 1))


def test_a_plan_says_where_values_are_cut_finer_than_costs_alone_would() -> None:
    assert summed.plan().said("groups", "out").reason == ("cut finer, alone in a kernel: coarser tiles have no form in a kernel")
    assert "cut finer, alone in a kernel" in str(summed.plan())
    assert "cut finer" not in str(normed.plan())


@jit
def rows_of_requests(x: Tensor["b", "most", 64, F32], lens: Tensor["b", DType.I32], w: Tensor[64, 64, F32], smooth: bool = True) -> Any:
    out = tt.zeros(x.shape)
    for b in tt.each(x.shape[0]):
        rows = x[b, :lens[b]] @ w
        out[b, :lens[b]] = np.tanh(np.exp(rows)) if smooth else rows
    return out


# A kernel computes functions of whole tiles: of 17 rows in tiles of 256, 239 are padding. A product of a CPU leaves them out.
def test_rows_whose_number_is_data_have_tiles_smaller_than_their_mean() -> None:
    def rows(**options: bool) -> int:
        plan = rows_of_requests.plan(arch=builtin_arch("host_cpu").with_cores(cube=1, vector=1), **options)
        return next(entry.value for entry in plan.entries if entry.place == ("tiles", "out", "most"))

    assert rows(smooth=True) < rows(smooth=False)


def test_a_row_is_one_kernel_behind_a_product_that_several_tasks_compute() -> None:
    @jit
    def chances(x: Tensor[1, 4096, F32], w: Tensor[4096, 128, F32]) -> Any:
        return softmax(x @ w)

    product, row = chances.plan(arch="ascend_910b").costs
    assert (product.n_tasks, row.n_tasks, row.ops) == (8, 1, ("rowmax", "sub", "exp", "rowsum", "div"))


@pytest.mark.parametrize(("most", "size"), [(16, 16), (1024, 1024), (5000, 1024)])
def test_a_symbol_is_planned_for_a_promised_bound_that_is_smaller_than_the_usual_size(most: int, size: int) -> None:
    @jit
    def longest(x: Tensor["b", 50, F32]):
        tt.assume(x.shape[0] <= most)
        return np.max(x.reshape(-1, 5), axis=-1)

    assert longest.plan(arch="ascend_910b").sizes == (("b", size),)
    assert longest.plan(arch="ascend_910b", sizes={"b": 12}).sizes == (("b", 12),)
    cycles = [sum(cost.cycles for cost in longest.plan(arch="ascend_910b", sizes=sizes).costs) for sizes in (None, {"b": size})]
    assert cycles[0] == cycles[1]


def test_two_axes_of_one_symbol_have_an_entry_each() -> None:
    """The symbol names the first dimension, the number of the dimension the second."""
    def alike(x: Tensor["t", 64, F32]):
        return np.exp(x @ x.T * .01)

    made = jit(alike)
    plan = made.plan(arch="ascend_910b")
    assert {entry.axis for entry in plan.entries if entry.key == "tiles"} == {"t", "1"}
    mine = plan.but(tiles={"out": {"t": 32, 1: 64}})
    assert mine == plan.but(tiles={"out": {0: 32, -1: 64}}) and "Tile[32, 64, F32]" in made.lower(mine).source()
    x = np.random.default_rng(5).random((77, 64), np.float32)
    np.testing.assert_allclose(made.using(target="interp")(x, plan=mine), np.exp(x @ x.T * np.float32(.01)), rtol=1e-5)
