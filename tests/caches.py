"""Caches of a test's own that hold the runtime library already: it is the same in all of them and takes seconds to build."""

from __future__ import annotations

import shutil
from pathlib import Path

from pto_wsp.artifact.build import load_runtime


def with_runtime(cache: Path) -> Path:
    """Put the runtime library of this run into a cache folder, and return the folder."""
    runtime = load_runtime().path
    shutil.copytree(runtime, cache / "runtime" / runtime.name)
    return cache
