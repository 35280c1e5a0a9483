"""What a machine gives to those who hand out tasks, by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest

from pto_wsp.arch.control import TaskCycles, aicpus_of, core_share, cycles_between, shared_bandwidth, task_cycles
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.arch.model import Arch, Cores
from pto_wsp.errors import ArchError

UNIT, B910, B950 = (builtin_arch(name) for name in ("unit", "ascend_910b", "ascend_950"))
BOTH = ("cube", "vector")


def test_aicpus_are_those_that_the_policy_names_else_those_there_are() -> None:
    assert [aicpus_of(UNIT, named) for named in (None, 1, 999)] == [4, 1, 999]
    assert [aicpus_of(B910, named) for named in (None, 1, 6)] == [6, 1, 6]
    assert aicpus_of(B950, None) == 4
    with pytest.raises(ArchError, match="more AICPUs than arch `ascend_910b` has"):
        aicpus_of(B910, 7)
    assert aicpus_of(B910.with_aicpu(count=7), 7) == 7


def test_each_aicpu_has_an_even_share_of_the_cores() -> None:
    assert core_share(B910, 6, BOTH) == (4, 8) and core_share(B910, 5, BOTH) == (4, 9) and core_share(B910, 1, ()) == (24, 48)
    assert core_share(UNIT, 9, BOTH) == (1, 1)


def test_a_share_of_no_core_is_refused_where_kernels_need_one() -> None:
    few = Arch(name="few", cores=Cores(cube=0, vector=2))
    assert core_share(few, 2, ("vector",)) == (0, 1)
    with pytest.raises(ArchError, match="arch `few` has no cube core for each AICPU") as refused:
        core_share(few, 1, BOTH)
    assert "run it on an arch with cube cores" in str(refused.value)
    with pytest.raises(ArchError, match=r"cores\.vector >= 3, the AICPUs that share them"):
        core_share(few, 3, ("vector",))


def test_cores_that_nobody_has_counted_are_named() -> None:
    with pytest.raises(ArchError, match="arch `ascend_950` does not say how many vector cores it has") as refused:
        core_share(B950, 2, ("vector",))
    assert "arch.with_cores(vector=...)" in str(refused.value)
    assert core_share(B950.with_cores(vector=6), 2, ("vector",)) == (0, 3)


def test_what_a_task_costs_the_control_processors() -> None:
    assert task_cycles(UNIT) == TaskCycles(0, 0, 0) and task_cycles(B910) == TaskCycles(1200, 600, 400)
    with pytest.raises(ArchError, match=r"expected: aicpu\.retire_cycles"):
        task_cycles(B950.with_aicpu(submit_cycles=1, dispatch_cycles=2))


def test_the_shared_memory_is_bounded_where_the_arch_says_so() -> None:
    assert shared_bandwidth(B910) == 1152.0 and shared_bandwidth(UNIT) == shared_bandwidth(Arch(name="bare")) == 0.0


def test_a_rate_is_cycles_of_the_clock() -> None:
    assert cycles_between(UNIT, 3) == Fraction(1_000_000, 3) and cycles_between(UNIT.with_clock(1.5), 1000) == 1500
    assert cycles_between(UNIT, 1e12) > 0 and cycles_between(UNIT.with_clock(0.001), 1e12) > 0      # a rate of 0 cycles is none
    with pytest.raises(ArchError, match="expected: clock_ghz"):
        cycles_between(B910, 5)
