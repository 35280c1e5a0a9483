"""What `diff` says about two packages: which files only one has, and the lines in which the others differ."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from pathlib import Path

from rich.text import Text

from pto_wsp.artifact.manifest import MANIFEST
from pto_wsp.cli.package_files import PackageFiles
from pto_wsp.values import dataclass

_LISTINGS = "ir/"
_CHECKSUMS = frozenset({"digest", "files"})
_STYLES = {"+": "green", "-": "red", "@": "cyan"}


@dataclass(frozen=True, slots=True)
class Difference:
    """Whether two packages differ, and the text that says in what."""

    differ: bool
    text: Text


def differences(one: Path, other: Path, brief: bool) -> Difference:
    """Compare two artifacts file by file; `brief`: names of files only.

    Listings and dumps (`ir/`) do not count: they say how the other files came about. Nor do the manifests' checksums.

    Raises: C108 for a folder that is no artifact, C103 for a damaged one.
    """
    mine, theirs = PackageFiles(one), PackageFiles(other)
    left, right = ({path: digest for path, digest in files.manifest.files if not path.startswith(_LISTINGS)} for files in (mine, theirs))
    lines: list[str] = []
    for path in sorted({*left, *right}):
        if path not in right or path not in left:
            lines.append(f"only in {one if path in left else other}: {path}")
        elif left[path] != right[path]:
            lines.extend([f"differs: {path}"] if brief else
                         _changed(one / path, other / path, mine.text(path) or "", theirs.text(path) or ""))
    before, after = _described(mine), _described(theirs)
    if not lines and before != after:
        lines = [f"differs: {MANIFEST}"] if brief else list(_changed(one / MANIFEST, other / MANIFEST, before, after))
    text = Text()
    for line in lines:
        text.append(line + "\n", style=_STYLES.get(line[:1]))
    return Difference(bool(lines), text if lines else Text("the packages are the same"))


def _described(files: PackageFiles) -> str:
    """Return what a manifest says beside checksums."""
    return json.dumps({name: value for name, value in files.manifest.model_dump().items() if name not in _CHECKSUMS}, indent=2,
                      sort_keys=True)


def _changed(one: Path, other: Path, before: str, after: str) -> Iterator[str]:
    yield from difflib.unified_diff(before.splitlines(), after.splitlines(), str(one), str(other), lineterm="")
