"""Define the result of a static check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import Enum

from pto_wsp.doors import Displayed
from pto_wsp.errors import PtoError
from pto_wsp.values import dataclass


class Verdict(Enum):
    """Proved for every run; wrong, with an example; left to a run-time check; or a hint about correct code that could be better."""

    PROVED = "proved"
    COUNTEREXAMPLE = "counterexample"
    NOT_PROVED = "not proved"
    LINT = "lint"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check's verdict. `error` is the user's error for a counterexample."""

    check: str
    verdict: Verdict
    detail: str
    error: PtoError | None = None


LINKS_DRAIN = "deadlock of links"      # the check of links with buffers; where it proves nothing, a run is simulated before its tasks run


class CheckList(tuple[str, ...], Displayed):
    """Static checks with their verdicts, a line each; a notebook shows them as a table. `findings`: the same as data."""

    findings: tuple[Finding, ...]

    def __new__(cls, findings: Iterable[Finding]) -> CheckList:
        """Return the checks of some findings, without those that say the same."""
        lines = {f"{f.verdict.value}: {f.check} ({f.detail})": f for f in findings}
        checks = super().__new__(cls, lines)
        checks.findings = tuple(lines.values())
        return checks

    def __str__(self) -> str:
        return "\n".join(self)

    def __repr__(self) -> str:
        counts = Counter(finding.verdict.value for finding in self.findings)
        return f"Checks({', '.join(f'{count} {verdict}' for verdict, count in counts.items()) or 'none'})"
