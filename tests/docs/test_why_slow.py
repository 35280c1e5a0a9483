"""The page "Why is it slow" has a real run for each verdict, and its pictures are drawn from these runs."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from pto_wsp.timing.verdict import KINDS

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "why_slow.md").read_text(encoding="utf-8")
# Verdicts without a run of their own on the page: of the same form as another, or with no more to see.
LIKE_OTHERS = {"nothing", "unknown", "marks", "latency", "start", "bytes", "entries", "edges", "ready", "full channels"}


def test_every_verdict_has_a_picture_beside_its_run() -> None:
    shown = set(re.findall(r"\(pictures/why_(\w+)\.svg\)", PAGE))
    assert shown == {kind.replace(" ", "_") for kind in KINDS.keys() - LIKE_OTHERS}


@pytest.mark.slow
def test_the_pictures_are_those_of_the_runs() -> None:
    script: dict[str, Any] = runpy.run_path(str(DOCS / "pictures" / "why_slow.py"))
    for name, program in script["runs_of"](DOCS / "why_slow.md"):
        kind = name.removeprefix("why_").replace("_", " ")
        assert program.stats.verdict.kind == kind
        drawn = (DOCS / "pictures" / f"{name}.svg").read_text(encoding="utf-8")
        assert script["picture"](program) == drawn, "write them anew: python docs/pictures/why_slow.py"
