"""Which selection a kernel takes: by the core that it runs on."""

from __future__ import annotations

from pto_wsp.arch.model import Arch
from pto_wsp.expr.tile_program import TileProgram
from pto_wsp.ops.entry import Unit
from pto_wsp.plan.npu.model import NpuKernel
from pto_wsp.plan.npu.select.cube import select_cube
from pto_wsp.plan.npu.select.vector import select_vector


def select(use: NpuKernel, arch: Arch) -> TileProgram:
    """Return the tile program of a kernel for its core.

    Raises: N103 at the line of an op that the arch has no instruction for, N104 at that of one that the cube core does not do.
    """
    if use.core is Unit.VECTOR:
        return select_vector(use, arch)
    return select_cube(use, arch)
