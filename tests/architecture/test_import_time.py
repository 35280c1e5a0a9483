"""What `import pto_wsp` costs: modules that a user may never need are not loaded; the time is printed, not judged."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

import pytest

# Each is slow to load or optional, and is loaded by the function that needs it.
NOT_AT_IMPORT = frozenset({"asyncio", "filelock", "jax", "jinja2", "pycparser", "pydantic", "rich", "torch", "typer"})

PROBE = """
import json, sys, time
start = time.perf_counter()
import {module}
print(json.dumps([time.perf_counter() - start, sorted(name for name in sys.modules if "." not in name)]))
"""


def import_alone(module: str) -> tuple[float, frozenset[str]]:
    """Import `module` in a fresh interpreter; return the seconds it took and the top-level modules loaded."""
    done = subprocess.run([sys.executable, "-c", PROBE.format(module=module)], text=True, capture_output=True, check=True)
    seconds, loaded = json.loads(done.stdout)
    return seconds, frozenset(loaded)


def test_import_loads_nothing_that_can_wait() -> None:
    _, loaded = import_alone("pto_wsp")
    assert "pto_wsp" in loaded
    # What our dependencies load on their own account is not ours to defer.
    _, theirs = import_alone("cffi, ml_dtypes, numpy, platformdirs")
    assert not loaded & NOT_AT_IMPORT - theirs


def test_a_loaded_module_is_seen() -> None:
    assert "jinja2" in import_alone("jinja2")[1] & NOT_AT_IMPORT


@pytest.mark.slow
def test_import_time_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    seconds = statistics.median(import_alone("pto_wsp")[0] for _ in range(5))
    with capsys.disabled():
        print(f"\nimport pto_wsp: {seconds * 1e3:.0f} ms, median of 5 fresh interpreters")
