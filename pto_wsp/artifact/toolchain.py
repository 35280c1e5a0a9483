"""Find and run the C compiler, and identify the CPU.

The compiler is not trusted to terminate, to print UTF-8, or to have written a library because its exit status is 0.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
import re
import shlex
import shutil
import signal
import struct
import sys
import time
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from pto_wsp.errors import CompileOptionError, CompilerFailedError, CompilerFlagError, NoCompilerError
from pto_wsp.values import dataclass

if TYPE_CHECKING:
    import subprocess

_CANDIDATES = ("cc", "gcc", "clang")
_LIMIT = "PTO_WSP_COMPILE_TIMEOUT"
_FEW = 4                     # up to so many sources, one command compiles and links them
_OBJECTS = "objects"
_LIMIT_S, _LONGEST_LIMIT_S = 300.0, 7 * 24 * 3600.0
# Flags that change the numbers a program computes, or flush subnormal numbers in the whole process, and that none of our flags undoes. Our
# flags undo others, such as -ffp-contract=fast and -fno-wrapv.
_OTHER_RESULTS = re.compile(
    r"-Ofast|-ffast-math|-funsafe-math-optimizations|-fassociative-math|-freciprocal-math|-ffinite-math-only|-fno-signed-zeros"
    r"|-fapprox-func|-fno-honor-(?:nans|infinities)|-fsingle-precision-constant|-fcx-limited-range|-fcx-fortran-rules"
    r"|-fdenormal-fp-math(?:-f32)?=(?!ieee).*|-ffp-model=(?:fast|aggressive)|-mdaz-ftz|-mno-ieee|-fp-model=fast.*|-menable-no-(?:nans|infs)")


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A C compiler: its command, and a fingerprint that identifies the compiler without running it."""

    command: tuple[str, ...]
    fingerprint: str

    def version(self) -> str:
        """Return the first line of the compiler's version text."""
        done = _run((*self.command, "--version"), None, "to tell its version")
        return done.stdout.splitlines()[0] if done.stdout else "unknown"


def find_toolchain() -> Toolchain:
    """Return the compiler: CC, else cc, gcc or clang, else the ziglang wheel.

    Raises: C101 if there is none, C112 for a CC with flags that change what programs compute.
    """
    return _find(os.environ.get("CC", "").strip(), os.environ.get("PATH", ""))


@lru_cache(maxsize=8)
def _find(cc: str, path: str) -> Toolchain:
    tried = []
    if cc:
        try:
            words = shlex.split(cc)
        except ValueError:   # unbalanced quotes
            words = [cc]
        executable = shutil.which(words[0])
        if executable is None:
            raise NoCompilerError("CC names a compiler that is not there", expected="a command on PATH, or a path", found=f"CC={cc}",
                                  help="unset CC, or install it; target=\"interp\" needs no compiler")
        _refuse_other_results(cc, words[1:])
        return Toolchain((executable, *words[1:]), _fingerprint(executable))
    for name in _CANDIDATES:
        executable = shutil.which(name)
        if executable is not None:
            return Toolchain((executable,), _fingerprint(executable))
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
    """Return the sorted features of this CPU: the kernel's flags on Linux, else the machine's name."""
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
    """Return the size of a core's largest cache, None if the system does not give it."""
    sizes = []
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = path.read_text(encoding="ascii").strip()
        scale = {"K": 1 << 10, "M": 1 << 20}.get(text[-1:], 1)
        sizes.append(int(text.rstrip("KM")) * scale)
    return max(sizes, default=None)


def compile_library(toolchain: Toolchain, flags: Sequence[str], sources: Sequence[str], output: str, folder: Path, *,
                    what: str) -> None:
    """Compile C sources in `folder` to a shared library there, complete as far as its headers show.

    Raises: C102 with the compiler's message, on a timeout, or without a library; C104 for an invalid time limit.
    """
    commands = [(*toolchain.command, *flags, "-o", output, *sources)]
    if len(sources) > _FEW and (at_once := _cores()) > 1:
        commands = _separately(toolchain.command, flags, sources, output, folder)
    else:
        at_once = 1
    try:
        done = _run_all(commands, folder, f"compiling {what}", at_once)
    finally:
        shutil.rmtree(folder / _OBJECTS, ignore_errors=True)
    message = "\n".join(done.stderr.strip().splitlines()[:40])
    if done.returncode != 0:
        raise CompilerFailedError(f"the C compiler refused {what}",
                                  found=f"exit status {done.returncode} of {_command_text(toolchain.command)}",
                                  notes=(message,) * bool(message), help=_keep_sources(folder))
    fault = library_fault(folder / output)
    if fault is not None:
        raise no_library(what, f"{output}: {fault}, and exit status 0 of {_command_text(toolchain.command)}", (message,) * bool(message))


def _separately(command: Sequence[str], flags: Sequence[str], sources: Sequence[str], output: str, folder: Path) -> list[tuple[str, ...]]:
    """Return the commands that compile each source, the largest first, and the last one, which links the objects in the sources' order."""
    (folder / _OBJECTS).mkdir()
    objects = {source: f"{_OBJECTS}/{k}.o" for k, source in enumerate(sources)}
    each = [flag for flag in flags if flag != "-shared"]
    return [*((*command, *each, "-c", "-o", objects[source], source)
              for source in sorted(sources, key=lambda source: -(folder / source).stat().st_size)),
            (*command, *flags, "-o", output, *objects.values())]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def no_library(what: str, found: str, notes: Sequence[str] = ()) -> CompilerFailedError:
    """Return the error for a compiler that reports success and leaves no usable library."""
    return CompilerFailedError(f"the C compiler left no library of {what}", expected="a shared library for this machine", found=found,
                               notes=notes, help="see that CC is a C compiler for this machine, and that its disk has room")


