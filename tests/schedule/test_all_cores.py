"""A schedule that places no task uses every core of an arch that has a number of them."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import DispatchPolicy, DType, In, Out, P, Pools, Tensor, Tile, Workload, kernel, pto, workload
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.arch.model import Arch

F32 = DType.F32
N = 200


@kernel
def double(x: In[Tile[1, 64, F32]], y: Out[Tile[1, 64, F32]]) -> None:
    pto.store(y, x + x)


@kernel
def product(x: In[Tile[16, 16, F32]], y: Out[Tile[16, 16, F32]]) -> None:
    pto.store(y, pto.matmul(x, x))


def vectors() -> Workload:
    x, y = Tensor(np.ones((N, 64), np.float32)), Tensor(np.zeros((N, 64), np.float32))

    @workload
    def doubles() -> None:
        for i in P(N):
            double[i](x[i], y[i])

    return doubles()


def products() -> Workload:
    x, y = Tensor(np.ones((N, 16, 16), np.float32)), Tensor(np.zeros((N, 16, 16), np.float32))

    @workload
    def squares() -> None:
        for i in P(N):
            product[i](x[i], y[i])

    return squares()


def cores(work: Workload, arch: Arch | str) -> int:
    return work.compile(arch=arch).run().stats.cores_used


@pytest.mark.slow
def test_all_cores_of_a_unit_run_its_tasks() -> None:
    assert cores(vectors(), "ascend_910b") == 48 and cores(products(), "ascend_910b") == 24


def test_the_neutral_machine_stays_one_executor() -> None:
    stats = vectors().compile().run().stats
    assert len(stats.executors) == 1 and stats.n_cores == 0 and "cores used" not in str(stats)


def test_a_core_of_the_host_runs_tasks_of_both_units() -> None:
    arch = builtin_arch("host_cpu").with_cores(cube=3, vector=3)
    stats = vectors().compile(arch=arch).run().stats
    assert len(stats.executors) == stats.cores_used == stats.n_cores == 3


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("cube", "vector", "used"), [(4, 2, 2), (1, 7, 7), (0, 5, 5)])
def test_fewer_cores_than_aicpus_are_all_used(cube: int, vector: int, used: int) -> None:
    assert cores(vectors(), builtin_arch("ascend_910b").with_cores(cube=cube, vector=vector)) == used


def test_an_arch_without_a_number_of_cores_stays_one_executor() -> None:
    assert cores(vectors(), builtin_arch("ascend_910b").with_cores(vector=None)) == 1


@pytest.mark.slow
def test_a_schedule_that_places_tasks_is_left_alone_and_says_how_few_cores_it_uses() -> None:
    stats = vectors().dispatch(DispatchPolicy.round_robin(1)).compile(arch="ascend_910b").run().stats
    assert len(stats.executors) == 1 and str(stats).startswith("1 of 72 cores used\n")
    for work in (vectors().streams(2), vectors().calendar(lambda t: (0, t.i))):
        assert cores(work, "ascend_910b") <= 2


def test_pools_of_ones_own_stay() -> None:
    stats = vectors().task_graph(pools=Pools.custom(lambda t: t.i % 2)).compile(arch="ascend_910b").run().stats
    assert len(stats.executors) == 12


def test_edges_stay_those_of_the_structure() -> None:
    x = Tensor(np.ones((1, 64), np.float32))
    y = Tensor(np.zeros((N, 64), np.float32))

    @workload
    def in_a_row() -> None:
        for i in P.seq(N):
            double[i](x, y[i])

    program = in_a_row().compile(arch="ascend_910b").run()
    assert program.stats.critical_path == program.stats.total_cycles      # P.seq orders, though no data does


def test_a_simulation_on_another_arch_uses_its_cores() -> None:
    program = vectors().compile().run()
    assert program.simulate(arch="ascend_910b").stats.cores_used == 48
    assert program.simulate(arch="ascend_910b").total_cycles == vectors().compile(arch="ascend_910b").run().stats.total_cycles
