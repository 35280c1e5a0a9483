"""Text against golden files: the comparer, its fixture and the option that writes them. A `conftest.py` that imports them has them."""

from __future__ import annotations

import difflib
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
GOLDENS = TESTS / "goldens"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="write the goldens instead of comparing with them")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--update") and os.environ.get("CI"):
        raise pytest.UsageError("--update is refused where CI is set: goldens are written and read by a person, then committed")


@dataclass
class Golden:
    """Compares text with the golden file of one test: `golden(text)`, or `golden(text, "kernels", ".c")` for several."""

    node: pytest.Item
    update: bool
    owners: dict[Path, str] = field(default_factory=dict)

    def __call__(self, text: str, name: str = "", suffix: str = ".txt") -> None:
        path = self.path(name, suffix)
        shown = path.relative_to(TESTS.parent)
        owner = f"{self.node.nodeid} {name}"
        if self.owners.setdefault(path, owner) != owner:
            pytest.fail(f"two tests share the golden {shown}: {self.owners[path]} and {owner}", pytrace=False)
        if self.update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
            return
        if not path.is_file():
            pytest.fail(f"golden {shown} is missing: write it with --update and read it before you commit it", pytrace=False)
        expected = path.read_bytes().decode()
        if text != expected:
            lines = difflib.unified_diff(_visible(expected), _visible(text), str(shown), "this run", lineterm="")
            pytest.fail("\n".join((*lines, "if the change is meant: --update, and say why in the commit")), pytrace=False)

    def path(self, name: str, suffix: str) -> Path:
        """Return the file of this test: its path under `tests/`, then its name and parameters."""
        module = self.node.path.relative_to(TESTS).with_suffix("")
        cls = getattr(self.node, "cls", None)
        parts = [*([cls.__name__] if cls else []), self.node.name, *([name] if name else [])]
        stem = re.sub(r"[^\w.=+-]+", "-", ".".join(parts)).rstrip("-")
        return GOLDENS / module / (stem + suffix)


@pytest.fixture(scope="session")
def golden_owners() -> dict[Path, str]:
    """Return which test uses which golden, filled as the run goes."""
    return {}


@pytest.fixture
def golden(request: pytest.FixtureRequest, golden_owners: dict[Path, str]) -> Golden:
    """Return the comparer of this test's goldens."""
    return Golden(request.node, request.config.getoption("--update"), golden_owners)


def _visible(text: str) -> list[str]:
    """Split into lines; say so where the last one does not end, which a diff would not show."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else [*lines[:-1], lines[-1] + "  (no newline at the end)"]
