"""Models of machines: a user's own, through JSON, with other numbers; those that no machine can be."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pto_wsp.arch.instances import ARCH_NAMES, builtin_arch
from pto_wsp.arch.model import Aicpu, Arch, Channels, Cores, ExecUnit, Memory, Model, Rate
from pto_wsp.errors import ArchError, CompileOptionError

MINE = Arch(name="mine", clock_ghz=2.0, cores=Cores(cube=2, vector=4), memories=(Memory(name="GM"), Memory(name="UB", capacity_bytes=1024)),
            units=(ExecUnit(name="vector", bytes_per_cycle=64.0, startup_cycles=4, source="a data sheet"),))


def test_numbers_are_replaced_one_by_one_and_the_model_stays_as_it_was() -> None:
    changed = MINE.with_unit("vector", startup_cycles=5).with_memory("GM", bandwidth_bytes_per_cycle=8.0, source="measured")
    changed = changed.with_cores(vector=8).with_aicpu(count=3, submit_cycles=7).with_clock(1.5)
    assert changed == Arch(
        name="mine", clock_ghz=1.5, cores=Cores(cube=2, vector=8), aicpu=Aicpu(count=3, submit_cycles=7),
        memories=(Memory(name="GM", bandwidth_bytes_per_cycle=8.0, source="measured"), Memory(name="UB", capacity_bytes=1024)),
        units=(ExecUnit(name="vector", bytes_per_cycle=64.0, startup_cycles=5, source="a data sheet"),))
    assert MINE.clock_ghz == 2.0 and MINE.memory("GM").bandwidth_bytes_per_cycle is None
    assert Arch.model_validate_json(changed.model_dump_json()) == changed


def test_a_model_written_by_hand_is_read() -> None:
    text = '{"name": "mine", "clock_ghz": 2, "cores": {"cube": 2, "vector": 4}, "memories": [{"name": "GM"}, {"name": "UB", ' \
           '"capacity_bytes": 1024}], "units": [{"name": "vector", "bytes_per_cycle": 64, "startup_cycles": 4, "source": "a data sheet"}]}'
    assert Arch.model_validate_json(text) == MINE


@pytest.mark.parametrize("make, said", [
    (lambda: MINE.with_cores(cube=-1), "Cores does not take this value for cube"),
    (lambda: MINE.with_unit("vector", startup_cycles=-1), "ExecUnit does not take this value for startup_cycles"),
    (lambda: MINE.with_unit("vector", bytes_per_cycle=0.0), "ExecUnit does not take this value for bytes_per_cycle"),
    (lambda: MINE.with_unit("vector", bytes_per_cycle=1e-30), "bytes_per_cycle"),
    (lambda: MINE.with_memory("GM", bandwidth_bytes_per_cycle=float("nan")), "bandwidth_bytes_per_cycle"),
    (lambda: MINE.with_memory("GM", bandwidth_bytes_per_cycle=float("inf")), "bandwidth_bytes_per_cycle"),
    (lambda: MINE.with_memory("UB", reserved_bytes=1025), r"expected: memories\[UB\].reserved_bytes <= 1024"),
    (lambda: MINE.with_memory("UB", bandwith=3.0), "Memory does not take this value for bandwith"),
    (lambda: MINE.with_aicpu(count=0), "Aicpu does not take this value for count"),
    (lambda: MINE.with_aicpu(submit_cycles=True), "Aicpu does not take this value for submit_cycles"),
    (lambda: MINE.with_clock(0.0), "Arch does not take this value for clock_ghz"),
    (lambda: MINE.model_copy(update={"channels": {"latency_cycles": -600}}), "channels.latency_cycles"),
    (lambda: Arch(name="x", units=(ExecUnit(name="warp"),)), "arch `x` has `warp` in units, and there is none of that name"),
    (lambda: Arch(name="x", memories=(Memory(name="UBX"),)), "arch `x` has `UBX` in memories, and there is none of that name"),
    (lambda: Arch(name="x", units=(ExecUnit(name="cube"), ExecUnit(name="cube"))), "arch `x` has `cube` twice in units"),
    (lambda: Arch(name="x", memories=(Memory(name="L1"), Memory(name="L2"), Memory(name="L1"))), "arch `x` has `L1` twice in memories"),
    (lambda: Arch(name="x", units=(ExecUnit(name="cube", rates=(Rate(dtype="f33", per_cycle=1.0),)),)), "`f33` in units.cube..rates"),
    (lambda: Arch.model_validate_json('{"name": "x"'), "this is no Arch"),
    (lambda: Arch.model_validate_json("[1, 2]"), "this is no Arch"),
    (lambda: Arch.model_validate_json('{"name": "x", "units": [{"name": "warp"}]}'), "none of that name"),
    (lambda: Arch.model_validate_json('{"name": "x", "cores": {"cube": -2}}'), "cores.cube"),
])
def test_what_no_machine_can_be_is_refused(make: Callable[[], object], said: str) -> None:
    with pytest.raises(ArchError, match=said) as refused:
        make()
    assert refused.value.span is not None and refused.value.span.file.endswith("test_model.py")


def test_what_a_machine_does_not_have_is_named() -> None:
    with pytest.raises(CompileOptionError, match="arch `mine` has no unit `cube`"):
        MINE.with_unit("cube", startup_cycles=1)
    with pytest.raises(CompileOptionError, match="arch `mine` has no memory `L1`"):
        MINE.with_memory("L1", capacity_bytes=1)


def test_every_number_says_where_it_comes_from() -> None:
    models: tuple[type[Model], ...] = (Memory, ExecUnit, Rate, Cores, Aicpu, Channels)
    for model in models:
        for name, field in model.model_fields.items():
            assert name in ("name", "dtype") or "Source:" in (field.description or ""), f"{model.__name__}.{name}"


@pytest.mark.parametrize("name", ARCH_NAMES)
def test_numbers_that_are_not_measured_say_so(name: str) -> None:
    arch = builtin_arch(name)
    if arch.neutral:
        return
    given = [unit.source for unit in arch.units if unit.startup_cycles is not None]
    given += [memory.source for memory in arch.memories if memory.bandwidth_bytes_per_cycle is not None]
    given += [arch.aicpu.source] if arch.aicpu.submit_cycles is not None else []
    assert all(source.startswith("estimate: ") for source in given)


def test_the_shared_memory_gives_every_core_of_ascend_910b_the_share_that_kernels_are_priced_with() -> None:
    arch = builtin_arch("ascend_910b")
    assert arch.memory("GM").bandwidth_bytes_per_cycle == 72 * 16
    assert arch.unit("MTE2").bytes_per_cycle == arch.unit("MTE3").bytes_per_cycle == 16
    assert (arch.aicpu.count, arch.aicpu.submit_cycles, arch.aicpu.dispatch_cycles, arch.aicpu.retire_cycles) == (6, 1200, 600, 400)


def test_numbers_may_be_those_of_numpy() -> None:
    given = MINE.with_aicpu(count=np.int32(4), submit_cycles=np.int64(2))
    assert given == MINE.with_aicpu(count=4, submit_cycles=2) and type(given.aicpu.count) is int
    with pytest.raises(ArchError, match="count"):
        MINE.with_aicpu(count=np.int32(0))
