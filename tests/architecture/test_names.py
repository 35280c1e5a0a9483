"""No file of the project names the machine it was written on: no path outside the checkout, no private host."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

MACHINE = re.compile(
    r"(?<![\w.*-])/(?:home|root|Users|work)/"
    r"|(?<![\w.-])/tmp/[a-z]\b"
    r"|\b(?:10|192\.168|172\.(?:1[6-9]|2\d|3[01]))(?:\.\d{1,3}){2,3}:\d"
    r"|\b[\w-]+\.(?:internal|corp|lan)\b(?!\()"
)
# What every such name has in it, and few files have: much faster to look for.
HINT = re.compile(r"/(?:home|root|Users|work)/|/tmp/[a-z]|\.(?:internal|corp|lan)|(?:10|192\.168|172\.\d\d)\.\d")


def machine_names(text: str) -> Iterator[str]:
    """Say which lines name a machine."""
    if not HINT.search(text):
        return
    for number, line in enumerate(text.splitlines(), 1):
        if MACHINE.search(line):
            yield f"{number}: {line.strip()}"


def project_files() -> Iterator[Path]:
    """Yield the files of the project: as git knows them, or all files where there is no git (an unpacked sdist)."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, text=True, capture_output=True, check=True).stdout.split("\0")
        paths = [ROOT / name for name in listed if name]
    except (FileNotFoundError, subprocess.CalledProcessError):
        paths = [path for path in ROOT.rglob("*") if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)]
    yield from (path for path in sorted(paths) if path.is_file() and path != Path(__file__).resolve())


def test_no_file_names_a_machine() -> None:
    faults = [f"{path.relative_to(ROOT)}:{fault}" for path in project_files()
              for fault in machine_names(path.read_text(errors="replace"))]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("text", [
    "see /ho" "me/someone/notes",
    "python /ro" "ot/x.py",
    "cp /wo" "rk/a b",
    "/tmp/" "v/bin/python",
    "http://10.0.0." "12:8080",
    "git@code." "corp",
])
def test_a_machine_name_is_found(text: str) -> None:
    assert list(machine_names(text))


@pytest.mark.parametrize("text", [
    "docs/home/flow.md", "/tmp/demo.json", "version 10.2.1", "usr/home.html", "a.internal()",
])
def test_an_innocent_line_passes(text: str) -> None:
    assert not list(machine_names(text))
