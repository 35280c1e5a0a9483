"""What every test shares: goldens, a private cache, recorded request traces, and how hard hypothesis searches."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import hypothesis
import pytest

from pto_wsp.verify.races.check import Races

TESTS = Path(__file__).resolve().parent
GOLDENS = TESTS / "goldens"

# A cold cache makes the first example slow by a compiler run, so a deadline per example would only report the weather.
hypothesis.settings.register_profile("fast", max_examples=25, deadline=None)
hypothesis.settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "fast"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="write the goldens instead of comparing with them")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--update") and os.environ.get("CI"):
        raise pytest.UsageError("--update is refused where CI is set: goldens are written and read by a person, then committed")


@pytest.fixture(scope="session", autouse=True)
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the artifact cache of this run: empty at the start, shared by all tests and all workers."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "pto_wsp_cache"
    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PTO_WSP_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture(scope="module")
def races_allowed() -> Iterator[None]:
    """Compile workloads whose tasks race: for tests of what a run makes of them. Their results are those of program order."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pto_wsp.driver.checks.check_races", lambda plan, arrays: Races(()))
        yield


@pytest.fixture(scope="session")
def trace_dir() -> Path | None:
    """Return the folder of recorded request traces named by PTO_WSP_TRACES, or None where it is not set."""
    name = os.environ.get("PTO_WSP_TRACES")
    if not name:
        return None
    folder = Path(name)
    if not folder.is_dir():
        pytest.fail(f"PTO_WSP_TRACES is not a folder: {name}")
    return folder


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
