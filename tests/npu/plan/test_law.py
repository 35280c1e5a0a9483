"""Whatever pipes do within what flags allow, a tile program after its passes gives what it means; and the checks say so."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pto_wsp.arch.instances import builtin_arch
from pto_wsp.arch.model import Arch
from pto_wsp.errors import CapacityError
from pto_wsp.npu.check.flags import check_flags, check_hazards
from pto_wsp.npu.check.places import check_places
from pto_wsp.npu.isa.tile_program import TileProgram
from pto_wsp.npu.tiles.passes import TILE_PROGRAM_PASSES
from pto_wsp.passes.pipeline import run_passes
from tests.npu.plan.adversary import adversarial, in_order
from tests.npu.plan.generated_programs import draw_program, extents

ARCH = builtin_arch("ascend_910b")


def tight(program: TileProgram) -> Arch:
    """Return an arch with two thirds of what the program's buffers take side by side, so that they have to share."""
    total = {memory.name: sum(buffer.size_bytes for buffer in program.buffers if buffer.space.value == memory.name)
             for memory in ARCH.memories}
    memories = tuple(memory.model_copy(update={"capacity_bytes": max(total[memory.name] * 2 // 3, 1024), "reserved_bytes": 0})
                     for memory in ARCH.memories)
    return ARCH.model_copy(update={"memories": memories})


@pytest.mark.parametrize("steps", [8, pytest.param(30, marks=pytest.mark.slow)])
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1 << 30))
def test_pipes_give_what_the_program_means(steps: int, seed: int) -> None:
    drawn = draw_program(seed, steps)
    arch = tight(drawn) if seed % 2 else ARCH
    try:
        planned = run_passes(drawn, arch, TILE_PROGRAM_PASSES)
    except CapacityError:
        assume(False)
    for check in (check_flags, check_places, check_hazards):
        assert [finding.error for finding in check(planned, arch)] == [None] * (4 if check is check_places else 1)
    for turns in (0, 1, 3, 4):
        values = extents(turns).__getitem__
        expected = in_order(drawn, values)
        for schedule in range(3):
            assert adversarial(planned, values, schedule) == expected
