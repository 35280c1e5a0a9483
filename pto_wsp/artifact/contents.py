"""Packages as values: the files of an artifact, its kernels, its manifest, and what another package has otherwise.

A folder may come from an untrusted source, so everything is read from files whose checksums are verified first, and control
characters are escaped.

>>> package = Package("saved")
>>> print(package.files["kernels/aiv/rmsnorm.cpp"])
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from pto_wsp.artifact.folders import open_folder
from pto_wsp.calls import user_calls
from pto_wsp.doors import Displayed, DisplayedText, late_module
from pto_wsp.errors import CommandError, PackageNameError
from pto_wsp.source import Span, here
from pto_wsp.values import dataclass
from pto_wsp.wording import nearest, printable, shortened

if TYPE_CHECKING:
    from pto_wsp.artifact.manifest import CheckEntry, DeviceKernelEntry, Manifest, PackageManifest, ProgramManifest

_Read = TypeVar("_Read", bound="ProgramManifest")
LISTINGS = "ir/kernels"


def _manifests() -> Any:
    """Return the module of manifests. It loads pydantic, which `from pto_wsp import *` does without."""
    return late_module("pto_wsp.artifact.manifest")


# -- files -------------------------------------------------------------------------------------------------------------
class FileText(DisplayedText):
    """The text of a file of a package, which shows itself. `path`: its name in the package; `n_bytes`: its size."""

    path: str
    n_bytes: int

    def __new__(cls, path: str, data: bytes) -> FileText:
        """Return the text of a file; of one that is no text its size."""
        text = f"{len(data):,} bytes that are no text" if b"\0" in data else printable(data.decode("utf-8", "replace"))
        made = super().__new__(cls, text)
        made.path, made.n_bytes = path, len(data)
        return made


class PackageFiles(Mapping[str, FileText], Displayed):
    """The files of a package by their names, in order; each is read when it is asked for."""

    def __init__(self, root: Path, names: tuple[str, ...]) -> None:
        self.root = root
        self._names = names

    def __getitem__(self, name: str) -> FileText:
        """Return a file.

        Raises: C116, a KeyError too, for a name that the package does not have; C108 if the file has been removed since.
        """
        if name not in self._names:
            _refuse_name("file", name, self._names)
        try:
            with open_folder(self.root) as folder:
                return FileText(name, folder.read(name))
        except OSError as problem:
            raise CommandError(f"{self.root / name} cannot be read", None, found=str(problem.strerror)) from None

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def inside(self, folder: str) -> tuple[str, ...]:
        """Return the names of the files directly in a folder of the package."""
        return tuple(name for name in self._names if name.rpartition("/")[0] == folder)

    def __str__(self) -> str:
        return "\n".join(self._names)

    def __repr__(self) -> str:
        return f"PackageFiles({len(self)} files in {self.root.name})"


def _refuse_name(what: str, name: object, known: Sequence[str]) -> NoReturn:
    """Raise C116 with the known name that is nearest. `what`: a file or a kernel."""
    near = nearest(name, known) if isinstance(name, str) else None
    listed = f"one of {', '.join(known[:12])}{', …' * (len(known) > 12)}" if known else f"no name: this package has no {what}s"
    raise PackageNameError(f"the package has no {what} {shortened(repr(name), 100)}", here(), expected=listed,
                           help=near and f"did you mean {near!r}?")


def _printable_manifest(manifest: _Read) -> _Read:
    text = json.dumps(manifest.model_dump())
    return type(manifest).model_validate_json(json.dumps(_printable_parts(json.loads(text))))


def _printable_parts(data: object) -> object:
    match data:
        case str():
            return printable(data)
        case list():
            return [_printable_parts(item) for item in data]
        case dict():
            return {name: _printable_parts(value) for name, value in data.items()}
        case _:
            return data


# -- packages ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PackagedKernel(Displayed):
    """A kernel of a package for the device: its entry in the manifest, its C++, and its listing, "" for a body of the user's own.

    `span`: the user's def, where this process traced it.
    """

    arch: str
    entry: DeviceKernelEntry
    text: str
    listing: str
    span: Span | None = None

    def __str__(self) -> str:
        return self.listing or self.text

    def __repr__(self) -> str:
        return f"PackagedKernel({self.entry.name}, {self.entry.core_type}, from {self.entry.origin})"


class PackagedKernels(Mapping[str, PackagedKernel]):
    """The kernels of a package by their names, in the manifest's order; none in an artifact that runs here."""

    def __init__(self, kernels: Mapping[str, PackagedKernel]) -> None:
        self._kernels = kernels

    def __getitem__(self, name: str) -> PackagedKernel:
        """Return a kernel.

        Raises: C116, a KeyError too, for a name that no kernel of the package has.
        """
        return self._kernels[name] if name in self else _refuse_name("kernel", name, tuple(self._kernels))

    def __contains__(self, name: object) -> bool:
        return name in tuple(self._kernels)

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)

    def __repr__(self) -> str:
        return f"PackagedKernels({', '.join(self._kernels)})"