def library_fault(path: Path) -> str | None:
    """Return why a shared library cannot be opened, None if it can: opening a truncated one kills the process (SIGBUS).

    Only Linux needs the check; other systems report truncation themselves.
    """
    try:
        data = path.read_bytes()
    except OSError as problem:
        return str(problem.strerror)
    if sys.platform != "linux":
        return None if data else "an empty file"
    if data[:4] != b"\x7fELF" or len(data) < 64:
        return "no ELF file" if data else "an empty file"
    order, is_64 = ">" if data[5] == 2 else "<", data[4] == 2
    ph_at, sh_at = struct.unpack_from(f"{order}QQ" if is_64 else f"{order}II", data, 32 if is_64 else 28)
    ph_bytes, n_ph, sh_bytes, n_sh = struct.unpack_from(f"{order}4H", data, 54 if is_64 else 42)
    needed = max(ph_at + ph_bytes * n_ph, sh_at + sh_bytes * n_sh)
    if needed <= len(data):
        for at in range(ph_at, ph_at + ph_bytes * n_ph, max(ph_bytes, 1)):
            offset, = struct.unpack_from(f"{order}Q" if is_64 else f"{order}I", data, at + (8 if is_64 else 4))
            length, = struct.unpack_from(f"{order}Q" if is_64 else f"{order}I", data, at + (32 if is_64 else 16))
            needed = max(needed, offset + length)
    return f"{len(data)} bytes of {needed}" if needed > len(data) else None


def _keep_sources(folder: Path) -> str:
    """Keep the sources of a failed build for the user, and return the help text that names them."""
    kept = folder.with_name(folder.name.lstrip(".") + "-failed")
    shutil.copytree(folder, kept, dirs_exist_ok=True)
    return f"the sources are in {kept}"


def _command_text(command: Sequence[str]) -> str:
    return " ".join(map(os.path.basename, command))


def _refuse_other_results(cc: str, flags: Sequence[str]) -> None:
    """Refuse flags of CC that change what programs compute.

    Raises: C112.
    """
    refused = [flag for flag in flags if _OTHER_RESULTS.fullmatch(flag)]
    if refused:
        raise CompilerFlagError(f"CC has flags that change what programs compute: {' '.join(refused)}",
                                expected="the numbers that the program says, those of target interp", found=f"CC={cc}",
                                help="take them out of CC, which may name a compiler and where it finds what it needs")


def _limit_s() -> float:
    """Return the compiler's time limit: PTO_WSP_COMPILE_TIMEOUT in seconds, else five minutes.

    Raises: C104.
    """
    text = os.environ.get(_LIMIT, "").strip()
    try:
        limit = float(text) if text else _LIMIT_S
    except ValueError:
        limit = 0.0
    if not 0 < limit <= _LONGEST_LIMIT_S:      # also false for NaN
        raise CompileOptionError(f"{_LIMIT} is no number of seconds", expected=f"a number above 0, at most {_LONGEST_LIMIT_S:.0f}",
                                 found=repr(text))
    return limit


def _run(command: Sequence[str], folder: Path | None, doing: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end and return its status and output, decoded whatever the bytes.

    Raises: C101 for a command that cannot be run, C102 for a timeout.
    """
    return _run_all([command], folder, doing)


def _run_all(commands: Sequence[Sequence[str]], folder: Path | None, doing: str, at_once: int = 1) -> subprocess.CompletedProcess[str]:
    """Run commands, `at_once` at a time and the last one after all others, in one time limit; return the last, or the first that failed.

    However it ends, no command goes on.
    Raises: as `_run`.
    """
    import subprocess  # imported here because only a cache miss runs the compiler

    limit = _limit_s()
    until, running, started = time.monotonic() + limit, deque[subprocess.Popen[bytes]](), 0
    try:
        while True:
            while started < len(commands) and len(running) < at_once and (started < len(commands) - 1 or not running):
                running.append(_start(commands[started], folder))
                started += 1
            process = running[0]
            out, err = process.communicate(timeout=max(0.0, until - time.monotonic()))
            _end(process)
            running.popleft()
            if process.returncode != 0 or (started == len(commands) and not running):
                return subprocess.CompletedProcess(process.args, process.returncode,
                                                   *(text.decode("utf-8", "backslashreplace") for text in (out, err)))
    except subprocess.TimeoutExpired:
        raise CompilerFailedError(f"the C compiler did not end {doing} in {limit:g} s", found=commands[0][0],
                                  help=f"set {_LIMIT} to more seconds, or CC to another compiler") from None
    finally:
        for process in running:
            _end(process)


def _start(command: Sequence[str], folder: Path | None) -> subprocess.Popen[bytes]:
    """Start a command.

    Raises: C101 for one that cannot be run.
    """
    import subprocess

    try:
        return subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                start_new_session=True,             # a process group, so that all descendants can be ended
                                env={**os.environ, "LC_ALL": "C"})  # messages are parsed for the user's lines
    except OSError as problem:
        raise NoCompilerError("the C compiler cannot be run", found=f"{command[0]}: {problem.strerror}",
                              help="set CC to a working compiler") from None


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a command and every process in its group. An open pipe shows that a process of the group still runs."""
    pipes_open = any(pipe is not None and not pipe.closed for pipe in (process.stdout, process.stderr))
    if process.poll() is None or pipes_open:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
