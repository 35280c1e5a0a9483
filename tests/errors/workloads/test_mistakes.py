"""One mistake a file: running `mistake` in it must give exactly the error that stands in the comment at its end."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pto_wsp.errors import PtoError

FOLDER = Path(__file__).resolve().parent
FILES = sorted(path for path in FOLDER.glob("*.py") if not path.name.startswith("test_"))


def error_of(path: Path) -> str:
    """Return what the file's `mistake` reports, with the bare name of the file for its path."""
    scope: dict[str, object] = {"__name__": path.stem}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    mistake = scope["mistake"]
    assert callable(mistake)
    try:
        mistake()
    except PtoError as error:
        return re.sub(rf"[^\s]*{re.escape(path.name)}", path.name, str(error))
    return "no error"


def expected_of(path: Path) -> str:
    """Return the comment at the end of a file."""
    lines = path.read_text().splitlines()
    start = max(number for number, line in enumerate(lines) if not line.startswith("#")) + 1
    return "\n".join(line[2:] for line in lines[start:])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_report_is_exactly(path: Path) -> None:
    assert error_of(path) == expected_of(path)
