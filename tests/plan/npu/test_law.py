"""Whatever pipes do within what flags allow, a tile program after its passes gives what it means."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pto_wsp.arch.instances import builtin_arch
from pto_wsp.plan.npu.passes import run_tile_program_passes
from tests.plan.npu.adversary import adversarial, in_order
from tests.plan.npu.generated_programs import draw_program, extents

ARCH = builtin_arch("ascend_910b")


@pytest.mark.parametrize("steps", [8, 30])
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1 << 30))
def test_pipes_give_what_the_program_means(steps: int, seed: int) -> None:
    drawn = draw_program(seed, steps)
    planned = run_tile_program_passes(drawn, ARCH)
    for turns in (0, 1, 2, 3, 4):
        values = extents(turns).__getitem__
        expected = in_order(drawn, values)
        for schedule in range(3):
            assert adversarial(planned, values, schedule) == expected
