"""The content-addressed store: finished artifacts under the user's cache, published by one rename, guarded by a lock."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from pathlib import Path

import platformdirs

from pto_wsp.artifact.manifest import MANIFEST, AnyManifest, Sealed, read_manifest
from pto_wsp.errors import ArtifactFolderError, CacheFolderError
from pto_wsp.source import here

_DIGEST_LETTERS = 12


def cache_root() -> Path:
    """Return the store's folder: PTO_WSP_CACHE_DIR, else the user's cache folder of this platform."""
    override = os.environ.get("PTO_WSP_CACHE_DIR")
    return Path(override) if override else _default_root()


@lru_cache(maxsize=1)
def _default_root() -> Path:
    return Path(platformdirs.user_cache_dir("pto_wsp"))


def lookup(key: str, kind: type[AnyManifest]) -> tuple[Path, AnyManifest] | None:
    """Return the artifact made for `key` and its verified manifest, or None.

    Raises: C103 when it is there and damaged.
    """
    try:
        name = _key_file(key).read_text(encoding="utf-8").strip()
    except OSError:
        return None
    root = cache_root() / "artifacts" / name
    if not root.is_dir():   # the user removed it, as the error for a damaged one says
        return None
    return root, read_manifest(root, kind)


def publish(key: str, name: str, kind: type[AnyManifest], fill: Callable[[Path], AnyManifest]) -> tuple[Path, AnyManifest]:
    """Have `fill` write an artifact into an empty folder, seal it, and publish it as <name>-<digest>.

    Two processes that build one key wait for each other; whoever comes second gets what the first published.
    Raises: C106 when the store cannot be written.
    """
    with writing(), locked(key):
        found = lookup(key, kind)
        if found is not None:
            return found
        artifacts = cache_root() / "artifacts"
        artifacts.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=".building-", dir=artifacts))
        try:
            manifest = fill(building).sealed(building)
            manifest.write(building)
            final = artifacts / f"{name}-{manifest.digest[:_DIGEST_LETTERS]}"
            building.chmod(0o755)
            publish_dir(building, final)
        finally:
            shutil.rmtree(building, ignore_errors=True)
        write_atomically(_key_file(key), final.name + "\n")
        return final, manifest


@contextmanager
def writing() -> Iterator[None]:
    """Say which folder it was when the store cannot be written.

    Raises: C106.
    """
    try:
        yield
    except OSError as problem:
        raise CacheFolderError(f"the artifact cache in {cache_root()} cannot be written",
                               found=f"{problem.filename or cache_root()}: {problem.strerror}",
                               help="set PTO_WSP_CACHE_DIR to a folder that can be written; target=\"interp\" needs none") from None


def copy_artifact(root: Path, manifest: Sealed, folder: Path) -> Path:
    """Copy the files of an artifact, those that its manifest lists, to a folder that is not there yet, or is empty, and return it.

    Raises: C107 when something is there already, or when it cannot be written.
    """
    with writing_to(folder):
        if folder.is_dir() and any(folder.iterdir()):
            raise ArtifactFolderError(f"{folder} is not empty", here(), expected="a folder that is new or empty",
                                      help="remove what is there, or name another folder")
        for name in (MANIFEST, *(name for name, _ in manifest.files)):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, folder / name)
    return folder


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Say so when a folder of the user's cannot be written.

    Raises: C107.
    """
    try:
        yield
    except OSError as problem:
        raise ArtifactFolderError(f"the artifact cannot be written to {folder}", here(), found=str(problem.strerror or problem),
                                  help="name a folder that can be written") from None


def publish_dir(building: Path, final: Path) -> None:
    """Move a finished folder to its place; one that is there already is the same content and stays."""
    try:
        building.rename(final)
    except OSError:
        if not final.is_dir():
            raise


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that no reader ever sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    Path(temporary).replace(path)


def locked(key: str) -> AbstractContextManager[object]:
    """Return a lock that one process at a time holds for `key`."""
    locks = cache_root() / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    return _file_lock(locks / f"{key[:32]}.lock")


def _file_lock(path: Path) -> AbstractContextManager[object]:
    from filelock import FileLock  # loads asyncio, and only a cache miss needs it

    return FileLock(path)


def _key_file(key: str) -> Path:
    return cache_root() / "keys" / key
