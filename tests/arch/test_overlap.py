"""What kernels cost where pipes overlap, on a machine of round numbers: counted by hand."""

from __future__ import annotations

import random

import numpy as np
import pytest

from pto_wsp import Constexpr, DType, In, InOut, Out, P, Scalar, Tensor, Tile, kernel, minimum, pto, workload
from pto_wsp.api.kernel import Kernel
from pto_wsp.arch import overlap
from pto_wsp.arch.instances import ARCH_NAMES, builtin_arch
from pto_wsp.arch.model import Arch, Cores, ExecUnit, Rate
from pto_wsp.arch.overlap import Stages
from pto_wsp.errors import ArgumentKindError, ArityError, CompileOptionError
from pto_wsp.ir import kernel as k

F32, F16, I32 = DType.F32, DType.F16, DType.I32
# an f32 element takes MTE2 2 cycles, the vector unit 1, MTE3 4; a product of f32 takes the cube 1/8, of f16 1/16
ROUND = Arch(name="round", cores=Cores(cube=4, vector=4), units=(
    ExecUnit(name="MTE2", bytes_per_cycle=2.0, startup_cycles=10), ExecUnit(name="MTE3", bytes_per_cycle=1.0, startup_cycles=10),
    ExecUnit(name="vector", elements_per_cycle=1.0, startup_cycles=5), ExecUnit(name="MTE1", bytes_per_cycle=4.0, startup_cycles=0),
    ExecUnit(name="cube", rates=(Rate(dtype="f32", per_cycle=8.0), Rate(dtype="f16", per_cycle=16.0)), startup_cycles=0),
    ExecUnit(name="fixpipe", bytes_per_cycle=4.0, startup_cycles=0), ExecUnit(name="scalar", startup_cycles=0)))


def cycles(made: Kernel, **given: object) -> dict[str, str]:
    """Return the cycles of each pipe, and in all, as text."""
    cost = made.cost(ROUND, **given)
    return {**{pipe.pipe: pipe.cycles for pipe in cost.pipes}, "total": cost.formula}


@kernel
def scale(x: In[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]]) -> None:
    pto.store(y, x * 2.0)


@kernel
def total(x: In[Tensor], n: Scalar[I32], y: Out[Tile[4, 8, F32]]) -> None:
    acc = pto.alloc((4, 8), F32, init=0)
    for j in pto.range(n):
        acc += pto.load(x, (4 * j, 0), shape=(4, 8))
    pto.store(y, acc)


@kernel
def product(a: In[Tensor], b: In[Tensor], y: Out[Tile[8, 8, F32]], k: Constexpr[int]) -> None:
    acc = pto.alloc((8, 8), F32, init=0)
    for j in pto.range(k):
        acc += pto.load(a, (0, j * 8), shape=(8, 8)) @ pto.load(b, (j * 8, 0), shape=(8, 8))
    pto.store(y, acc)


def test_what_depends_on_one_another_does_not_overlap() -> None:
    assert cycles(scale) == {"MTE2": "74", "vector": "37", "MTE3": "138", "total": str(74 + 37 + 138)}


def test_two_loads_overlap_the_work_on_the_first() -> None:
    @kernel
    def both(x: In[Tile[4, 8, F32]], z: In[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]]) -> None:
        doubled = x * 2.0
        pto.store(y, doubled + z)
    assert cycles(both) == {"MTE2": "148", "vector": "74", "MTE3": "138", "total": str(148 + 37 + 138)}


def test_the_loads_of_a_loop_overlap_its_work() -> None:
    # each trip loads for 74 cycles, the sum of the one before takes 37 of them: only the last sum shows
    assert cycles(total, x=F32, n=10)["total"] == str(10 * 74 + 37 + 138)
    assert cycles(total, x=F32, n=1)["total"] == str(74 + 37 + 138)
    assert cycles(total, x=F32, n=0)["total"] == "138"


