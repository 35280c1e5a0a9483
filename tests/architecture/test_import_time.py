"""What `import pto_wsp` costs: modules that a user may never need are not loaded; the time is printed, not judged."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterable

import pytest

import pto_wsp
from pto_wsp import csp
from tests.artifact.small_program import SCRIPT

# Each is slow to load or optional, and is loaded by the function that needs it.
NOT_AT_IMPORT = frozenset({"argparse", "asyncio", "cffi", "concurrent", "difflib", "filelock", "hashlib", "jax", "jinja2", "ml_dtypes",
                           "pathlib", "platformdirs", "pycparser", "pydantic", "rich", "shutil", "subprocess", "tempfile", "torch",
                           "typer"})
# The package's own, by the first part of their names: none is needed before something is compiled, or looked at.
PARTS_NOT_AT_IMPORT = frozenset({"artifact", "c", "check", "cli", "npu", "passes", "run", "targets", "timing", "view"})
# What made a program, other ways to run it, and what looks at a run.
NOT_FROM_CACHE = frozenset({"jinja2", "ml_dtypes", "pydantic", "subprocess", "pto_wsp.c.cpu_sim", "pto_wsp.c.render",
                            "pto_wsp.targets.cpu_sim_build", "pto_wsp.targets.load", "pto_wsp.targets.package", "pto_wsp.targets.save",
                            "pto_wsp.run.kernel_interpreter", "pto_wsp.run.interpreter", "pto_wsp.run.sanitize"})

PROBE = """
import json, sys, time
start = time.perf_counter()
import {module}
print(json.dumps([time.perf_counter() - start, sorted(sys.modules)]))
"""


def import_alone(module: str) -> tuple[float, frozenset[str]]:
    """Import `module` in a fresh interpreter; return the seconds it took and the modules loaded."""
    done = subprocess.run([sys.executable, "-c", PROBE.format(module=module)], text=True, capture_output=True, check=True)
    seconds, loaded = json.loads(done.stdout)
    return seconds, frozenset(loaded)


def parts_of(loaded: Iterable[str]) -> set[str]:
    """Return the parts of the package that modules are in."""
    return {name.split(".")[1] for name in loaded if name.startswith("pto_wsp.")}


def test_import_loads_nothing_that_can_wait() -> None:
    _, loaded = import_alone("pto_wsp")
    assert "pto_wsp" in loaded
    # What our dependencies load on their own account is not ours to defer.
    _, theirs = import_alone("numpy")
    assert not loaded & NOT_AT_IMPORT - theirs
    assert "trace" in parts_of(loaded) and not parts_of(loaded) & PARTS_NOT_AT_IMPORT


def test_a_loaded_module_is_seen() -> None:
    _, loaded = import_alone("jinja2, pto_wsp.timing.stats")
    assert "jinja2" in loaded & NOT_AT_IMPORT and "timing" in parts_of(loaded) & PARTS_NOT_AT_IMPORT


def test_names_that_are_loaded_late_are_there() -> None:
    late = set(pto_wsp.__all__) & {"Program", "auto_schedule", "capabilities", "compare", "explore", "load", "ptoisa", "timeline",
                                        "workload_forms", *csp.__all__}
    assert len(late) == 9 + len(csp.__all__) and all(getattr(pto_wsp, name) is not None for name in pto_wsp.__all__)
    with pytest.raises(AttributeError, match="no attribute 'programme'"):
        pto_wsp.programme  # noqa: B018 - it raises


def test_names_that_are_loaded_late_complete_before_they_are_loaded() -> None:
    source = "import pto_wsp; names = dir(pto_wsp); print('Channel' in vars(pto_wsp), sorted(set(pto_wsp.__all__) - set(names)))"
    assert subprocess.run([sys.executable, "-c", source], text=True, capture_output=True, check=True).stdout == "False []\n"


def test_a_program_from_the_cache_loads_neither_what_made_it_nor_what_looks_at_it() -> None:
    command = [sys.executable, "-c", SCRIPT + "\nimport json\nprint(json.dumps(sorted(sys.modules)))"]
    made, found = (frozenset(json.loads(subprocess.run(command, text=True, capture_output=True, check=True).stdout.splitlines()[-1]))
                   for _ in range(2))
    assert {"pto_wsp.c.cpu_sim", "jinja2", "subprocess"} <= made
    assert "pto_wsp.run.native" in found and not found & NOT_FROM_CACHE
    assert not parts_of(found) & {"cli", "npu", "timing", "view"}


@pytest.mark.slow
def test_import_time_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    seconds = statistics.median(import_alone("pto_wsp")[0] for _ in range(5))
    with capsys.disabled():
        print(f"\nimport pto_wsp: {seconds * 1e3:.0f} ms, median of 5 fresh interpreters")
