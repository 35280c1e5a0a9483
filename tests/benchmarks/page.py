"""Tables in a page: when and where they were measured, and putting one between its marks, `<!-- latency -->` … `<!-- /latency -->`."""

from __future__ import annotations

import os
import platform
from datetime import date
from pathlib import Path


def stamp() -> str:
    """Return what a reader needs to know of a measurement: the day and the machine."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = names[0] if names else model
    return f"{date.today()}, {model}, {len(os.sched_getaffinity(0))} cores"


def put_between(page: Path, name: str, text: str) -> None:
    """Replace what stands between the marks of that name.

    Raises: SystemExit where the page has no such marks.
    """
    before, opened, rest = page.read_text(encoding="utf-8").partition(f"<!-- {name} -->\n")
    _, closed, after = rest.partition(f"<!-- /{name} -->")
    if not opened or not closed:
        raise SystemExit(f"{page} has no marks <!-- {name} --> and <!-- /{name} -->")
    page.write_text(f"{before}{opened}{text}\n{closed}{after}", encoding="utf-8")
