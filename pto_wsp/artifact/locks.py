"""Locks between processes: one builds, the others wait and say for whom."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pto_wsp.artifact.folders import Folder

_TELL_AFTER_S = 3.0           # a wait of this time is told, and then every minute
_TELL_AGAIN_S = 60.0
_POLL_S = 0.05
_LOCK_LETTERS = 32
_HOLDER = re.compile(r"([0-9]{1,10}) ([ -~]{1,100})\n")


@contextmanager
def locked(locks: Folder, key: str, what: str) -> Iterator[None]:
    """Hold a lock that one process at a time holds for `key`; `what`: what is made meanwhile, for those who wait.

    A wait of seconds is told on stderr: which process holds the lock, and what it makes.
    Raises: OSError when there can be no such lock.
    """
    name = key[:_LOCK_LETTERS]
    lock = _file_lock(_plain(locks.path / f"{name}.lock"))
    _acquire(lock, locks, name)
    try:
        with suppress(OSError):      # it serves the message alone
            locks.write(f"{name}.holder", f"{os.getpid()} {_printable(what)}\n")
        yield
    finally:
        lock.release()


def _acquire(lock: Any, locks: Folder, name: str) -> None:
    started = time.monotonic()
    tell_at = started + _TELL_AFTER_S
    while True:
        try:
            lock.acquire(timeout=max(0.0, tell_at - time.monotonic()), poll_interval=_POLL_S)
        except TimeoutError:
            waited = time.monotonic() - started
            print(f"pto_wsp: waiting for {_holder(locks, name)}: {waited:.0f} s so far", file=sys.stderr, flush=True)
            tell_at = time.monotonic() + _TELL_AGAIN_S
        else:
            return


def _holder(locks: Folder, name: str) -> str:
    """Say who holds a lock."""
    try:
        match = _HOLDER.fullmatch(locks.read(f"{name}.holder", 200).decode("ascii", "replace"))
    except OSError:
        match = None
    return "another process" if match is None else f"process {match[1]}, which builds {match[2]}"


def _printable(what: str) -> str:
    return what.encode("ascii", "replace").decode()[:100]


def _plain(path: Path) -> Path:
    """Return the path of a lock: of no file yet, or of a regular one.

    Raises: OSError.
    """
    try:
        status = path.lstat()
    except FileNotFoundError:
        return path
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "no regular file", str(path))
    return path


def _file_lock(path: Path) -> Any:
    from filelock import FileLock  # loads asyncio, and only a cache miss needs it

    return FileLock(path, mode=0o600)