def test_a_bound_that_is_not_given_leaves_a_formula() -> None:
    cost = total.cost(ROUND, x=F32)
    assert cost.formula == "max(n, 0) * 74 + min(max(n, 0), 1) * 37 + 138"
    with pytest.raises(ArgumentKindError, match="a number for n"):
        _ = cost.total
    assert total.cost(ROUND, x=F32, n=7).total == 7 * 74 + 37 + 138


def test_a_product_goes_through_the_cube() -> None:
    # a trip: two loads of 64 elements, 2 * (10 + 128); their way into the cube, 128; 512 products, 64
    found = cycles(product, a=F32, b=F32, k=6)
    assert found["MTE2"] == str(6 * 276) and found["MTE1"] == str(6 * 128) and found["cube"] == str(6 * 64)
    assert found["fixpipe"] == "64" and "vector" not in found and "MTE3" not in found
    assert found["total"] == str(6 * 276 + 128 + 64 + 64)


def test_rates_go_by_dtype() -> None:
    @kernel
    def halves(a: In[Tile[8, 8, F16]], b: In[Tile[8, 8, F16]], y: Out[Tile[8, 8, F32]]) -> None:
        pto.store(y, a @ b)
    assert cycles(halves) == {"MTE2": "148", "MTE1": "64", "cube": "32", "fixpipe": "64", "total": str(148 + 64 + 32 + 64)}

    @kernel
    def wide(a: In[Tile[8, 8, DType.F64]], y: Out[Tile[8, 8, DType.F64]]) -> None:
        pto.store(y, a @ a)
    with pytest.raises(CompileOptionError, match="rates for f64"):
        wide.cost(ROUND)


def test_two_buffers_let_a_load_run_one_round_ahead_only() -> None:
    @kernel
    def slow(x: In[Tensor], n: Scalar[I32], y: InOut[Tile[4, 8, F32]]) -> None:
        acc = pto.alloc((4, 8), F32, init=0)
        for j in pto.range(n):
            acc += pto.exp(pto.exp(pto.exp(pto.load(x, (4 * j, 0), shape=(4, 8)))))
        pto.store(y, acc)
    # the vector unit limits: 4 * 37 a trip after the first load
    assert cycles(slow, x=F32, n=20)["total"] == str(74 + 20 * 148 + 138)


def test_the_scalar_pipe_issues() -> None:
    slow_issue = ROUND.with_unit("scalar", startup_cycles=1000)
    assert scale.cost(slow_issue).total == 3000 + 138


@pytest.mark.parametrize("name", [name for name in ARCH_NAMES if name not in ("unit", "ascend_950")])
def test_archs_that_are_known_say_where_their_numbers_come_from(name: str) -> None:
    cost = product.cost(name, a=F32, b=F32, k=3)
    assert cost.total > 0 and all(pipe.source.startswith("estimate: ") for pipe in cost.pipes)
    assert repr(cost).splitlines()[0] == f"kernel product on {name}, cycles of one task" and "estimate" in repr(cost)
    assert Arch.model_validate_json(builtin_arch(name).model_dump_json()) == builtin_arch(name)


def test_the_model_of_the_host_has_its_cores_and_caches() -> None:
    host = builtin_arch("host_cpu")
    assert host.cores.vector is not None and host.cores.vector >= 1
    assert host.memory("GM").capacity_bytes is None
    assert all(m.capacity_bytes is not None and m.capacity_bytes >= 8192 for m in host.memories if m.name != "GM")


def test_a_program_is_priced_on_the_arch() -> None:
    X, Y = Tensor(np.ones((6, 4, 8), np.float32)), Tensor(np.zeros((6, 4, 8), np.float32))

    @workload
    def main() -> None:
        for b in P(6):
            scale[b](x=X[b], y=Y[b])
    for target in ("interp", "cpu_sim"):
        program = main().compile(target=target, arch=ROUND).run()
        assert program.stats.work == 6 * scale.cost(ROUND).total


