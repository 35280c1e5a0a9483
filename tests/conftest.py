"""What every test shares: goldens, a private cache, recorded request traces, and how hard hypothesis searches."""

from __future__ import annotations

import gc
import os
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import hypothesis
import pytest

from pto_wsp.artifact import build, store
from pto_wsp.check.races.check import Races
from pto_wsp.run import interpreter
from pto_wsp.targets import cpu_sim
from tests.golden_files import Golden, golden, golden_owners, pytest_addoption, pytest_configure
from tests.quick import QUICK, SAMPLED

__all__ = ["Golden", "golden", "golden_owners", "pytest_addoption", "pytest_configure"]

# A cold cache makes the first example slow by a compiler run, so a deadline per example would only report the weather.
# That drawing takes long says the same: of a machine that others use.
SLOWLY = (hypothesis.HealthCheck.too_slow,)
hypothesis.settings.register_profile("fast", max_examples=25, deadline=None, suppress_health_check=SLOWLY)
hypothesis.settings.register_profile("ci", max_examples=50, deadline=None, suppress_health_check=SLOWLY, derandomize=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "fast"))


# Collected tests and loaded modules are a million objects that stay: to look through all of them is the less often worth its time.
gc.set_threshold(20_000, 20, 20)

TESTS = Path(__file__).resolve().parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the files that `-m quick` has nothing of: importing all of them would take as long as the quick tests."""
    if config.option.markexpr != "quick" or collection_path.suffix != ".py":
        return None
    return collection_path.relative_to(TESTS).as_posix() not in QUICK or None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what belongs to the quick set, and as slow what a sample leaves out."""
    seen: Counter[str] = Counter()
    cases: Counter[str] = Counter()
    quick = {TESTS / name: name for name in QUICK}
    for item in items:
        sample = item.get_closest_marker("sampled")
        if sample is not None:
            test = item.nodeid.partition("[")[0]
            if cases[test] % sample.args[0]:
                item.add_marker("slow")
            cases[test] += 1
        if (name := quick.get(item.path)) is not None and item.get_closest_marker("slow") is None:
            if seen[name] % SAMPLED.get(name, 1) == 0:
                item.add_marker("quick")
            seen[name] += 1


def pytest_sessionstart(session: pytest.Session) -> None:
    """Give this run an artifact cache empty at the start and shared by all workers: some files compile when pytest collects them."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        folder = tempfile.TemporaryDirectory(prefix="pto-wsp-tests-", ignore_cleanup_errors=True)
        session.config.add_cleanup(folder.cleanup)
        os.environ["PTO_WSP_CACHE_DIR"] = str(Path(folder.name) / "cache")


@pytest.fixture(scope="session")
def cache_dir() -> Path:
    """Return the artifact cache of this run."""
    return Path(os.environ["PTO_WSP_CACHE_DIR"])


@pytest.fixture(scope="session", autouse=True)
def bytecode_is_kept(cache_dir: Path) -> Iterator[None]:
    """Let the processes that tests start share bytecode, outside the sources: to compile the package takes each of them a second else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        patch.setenv("PYTHONPYCACHEPREFIX", str(cache_dir.with_name("bytecode")))
        yield


@pytest.fixture(scope="session", autouse=True)
def nobody_says_that_it_waits() -> Iterator[None]:
    """Let tests wait for what other workers build without a line on stderr, which tests look at."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "TELL_AFTER_S", 600.0)
        yield


@pytest.fixture(scope="session", autouse=True)
def interrupts_arrive() -> None:
    """Raise KeyboardInterrupt at Ctrl-C, here and in processes that tests start, even if the shell that started pytest ignores it."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def same_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have any compiler use the runtime library that there is, which takes seconds to build: the programs are what is looked at."""
    runtime = build.load_runtime()
    for module in (build, interpreter):
        monkeypatch.setattr(module, "load_runtime", lambda: runtime)
    for module in (build, cpu_sim):
        monkeypatch.setattr(module, "runtime_begun", nullcontext)


@pytest.fixture(scope="module")
def races_allowed() -> Iterator[None]:
    """Compile workloads whose tasks race: for tests of what a run makes of them. Their results are those of program order."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pto_wsp.targets.planning.check_races", lambda plan, arrays, lanes: Races(()))
        yield


@pytest.fixture(scope="session")
def trace_dir() -> Path | None:
    """Return the folder of recorded request traces named by PTO_WSP_TRACES, or None where it is not set."""
    name = os.environ.get("PTO_WSP_TRACES")
    if not name:
        return None
    folder = Path(name).resolve()      # programs run in folders of their own
    if not folder.is_dir():
        pytest.fail(f"PTO_WSP_TRACES is not a folder: {name}")
    return folder
