"""What becomes of checks that compare what tasks compute: the device makes them while tasks are made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pto_wsp.plan.model import Send, SetSlot
from pto_wsp.plan.npu.late import Checked, Late
from pto_wsp.plan.npu.model import Fork, Launch, NpuPlan, Repeat
from pto_wsp.plan.npu.walk import items_of
from pto_wsp.verify.verdict import Finding, Verdict

_HOW = "compares what tasks compute: where it does not hold, no more tasks are submitted"


def with_late_checks(findings: Sequence[Finding], plan: NpuPlan) -> tuple[Finding, ...]:
    """Return the findings on a plan's checks; of those that are made late and are not proved it is said how a run ends."""
    late = Late(plan)
    names = {f"{check.kind.name.lower()} {check.subject}" for item in _checked(plan) for check in late.checks_of(item)}
    found = tuple(replace(finding, detail=_HOW) if finding.check in names and finding.verdict is Verdict.NOT_PROVED else finding
                  for finding in findings)
    return (*found, *(Finding(name, Verdict.NOT_PROVED, _HOW) for name in sorted(names - {finding.check for finding in findings})))


def _checked(plan: NpuPlan) -> Iterator[Checked]:
    for item in items_of(plan.body):
        match item:
            case Launch() | SetSlot() | Send():
                yield item
            case Repeat(lead=lead):
                yield from (item,) if lead is None else (item, lead)
            case Fork(ways):
                yield from ways
            case _:
                pass
