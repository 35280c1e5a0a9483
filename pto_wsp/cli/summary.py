"""What `compile` says when it is done."""

from __future__ import annotations

from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pto_wsp.api.programs.program import Program
from pto_wsp.artifact.manifest import CheckEntry, Manifest, PackageManifest
from pto_wsp.errors import InternalError


def summary(program: Program, root: Path | None) -> RenderableType:
    """Return a few lines about a program: what was made, where, of which kernels, and how its checks went."""
    manifest = program.manifest
    if not isinstance(manifest, Manifest | PackageManifest):
        return Text("target interp has nothing to write: it runs in Python")
    if root is None:
        raise InternalError("an artifact without a folder", manifest.name)
    head = Text(f"{manifest.name} for {manifest.target}, {manifest.arch}")
    lines: list[RenderableType] = [head, kernel_table(manifest), checks_line(manifest.checks)]
    if manifest.recorded_directives:
        lines.append(Text(f"recorded, not enforced: {', '.join(manifest.recorded_directives)}"))
    return Group(*lines, Text(str(root)))


def kernel_table(manifest: Manifest | PackageManifest) -> Table:
    """Return the kernels, one a line."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    if isinstance(manifest, PackageManifest):
        for head in ("func", "kernel", "core", "tensors", "scalars", "on chip", "from"):
            table.add_column(head)
        for kernel in manifest.kernels:
            used = ", ".join(f"{name} {size}" for name, size in kernel.on_chip)
            table.add_row(str(kernel.func_id), kernel.name, kernel.core_type, " ".join(kernel.signature) or "-",
                          " ".join(kernel.scalars) or "-", used or "-", kernel.origin)
        return table
    for head in ("id", "kernel", "parameters", "scratch", "from"):
        table.add_column(head)
    for entry in manifest.kernels:
        table.add_row(str(entry.id), entry.name, ", ".join(entry.params), str(entry.scratch_bytes), entry.source)
    return table


def checks_line(checks: tuple[CheckEntry, ...]) -> Text:
    """Return how many checks had which verdict."""
    counts: dict[str, int] = {}
    for check in checks:
        counts[check.verdict] = counts.get(check.verdict, 0) + 1
    return Text("checks: " + (", ".join(f"{count} {verdict}" for verdict, count in counts.items()) or "none"))
