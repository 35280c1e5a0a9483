"""Caches of a test's own that hold the runtime library already: it is the same in all of them and takes seconds to build."""

from __future__ import annotations

import shutil
from pathlib import Path

from pto_wsp.artifact.build import load_runtime


def with_runtime(cache: Path) -> Path:
    """Put the runtime library of this run into a cache folder, and return the folder."""
    runtime = load_runtime().path
    shutil.copytree(runtime, cache / "artifacts" / runtime.name)
    (cache / "keys").mkdir()
    for key in keys_of(runtime):
        shutil.copy(key, cache / "keys" / key.name)
    return cache


def keys_of(artifact: Path) -> list[Path]:
    """Return the files of the store that lead to an artifact."""
    digest = artifact.name.rpartition("-")[2].encode()
    return [path for path in (artifact.parent.parent / "keys").iterdir() if path.read_bytes().startswith(digest)]
