"""The files that the package is made of: its modules, the C library, the templates, and what the build of a wheel has found out about them.

The C library and the templates are inside the package in a wheel and beside it in a checkout. A digest of all of it is part of every key
of the cache: a wheel carries the digest, a checkout hashes its files once a process. The build runs this file by its path, so that it
imports nothing of the package.

>>> (csrc_dir() / "include" / "pto_abi.h").is_file()
True
"""

from __future__ import annotations

import hashlib
import os
import re
from functools import lru_cache
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


@lru_cache(maxsize=1)
def source_digests() -> SourceDigests:
    """Return the digests of the sources: those that a wheel carries, else those of the files as they are now."""
    written = wheel_data(DIGESTS)
    lines = [] if written is None else written.read_text(encoding="ascii", errors="replace").splitlines()
    if len(lines) == 2 and all(re.fullmatch("[0-9a-f]{64}", line) for line in lines):
        return SourceDigests(*lines)
    return hash_sources()


def hash_sources(package_dir: Path = PACKAGE_DIR) -> SourceDigests:
    """Return the digests of the files as they are: the same for a checkout and for a wheel that was built of it."""
    csrc = tree_digest(find_data("csrc", package_dir))
    parts = (tree_digest(package_dir, leave_out="_data"), tree_digest(find_data("templates", package_dir)), csrc)
    return SourceDigests(hashlib.sha256("\n".join(parts).encode()).hexdigest(), csrc)


def tree_digest(folder: Path, leave_out: str = "") -> str:
    """Return the SHA-256 of the files under a folder, names and contents, without hidden and compiled ones and without one subfolder."""
    state, found, start = hashlib.sha256(), [], len(str(folder)) + 1
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in ("__pycache__", leave_out) and not name.startswith(".")]
        found += [f"{parent}/{name}" for name in names if not name.endswith(_COMPILED) and not name.startswith(".")]
    for path in sorted(found):     # plain strings: every process of a checkout does this, and paths as objects take three times as long
        with open(path, "rb", buffering=0) as file:
            data = file.read()
        state.update(f"{path[start:]}\0{len(data)}\0".encode(errors="surrogateescape"))
        state.update(data)
    return state.hexdigest()


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
