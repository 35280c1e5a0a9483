"""Find the C compiler, know the CPU, run the compiler: everything about the outside tool, nothing about what it compiles."""

from __future__ import annotations

import importlib.util
import os
import platform
import shlex
import shutil
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from pto_wsp.errors import CompilerFailedError, NoCompilerError
from pto_wsp.values import dataclass

if TYPE_CHECKING:
    import subprocess

_CANDIDATES = ("cc", "gcc", "clang")


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A C compiler: the command, and what tells it from another one without running it."""

    command: tuple[str, ...]
    fingerprint: str

    def version(self) -> str:
        """Return the first line that the compiler says of itself."""
        done = _run((*self.command, "--version"), None)
        return done.stdout.splitlines()[0] if done.stdout else "unknown"


def find_toolchain() -> Toolchain:
    """Return the compiler: CC, else cc, gcc or clang, else the ziglang wheel.

    Raises: C101 when there is none.
    """
    return _find(os.environ.get("CC", "").strip(), os.environ.get("PATH", ""))


@lru_cache(maxsize=8)
def _find(cc: str, path: str) -> Toolchain:
    tried = []
    if cc:
        try:
            words = shlex.split(cc)
        except ValueError:   # a quote that does not close
            words = [cc]
        found = shutil.which(words[0])
        if found is None:
            raise NoCompilerError("CC names a compiler that is not there", expected="a command on PATH, or a path", found=f"CC={cc}",
                                  help="unset CC, or install it; target=\"interp\" needs no compiler")
        return Toolchain((found, *words[1:]), _fingerprint(found))
    for name in _CANDIDATES:
        found = shutil.which(name)
        if found is not None:
            return Toolchain((found,), _fingerprint(found))
        tried.append(name)
    if importlib.util.find_spec("ziglang") is not None:
        return Toolchain((sys.executable, "-m", "ziglang", "cc"), "ziglang")
    raise NoCompilerError("no C compiler was found", expected=f"one of {', '.join(tried)} on PATH, or CC",
                          found="none, and the ziglang wheel is not installed",
                          help="install gcc or clang, or pip install 'pto-wsp[zig]'; target=\"interp\" needs no compiler")


def _fingerprint(path: str) -> str:
    real = Path(path).resolve()
    status = real.stat()
    return f"{real} {status.st_size} {status.st_mtime_ns}"


@lru_cache(maxsize=1)
def cpu_features() -> tuple[str, ...]:
    """Return what this CPU can do, sorted: the flags the kernel lists on Linux, else the machine's name."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith(("flags", "Features")):
                    return tuple(sorted(line.split(":", 1)[1].split()))
    except OSError:
        pass
    return platform.machine(), platform.processor()


@lru_cache(maxsize=1)
def cache_bytes() -> int | None:
    """Return the size of the largest cache that a core of this machine has, or None where the system does not tell."""
    sizes = []
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = path.read_text(encoding="ascii").strip()
        scale = {"K": 1 << 10, "M": 1 << 20}.get(text[-1:], 1)
        sizes.append(int(text.rstrip("KM")) * scale)
    return max(sizes, default=None)


def compile_library(toolchain: Toolchain, flags: Sequence[str], sources: Sequence[str], output: str, folder: Path, *,
                    what: str) -> None:
    """Compile C sources in `folder` to a shared library there.

    Raises: C102 with the compiler's message.
    """
    done = _run((*toolchain.command, *flags, "-o", output, *sources), folder)
    if done.returncode != 0:
        message = "\n".join(done.stderr.strip().splitlines()[:40])
        raise CompilerFailedError(f"the C compiler refused {what}", found=f"exit status {done.returncode} of "
                                  f"{' '.join(map(os.path.basename, toolchain.command))}", notes=(message,),
                                  help=_kept(folder))


def _kept(folder: Path) -> str:
    """Keep the sources of a failed build where the user can read them."""
    kept = folder.with_name(folder.name.lstrip(".") + "-failed")
    shutil.copytree(folder, kept, dirs_exist_ok=True)
    return f"the sources are in {kept}"


def _run(command: Sequence[str], folder: Path | None) -> subprocess.CompletedProcess[str]:
    import subprocess  # only a cache miss runs the compiler

    try:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                              env={**os.environ, "LC_ALL": "C"})   # messages are searched for the user's lines
    except OSError as problem:
        raise NoCompilerError("the C compiler cannot be run", found=f"{command[0]}: {problem.strerror}",
                              help="set CC to a working compiler") from None
