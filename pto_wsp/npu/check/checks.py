"""Run the checks of a finished tile program, and report the late checks of a plan.

Each check is a function from the program and the arch to findings; a counterexample carries the error at the user's line. `check_regions`
reports the pieces of regions that selection could not prove inside: a device cannot report a piece that reaches outside, so the piece does
not move, counts as its fill when loaded, and is moved back into the region if the matrix unit reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pto_wsp.arch.model import Arch
from pto_wsp.check.verdict import Finding, Verdict
from pto_wsp.ir.flow import Do, evaluations, walk
from pto_wsp.npu.check.flags import check_flags, check_hazards
from pto_wsp.npu.check.forms import check_forms
from pto_wsp.npu.check.places import check_places
from pto_wsp.npu.isa.tile_program import TileProgram
from pto_wsp.npu.plan.guards import Checked, Late
from pto_wsp.npu.plan.model import NpuPlan


def check_regions(program: TileProgram, arch: Arch) -> tuple[Finding, ...]:
    """Return a finding for each piece of a region that the program moves."""
    return tuple(
        Finding("pieces lie inside regions", Verdict.PROVED if reach.proved else Verdict.NOT_PROVED,
                f"kernel `{program.name}`: {reach.what}" + ("" if reach.proved else ", which does not leave its region when it runs"))
        for reach in program.reaches)


_HOW = "compares what tasks compute: where it does not hold, no more tasks are submitted"


def with_late_checks(findings: Sequence[Finding], plan: NpuPlan) -> tuple[Finding, ...]:
    """Return the findings on a plan's checks, with the way a run ends added to late checks that are not proven."""
    late = Late(plan)
    names = {f"{check.kind.name.lower()} {check.subject}" for item in _checked(plan) for check in late.checks_of(item)}
    found = tuple(replace(finding, detail=_HOW) if finding.check in names and finding.verdict is Verdict.NOT_PROVED else finding
                  for finding in findings)
    return (*found, *(Finding(name, Verdict.NOT_PROVED, _HOW) for name in sorted(names - {finding.check for finding in findings})))


def _checked(plan: NpuPlan) -> Iterator[Checked]:
    for item in walk(plan.body):
        if isinstance(item, Do):
            yield item.leaf
        else:
            yield from (each.node for each in evaluations(item))


TILE_PROGRAM_CHECKS = (
    check_forms,      # the core supports these tiles and instructions
    check_places,     # tiles are aligned, inside their memory, and keep their contents
    check_flags,      # every flag that is set is awaited, on every path
    check_regions,    # pieces of regions are inside
    check_hazards,    # no pipe touches memory that another pipe may still use
)


def check_tile_program(program: TileProgram, arch: Arch) -> tuple[Finding, ...]:
    """Return the findings of all checks, in order."""
    return tuple(finding for check in TILE_PROGRAM_CHECKS for finding in check(program, arch))