@kernel
def ragged(x: In[Tensor], n: Scalar[I32], y: Out[Tile[4, 8, F32]]) -> None:
    acc = pto.alloc((4, 8), F32, init=0)
    for i in pto.range(n):
        with pto.when(i > 2):
            acc += pto.load(x, (i, 0), shape=(4, 8))
        with pto.otherwise():
            acc += 1.0
        for j in pto.range(i):
            acc += pto.load(x, (j, 0), shape=(4, 8), valid=(minimum(n - j, 4), 8))
    pto.store(y, acc)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("arch", [ROUND, builtin_arch("unit"), builtin_arch("ascend_910b")], ids=lambda arch: arch.name)
def test_all_executors_evaluate_the_formula_of_loops_and_branches_alike(arch: Arch) -> None:
    X, Y = Tensor(np.zeros((64, 8), np.float32)), Tensor(np.zeros((4, 4, 8), np.float32))

    @workload
    def main() -> None:
        for b in P(4):
            ragged[b](x=X, n=3 * b, y=Y[b])
    expected = sum(ragged.cost(arch, x=F32, n=3 * b).total for b in range(4))
    for target in ("interp", "cpu_sim"):
        assert main().compile(target=target, arch=arch).run().stats.work == expected


def test_a_nested_loop_does_not_overlap_what_is_around_it() -> None:
    # both turns add 37 cycles' worth; the second also loads two rows, 10 + 2 * 16, and adds them
    assert ragged.cost(ROUND, x=F32, n=2).total == 37 + (37 + 42 + 37) + 138


def test_a_short_tile_scales_the_pipe_that_limits() -> None:
    X, Y = Tensor(np.ones((6, 8), np.float32)), Tensor(np.zeros((6, 8), np.float32))

    @workload
    def main() -> None:
        for b in P(2):
            scale[b](x=X[4 * b:].clip(4, 8), y=Y[4 * b:].clip(4, 8))
    whole = 74 + 37 + 138
    assert main().compile(arch=ROUND).run().stats.work == whole + (whole - 138 + 74)


def test_what_cost_does_not_take_is_refused() -> None:
    for given in ({"q": 3}, {"y": 3}):
        with pytest.raises(ArityError, match="does not take"):
            scale.cost(ROUND, **given)
    with pytest.raises(CompileOptionError, match="no arch"):
        scale.cost("mainframe")
    with pytest.raises(CompileOptionError, match="no unit"):
        ROUND.with_unit("warp", startup_cycles=1)


def test_unit_is_what_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    print(scale.cost())
    assert capsys.readouterr().out == ("kernel scale on unit, cycles of one task\nMTE2    32  by definition\n"
                                       "vector  32  by definition\nMTE3    32  by definition\ntotal   96\n")


@kernel
def stream(x: In[Tensor], n: Scalar[I32], y: Out[Tensor]) -> None:
    for j in pto.range(n):
        pto.store(y, pto.exp(pto.load(x, (4 * j, 0), shape=(4, 8))) * 2.0, (4 * j, 0))


@kernel
def activated(a: In[Tensor], b: In[Tensor], n: Scalar[I32], y: Out[Tensor]) -> None:
    for j in pto.range(n):
        pto.store(y, pto.exp(pto.load(a, (0, j * 8), shape=(8, 8)) @ pto.load(b, (j * 8, 0), shape=(8, 8))), (8 * j, 0))


def test_the_stores_of_a_loop_overlap_the_next_loads_and_work() -> None:
    # a trip loads for 74 cycles, works for 37 + 37 and stores for 138: the first load and work show, then the stores follow one another
    for n in (1, 2, 3, 10):
        assert cycles(stream, x=F32, y=F32, n=n)["total"] == str(74 + 74 + 138 * n)


