"""Which C compilers this machine has."""

from __future__ import annotations

import importlib.util
import shutil
import sys


def compilers() -> dict[str, str]:
    """Return the compilers that are there: name -> CC."""
    found = {name: name for name in ("gcc", "clang") if shutil.which(name)}
    if importlib.util.find_spec("ziglang") is not None:
        found["zig"] = f"{sys.executable} -m ziglang cc"
    return found
