"""What `inspect` shows of a package: everything is read from its files, and the checksums are verified first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from pto_wsp.arch.instances import builtin_arch
from pto_wsp.artifact.manifest import PackageManifest, read_target_manifest
from pto_wsp.cli.summary import checks_line, kernel_table
from pto_wsp.errors import CommandError

_BAR = 32      # cells of a memory's bar


def inspection(root: Path, kernel: str) -> Iterator[RenderableType]:
    """Yield the parts of what is shown; `kernel`: only this one's listing.

    Raises: C108 for a folder that is no artifact or has no such kernel, C103 for a damaged one.
    """
    manifest = read_target_manifest(root)
    if kernel:
        yield _listing(root, manifest.name, kernel)
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
    plan = root / "ir" / "plan.wsp"
    if plan.is_file():
        yield _head("Tasks")
        yield Text(plan.read_text(encoding="utf-8").rstrip())
    if isinstance(manifest, PackageManifest):
        for entry in manifest.kernels:
            if (root / "ir" / "kernels" / f"{entry.name}.wsp").is_file():
                yield _head(f"Kernel {entry.func_id}, {entry.name}")
                yield _listing(root, manifest.name, entry.name)
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
            cells = -(-used * _BAR // usable)
            table.add_row(kernel.name, name, "#" * cells + "." * (_BAR - cells), str(used), str(usable))
    return table


def _listing(root: Path, name: str, kernel: str) -> Text:
    path = root / "ir" / "kernels" / f"{kernel}.wsp"
    if not path.is_file():
        known = sorted(file.stem for file in (root / "ir" / "kernels").glob("*.wsp"))
        raise CommandError(f"{name} has no listing of a kernel `{kernel}`", None, expected=f"one of {', '.join(known)}" if known else None)
    return Text(path.read_text(encoding="utf-8").rstrip())
