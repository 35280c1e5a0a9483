"""The files that the package is made of: its modules, the C library, the templates, and what the build of a wheel has found out about them.

The C library and the templates are inside the package in a wheel and beside it in a checkout. A digest of all of it is part of every key
of the cache: a wheel carries the digest, a checkout hashes its files, and `artifact.build` keeps the digest as long as the stamp of the
files is the same. The build of a wheel runs this file by its path, so that it imports nothing of the package.

>>> (csrc_dir() / "include" / "pto_abi.h").is_file()
True
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

DIGESTS = "digests.txt"           # of _data: what source_digests() gives, a line each
PARSED_ABI = "pto_abi.json"       # of _data: the interface between Python and C as cffi has parsed it

PACKAGE_DIR = Path(__file__).resolve().parent
_COMPILED = (".a", ".dylib", ".o", ".pyc", ".pyo", ".so")


class SourceDigests(NamedTuple):
    """SHA-256 of the sources: of the whole package (modules, templates, C library), and of the C library alone."""

    package: str
    csrc: str


class SourceStamp(NamedTuple):
    """What the file system says of the sources. `digest`: SHA-256 of every file's path, size, inode and times; `latest_ns`: the latest of
    the times, in nanoseconds since the epoch."""

    digest: str
    latest_ns: int


def csrc_dir() -> Path:
    """Return the folder of the C library.

    Raises: FileNotFoundError if the installation has none.
    """
    return find_data("csrc", PACKAGE_DIR)


def templates_dir() -> Path:
    """Return the folder of the Jinja templates.

    Raises: FileNotFoundError if the installation has none.
    """
    return find_data("templates", PACKAGE_DIR)


def wheel_data(name: str) -> Path | None:
    """Return a file that the build of a wheel has written, or None in a checkout."""
    path = PACKAGE_DIR / "_data" / name
    return path if path.is_file() else None


def carried_digests() -> SourceDigests | None:
    """Return the digests that a wheel carries; None in a checkout."""
    written = wheel_data(DIGESTS)
    return None if written is None else read_digests(written.read_text(encoding="ascii", errors="replace"))


def read_digests(text: str) -> SourceDigests | None:
    """Return the digests of a text of two lines, one digest each; None for any other text."""
    lines = text.splitlines()
    return SourceDigests(*lines) if len(lines) == 2 and all(re.fullmatch("[0-9a-f]{64}", line) for line in lines) else None


def hash_sources(package_dir: Path = PACKAGE_DIR) -> SourceDigests:
    """Return the digests of the files as they are: the same for a checkout and for a wheel that was built of it."""
    csrc = tree_digest(find_data("csrc", package_dir))
    parts = (tree_digest(package_dir, leave_out="_data"), tree_digest(find_data("templates", package_dir)), csrc)
    return SourceDigests(hashlib.sha256("\n".join(parts).encode()).hexdigest(), csrc)


def stamp_sources(package_dir: Path = PACKAGE_DIR) -> SourceStamp:
    """Return what the file system says of the files that `hash_sources` reads, without reading one."""
    rows, latest_ns = [], 0
    for folder in (package_dir, find_data("templates", package_dir), find_data("csrc", package_dir)):
        for file in _files(str(folder), "_data" if folder is package_dir else ""):
            found = file.stat()
            latest_ns = max(latest_ns, found.st_mtime_ns, found.st_ctime_ns)
            rows.append(f"{file.path}\0{found.st_size}\0{found.st_mtime_ns}\0{found.st_ctime_ns}\0{found.st_ino}\0")
    return SourceStamp(hashlib.sha256("".join(sorted(rows)).encode(errors="surrogateescape")).hexdigest(), latest_ns)


def tree_digest(folder: Path, leave_out: str = "") -> str:
    """Return the SHA-256 of the files under a folder, names and contents, without hidden and compiled ones and without one subfolder."""
    state, start = hashlib.sha256(), len(str(folder)) + 1
    for path in sorted(file.path for file in _files(str(folder), leave_out)):
        with open(path, "rb", buffering=0) as file:
            data = file.read()
        state.update(f"{path[start:]}\0{len(data)}\0".encode(errors="surrogateescape"))
        state.update(data)
    return state.hexdigest()


def _files(folder: str, leave_out: str) -> Iterator[os.DirEntry[str]]:
    """Yield the files under a folder as `tree_digest` counts them, in no order; links to folders are not followed."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                if entry.name not in ("__pycache__", leave_out) and not entry.is_symlink():
                    yield from _files(entry.path, leave_out)
            elif not entry.name.endswith(_COMPILED):
                yield entry


def find_data(name: str, package_dir: Path) -> Path:
    """Return the folder of that name that belongs to a package: the wheel's, else the checkout's.

    Raises: FileNotFoundError naming both homes.
    """
    # The wheel's home comes first: beside an installed package stand the folders of other projects.
    homes = (package_dir / "_data" / name, package_dir.parent / name)
    for home in homes:
        if home.is_dir():
            return home
    looked = " nor ".join(str(home) for home in homes)
    raise FileNotFoundError(f"this installation of pto_wsp is incomplete: found neither {looked}; install it again")
