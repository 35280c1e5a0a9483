"""The manifest and the files of a folder that anybody may have written, as text that is safe to show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

from pto_wsp.artifact.folders import open_folder
from pto_wsp.artifact.manifest import MANIFEST, Manifest, PackageManifest, ProgramManifest, read_target_manifest
from pto_wsp.errors import CommandError

_Read = TypeVar("_Read", bound=ProgramManifest)


class PackageFiles:
    """A folder, its verified manifest, and the text of the files that the manifest lists."""

    def __init__(self, root: Path) -> None:
        """Raise C108 for a folder that is no artifact, C103 for a damaged one."""
        self.root = root
        self.manifest: Manifest | PackageManifest = _printable_manifest(read_target_manifest(root))
        self._names = frozenset(name for name, _ in self.manifest.files)

    def names(self, folder: str) -> tuple[str, ...]:
        """Return the files directly in a folder of the package, sorted."""
        return tuple(sorted(name for name in self._names if name.rpartition("/")[0] == folder))

    def text(self, name: str) -> str | None:
        """Return what a file says, None for a file that the manifest does not list.

        Raises: C108 when the file has gone meanwhile.
        """
        if name not in self._names and name != MANIFEST:
            return None
        try:
            with open_folder(self.root) as folder:
                return printable(folder.read(name).decode("utf-8", "replace"))
        except OSError as problem:
            raise CommandError(f"{self.root / name} cannot be read", None, found=str(problem.strerror)) from None


def printable(text: str) -> str:
    """Return text in which nothing but ends of lines and tabs steers a terminal."""
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
