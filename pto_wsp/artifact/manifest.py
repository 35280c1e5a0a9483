"""Read and write `manifest.json`: the description of an artifact, with the checksum of every file in it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from pto_wsp.artifact.folders import MOST_BYTES, Folder, open_folder
from pto_wsp.errors import CacheCorruptError, CommandError
from pto_wsp.records import Record, first_problem

FORMAT_VERSION = 1
MANIFEST = "manifest.json"
_MOST_MANIFEST_BYTES = 1 << 26
_MOST_FILES = 1 << 16


class KernelEntry(Record):
    """A kernel in the library's table."""

    id: int
    name: str
    unit: Literal["vector", "cube"]
    entry: str
    scratch_bytes: int
    cost: str                     # cycles on the arch, as a formula in the parameters
    source: str                   # file:line of the user's def
    params: tuple[str, ...]


class TensorEntry(Record):
    """A tensor that a run binds."""

    slot: int
    name: str
    dtype: str
    shape: tuple[int, ...]
    access: Literal["in", "out", "inout", "scalars"]


class SymbolEntry(Record):
    """A symbol that a run binds."""

    slot: int
    name: str
    dtype: str
    default: int | None


class CheckEntry(Record):
    """A static check with its verdict."""

    check: str
    verdict: Literal["proved", "counterexample", "not proved", "lint"]
    detail: str


class Compiler(Record):
    """The compiler of the library."""

    version: str
    flags: tuple[str, ...]
    cpu: tuple[str, ...]


class Sealed(Record):
    """The fields common to all manifests. `digest`: the checksum of all other fields, file checksums included."""

    format_version: int = FORMAT_VERSION
    files: tuple[tuple[str, str], ...] = ()      # (path in the artifact, sha256), by path
    digest: str = ""

    def sealed(self, root: Path) -> Self:
        """Return the manifest with the checksums of the files under `root` and with the digest."""
        paths = sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file() and not p.is_symlink()
                       and p.name != MANIFEST)
        with_files = self.model_copy(update={"files": tuple((path, _sha256(root / path)) for path in paths)})
        return with_files.model_copy(update={"digest": with_files.computed_digest()})

    def computed_digest(self) -> str:
        """Return the correct value of `digest`."""
        return _digest_of(self.model_dump())

    def write(self, root: Path) -> None:
        """Write manifest.json into the artifact."""
        text = json.dumps(self.model_dump(), indent=2, sort_keys=True)
        (root / MANIFEST).write_text(text + "\n", encoding="utf-8")


class RuntimeManifest(Sealed):
    """The manifest of the runtime library."""

    abi_version: int
    library: str


class ProgramManifest(Sealed):
    """The fields of a program's manifest that all targets have."""

    target: str
    arch: str
    name: str
    tensors: tuple[TensorEntry, ...]
    symbols: tuple[SymbolEntry, ...]
    schedule: str
    recorded_directives: tuple[str, ...]
    checks: tuple[CheckEntry, ...]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name} for {self.target} on {self.arch}, digest {self.digest[:12]})"


class Manifest(ProgramManifest):
    """The manifest of a library for this machine."""

    abi_version: int
    library: str
    plan_digest: str
    rules: tuple[str, ...] = ()   # the schedule's rules for all tasks, on this arch
    kernels: tuple[KernelEntry, ...]
    compiler: Compiler


class DeviceKernelEntry(Record):
    """A kernel of a package. `on_chip`: bytes used in each memory of its core."""

    func_id: int
    name: str
    core_type: Literal["aiv", "aic"]
    source: str                                  # path in the package
    origin: str                                  # file:line of the user's def
    signature: tuple[str, ...]                   # of its tensors: IN, OUT, INOUT
    scalars: tuple[str, ...]
    on_chip: tuple[tuple[str, int], ...]


class PackageManifest(ProgramManifest):
    """The manifest of a package that the device runtime builds and runs."""

    runtime: str
    interfaces: tuple[tuple[str, str], ...]      # interfaces that the package was written for, with the tested versions
    orchestration: str
    signature: tuple[str, ...]                   # of the workload's tensors
    kernels: tuple[DeviceKernelEntry, ...]


AnyManifest = TypeVar("AnyManifest", bound=Sealed)


