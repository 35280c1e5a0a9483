"""The artifact store: finished artifacts in the user's cache, looked up by the hash of their inputs and published by one rename.

`keys/<key>` holds the digest of an artifact, `artifacts/<name>-<digest>/` the artifact. Every file is verified before use. No text of a
file becomes a name: a key is a hash of inputs, and a key file counts only with a valid checksum of key and digest. A lock per key makes one
process build while others wait and report the builder.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import platformdirs

from pto_wsp.artifact.folders import Folder, make_private, open_private
from pto_wsp.artifact.manifest import MANIFEST, AnyManifest, Sealed, damaged, read_known, read_manifest
from pto_wsp.errors import ArtifactFolderError, CacheCorruptError, CacheFolderError
from pto_wsp.source import here

TELL_AFTER_S = 3.0           # a longer wait is reported, and again every minute
_TELL_AGAIN_S = 60.0
_POLL_S = 0.05
_LOCK_LETTERS = 32
_HOLDER = re.compile(r"([0-9]{1,10}) ([ -~]{1,100})\n")


@contextmanager
def locked(locks: Folder, key: str, what: str) -> Iterator[None]:
    """Hold the lock of `key`, which one process at a time can hold. `what`: the thing being built, for the message to waiting processes.

    A wait of seconds is reported on stderr: the process that holds the lock, and what it builds.
    Raises: OSError if the lock cannot be created.
    """
    name = key[:_LOCK_LETTERS]
    lock = _file_lock(_plain(locks.path / f"{name}.lock"))
    _acquire(lock, locks, name)
    try:
        with suppress(OSError):      # only the message needs the file
            locks.write(f"{name}.holder", f"{os.getpid()} {_printable(what)}\n")
        yield
    finally:
        lock.release()


def _acquire(lock: Any, locks: Folder, name: str) -> None:
    started = time.monotonic()
    tell_at = started + TELL_AFTER_S
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
    """Return a description of the process that holds a lock."""
    try:
        match = _HOLDER.fullmatch(locks.read(f"{name}.holder", 200).decode("ascii", "replace"))
    except OSError:
        match = None
    return "another process" if match is None else f"process {match[1]}, which builds {match[2]}"


def _printable(what: str) -> str:
    return what.encode("ascii", "replace").decode()[:100]


def _plain(path: Path) -> Path:
    """Return the path of a lock, which must not exist yet or be a regular file.

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
    from filelock import FileLock  # imported here because filelock loads asyncio, and only a cache miss needs it

    return FileLock(path, mode=0o600)


# -- artifacts -------------------------------------------------------------------------------------


_DIGEST_LETTERS, _NAME_LETTERS = 12, 80
_ARTIFACTS, _KEYS, _LOCKS = "artifacts", "keys", "locks"
_RECORDS = "records"
_KEY_FILE = re.compile(rb"([0-9a-f]{64}) ([0-9a-f]{64})\n")


