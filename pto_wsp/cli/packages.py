"""Show and compare packages.

A folder may come from an untrusted source, so everything is read from files whose checksums are verified first, and control
characters are escaped.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from pto_wsp.arch.instances import builtin_arch
from pto_wsp.artifact.folders import open_folder
from pto_wsp.artifact.manifest import MANIFEST, Manifest, PackageManifest, ProgramManifest, read_target_manifest
from pto_wsp.cli.programs import checks_line, kernel_table
from pto_wsp.errors import CommandError
from pto_wsp.values import dataclass

_Read = TypeVar("_Read", bound=ProgramManifest)


# -- files -------------------------------------------------------------------------------------------------------------
class PackageFiles:
    """A folder, its verified manifest, and the text of the files that the manifest lists."""

    def __init__(self, root: Path) -> None:
        """Read and verify the manifest.

        Raises: C108 for a folder that is not an artifact, C103 for a damaged one.
        """
        self.root = root
        self.manifest: Manifest | PackageManifest = _printable_manifest(read_target_manifest(root))
        self._names = frozenset(name for name, _ in self.manifest.files)

    def names(self, folder: str) -> tuple[str, ...]:
        """Return the names of the files directly in a folder of the package, sorted."""
        return tuple(sorted(name for name in self._names if name.rpartition("/")[0] == folder))

    def text(self, name: str) -> str | None:
        """Return the text of a file, or None if the manifest does not list it.

        Raises: C108 if the file has been removed since.
        """
        if name not in self._names and name != MANIFEST:
            return None
        try:
            with open_folder(self.root) as folder:
                return printable(folder.read(name).decode("utf-8", "replace"))
        except OSError as problem:
            raise CommandError(f"{self.root / name} cannot be read", None, found=str(problem.strerror)) from None


def printable(text: str) -> str:
    """Return the text with every character escaped that could control a terminal, except newlines and tabs."""
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\x{ord(c):02x}" for c in text)


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


# -- inspection --------------------------------------------------------------------------------------------------------
_BAR = 32      # characters in a memory's bar
_LISTINGS = "ir/kernels"


def inspection(root: Path, kernel: str) -> Iterator[RenderableType]:
    """Yield the parts of the output; `kernel` restricts it to the listing of that kernel.

    Raises: C108 for a folder that is not an artifact or has no such kernel, C103 for a damaged one.
    """
    files = PackageFiles(root)
    manifest = files.manifest
    if kernel:
        yield _listing(files, kernel)
        return
    yield Text(f"{manifest.name}: {manifest.target}, {manifest.arch}, digest {manifest.digest[:12]}", style="bold")
    if isinstance(manifest, PackageManifest):
        yield Text(f"runtime {manifest.runtime}; written for {', '.join(f'{name} {version}' for name, version in manifest.interfaces)}")
    yield _head("Tensors")
    yield _tensors(manifest)
    yield _head("Kernels")
    yield kernel_table(manifest)
    if isinstance(manifest, PackageManifest) and any(entry.on_chip for entry in manifest.kernels):
        yield _head("Memory")
        yield _memory(manifest)
    plan = files.text("ir/plan.wsp")
    if plan is not None:
        yield _head("Tasks")
        yield Text(plan.rstrip())
    if isinstance(manifest, PackageManifest):
        for entry in manifest.kernels:
            if _file_of(entry.name) in files.names(_LISTINGS):
                yield _head(f"Kernel {entry.func_id}, {entry.name}")
                yield _listing(files, entry.name)
    yield _head("Checks")
    yield checks_line(manifest.checks)
    table = Table(box=None, pad_edge=False, show_header=False)
    for check in manifest.checks:
        table.add_row(check.verdict, check.check, check.detail)
    yield table


def _head(text: str) -> Text:
    return Text(f"\n{text}", style="bold")


def _tensors(manifest: object) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("slot", "name", "dtype", "shape", "direction"):
        table.add_column(head)
    directions = manifest.signature if isinstance(manifest, PackageManifest) else ()
    for number, tensor in enumerate(getattr(manifest, "tensors", ())):
        table.add_row(str(tensor.slot), tensor.name, tensor.dtype, str(list(tensor.shape)),
                      directions[number] if number < len(directions) else tensor.access)
    return table


def _memory(manifest: PackageManifest) -> Table:
    """Return a table of how much of its core's memories each kernel uses; the listings contain the addresses."""
    table, arch = Table(box=None, pad_edge=False, header_style="bold"), builtin_arch(manifest.arch)
    for head in ("kernel", "memory", "used", "bytes", "of"):
        table.add_column(head, justify="right" if head in ("bytes", "of") else "left")
    for kernel in manifest.kernels:
        for name, used in kernel.on_chip:
            usable = arch.memory(name).usable_bytes or used
            cells = min(max(-(-used * _BAR // max(usable, 1)), 0), _BAR)
            table.add_row(kernel.name, name, "#" * cells + "." * (_BAR - cells), str(used), str(usable))
    return table


def _listing(files: PackageFiles, kernel: str) -> Text:
    text = files.text(_file_of(kernel)) if _file_of(kernel) in files.names(_LISTINGS) else None
    if text is None:
        kernels = [name.rpartition("/")[2].removesuffix(".wsp") for name in files.names(_LISTINGS)]
        raise CommandError(f"{files.manifest.name} has no listing of a kernel `{kernel}`", None,
                           expected=f"one of {', '.join(kernels)}" if kernels else None)
    return Text(text.rstrip())


def _file_of(kernel: str) -> str:
    return f"{_LISTINGS}/{kernel}.wsp"


# -- comparison --------------------------------------------------------------------------------------------------------
_COMPARED_LISTINGS = "ir/"
_CHECKSUMS = frozenset({"digest", "files"})
_STYLES = {"+": "green", "-": "red", "@": "cyan"}


@dataclass(frozen=True, slots=True)
class PackageDifference:
    """Whether two packages differ, and a text that lists the differences."""

    differ: bool
    text: Text


def differences(one: Path, other: Path, brief: bool) -> PackageDifference:
    """Compare two artifacts file by file; `brief` lists only file names.

    Listings and dumps (`ir/`) are ignored, because they describe how the other files were generated. So are the manifests' checksums.

    Raises: C108 for a folder that is not an artifact, C103 for a damaged one.
    """
    mine, theirs = PackageFiles(one), PackageFiles(other)
    left, right = ({path: digest for path, digest in files.manifest.files if not path.startswith(_COMPARED_LISTINGS)}
                   for files in (mine, theirs))
    lines: list[str] = []
    for path in sorted({*left, *right}):
        if path not in right or path not in left:
            lines.append(f"only in {one if path in left else other}: {path}")
        elif left[path] != right[path]:
            lines.extend([f"differs: {path}"] if brief else
                         _diff_lines(one / path, other / path, mine.text(path) or "", theirs.text(path) or ""))
    before, after = _describe_files(mine), _describe_files(theirs)
    if not lines and before != after:
        lines = [f"differs: {MANIFEST}"] if brief else list(_diff_lines(one / MANIFEST, other / MANIFEST, before, after))
    text = Text()
    for line in lines:
        text.append(line + "\n", style=_STYLES.get(line[:1]))
    return PackageDifference(bool(lines), text if lines else Text("the packages are the same"))


def _describe_files(files: PackageFiles) -> str:
    """Return the contents of a manifest without its checksums."""
    return json.dumps({name: value for name, value in files.manifest.model_dump().items() if name not in _CHECKSUMS}, indent=2,
                      sort_keys=True)


def _diff_lines(one: Path, other: Path, before: str, after: str) -> Iterator[str]:
    yield from difflib.unified_diff(before.splitlines(), after.splitlines(), str(one), str(other), lineterm="")
