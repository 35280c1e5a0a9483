"""What `inspect` shows of a package: everything is read from its files, and the checksums are verified first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from pto_wsp.arch.instances import builtin_arch
from pto_wsp.artifact.manifest import PackageManifest
from pto_wsp.cli.package_files import PackageFiles
from pto_wsp.cli.summary import checks_line, kernel_table
from pto_wsp.errors import CommandError

_BAR = 32      # cells of a memory's bar
_LISTINGS = "ir/kernels"


def inspection(root: Path, kernel: str) -> Iterator[RenderableType]:
    """Yield the parts of what is shown; `kernel`: only this one's listing.

    Raises: C108 for a folder that is no artifact or has no such kernel, C103 for a damaged one.
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
    """How far up each kernel uses the memories of its core; what lies where stands in its listing."""
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
        known = [name.rpartition("/")[2].removesuffix(".wsp") for name in files.names(_LISTINGS)]
        raise CommandError(f"{files.manifest.name} has no listing of a kernel `{kernel}`", None,
                           expected=f"one of {', '.join(known)}" if known else None)
    return Text(text.rstrip())


def _file_of(kernel: str) -> str:
    return f"{_LISTINGS}/{kernel}.wsp"