def cache_root() -> Path:
    """Return the store's folder: PTO_WSP_CACHE_DIR, else this platform's cache folder of the user.

    A relative path refers to the current folder at first use: a later change of folder does not move the store.
    Raises: C106 if the folder cannot exist.
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
    except OSError as problem:   # the current folder was removed
        raise _no_root(said, f"the current folder: {problem.strerror}") from None
    except UnicodeEncodeError:   # no library can be opened under such a path
        raise _no_root(said, "a name that is no text") from None
    return Path(absolute)


def _no_root(said: str, found: str) -> CacheFolderError:
    return CacheFolderError(f"{said} names no folder for the artifact cache".encode(errors="backslashreplace").decode(), found=found,
                            help="set PTO_WSP_CACHE_DIR to the absolute path of a folder")


def lookup(key: str, name: str, kind: type[AnyManifest]) -> tuple[Path, AnyManifest] | None:
    """Return the artifact `name` of `key` and its manifest with all files verified, None if there is none.

    Raises: C103 if the artifact is damaged, C106 if other users could have written it.
    """
    try:
        with open_private(cache_root()) as store:
            return _find(store, key, name, kind)
    except FileNotFoundError:     # nothing was built yet, or the user removed it, as the error for damage advises
        return None
    except OSError as problem:
        raise _unusable(problem) from None


def publish(key: str, name: str, kind: type[AnyManifest], fill: Callable[[Path], AnyManifest]) -> tuple[Path, AnyManifest]:
    """Let `fill` write an artifact into an empty folder, seal it, and publish it as <name>-<digest>.

    Two processes that build the same key wait for each other; the second one gets the artifact of the first.
    Raises: C106 if the store cannot be written, or if other users can write to it.
    """
    with writing(), open_private(cache_root(), create=True) as store, _part(store, _LOCKS, create=True) as locks, \
            _part(store, _ARTIFACTS, create=True) as artifacts, _part(store, _KEYS, create=True) as keys, locked(locks, key, name):
        published = lookup(key, name, kind)
        if published is not None:
            return published
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


def artifact_with(digest: str, name: str) -> tuple[Path, Mapping[str, Any]] | None:
    """Return the artifact of a digest and the fields of its manifest with all files verified, None if there is none.

    Raises: C103 if the artifact is damaged, C106 if other users could have written it.
    """
    try:
        with open_private(cache_root()) as store, _part(store, _ARTIFACTS) as artifacts, \
                _part(artifacts, _folder_name(name, digest)) as folder:
            return folder.path, read_known(folder, digest)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise _unusable(problem) from None


# -- records -----------------------------------------------------------------------------------------------------------
def keep_record(key: str, data: bytes) -> None:
    """Write a record beside the artifacts, under a key that is a hash; it counts only with a valid checksum.

    Raises: C106 if the store cannot be written, or if other users can write to it.
    """
    with writing(), open_private(cache_root(), create=True) as store, _part(store, _RECORDS, create=True) as records:
        records.write(key, f"{_record_seal(key, data)}\n{base64.b64encode(data).decode()}\n")


def record_of(key: str) -> bytes | None:
    """Return the record of a key; None where there is none, or it is not as it was written.

    Raises: C106 if other users could have written it.
    """
    try:
        with open_private(cache_root()) as store, _part(store, _RECORDS) as records:
            seal, _, text = records.read(key).partition(b"\n")
            data = base64.b64decode(text)
    except (FileNotFoundError, ValueError):
        return None
    except OSError as problem:
        raise _unusable(problem) from None
    return data if seal.decode("ascii", "replace") == _record_seal(key, data) else None


def _record_seal(key: str, data: bytes) -> str:
    return hashlib.sha256(key.encode() + b"\0" + data).hexdigest()


def _find(store: Folder, key: str, name: str, kind: type[AnyManifest]) -> tuple[Path, AnyManifest] | None:
    digest = _digest_of(store, key)
    if digest is None:
        return None
    with _part(store, _ARTIFACTS) as artifacts:
        manifest = read_below(artifacts, _folder_name(name, digest), kind)
    if manifest.digest != digest:
        raise damaged(artifacts.path / _folder_name(name, digest), MANIFEST, "it is that of another artifact")
    return artifacts.path / _folder_name(name, digest), manifest


def _digest_of(store: Folder, key: str) -> str | None:
    """Return the digest of the artifact of a key, None for an invalid key file, which a new build replaces.

    Raises: FileNotFoundError; C103 for a path that no file can replace.
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
    """Return a subfolder of the store.

    Raises: FileNotFoundError; C103 for a link or anything else that is no folder.
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

    Raises: FileNotFoundError if there is none; C103, C106.
    """
    with _part(artifacts, name) as folder:
        return read_manifest(folder, kind)


def _put(building: Path, artifacts: Folder, name: str, manifest: Sealed, locks: Folder) -> None:
    """Move a finished artifact to its place.

    An artifact of other inputs that is there already stays if it is intact, and is replaced otherwise.
    """
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
    """Turn an OSError inside into an error that names the store's folder.

    Raises: C106.
    """
    try:
        yield
    except OSError as problem:
        raise _unusable(problem) from None


def keep(folder: Folder, manifest: AnyManifest, name: str) -> tuple[Path, AnyManifest]:
    """Return the store's copy of an artifact folder outside the store, copied now if needed: programs run from the copy.

    Every file is hashed while it is copied, so the copy matches the manifest even if the folder changes meanwhile.
    Raises: C103 for a folder that changes meanwhile, C106 as `publish`.
    """
    key = hashlib.sha256(f"kept\0{manifest.digest}".encode()).hexdigest()
    kept = lookup(key, name, type(manifest))
    if kept is not None:
        return kept

    def fill(root: Path) -> AnyManifest:
        _copy_files(folder, manifest, root)
        return manifest

    return publish(key, name, type(manifest), fill)


def copy_artifact(folder: Folder, manifest: Sealed, target: Path) -> None:
    """Copy an artifact's manifest and the files that it lists to a new or empty folder.

    Raises: C107 if the folder is not empty or cannot be written; C103 for an artifact that changes meanwhile.
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
    """Turn an OSError inside into an error that names the user's folder.

    Raises: C107.
    """
    try:
        yield
    except OSError as problem:
        raise ArtifactFolderError(f"the artifact cannot be written to {folder}", here(), found=str(problem.strerror or problem),
                                  help="name a folder that can be written") from None
