"""Define the result of a static check."""

from __future__ import annotations

from enum import Enum

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
