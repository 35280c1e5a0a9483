"""Tasks that accumulate into shared tiles leave the bits of program order: on every target, under every schedule, on any threads."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from pto_wsp import (
    Acc,
    Channel,
    DispatchPolicy,
    DType,
    P,
    Program,
    PtoError,
    Tensor,
    Tile,
    Workload,
    connect,
    consume,
    process,
    replicate,
    send,
    workload,
)
from pto_wsp.errors import UnprovedOrderError
from tests.laws.generated_schedules import ScheduleRecipe, schedule_recipes
from tests.laws.generated_sums import LOOPS, STORES, SumRecipe, Sums, sum_recipes
from tests.laws.generated_workloads import threads_of

PLAIN = SumRecipe(DType.F32, "sum", "dense", ("whole",), 3, 4, 2, (0, 1, 0), False, False, False, 1)


def leaves(sums: Sums, program: Program, seed: int = 0) -> bytes:
    """Return what a run leaves in the tiles."""
    assert sums.y.data is not None
    sums.y.data[...] = sums.start
    if seed:
        program.replay(seed, **sums.symbols)
    else:
        program.run(**sums.symbols)
    return sums.y.data.tobytes()


def check(recipe: SumRecipe, schedule: ScheduleRecipe, *targets: str) -> None:
    """Raise AssertionError unless targets, threads and orders leave what loops of NumPy leave, but for the bits of a NaN."""
    sums = Sums(recipe)
    expected, traced = sums.by_hand(), sums.trace()
    assert Workload.from_json(traced.to_json()) == traced
    wanted = None
    for target in targets:
        try:
            program = schedule.of(traced).compile(target)
        except UnprovedOrderError:
            assert schedule.deps == "explicit"
            continue
        for threads, seed in ((1, 0), (2, 0), (3, 5)):
            with threads_of(program, threads) if target == "cpu_sim" else nullcontext():
                found = leaves(sums, program, seed)
            np.testing.assert_array_equal(sums.y.data, expected, err_msg=str((target, threads, seed, recipe)))
            wanted = wanted or found
            assert found == wanted, (target, threads, seed, recipe)


@pytest.mark.slow
@given(sum_recipes(), schedule_recipes())
@settings(max_examples=12)
def test_any_schedule_adds_in_program_order(recipe: SumRecipe, schedule: ScheduleRecipe) -> None:
    check(recipe, schedule, "interp")


@pytest.mark.slow
@given(sum_recipes())
@settings(max_examples=3)
def test_both_targets_add_in_program_order(recipe: SumRecipe) -> None:
    check(recipe, ScheduleRecipe(), "interp", "cpu_sim")


@pytest.mark.slow
@given(sum_recipes(), schedule_recipes())
@settings(max_examples=12)
def test_both_targets_add_in_program_order_under_any_schedule(recipe: SumRecipe, schedule: ScheduleRecipe) -> None:
    check(recipe, schedule, "interp", "cpu_sim")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("loops", LOOPS)
def test_every_form_of_loop_accumulates(loops: str) -> None:
    check(replace(PLAIN, loops=loops, stores=("whole", "when"), before=True, after=True), ScheduleRecipe(deps="overlap"), "interp")


@pytest.mark.slow
@pytest.mark.parametrize("combine", ["sum", "max", "min", "prod"])
@pytest.mark.parametrize("dtype", [DType.F32, DType.BF16, DType.I8, DType.U16], ids=str)
def test_what_is_not_stored_changes_nothing(dtype: DType, combine: str) -> None:
    """Not even the sign of a zero, and a number stays below an infinity."""
    for stores in (STORES, ("piece",)):
        sums = Sums(replace(PLAIN, dtype=dtype, combine=combine, stores=stores, short=True))
        if dtype.is_float:
            sums.start[:, 0], sums.start[:, 1, 0] = -0.0, -np.inf
        expected = sums.by_hand()
        for target in ("interp", *(["cpu_sim"] if stores == ("piece",) and dtype is DType.F32 and combine == "sum" else [])):
            leaves(sums, sums.trace().compile(target))
            np.testing.assert_array_equal(np.signbit(sums.y.data), np.signbit(expected))
            np.testing.assert_array_equal(sums.y.data, expected)


def test_parts_run_side_by_side() -> None:
    """With executors enough, tasks compute their parts together, and the sums follow one another."""
    def cycles(n: int, recipe: SumRecipe) -> int:
        return int(Sums(recipe).trace().dispatch(DispatchPolicy.round_robin(n)).compile("interp").run().stats.total_cycles)
    recipe = replace(PLAIN, n=1, m=4, outs=1, to=(0, 0, 0))
    size = 3 * 4
    part, total = 3 * size, 4 * size          # load, add, store; two loads, add, store
    assert cycles(1, recipe) == 4 * (part + total)
    assert cycles(4, recipe) == part + 4 * total


def test_explicit_dependencies_are_refused_where_sums_meet() -> None:
    with pytest.raises(PtoError, match=r"they accumulate into the same elements"):
        ScheduleRecipe(deps="explicit").of(Sums(PLAIN).trace()).compile("interp")
    check(replace(PLAIN, m=1, to=(0, 1, 0), n=2), ScheduleRecipe(deps="explicit", streams=1), "interp")


def test_a_sanitized_run_takes_the_order_of_sums_for_granted() -> None:
    sums = Sums(replace(PLAIN, before=True, after=True))
    expected = sums.by_hand()
    leaves(sums, sums.trace().compile("cpu_sim", sanitize=True))
    np.testing.assert_array_equal(sums.y.data, expected)


def test_python_functions_say_how_to_combine() -> None:
    tile = Tile[2, 4, DType.F32]
    assert [repr(Acc[tile, how]) for how in (sum, max, min, math.prod)] == [
        "Acc[Tile[2, 4, f32]]", 'Acc[Tile[2, 4, f32], "max"]', 'Acc[Tile[2, 4, f32], "min"]', 'Acc[Tile[2, 4, f32], "prod"]']


def test_a_kernel_alone_combines_with_the_array_that_it_is_given() -> None:
    recipe = replace(PLAIN, combine="max")
    part, x = Sums(recipe).kernel("piece"), np.arange(12, dtype=np.float32).reshape(3, 4)
    total = np.full((3, 4), 5, np.float32)
    assert part.run(x, 0, total) is total
    np.testing.assert_array_equal(total, [[5, 5, 5, 5], [5, 5, 5, 6], [5, 5, 5, 5]])
    np.testing.assert_array_equal(part.run(x, 0), [[-np.inf] * 4, [0, 2, 4, 6], [-np.inf] * 4])


def test_replicas_have_no_order_of_sums() -> None:
    sums, channel = Sums(PLAIN), Channel("work", 2)
    part, x = sums.kernel("whole"), Tensor(sums.x, name="X")

    @workload
    def feed() -> None:
        for k in P.seq(4):
            send(channel, k)

    @workload
    def add() -> None:
        with consume(channel) as k:
            part[k](x[k], k, sums.y[0])

    @workload
    def case(n: int) -> None:
        adder = process("adder").consumes(channel).body(add)
        connect([process("feeder").produces(channel).body(feed), replicate(adder, n)], [channel])

    case(1).compile("interp")
    with pytest.raises(PtoError, match=r"tasks without an order between them write the same elements of `Y`"):
        case(2).compile("interp")


def test_the_tensor_of_a_part_hides_no_tensor_of_the_user() -> None:
    sums = Sums(PLAIN)
    part, y_part, x = sums.kernel("whole"), Tensor(np.zeros((3, 4), np.float32)), Tensor(sums.x, name="X")

    @workload
    def case() -> None:
        for k in P(2):
            part[k](x[k], k, y_part)
    total = np.zeros((3, 4), np.float32)
    case().compile("interp").run(y_part=total)
    np.testing.assert_array_equal(total, (sums.x[0] + sums.x[0]) + (sums.x[1] + sums.x[1]))


@pytest.mark.parametrize("word", ["mean", "Sum", "add"])
def test_data_that_combine_in_no_known_way_are_refused(word: str) -> None:
    text = Sums(replace(PLAIN, combine="max")).trace().to_json()
    assert '"combine":"max"' in text
    with pytest.raises(PtoError, match=r"W113"):
        Workload.from_json(text.replace('"combine":"max"', f'"combine":"{word}"'))
