"""What g++ makes of files, kept from run to run: the tests of packages compile the same host and core again and again."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from filelock import FileLock

INCLUDE = Path(__file__).resolve().parent / "include"
WARNINGS = ("-Wall", "-Wextra", "-Werror")
SHARED = ("-shared", "-fPIC")
BF16 = "-D__STDCPP_BFLOAT16_T__=1"     # without it, bfloat16_t is another name of half
KERNEL = ("pto/pto-inst.hpp", "intrinsic.h", "tensor.h")    # what kernels include
ORCHESTRATION = ("math.h", "stdio.h", "stdlib.h", "pto_orchestration_api.h")


class RunFault(AssertionError):
    """A package did what a device would do wrong, or not at all."""


def compiled(sources: tuple[Path, ...], flags: tuple[str, ...], headers: bytes, prelude: tuple[str, ...] = ()) -> Path:
    """Return what g++ makes of some files, from the cache where the same was compiled before.

    `headers`: a digest of what they include. `prelude`: headers that are parsed once for all files with the same flags; a file that
    needs them still includes them.
    """
    path = _path(" ".join((BF16, *flags, *prelude)).encode(), headers, text_of(*sources))
    before = ("-include", _precompiled(prelude, flags)) if prelude else ()
    libraries = [flag for flag in flags if flag.startswith("-l")]
    return _made(path, (*(flag for flag in flags if flag not in libraries), *before, *sources), libraries)


def _precompiled(prelude: tuple[str, ...], flags: tuple[str, ...]) -> Path:
    """Return a header that includes others; what g++ makes of it lies beside it, where g++ looks for it."""
    flags = tuple(flag for flag in flags if flag.startswith(("-D", "-I", "-O", "-f")))
    text = "".join(f"#include <{name}>\n" for name in prelude)
    header = _path(" ".join((BF16, *flags)).encode(), text.encode(), text_of(*sorted(INCLUDE.rglob("*.h*")))).with_suffix(".h")
    if not header.exists():
        with tempfile.TemporaryDirectory(dir=header.parent) as name:
            (Path(name) / "text").write_text(text)
            (Path(name) / "text").replace(header)
    _made(header.with_suffix(".h.gch"), (*flags, "-x", "c++-header", header))
    return header


def _made(path: Path, arguments: tuple[str | Path, ...], libraries: Sequence[str] = ()) -> Path:
    """Return a file, made by g++ where it is not there yet: by one process, for which others wait."""
    with FileLock(path.parent / f"lock-{path.name[:2]}"):
        if path.exists():
            os.utime(path)
            return path
        with tempfile.TemporaryDirectory(dir=path.parent) as name:
            made = Path(name) / "made"
            done = subprocess.run([gxx(), "-std=c++17", BF16, *arguments, "-o", made, *libraries], capture_output=True, text=True)
            if done.returncode != 0:
                raise RunFault(f"g++ refuses {Path(arguments[-1]).name}:\n{done.stderr}")
            made.replace(path)
    return path


def _path(*what: bytes) -> Path:
    """Return where that lies which g++ makes of something."""
    folder = _folder()
    return folder / hashlib.sha256(b"\0".join((_compiler(), *what))).hexdigest()[:32]


@cache
def _folder() -> Path:
    """Return the folder of the cache, without what nobody asked for in a week."""
    folder = Path(tempfile.gettempdir()) / f"pto-wsp-npu-tests-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        with suppress(OSError):
            if path.is_file() and time.time() - path.stat().st_mtime > 7 * 24 * 3600:
                path.unlink()
    return folder


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
