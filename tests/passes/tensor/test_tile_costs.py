"""The ranking of tile extents: what fits is what the check of capacity says, what costs least is what the cost of kernels says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pto_wsp import DType, In, Out, Tensor, Tile, kernel, pto
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.arch.kernel_cost import cost_table
from pto_wsp.check.capacity import memory_map
from pto_wsp.passes.tensor.tile_costs import (
    CutValue,
    TileAxis,
    TileOp,
    candidates_of,
    check_tiles,
    executors_of,
    multiples_of,
    rank_tiles,
    unit_of,
)

ASCEND = builtin_arch("ascend_910b")
F32, F16, I8, I32 = DType.F32, DType.F16, DType.I8, DType.I32


def rows(extent: int = 1024, columns: int = 4096, dtype: DType = F32, **axis: object) -> tuple:
    t = TileAxis("t", extent, **axis)
    values = (CutValue("x", dtype, ("t", columns), loaded=True), CutValue("y", dtype, ("t", columns), stored=True))
    return (t,), values, (TileOp("exp", ("y",), ("x",)),)


def matmul(m: int, n: int, k: int, dtype: DType = F32, result: DType = F32) -> tuple:
    axes = (TileAxis("m", m), TileAxis("n", n), TileAxis("k", k, summed=True))
    values = (CutValue("a", dtype, ("m", "k"), loaded=True), CutValue("b", dtype, ("k", "n"), loaded=True),
              CutValue("c", result, ("m", "n"), stored=True))
    return axes, values, (TileOp("matmul", ("c",), ("a", "b")),)


# One tile of 256 for a mean of 256 is one and a half; of 16, 16 and a half.
def test_half_a_tile_of_an_extent_that_varies_is_padding() -> None:
    one_core = builtin_arch("host_cpu").with_cores(cube=1, vector=1)

    def cycles(**axis: object) -> dict[int, int]:
        return {choice.tiles["t"]: choice.cycles for choice in rank_tiles(*rows(256, 64, **axis), one_core).choices}

    same, varying = cycles(), cycles(varies=True)
    assert varying[256] / same[256] >= 1.5
    assert varying[16] / same[16] < 1.1


# A CPU computes exp as a series, and a division for as long as one.
@pytest.mark.parametrize("op", ["exp", "div"])
def test_functions_and_divisions_cost_a_cpu_several_instructions(op: str) -> None:
    def cycles(op: str) -> int:
        axes, values, _ = rows(256, 64)
        ranking = rank_tiles(axes, values, (TileOp(op, ("y",), ("x",)),), builtin_arch("host_cpu").with_cores(cube=1, vector=1))
        return ranking.choices[0].cycles

    assert cycles(op) > 3 * cycles("mul")


# -- capacity ----------------------------------------------------------------------------------------------------------
# One element a cycle is packed, everything else moves or is computed in one cycle each: two loads, the product, the store.
@pytest.mark.parametrize(("m", "symbolic", "n_tasks", "packed"), [
    (16, False, 64, 16 * 48 + 48 * 32), (512, False, 2, 512 * 48 + 48 * 32),
    (1024, False, 1, 1024 * 48 + 2 * 48 * 32),      # 512 rows at most meet a part of the right operand that is packed
    (16, True, 64, 48 * 32), (1024, True, 1, 48 * 32)])      # a call may have few rows
def test_a_cpu_packs_both_operands_of_a_product_once_a_task(m: int, symbolic: bool, n_tasks: int, packed: int) -> None:
    machine = builtin_arch("host_cpu").with_cores(cube=1, vector=1).with_unit("MTE1", bytes_per_cycle=4.0, startup_cycles=0)
    for unit in ("cube", "MTE2", "MTE3"):
        machine = machine.with_unit(unit, bytes_per_cycle=1e9, startup_cycles=0)
    axes, values, ops = matmul(1024, 32, 48)
    given = tuple(replace(axis, given={"m": m, "n": 32, "k": 48}[axis.name], symbolic=symbolic and axis.name == "m") for axis in axes)
    chosen = rank_tiles(given, values, ops, machine).choices[0]
    assert (chosen.n_tasks, chosen.task_cycles) == (n_tasks, packed + 4)


# 4096 x 4096 numbers are 64 MiB, more than a cache of a core. A call with few rows has a task a core by its columns.
def test_a_cpu_stores_a_product_past_its_caches_where_all_extents_are_known() -> None:
    machine = builtin_arch("host_cpu").with_cores(cube=1, vector=1)

    def chosen(symbolic: bool) -> tuple[int, int]:
        axes, values, ops = matmul(4096, 4096, 256)
        ranking = rank_tiles(tuple(replace(axis, symbolic=symbolic and axis.name == "m") for axis in axes), values, ops, machine)
        return ranking.choices[0].tiles["m"], ranking.choices[0].tiles["n"]

    assert chosen(symbolic=False) == (4096, 4096)
    assert chosen(symbolic=True)[1] < 4096


def test_capacity_of_a_row_program_is_that_of_the_check_and_the_working_memory_of_its_sum() -> None:
    @kernel
    def normed(x: In[Tile[8, 4096, F32]], g: In[Tile[1, 4096, F32]], y: Out[Tile[8, 4096, F32]]):
        pto.store(y, x / pto.sqrt(pto.rowmean(x * x)) * g)

    axes = (TileAxis("t", 1024),)
    values = (CutValue("x", F32, ("t", 4096), loaded=True), CutValue("g", F32, (1, 4096), loaded=True),
              CutValue("square", F32, ("t", 4096)), CutValue("mean", F32, ("t", 1)), CutValue("root", F32, ("t", 1)),
              CutValue("scaled", F32, ("t", 4096)), CutValue("y", F32, ("t", 4096), stored=True))
    ops = (TileOp("mul", ("square",), ("x", "x")), TileOp("rowmean", ("mean",), ("square",)), TileOp("sqrt", ("root",), ("mean",)),
           TileOp("div", ("scaled",), ("x", "root")), TileOp("mul", ("y",), ("scaled", "g")))
    peak = next(peak for peak in memory_map(normed.ir, ASCEND).peaks if peak.memory == "UB")
    found = check_tiles(axes, values, ops, ASCEND, {"t": 8})
    assert found is not None and (found.memory, found.limit_bytes) == ("UB", 188416)
    assert found.needed_bytes == peak.size_bytes + 8 * 4096 * 4
    assert rank_tiles(axes, values, ops, ASCEND).chosen.tiles == {"t": 2}


def test_capacity_of_a_product_counts_every_memory() -> None:
    axes, values, ops = matmul(1024, 1024, 1024)
    assert check_tiles(axes, values, ops, ASCEND, {"m": 128, "n": 128, "k": 128}) is None
    found = check_tiles(axes, values, ops, ASCEND, {"m": 128, "n": 256, "k": 128})      # 128 * 256 * 4 bytes of the right operand
    assert (found.memory, found.needed_bytes, found.limit_bytes) == ("L0B", 131072, 65536)
    found = check_tiles(axes, values, ops, ASCEND, {"m": 256, "n": 256, "k": 32})
    assert (found.memory, found.needed_bytes) == ("L0C", 262144)
    assert found.tenants == (("c", 262144, "[256, 256] f32"),)


def test_an_operand_used_in_a_loop_lives_for_all_of_it() -> None:
    axes = (TileAxis("t", 64), TileAxis("k", 1 << 14, summed=True))
    values = (CutValue("g", F32, (1, 512), loaded=True), CutValue("scale", F32, ("t", 512)), CutValue("x", F32, ("t", "k"), loaded=True),
              CutValue("scaled", F32, ("t", "k")), CutValue("wide", DType.I64, ("t", "k")), CutValue("total", F32, ("t", 1), stored=True))
    ops = (TileOp("exp", ("scale",), ("g",)), TileOp("mul", ("scaled",), ("x", "scale")), TileOp("cast", ("wide",), ("scaled",)),
           TileOp("rowsum", ("total",), ("wide",)))
    found = check_tiles(axes, values, ops, ASCEND, {"t": 64, "k": 128})
    # at the sum: scale, which the next step reads again, wide, the working memory of its sum, and the sum
    assert found is not None and found.needed_bytes == 64 * 512 * 4 + 2 * 64 * 128 * 8 + 64 * 4
    assert {name for name, _, _ in found.tenants} == {"scale", "wide", "wide_tmp", "total"}


def test_state_of_a_loop_lives_from_first_to_last() -> None:
    axes = (TileAxis("t", 64),)
    values = (CutValue("x", F32, ("t", 512), loaded=True), CutValue("acc", F32, ("t", 512), held=True, stored=True),
              CutValue("y", F32, ("t", 512)))
    ops = (TileOp("exp", ("y",), ("x",)), TileOp("add", ("acc",), ("acc", "y")))
    assert check_tiles(axes, values, ops, ASCEND, {"t": 64}).needed_bytes == 3 * 64 * 512 * 4


def test_what_does_not_fit_names_tenants_and_the_largest_that_fits() -> None:
    found = check_tiles(*rows(), ASCEND, {"t": 16})
    assert found.tenants == (("x", 262144, "[16, 4096] f32"), ("y", 262144, "[16, 4096] f32"))
    assert found.largest == {"t": 4}
    assert str(found) == "t=16 needs 524,288 of 188,416 bytes of UB"


def test_where_nothing_fits_there_is_no_choice() -> None:
    ranking = rank_tiles(*rows(columns=1 << 20), ASCEND)
    assert ranking.chosen is None and ranking.refused.largest == {"t": 0}
    assert ranking.reason == "none of 11 fits: t=1 needs 8,388,608 of 188,416 bytes of UB"


# -- cost --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("t", [1, 2, 4])
def test_cost_of_a_row_program_follows_the_cost_of_its_kernel(t: int) -> None:
    tile = Tile[t, 4096, F32]

    @kernel
    def program(x: In[tile], y: Out[tile]):
        pto.store(y, pto.exp(x))

    exact = cost_table(program.ir, ASCEND, {}, {}).total
    ranking = rank_tiles(*rows(given=t), ASCEND)
    assert abs(ranking.chosen.task_cycles - exact) <= 0.02 * exact
    assert ranking.chosen.moved_bytes == 2 * 1024 * 4096 * 4


@pytest.mark.parametrize(("m", "n", "k"), [(32, 128, 128), (64, 64, 64), (128, 128, 64)])
def test_cost_of_a_product_follows_the_cost_of_its_kernel(m: int, n: int, k: int) -> None:
    @kernel
    def program(a: In[Tensor], b: In[Tensor], y: Out[Tile[m, n, F32]]):
        acc = pto.alloc((m, n), F32, init=0)
        for at in pto.range(0, 1024, k):
            acc += pto.load(a, (0, at), shape=(m, k)) @ pto.load(b, (at, 0), shape=(k, n))
        pto.store(y, acc)

    exact = program.cost(ASCEND, a=F32, b=F32).total
    axes, values, ops = matmul(1024, 1024, 1024)
    axes = tuple(TileAxis(axis.name, axis.extent, summed=axis.summed, given=given) for axis, given in zip(axes, (m, n, k), strict=True))
    assert abs(rank_tiles(axes, values, ops, ASCEND).chosen.task_cycles - exact) <= 0.05 * exact


def test_formula_of_the_design() -> None:
    ranking = rank_tiles(*rows(given=4), ASCEND, executors=10)
    choice = ranking.chosen
    assert choice.n_tasks == 256
    assert choice.cycles == 26 * choice.task_cycles + 256 * 1200


def test_ties_go_to_the_larger_tile() -> None:
    unit = builtin_arch("unit")
    assert [choice.tiles["t"] for choice in rank_tiles(*rows(64, 16), unit, executors=1).choices][:2] == [64, 32]


@pytest.mark.parametrize("executors", [1, 2, 3, 8, 24, 48])
@pytest.mark.parametrize("extent", [48, 77, 1000, 1024, 6144])
def test_no_executor_idles_where_rows_suffice(extent: int, executors: int) -> None:
    for arch in (ASCEND, builtin_arch("host_cpu"), builtin_arch("unit")):
        assert rank_tiles(*rows(extent), arch, executors=executors).chosen.n_tasks >= executors


def test_a_cheaper_choice_that_leaves_cores_idle_says_so() -> None:
    ranking = rank_tiles(*rows(77, 4096), ASCEND)
    assert ranking.choices[1].cycles < ranking.chosen.cycles
    assert f": -{100 - 100 * ranking.choices[1].cycles / ranking.chosen.cycles:.0f}% with" in ranking.reason
    assert f"with {48 - ranking.choices[1].n_tasks} of 48 cores idle" in ranking.reason


def test_a_task_smaller_than_its_submission_is_not_cut_for_it() -> None:
    assert rank_tiles(*rows(48, 8), ASCEND).chosen.n_tasks < 48


def test_executors_are_the_cores_of_the_unit() -> None:
    product, row = matmul(64, 64, 64)[2], rows()[2]
    assert executors_of(ASCEND, unit_of(product)) == 24
    assert executors_of(ASCEND, unit_of(row)) == 48
    assert rank_tiles(*matmul(256, 256, 256), ASCEND).unit == "cube"


# -- candidates --------------------------------------------------------------------------------------------------------
def test_candidates_are_powers_of_two_and_divisors() -> None:
    assert [row[0] for row in candidates_of(*rows(24))] == [1, 2, 3, 4, 6, 8, 12, 16, 24]
    assert [row[0] for row in candidates_of(*rows(77))] == [1, 2, 4, 7, 8, 11, 16, 32, 64, 77]
    assert [row[0] for row in candidates_of(*rows(100, symbolic=True))] == [1, 2, 4, 8, 16, 32, 64, 128]


def test_tiles_are_multiples_of_what_dtype_and_unit_want() -> None:
    axes, values, ops = matmul(100, 1408, 7168, I8, I32)
    assert multiples_of(axes, values, ops) == {"m": 16, "n": 32, "k": 32}
    for m, n, k in candidates_of(axes, values, ops):
        assert m % 16 == 0 or m == 100
        assert n % 32 == 0 and k % 32 == 0
    axis = (TileAxis("n", 96),)
    assert [row[0] for row in candidates_of(axis, (CutValue("x", F16, (4, "n"), loaded=True),), ())] == [16, 32, 48, 64, 96]


def test_candidates_are_few_and_the_ends_stay() -> None:
    axes, values, ops = matmul(5040, 5040, 5040)
    found = candidates_of(axes, values, ops)
    assert len(found) <= 1024 and (16, 16, 16) in found and (5040, 5040, 5040) in found


def test_a_shared_loop_has_tiles_that_divide_each_other() -> None:
    assert [row[0] for row in candidates_of(*rows(96, divides=12))] == [1, 2, 3, 4, 6, 12, 24, 48, 96]


def test_a_given_extent_is_the_only_one() -> None:
    assert candidates_of(*rows(96, given=7)) == [(7,)]


# -- the whole ---------------------------------------------------------------------------------------------------------
def test_reasons_say_capacity_or_the_next_best() -> None:
    assert rank_tiles(*rows(), ASCEND).reason == "8 needs 262,144 of 188,416 bytes of UB"
    assert rank_tiles(*rows(given=2), ASCEND).reason == "the only candidate"
    assert "next m=" in rank_tiles(*matmul(1024, 1024, 1024), ASCEND).reason


def test_equal_groups_rank_alike() -> None:
    assert rank_tiles(*matmul(512, 640, 384), ASCEND) == rank_tiles(*matmul(512, 640, 384), ASCEND)


def test_arch_without_numbers_is_ranked_by_capacity() -> None:
    ranking = rank_tiles(*rows(), builtin_arch("ascend_950"))
    assert ranking.chosen.tiles == {"t": 8} and ranking.refused.limit_bytes == 262144


def test_a_large_group_has_about_a_thousand_candidates() -> None:
    """A plan weighs each of them, in a microsecond or two: ten times as many would be felt at every first call."""
    assert 100 < rank_tiles(*matmul(1024, 6144, 4096), ASCEND).n_candidates < 1100


def test_tasks_that_stand_side_by_side_in_loops_around_count() -> None:
    rows, cols = TileAxis("0", 500), TileAxis("1", 64, given=64)
    values = (CutValue("x", DType.F32, ("0", "1"), loaded=True), CutValue("y", DType.F32, ("0", "1"), stored=True))
    ops = tuple(TileOp("exp", ("y",), ("x",)) for _ in range(40))
    alone, among = (rank_tiles((rows, cols), values, ops, builtin_arch("ascend_910b"), executors=24, repeats=n).chosen for n in (1, 100))
    assert alone is not None and among is not None
    assert alone.tiles["0"] < among.tiles["0"], "with 100 of them, larger tiles leave no executor idle"
    assert among.n_tasks == 100 * -(-500 // among.tiles["0"])


def test_operands_that_a_product_reads_in_place_do_not_bound_the_tiles_of_a_cpu() -> None:
    axes = (TileAxis("m", 512), TileAxis("n", 4096))
    a, b = CutValue("a", DType.F32, ("m", 4096), loaded=True), CutValue("b", DType.F32, (4096, "n"), loaded=True)
    out = CutValue("out", DType.F32, ("m", "n"), stored=True)
    best = rank_tiles(axes, (a, b, out), (TileOp("matmul", ("out",), ("a", "b")),), builtin_arch("host_cpu"), executors=2).chosen
    assert best is not None and min(best.tiles.values()) >= 256       # blocks of 32 x 64 took three times as long


# -- steps of a tile ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("step", "times"), [(64, 1), (32, 2)])
def test_a_walked_sum_reads_what_stays_again_in_each_step_of_the_tile(step: int, times: int) -> None:
    """Of 128 x 128 results in two steps of 64 rows: with the whole sum the right operand is read once, of a sum in two steps twice.

    Bytes: left 128 * 64 * 2, right 64 * 128 * 2, result 128 * 128 * 4.
    """
    axes = TileAxis("m", 128, given=128, step=64), TileAxis("n", 128, given=128), TileAxis("k", 64, summed=True, given=step)
    values = (CutValue("x", DType.F16, ("m", "k"), loaded=True), CutValue("w", DType.F16, ("k", "n"), loaded=True),
              CutValue("y", DType.F32, ("m", "n"), stored=True))
    chosen = rank_tiles(axes, values, (TileOp("matmul", ("y",), ("x", "w")),), builtin_arch("ascend_910b")).chosen
    left, right, result = 16_384, 16_384, 65_536
    assert chosen is not None and chosen.moved_bytes == left + right * times + result


def test_what_stays_over_the_steps_of_a_tile_lives_to_the_end_of_the_task() -> None:
    """UB has 188,416 bytes: three rows of 13,440 numbers are 161,280, and a fourth, of `b`, no longer fits."""
    columns, arch = 13_440, builtin_arch("ascend_910b")
    values = (CutValue("b", DType.F32, (columns,), loaded=True), CutValue("x", DType.F32, ("t", columns)),
              CutValue("y", DType.F32, ("t", columns)), CutValue("z", DType.F32, ("t", columns), stored=True))
    ops = TileOp("exp", ("x",), ("b",)), TileOp("exp", ("y",), ("x",)), TileOp("add", ("z",), ("x", "y"))
    assert check_tiles((TileAxis("t", 64),), values, ops, arch, {"t": 1}) is None
    refused = check_tiles((TileAxis("t", 64, step=1),), values, ops, arch, {"t": 8})
    assert refused is not None and (refused.memory, refused.needed_bytes) == ("UB", 4 * columns * 4)
