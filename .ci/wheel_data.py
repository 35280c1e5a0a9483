"""Build hook: a wheel carries what would cost each process of a user time to find out, made from the sources as they are packed.

`_data/digests.txt` is the digest of the sources, a part of every key of the cache; `_data/pto_abi.json` the interface between Python and C
as cffi parses it. An editable install has neither: its files may change.
"""

from __future__ import annotations

import runpy
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WheelData(BuildHookInterface):  # type: ignore[type-arg]
    """Writes the files of `_data` that are made, not copied."""

    PLUGIN_NAME = "custom"
    _folder: str | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the files, and name them to the build of a wheel."""
        if version == "editable":
            return
        self._folder = tempfile.mkdtemp()
        for name, text in made_data(Path(self.root)).items():
            path = Path(self._folder, name)
            path.write_text(text, encoding="utf-8")
            build_data["force_include"][str(path)] = f"pto_wsp/_data/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove them again."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def made_data(root: Path) -> dict[str, str]:
    """Return the text of each file by its name in `_data`. The package is not imported: what it needs need not be there."""
    resources = runpy.run_path(str(root / "pto_wsp" / "resources.py"))
    abi = runpy.run_path(str(root / "pto_wsp" / "artifact" / "abi.py"))
    digests = "".join(f"{digest}\n" for digest in resources["hash_sources"]())
    return {resources["DIGESTS"]: digests, resources["PARSED_ABI"]: abi["parse_abi"](abi["abi_text"](root / "csrc"))}
