"""The store: finished artifacts under the user's cache, found by what goes in, named by what comes out, published by one rename.

`keys/<key>` holds the digest of an artifact, `artifacts/<name>-<digest>/` the artifact. Every file is verified before it is used, and no
text of a file becomes a name: a key is a hash of inputs, and its file is believed only with the checksum of key and digest together.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import platformdirs

from pto_wsp.artifact.folders import Folder, make_private, open_private
from pto_wsp.artifact.locks import locked
from pto_wsp.artifact.manifest import MANIFEST, AnyManifest, Sealed, damaged, read_manifest
from pto_wsp.errors import ArtifactFolderError, CacheCorruptError, CacheFolderError
from pto_wsp.source import here

_DIGEST_LETTERS, _NAME_LETTERS = 12, 80
_ARTIFACTS, _KEYS, _LOCKS = "artifacts", "keys", "locks"
_KEY_FILE = re.compile(rb"([0-9a-f]{64}) ([0-9a-f]{64})\n")


def cache_root() -> Path:
    """Return the store's folder: PTO_WSP_CACHE_DIR, else the user's cache folder of this platform.

    A relative folder is one of the current folder at its first use: a program that changes its folder keeps its store.
    Raises: C106 when there is no such folder to be.
    """
    override = os.environ.get("PTO_WSP_CACHE_DIR")
    return _own_root(override) if override else _default_root()


@lru_cache(maxsize=8)
def _own_root(text: str) -> Path:
    path = os.path.expanduser(text)
    if path.startswith("~"):
        raise _no_root(f"PTO_WSP_CACHE_DIR={text}", "no such user")
    return _absolute(path, f"PTO_WSP_CACHE_DIR={text}")


@lru_cache(maxsize=1)
def _default_root() -> Path:
    return _absolute(platformdirs.user_cache_dir("pto_wsp"), "the cache folder of this user")


def _absolute(path: str, said: str) -> Path:
    try:
        absolute = os.path.abspath(path)
        absolute.encode(sys.getfilesystemencoding())
    except OSError as problem:   # it was removed
        raise _no_root(said, f"the current folder: {problem.strerror}") from None
    except UnicodeEncodeError:   # no library can be opened there
        raise _no_root(said, "a name that is no text") from None
    return Path(absolute)


def _no_root(said: str, found: str) -> CacheFolderError:
    return CacheFolderError(f"{said} names no folder for the artifact cache".encode(errors="backslashreplace").decode(), found=found,
                            help="set PTO_WSP_CACHE_DIR to the absolute path of a folder")


def lookup(key: str, name: str, kind: type[AnyManifest]) -> tuple[Path, AnyManifest] | None:
    """Return the artifact `name` made for `key` and its manifest, all its files verified, or None.

    Raises: C103 when it is there and damaged, C106 when others could have written it.
    """
    try:
        with open_private(cache_root()) as store:
            return _find(store, key, name, kind)
    except FileNotFoundError:     # nothing was built yet, or the user removed it, as the error for a damaged one says
        return None
    except OSError as problem:
        raise _unusable(problem) from None


def publish(key: str, name: str, kind: type[AnyManifest], fill: Callable[[Path], AnyManifest]) -> tuple[Path, AnyManifest]:
    """Have `fill` write an artifact into an empty folder, seal it, and publish it as <name>-<digest>.

    Two processes that build one key wait for each other; whoever comes second gets what the first published.
    Raises: C106 when the store cannot be written, or is not the user's alone.
    """
    with writing(), open_private(cache_root(), create=True) as store, _part(store, _LOCKS, create=True) as locks, \
            _part(store, _ARTIFACTS, create=True) as artifacts, _part(store, _KEYS, create=True) as keys, locked(locks, key, name):
        found = lookup(key, name, kind)
        if found is not None:
            return found
        building = Path(tempfile.mkdtemp(prefix=".building-", dir=artifacts.path))
        try:
            manifest = fill(building).sealed(building)
            manifest.write(building)
            make_private(building)
            final = _folder_name(name, manifest.digest)
            _put(building, artifacts, final, manifest, locks)
        finally:
            shutil.rmtree(building, ignore_errors=True)
        keys.write(key, f"{manifest.digest} {_seal(key, manifest.digest)}\n")
        return artifacts.path / final, manifest


def _find(store: Folder, key: str, name: str, kind: type[AnyManifest]) -> tuple[Path, AnyManifest] | None:
    digest = _digest_of(store, key)
    if digest is None:
        return None
    with _part(store, _ARTIFACTS) as artifacts:
        found = read_below(artifacts, _folder_name(name, digest), kind)
    if found.digest != digest:
        raise damaged(artifacts.path / _folder_name(name, digest), MANIFEST, "it is that of another artifact")
    return artifacts.path / _folder_name(name, digest), found


def _digest_of(store: Folder, key: str) -> str | None:
    """Return the digest of the artifact made for a key, or None: a file that says nothing of this key counts for nothing, and is made anew.

    Raises: FileNotFoundError; C103 for what no file can replace.
    """
    with _part(store, _KEYS) as keys:
        try:
            match = _KEY_FILE.fullmatch(keys.read(key, 1 << 10))
        except IsADirectoryError:
            raise _no_part(keys.path / key, "a folder") from None
        except FileNotFoundError:
            raise
        except OSError:
            return None
    digest = None if match is None else match[1].decode()
    return digest if match is not None and digest is not None and match[2].decode() == _seal(key, digest) else None


def _part(store: Folder, name: str, *, create: bool = False) -> Folder:
    """Return a part of the store.

    Raises: FileNotFoundError; C103 for a link, or what else is no folder.
    """
    try:
        return store.folder(name, create=create)
    except NotADirectoryError:
        raise _no_part(store.path / name, "a link or a file where a folder should be") from None
    except OSError as problem:
        if problem.errno == errno.ELOOP:
            raise _no_part(store.path / name, "a link where a folder should be") from None
        raise


def read_below(artifacts: Folder, name: str, kind: type[AnyManifest]) -> AnyManifest:
    """Return the verified manifest of an artifact in the store.

    Raises: FileNotFoundError when there is none; C103, C106.
    """
    with _part(artifacts, name) as folder:
        return read_manifest(folder, kind)


def _put(building: Path, artifacts: Folder, name: str, manifest: Sealed, locks: Folder) -> None:
    """Move a finished artifact to its place. An artifact that is there already, of other inputs, stays if it is whole, else makes room."""
    final = artifacts.path / name
    try:
        building.rename(final)
    except OSError as problem:
        if problem.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            raise
        with locked(locks, name, name):
            if _is_whole(artifacts, name, manifest):
                return
            aside = Path(tempfile.mkdtemp(prefix=".building-", dir=artifacts.path))
            final.rename(aside / name)
            shutil.rmtree(aside, ignore_errors=True)
            building.rename(final)


def _is_whole(artifacts: Folder, name: str, manifest: Sealed) -> bool:
    try:
        return read_below(artifacts, name, type(manifest)).digest == manifest.digest
    except (CacheCorruptError, OSError):
        return False


def _folder_name(name: str, digest: str) -> str:
    return f"{re.sub(r'[^A-Za-z0-9_]', '_', name)[:_NAME_LETTERS]}-{digest[:_DIGEST_LETTERS]}"


def _seal(key: str, digest: str) -> str:
    return hashlib.sha256(f"{key}\0{digest}".encode()).hexdigest()


def _no_part(path: Path, found: str) -> CacheCorruptError:
    return CacheCorruptError(f"the artifact cache is damaged: {path}", expected="files and folders as they were made", found=found,
                             help=f"remove {path}; it is made again")


def _unusable(problem: OSError) -> CacheFolderError:
    return CacheFolderError(f"the artifact cache in {cache_root()} cannot be used",
                            found=f"{problem.filename or cache_root()}: {problem.strerror}",
                            help="set PTO_WSP_CACHE_DIR to a folder that can be written; target=\"interp\" needs none")


@contextmanager
def writing() -> Iterator[None]:
    """Say which folder it was when the store cannot be written.

    Raises: C106.
    """
    try:
        yield
    except OSError as problem:
        raise _unusable(problem) from None


def keep(folder: Folder, manifest: AnyManifest, name: str) -> tuple[Path, AnyManifest]:
    """Return the store's copy of a folder that is not the store's own, made now where there is none: what runs is run from there.

    Every file is hashed as it is copied, so that the copy is what the manifest says, whatever becomes of the folder meanwhile.
    Raises: C103 for a folder that changes meanwhile, C106 as `publish`.
    """
    key = hashlib.sha256(f"kept\0{manifest.digest}".encode()).hexdigest()
    found = lookup(key, name, type(manifest))
    if found is not None:
        return found

    def fill(root: Path) -> AnyManifest:
        _copy_files(folder, manifest, root)
        return manifest

    return publish(key, name, type(manifest), fill)


def copy_artifact(folder: Folder, manifest: Sealed, target: Path) -> None:
    """Copy the files of an artifact, those that its manifest lists, and the manifest, to a folder that is not there yet, or is empty.

    Raises: C107 when something is there already, or when it cannot be written; C103 for an artifact that changes meanwhile.
    """
    with writing_to(target):
        if target.is_dir() and any(target.iterdir()):
            raise ArtifactFolderError(f"{target} is not empty", here(), expected="a folder that is new or empty",
                                      help="remove what is there, or name another folder")
        _copy_files(folder, manifest, target)
        target.mkdir(parents=True, exist_ok=True)
        manifest.write(target)


def _copy_files(folder: Folder, manifest: Sealed, target: Path) -> None:
    for name, digest in manifest.files:
        if folder.copy(name, target / name) != digest:
            raise damaged(folder.path, name, "its checksum is not the manifest's")


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