@user_calls()
class Package(Displayed):
    """An artifact in a folder, verified when it is opened: what `program.package` and `Package(folder)` return.

    `files`: by name; `kernels`: those of a package for a device, by name; `manifest`: what it says of itself.
    """

    def __init__(self, folder: str | Path, spans: Mapping[str, Span] = MappingProxyType({})) -> None:
        """Open a folder that compile() or save() wrote. `spans`: the defs of kernels that this process knows, by their names.

        Raises: C108 for a folder that is no artifact, C103 for a damaged one.
        """
        if not isinstance(folder, str | Path):
            raise CommandError("this is no folder of a package", here(), expected="a path", found=repr(folder)[:200])
        self.root = Path(folder)
        self.manifest: Manifest | PackageManifest = _printable_manifest(_manifests().read_target_manifest(self.root))
        self.files = PackageFiles(self.root, (*(name for name, _ in self.manifest.files), _manifests().MANIFEST))
        self._spans = spans

    @property
    def name(self) -> str:
        """The name of its workload."""
        return self.manifest.name

    @property
    def checks(self) -> tuple[CheckEntry, ...]:
        """The static checks that its manifest records."""
        return self.manifest.checks

    @property
    def kernels(self) -> Mapping[str, PackagedKernel]:
        """The kernels of a package for a device, by name; empty for an artifact that runs here."""
        manifest = self.manifest
        if not isinstance(manifest, _manifests().PackageManifest):
            return PackagedKernels({})
        return PackagedKernels({entry.name: PackagedKernel(manifest.arch, entry, self._file(entry.source),
                                                           self._file(f"{LISTINGS}/{entry.name}.wsp"), self._spans.get(entry.name))
                                for entry in manifest.kernels})

    def _file(self, name: str) -> str:
        return self.files.get(name, "")

    def diff(self, other: Package | str | Path) -> PackageDifference:
        """Return what another package has otherwise, file by file.

        Listings and dumps (`ir/`) are left out, because they describe how the other files were generated. So are the manifests' checksums.

        Raises: C108 for a folder that is no artifact, C103 for a damaged one.
        """
        return compare_packages(self, other if isinstance(other, Package) else Package(other))

    def __repr__(self) -> str:
        return f"Package({self.name} for {self.manifest.target} on {self.manifest.arch}: {len(self.files)} files)"


# -- comparison --------------------------------------------------------------------------------------------------------
_CHECKSUMS = frozenset({"digest", "files"})


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FileDifference:
    """A file that two packages do not have alike. `how`: only in the first, only in the second, differs; `lines`: a unified diff."""

    path: str
    how: str
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PackageDifference(Displayed):
    """The files that differ between two packages."""

    one: Path
    other: Path
    files: tuple[FileDifference, ...]

    def __bool__(self) -> bool:
        return bool(self.files)

    def lines(self, *, brief: bool = False) -> Iterator[str]:
        """Yield the differences as text; `brief`: the names of files alone."""
        for file in self.files:
            if not file.lines or brief:
                yield f"{file.how}: {file.path}"
            else:
                yield from file.lines

    def __str__(self) -> str:
        return "\n".join(self.lines()) or "the packages are the same"

    def __repr__(self) -> str:
        names = ", ".join(file.path for file in self.files[:4]) + ", …" * (len(self.files) > 4)
        return f"PackageDifference({names or 'none'})"


def compare_packages(one: Package, other: Package) -> PackageDifference:
    """Compare two artifacts file by file."""
    left, right = ({path: digest for path, digest in package.manifest.files if not path.startswith("ir/")} for package in (one, other))
    found: list[FileDifference] = []
    for path in sorted({*left, *right}):
        if path not in right or path not in left:
            found.append(FileDifference(path, f"only in {one.root if path in left else other.root}"))
        elif left[path] != right[path]:
            lines = _diff_lines(one.root / path, other.root / path, one.files[path], other.files[path])
            found.append(FileDifference(path, "differs", lines))
    before, after = (_described(package) for package in (one, other))
    if not found and before != after:
        name = _manifests().MANIFEST
        found.append(FileDifference(name, "differs", _diff_lines(one.root / name, other.root / name, before, after)))
    return PackageDifference(one.root, other.root, tuple(found))


def _described(package: Package) -> str:
    """Return the contents of a manifest without its checksums."""
    return json.dumps({name: value for name, value in package.manifest.model_dump().items() if name not in _CHECKSUMS}, indent=2,
                      sort_keys=True)


def _diff_lines(one: Path, other: Path, before: str, after: str) -> tuple[str, ...]:
    return tuple(difflib.unified_diff(before.splitlines(), after.splitlines(), str(one), str(other), lineterm=""))