def test_what_the_cube_made_goes_through_the_fixpipe_to_the_vector_unit_and_out() -> None:
    # two loads of 138, 128 into the cube, 512 products in 64, 64 out of it, 64 + 5 to work, 266 to store
    found = cycles(activated, a=F32, b=F32, y=F32, n=1)
    assert {pipe: int(found[pipe]) for pipe in found} == {
        "MTE2": 276, "MTE1": 128, "cube": 64, "fixpipe": 64, "vector": 69, "MTE3": 266, "total": 276 + 128 + 64 + 64 + 69 + 266}
    assert cycles(activated, a=F32, b=F32, y=F32, n=9)["total"] == str(128 + 64 + 64 + 69 + 266 + 9 * 276)     # the loads limit


def test_picked_rows_go_through_the_pipes_of_loads_and_stores() -> None:
    @kernel
    def picked(x: In[Tile[4, 8, F32]], table: InOut[Tensor], n: Scalar[I32]) -> None:
        _, best = pto.topk(x, 1)
        pto.scatter_add(table, best, pto.gather(table, best, cols=(2, 10), valid=n))
    # x: 10 + 32 * 2; three rows of ten columns: 10 + 30 * 2; four rows out: 10 + 40 * 4
    found = cycles(picked, table=F32, n=3)
    assert (found["MTE2"], found["MTE3"]) == (str(74 + 70), "170")


def test_a_body_of_ones_own_moves_what_it_is_bound_to_and_nothing_overlaps() -> None:
    @kernel(c_src="y[0] = 0;")
    def own(x: In[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]]) -> None: ...
    assert cycles(own) == {"MTE2": "74", "MTE3": "138", "total": str(74 + 138)}


def test_turns_that_differ_by_turns_are_counted_two_by_two() -> None:
    """The way into the cube, 2048, and the products, 2053, alternate with what leaves: two turns take 2053 + 2304, for ever."""
    rates = {"MTE2": 0.5, "MTE1": 1 / 16, "cube": 0.25, "fixpipe": 0.5, "vector": 0.25, "MTE3": 16.0}
    arch = Arch(name="slow", units=(ExecUnit(name="scalar", startup_cycles=1), *(
        ExecUnit(name=name, elements_per_cycle=rate, startup_cycles=5 * (name == "cube")) for name, rate in rates.items())))
    totals = [activated.cost(arch, a=F32, b=F32, y=F32, n=n).total for n in range(4, 41)]
    assert totals[2] - totals[0] == totals[36] - totals[34] == 2053 + 2304 and totals[36] - totals[0] == 18 * (2053 + 2304)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(12))
def test_the_formula_of_a_loop_is_its_schedule_turn_by_turn(seed: int) -> None:
    draw = random.Random(seed)
    arch = Arch(name="drawn", units=(ExecUnit(name="scalar", startup_cycles=draw.choice((0, 1, 20))), *(
        ExecUnit(name=name, elements_per_cycle=2.0 ** draw.randint(-4, 4), startup_cycles=draw.choice((0, 5, 50, 300)))
        for name in ("MTE2", "MTE3", "vector", "MTE1", "cube", "fixpipe"))))
    for made, given in ((stream, {"x": F32, "y": F32}), (activated, {"a": F32, "b": F32, "y": F32})):
        loop = made.specialise(**given).body[0]
        assert isinstance(loop, k.For)
        stages = Stages(made.specialise(**given), arch)
        run = [(stmt, stages.of(stmt)) for stmt in loop.body]
        for n in (1, 2, 3, 4, 9, 40):
            exact = overlap.scheduled_cycles(run, arch, n)
            found = made.cost(arch, n=n, **given).total
            two = overlap.scheduled_cycles(run, arch, 4) - overlap.scheduled_cycles(run, arch, 2)
            turn = overlap.scheduled_cycles(run, arch, 4) - overlap.scheduled_cycles(run, arch, 3)
            assert abs(found - exact) <= abs(turn - two / 2) + 1     # turns that alternate are off by half of what they differ by
