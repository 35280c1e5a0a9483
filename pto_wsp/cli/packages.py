"""Show and compare packages.

A folder may come from an untrusted source, so everything is read from files whose checksums are verified first, and control
characters are escaped.
"""

from __future__ import annotations

from pathlib import Path

from pto_wsp.arch.instances import builtin_arch
from pto_wsp.artifact.contents import LISTINGS, Package
from pto_wsp.artifact.manifest import Manifest, PackageManifest
from pto_wsp.cli.programs import checks_line, kernel_table, refused
from pto_wsp.values import dataclass
from pto_wsp.view.card import Card, Part, Preformatted, TablePart
from pto_wsp.wording import nearest

# -- inspection --------------------------------------------------------------------------------------------------------
_BAR = 32      # characters in a memory's bar


def inspection(root: Path, kernel: str) -> Card:
    """Return the card of a package; `kernel` restricts it to the listing of that kernel.

    Raises: C108 for a folder that is not an artifact or has no such kernel, C103 for a damaged one.
    """
    package = Package(root)
    manifest = package.manifest
    if kernel:
        return Card(title=manifest.name, subtitle=f"Kernel {kernel}", parts=(Preformatted(text=_listing(package, kernel)),))
    parts: list[Part] = [_tensors(manifest), kernel_table(manifest)]
    if isinstance(manifest, PackageManifest) and any(entry.on_chip for entry in manifest.kernels):
        parts.append(_memory(manifest))
    if "ir/plan.wsp" in package.files:
        parts.append(Preformatted(title="Tasks", text=package.files["ir/plan.wsp"].rstrip()))
    if isinstance(manifest, PackageManifest):
        parts += [Preformatted(title=f"Kernel {entry.func_id}, {entry.name}", text=_listing(package, entry.name))
                  for entry in manifest.kernels if _file_of(entry.name) in package.files]
    parts.append(TablePart(title=f"Checks: {checks_line(manifest.checks)}", head=("verdict", "check", "detail"),
                           rows=tuple((check.verdict, check.check, check.detail) for check in manifest.checks)))
    written = f"runtime {manifest.runtime}; written for {', '.join(f'{name} {version}' for name, version in manifest.interfaces)}" \
        if isinstance(manifest, PackageManifest) else ""
    return Card(title=manifest.name, subtitle=f"{manifest.target}, {manifest.arch}, digest {manifest.digest[:12]}", sentence=written,
                parts=tuple(parts))


def _tensors(manifest: Manifest | PackageManifest) -> TablePart:
    directions = manifest.signature if isinstance(manifest, PackageManifest) else ()
    return TablePart(title="Tensors", head=("slot", "name", "dtype", "shape", "direction"), rows=tuple(
        (str(tensor.slot), tensor.name, tensor.dtype, str(list(tensor.shape)),
         directions[number] if number < len(directions) else tensor.access) for number, tensor in enumerate(manifest.tensors)))


def _memory(manifest: PackageManifest) -> TablePart:
    """Return a table of how much of its core's memories each kernel uses; the listings contain the addresses."""
    arch, rows = builtin_arch(manifest.arch), []
    for kernel in manifest.kernels:
        for name, used in kernel.on_chip:
            usable = arch.memory(name).usable_bytes or used
            cells = min(max(-(-used * _BAR // max(usable, 1)), 0), _BAR)
            rows.append((kernel.name, name, "#" * cells + "." * (_BAR - cells), str(used), str(usable)))
    return TablePart(title="Memory", head=("kernel", "memory", "used", "bytes", "of"), right=(3, 4), rows=tuple(rows))


def _listing(package: Package, kernel: str) -> str:
    if _file_of(kernel) not in package.files:
        kernels = [name.rpartition("/")[2].removesuffix(".wsp") for name in package.files.inside(LISTINGS)]
        near = nearest(kernel, kernels)
        raise refused(f"{package.name} has no listing of a kernel `{kernel}`",
                      expected=f"one of {', '.join(kernels)}" if kernels else None, help=f"did you mean {near}?" if near else None)
    return package.files[_file_of(kernel)].rstrip()


def _file_of(kernel: str) -> str:
    return f"{LISTINGS}/{kernel}.wsp"


# -- comparison --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ShownDifference:
    """Whether two packages differ, and the card that lists the differences."""

    differ: bool
    card: Card


def differences(one: Path, other: Path, brief: bool) -> ShownDifference:
    """Compare two artifacts file by file; `brief` lists only file names.

    Raises: C108 for a folder that is not an artifact, C103 for a damaged one.
    """
    mine, theirs = Package(one), Package(other)
    lines = tuple(mine.diff(theirs).lines(brief=brief))
    card = Card(title=f"{mine.name} and {theirs.name}", subtitle="Difference", sentence="" if lines else "the packages are the same",
                parts=(Preformatted(text="\n".join(lines)),) if lines else ())
    return ShownDifference(bool(lines), card)
