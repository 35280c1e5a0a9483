"""What a static check says."""

from __future__ import annotations

from enum import Enum

from pto_wsp.errors import PtoError
from pto_wsp.values import dataclass


class Verdict(Enum):
    """Proved for every run; wrong, with an example; left to the check at run time; or a hint, of what is right and could be better."""

    PROVED = "proved"
    COUNTEREXAMPLE = "counterexample"
    NOT_PROVED = "not proved"
    LINT = "lint"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check's verdict. `error` is what the user sees for a counterexample."""

    check: str
    verdict: Verdict
    detail: str
    error: PtoError | None = None
