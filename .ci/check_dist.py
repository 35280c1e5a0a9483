"""Check what an sdist and a wheel hold: `python3 .ci/check_dist.py pto_wsp-0.1.0.tar.gz pto_wsp-0.1.0-py3-none-any.whl`."""

from __future__ import annotations

import runpy
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = frozenset({"__pycache__", ".DS_Store"})
MADE = frozenset({"pto_wsp/_data/digests.txt", "pto_wsp/_data/pto_abi.json"})      # by .ci/wheel_data.py
COMPILED = frozenset({".a", ".dylib", ".o", ".pyc", ".so"})


def files_under(folder: str) -> set[str]:
    """Return the files of a top-level folder of the checkout, as paths in it."""
    paths = (path for path in (ROOT / folder).rglob("*") if path.is_file() and path.suffix not in COMPILED)
    return {path.relative_to(ROOT).as_posix() for path in paths if not LEFT_OUT & set(path.parts)}


def missing_from_wheel(names: set[str]) -> set[str]:
    """Return what a wheel with these members lacks."""
    data = {f"pto_wsp/_data/{name}" for folder in ("csrc", "templates") for name in files_under(folder)} | MADE
    wanted = files_under("pto_wsp") | data | {"pto_wsp/py.typed"}
    licence = set() if any(name.endswith(".dist-info/licenses/LICENSE") for name in names) else {"LICENSE"}
    return (wanted - names) | licence


def missing_from_sdist(names: set[str]) -> set[str]:
    """Return what an sdist with these members lacks; members start with the name and version."""
    held = {name.split("/", 1)[1] for name in names if "/" in name}
    folders = ("pto_wsp", "csrc", "templates", "tests", "examples", "docs", ".ci")
    files = {"pyproject.toml", "LICENSE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md"}
    return files.union(*map(files_under, folders)) - held


def wrong_digests(wheel: str) -> Iterator[str]:
    """Say whether the digests that a wheel carries are not those of the files in it, and of this checkout."""
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
        package = Path(folder, "pto_wsp")
        resources = runpy.run_path(str(package / "resources.py"))
        carried = tuple((package / "_data" / resources["DIGESTS"]).read_text(encoding="ascii").split())
        if carried != resources["hash_sources"](package):
            yield "wheel carries digests of other files than it holds"
        if carried != resources["hash_sources"](ROOT / "pto_wsp"):
            yield "wheel was built of other sources than these"


def main() -> int:
    """Check both files; return 1 if one lacks something, holds something compiled or foreign, or carries wrong digests."""
    sdist, wheel = sys.argv[1:]
    with tarfile.open(sdist) as archive:
        in_sdist = {member.name for member in archive.getmembers() if member.isfile()}
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = set(archive.namelist())
    faults = [f"sdist lacks {name}" for name in sorted(missing_from_sdist(in_sdist))]
    faults += [f"wheel lacks {name}" for name in sorted(missing_from_wheel(in_wheel))]
    faults += [f"compiled file {name}" for name in sorted(in_sdist | in_wheel) if Path(name).suffix in COMPILED]
    faults += [f"wheel holds {name}" for name in sorted(in_wheel)
               if not name.startswith("pto_wsp/") and ".dist-info/" not in name]
    faults += wrong_digests(wheel) if not faults else ()
    print("\n".join(faults) or f"sdist: {len(in_sdist)} files, wheel: {len(in_wheel)} files, complete")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