def read_manifest(root: Path | Folder, kind: type[AnyManifest]) -> AnyManifest:
    """Return an artifact's manifest after verifying it and every file that it lists.

    Files must be regular files with plain names below the folder, at most 1 GiB together.
    Raises: C103 naming the folder and the first mismatch; C106 for a file of the store that other users could have written.
    """
    if isinstance(root, Path):
        try:
            folder = open_folder(root)
        except OSError as problem:
            raise damaged(root, MANIFEST, str(problem.strerror)) from None
        with folder:
            return read_manifest(folder, kind)
    try:
        text = root.read(MANIFEST, _MOST_MANIFEST_BYTES)
        manifest, computed = kind.model_validate_json(text), _digest_of(json.loads(text))
    except OSError as problem:
        raise damaged(root.path, MANIFEST, str(problem.strerror)) from None
    except RecursionError:
        raise damaged(root.path, MANIFEST, "it is nested too deep") from None
    except ValueError as problem:
        where, expected, _ = first_problem(problem)
        raise damaged(root.path, MANIFEST, f"{where}: {expected}" if where else expected) from None
    if manifest.digest != computed:
        raise damaged(root.path, MANIFEST, "its digest is not that of its contents")
    flaw = _flaw(manifest)
    if flaw is not None:
        raise damaged(root.path, MANIFEST, flaw)
    _verify_files(root, manifest.files)
    return manifest


def read_known(root: Folder, digest: str) -> Mapping[str, Any]:
    """Return the fields of the manifest with this digest, as JSON's data, after verifying every file that it lists.

    They were checked when the manifest was written: a manifest with another content has another digest.
    Raises: C103, C106 as `read_manifest`.
    """
    try:
        fields: Mapping[str, Any] = json.loads(root.read(MANIFEST, _MOST_MANIFEST_BYTES))
        computed = _digest_of(fields)
    except OSError as problem:
        raise damaged(root.path, MANIFEST, str(problem.strerror)) from None
    except (ValueError, AttributeError, RecursionError):
        raise damaged(root.path, MANIFEST, "it is no JSON of ours") from None
    if computed != digest:
        raise damaged(root.path, MANIFEST, "it is that of another artifact")
    _verify_files(root, fields["files"])
    return fields


def _verify_files(root: Folder, files: Sequence[Sequence[str]]) -> None:
    """Raise C103 for the first file whose checksum is not the manifest's; `files`: path and SHA-256 of each."""
    left_bytes = MOST_BYTES
    for name, digest in files:
        try:
            found, size_bytes = root.checksum(name, left_bytes)
        except OSError as problem:
            raise damaged(root.path, name, str(problem.strerror)) from None
        if found != digest:
            raise damaged(root.path, name, "its checksum is not the manifest's")
        left_bytes -= size_bytes


def _flaw(manifest: Sealed) -> str | None:
    """Return why a manifest's list of files is impossible, None if it is valid."""
    names = [name for name, _ in manifest.files]
    if len(names) > _MOST_FILES or len(set(names)) < len(names) or MANIFEST in names:
        return f"it lists {len(names)} files, too many, or one twice"
    if not all(name.isprintable() for name in names):
        return "it lists a file with a name that does not print"
    library = manifest.library if isinstance(manifest, Manifest | RuntimeManifest) else names[0] if names else ""
    return None if library in names else f"its library {library!r:.60} is no file that it lists"


def read_target_manifest(root: Path) -> Manifest | PackageManifest:
    """Return the verified manifest of an artifact of any target.

    Raises: C108 for a folder that is no artifact, C103 as `read_manifest`.
    """
    try:
        with open_folder(root) as folder:
            _, target = read_head(folder)
            return read_manifest(folder, Manifest) if target == "cpu_sim" else read_manifest(folder, PackageManifest)
    except OSError as problem:
        raise CommandError(f"{root} is no artifact", None, expected=f"a folder with {MANIFEST}", found=str(problem.strerror)) from None
    except ValueError:
        raise damaged(root, MANIFEST, "it names no format and no target") from None


def read_head(folder: Folder) -> tuple[object, object]:
    """Return the format and the target of an unverified manifest.

    Raises: OSError if it cannot be read, ValueError if it has neither.
    """
    try:
        head = json.loads(folder.read(MANIFEST, _MOST_MANIFEST_BYTES))
        return head["format_version"], head["target"]
    except (KeyError, TypeError, RecursionError) as problem:
        raise ValueError(str(problem)) from None


def _digest_of(fields: Mapping[str, object]) -> str:
    """Return the digest of a manifest's fields, as JSON's data; one named `digest` does not count."""
    body = {name: value for name, value in fields.items() if name != "digest"}
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def damaged(root: Path, name: str, why: str) -> CacheCorruptError:
    """Return the error for a file of an artifact that differs from its manifest."""
    return CacheCorruptError(f"the artifact in {root} is damaged", expected="files as the manifest lists them",
                             found=f"{name}: {why}", help=f"remove {root}; it is built again")
