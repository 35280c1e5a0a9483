"""What g++ makes of files, kept from run to run: the tests of packages compile the same host and core again and again."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

INCLUDE = Path(__file__).resolve().parent / "include"
WARNINGS = ("-Wall", "-Wextra", "-Werror")
SHARED = ("-shared", "-fPIC")


class RunFault(AssertionError):
    """A package did what a device would do wrong, or not at all."""


def compiled(sources: tuple[Path, ...], flags: tuple[str, ...], headers: bytes) -> Path:
    """Return what g++ makes of some files, from the cache where the same was compiled before."""
    digest = hashlib.sha256(b"\0".join((_compiler(), " ".join(flags).encode(), headers, text_of(*sources)))).hexdigest()[:32]
    folder = Path(tempfile.gettempdir()) / f"pto-wsp-npu-tests-{os.getuid()}"
    path = folder / digest
    if path.exists():
        return path
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        made = Path(name) / "made"
        libraries = [flag for flag in flags if flag.startswith("-l")]
        rest = [flag for flag in flags if not flag.startswith("-l")]
        done = subprocess.run([gxx(), "-std=c++17", *rest, *sources, "-o", made, *libraries], capture_output=True, text=True)
        if done.returncode != 0:
            raise RunFault(f"{sources[0].name} does not compile:\n{done.stderr}")
        made.replace(path)
    return path


@cache
def _compiler() -> bytes:
    return subprocess.run([gxx(), "--version"], capture_output=True, check=True).stdout


def gxx() -> str:
    """Return the C++ compiler; a test that needs it is skipped on a machine that has a C compiler alone."""
    found = shutil.which("g++")
    if found is None:
        pytest.skip("there is no g++, and packages for the device are C++")
    return found


def text_of(*paths: Path) -> bytes:
    """Return names and contents of files, for a digest."""
    return b"\0".join(path.name.encode() + b"\0" + path.read_bytes() for path in paths)
