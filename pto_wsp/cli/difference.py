"""What `diff` says about two packages: which files only one has, and the lines in which the others differ."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path

from rich.text import Text

from pto_wsp.artifact.manifest import MANIFEST, read_target_manifest
from pto_wsp.values import dataclass

_STYLES = {"+": "green", "-": "red", "@": "cyan"}


@dataclass(frozen=True, slots=True)
class Difference:
    """Whether two packages differ, and the text that says in what."""

    differ: bool
    text: Text


def differences(one: Path, other: Path, brief: bool) -> Difference:
    """Compare two artifacts file by file; `brief`: names of files only. The manifests' checksums follow from the files.

    Raises: C108 for a folder that is no artifact, C103 for a damaged one.
    """
    left, right = (dict(read_target_manifest(root).files) for root in (one, other))
    lines: list[str] = []
    for path in sorted({*left, *right}):
        if path not in right or path not in left:
            lines.append(f"only in {one if path in left else other}: {path}")
        elif left[path] != right[path]:
            lines.extend([f"differs: {path}"] if brief else _changed(one / path, other / path))
    if not lines and _described(one) != _described(other):
        lines = [f"differs: {MANIFEST}"] if brief else list(_changed(one / MANIFEST, other / MANIFEST))
    text = Text()
    for line in lines:
        text.append(line + "\n", style=_STYLES.get(line[:1]))
    return Difference(bool(lines), text if lines else Text("the packages are the same"))


def _described(root: Path) -> bytes:
    return (root / MANIFEST).read_bytes()


def _changed(one: Path, other: Path) -> Iterator[str]:
    before, after = (path.read_bytes().decode("utf-8", "replace").splitlines() for path in (one, other))
    yield from difflib.unified_diff(before, after, str(one), str(other), lineterm="")
