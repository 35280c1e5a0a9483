"""What the artifact store holds: list its artifacts, verify them, remove some. All of it can be built again.

>>> [(one.kind, one.name) for one in stored()]
[('runtime', 'pto_runtime-2df9c0b3a0e1'), ('cpu_sim', 'layer-93ab1fc0d2aa')]
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from pto_wsp.artifact.folders import Folder, open_private
from pto_wsp.artifact.manifest import MANIFEST, Manifest, PackageManifest, RuntimeManifest, Sealed, read_head
from pto_wsp.artifact.store import cache_root, locked, read_below, writing
from pto_wsp.errors import CacheCorruptError, CacheFolderError
from pto_wsp.values import dataclass

_ARTIFACTS, _KEYS, _LOCKS = "artifacts", "keys", "locks"
UNFINISHED = "unfinished"      # the kind of what a build that was ended left


@dataclass(frozen=True, slots=True)
class StoredArtifact:
    """A folder of the store. `kind`: the target, "runtime", or "unfinished"; `built_at`: seconds since the epoch."""

    name: str
    kind: str
    size_bytes: int
    built_at: float


def stored() -> tuple[StoredArtifact, ...]:
    """Return the artifacts of the store, largest first; none if there is no store yet. Nothing is verified.

    Raises: C106 for a store that others could have written to, or that cannot be read.
    """
    try:
        with open_private(cache_root()) as store, store.folder(_ARTIFACTS) as artifacts:
            names = sorted(os.listdir(artifacts.path))
            found = [one for name in names if (one := _one(artifacts, name)) is not None]
    except FileNotFoundError:
        return ()
    except OSError as problem:
        raise CacheFolderError(f"the artifact cache in {cache_root()} cannot be read", found=str(problem.strerror or problem)) from None
    return tuple(sorted(found, key=lambda one: (-one.size_bytes, one.name)))


def _one(artifacts: Folder, name: str) -> StoredArtifact | None:
    path = artifacts.path / name
    try:
        if path.is_symlink() or not path.is_dir():
            return None
        return StoredArtifact(name, _kind(artifacts, name), _size_bytes(path), path.stat().st_mtime)
    except OSError:      # removed meanwhile
        return None


def _kind(artifacts: Folder, name: str) -> str:
    if name.startswith(".") or name.endswith("-failed"):
        return UNFINISHED
    try:
        with artifacts.folder(name) as folder:
            target = read_head(folder)[1]
            return target if isinstance(target, str) and target.isidentifier() else "unknown"
    except (OSError, CacheFolderError):
        return "unknown"
    except ValueError:      # a manifest without a target
        return "runtime"


def _size_bytes(path: Path) -> int:
    total = 0
    for parent, _, names in os.walk(path):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_size
    return total


def faults(artifacts: Sequence[StoredArtifact]) -> Iterator[tuple[StoredArtifact, str]]:
    """Yield each artifact of which a file is not as its manifest says, with the reason."""
    kinds: dict[str, type[Sealed]] = {"runtime": RuntimeManifest, "cpu_sim": Manifest}
    with open_private(cache_root()) as store, store.folder(_ARTIFACTS) as folder:
        for one in artifacts:
            if one.kind == UNFINISHED:
                continue
            try:
                read_below(folder, one.name, kinds.get(one.kind, PackageManifest))
            except CacheCorruptError as problem:
                yield one, problem.found or problem.message
            except CacheFolderError as problem:
                yield one, problem.found or problem.message
            except OSError as problem:
                yield one, f"{MANIFEST}: {problem.strerror}"


def remove(artifacts: Sequence[StoredArtifact]) -> None:
    """Remove artifacts, and the keys that name none any more. A program that has one open keeps running.

    Raises: C106 if the store cannot be written.
    """
    with writing(), open_private(cache_root()) as store, store.folder(_ARTIFACTS) as folder, store.folder(_LOCKS, create=True) as locks:
        for one in artifacts:
            with locked(locks, one.name.lstrip("."), f"the removal of {one.name}"):
                aside = Path(tempfile.mkdtemp(prefix=".building-", dir=folder.path))
                with suppress(FileNotFoundError):      # another process was faster
                    (folder.path / one.name).rename(aside / "removed")
                shutil.rmtree(aside, ignore_errors=True)
        left = {name.rpartition("-")[2] for name in os.listdir(folder.path)}
        with suppress(FileNotFoundError), store.folder(_KEYS) as keys:
            for key in os.listdir(keys.path):
                with suppress(OSError, ValueError):
                    if keys.read(key, 1 << 10).split()[1:2] and not _is_left(keys.read(key, 1 << 10), left):
                        (keys.path / key).unlink()


def _is_left(key_file: bytes, left: set[str]) -> bool:
    return key_file.split()[0].decode("ascii")[:12] in left
