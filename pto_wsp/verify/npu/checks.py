"""The checks of a tile program that is ready to be emitted, on one page.

Each is a function from the program and the arch to findings; what they are errors of stands at the user's line.
"""

from __future__ import annotations

from pto_wsp.arch.model import Arch
from pto_wsp.expr.tile_program import TileProgram
from pto_wsp.verify.npu.flags import check_flags
from pto_wsp.verify.npu.forms import check_forms
from pto_wsp.verify.npu.hazards import check_hazards
from pto_wsp.verify.npu.places import check_places
from pto_wsp.verify.npu.regions import check_regions
from pto_wsp.verify.verdict import Finding

TILE_PROGRAM_CHECKS = (
    check_forms,      # the core takes these tiles and instructions
    check_places,     # tiles are aligned, lie in their memory, and keep what they hold
    check_flags,      # every flag that is set is awaited, on every path
    check_regions,    # what a kernel moves of a region lies inside
    check_hazards,    # no pipe uses what another one may not have done with
)


def check_tile_program(program: TileProgram, arch: Arch) -> tuple[Finding, ...]:
    """Return what all checks say, in order."""
    return tuple(finding for check in TILE_PROGRAM_CHECKS for finding in check(program, arch))
