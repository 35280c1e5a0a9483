"""Do the pieces of regions that a kernel moves lie inside? Selection has proved it, or made the program test it.

A device has no way to report a piece that reaches outside: it is not moved, and counts as its fill where it is loaded. What the matrix
unit reads is moved back into the region.
"""

from __future__ import annotations

from pto_wsp.arch.model import Arch
from pto_wsp.expr.tile_program import TileProgram
from pto_wsp.verify.verdict import Finding, Verdict


def check_regions(program: TileProgram, arch: Arch) -> tuple[Finding, ...]:
    """Return a verdict for each piece of a region."""
    return tuple(
        Finding("pieces lie inside regions", Verdict.PROVED if reach.proved else Verdict.NOT_PROVED,
                f"kernel `{program.name}`: {reach.what}" + ("" if reach.proved else ", which does not leave its region when it runs"))
        for reach in program.reaches)
