"""What the checks of tile programs are for: programs with one thing wrong are refused, those that the passes make are not.

Where a mutant is let through, running it with pipes that go as far ahead as flags allow must give the right result: then nothing was wrong
with it.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pto_wsp.arch.instances import builtin_arch
from pto_wsp.check.verdict import Verdict
from pto_wsp.ir.scalar import Number, Scalar
from pto_wsp.npu.check.checks import check_tile_program
from pto_wsp.npu.check.flags import check_flags, check_hazards
from pto_wsp.npu.check.places import check_places
from pto_wsp.npu.isa.tile_program import TileProgram
from pto_wsp.npu.tiles.passes import TILE_PROGRAM_PASSES
from pto_wsp.passes.pipeline import run_passes
from tests.npu.check import mutants
from tests.npu.plan.adversary import Fault, adversarial, in_order
from tests.npu.plan.generated_programs import draw_program, extents
from tests.npu.plan.sample_programs import leaf_of, sample_programs

ARCH = builtin_arch("ascend_910b")
SAMPLES = sample_programs()


def values_of(turns: int) -> Callable[[Scalar], Number]:
    return leaf_of(turns).__getitem__


def planned(program: TileProgram) -> TileProgram:
    return mutants.distinct(run_passes(program, ARCH, TILE_PROGRAM_PASSES))


def is_caught(program: TileProgram) -> bool:
    """Tell whether a check of places and of order refuses a program (layouts are none of these mutants)."""
    return any(finding.error is not None for check in (check_flags, check_places, check_hazards) for finding in check(program, ARCH))


def is_right(mutant: TileProgram, meant: TileProgram, leaf: Callable[[int], Callable[[Scalar], Number]]) -> bool:
    """Tell whether a mutant gives what the program means, as far as a few schedules show."""
    try:
        return all(adversarial(mutant, leaf(turns), seed) == in_order(meant, leaf(turns)) for turns in (1, 4) for seed in range(3))
    except Fault:
        return False


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", SAMPLES)
def test_what_the_passes_make_is_proved(name: str) -> None:
    open_ones = {finding.check for finding in check_tile_program(planned(SAMPLES[name]), ARCH) if finding.verdict is not Verdict.PROVED}
    assert open_ones <= {"pieces lie inside regions"}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", SAMPLES)
def test_no_flag_and_no_event_can_be_left_out_or_changed(name: str) -> None:
    program = planned(SAMPLES[name])
    assert not is_caught(program)
    for make in (mutants.without_one_step, mutants.without_a_flag, mutants.with_another_event):
        found = list(make(program))
        for what, mutant in found[::3] if name in ("nested", "blocks") else found:
            assert is_caught(mutant) or is_right(mutant, SAMPLES[name], values_of), what
            assert is_caught(mutant) or "without Barrier" in what, f"a flag too many: {what}"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["rmsnorm", "scale", "stream"])
def test_rooms_that_lie_elsewhere_are_caught_or_do_no_harm(name: str) -> None:
    program = planned(SAMPLES[name])
    for make in (mutants.with_moved_rooms, mutants.with_neighbours_swapped):
        for what, mutant in make(program):
            assert is_caught(mutant) or is_right(mutant, SAMPLES[name], values_of), what


def test_half_a_block_is_always_caught() -> None:
    for name in ("rmsnorm", "total"):
        meant = SAMPLES[name]
        assert all(is_caught(mutant) for what, mutant in mutants.with_moved_rooms(planned(meant)) if what.endswith("by 16"))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(8))
def test_mutants_of_generated_programs_are_caught_or_do_no_harm(seed: int) -> None:
    meant = draw_program(seed, 12)
    program = planned(meant)
    assert not is_caught(program)
    for make in (mutants.without_one_step, mutants.without_a_flag, mutants.with_moved_rooms):
        for what, mutant in list(make(program))[seed % 4::4]:
            right = is_caught(mutant) or is_right(mutant, meant, lambda turns: extents(turns).__getitem__)
            assert right, what
