"""Check that a project and what it needs at run time are under permissive licences: `python .ci/check_licences.py pto-wsp`."""

from __future__ import annotations

import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution

PERMISSIVE = re.compile(
    r"0BSD|BSD(?:-[23]-Clause)?(?: License)?|MIT(?:-0| License)?|Zlib|zlib/libpng License|CC0-1\.0"
    r"|Apache[- ](?:Software )?(?:License )?(?:2\.0|License)|ISC(?: License \(ISCL\))?"
    r"|PSF-2\.0|Python-2\.0|Python Software Foundation License|(?:The )?Unlicense(?: \(Unlicense\))?"
)


def licences(found: Distribution) -> tuple[str, ...]:
    """Return the licences that a distribution states, in the most exact form that it has."""
    meta = found.metadata
    expression = meta.get("License-Expression")
    if expression:
        return tuple(part.strip("() ") for part in re.split(r"\s+(?:AND|OR)\s+", expression))
    classifiers = meta.get_all("Classifier") or []
    stated = tuple(line.split(" :: ")[-1] for line in classifiers if line.startswith("License :: OSI Approved ::"))
    return stated or (meta.get("License") or "none stated",)


def needed(name: str, seen: dict[str, Distribution]) -> dict[str, Distribution]:
    """Collect a project and what it needs, without extras and without what this platform does not install."""
    key = re.sub(r"[-_.]+", "-", name).lower()
    if key in seen:
        return seen
    try:
        seen[key] = distribution(name)
    except PackageNotFoundError:
        return seen
    for requirement in seen[key].requires or []:
        match = re.match(r"[\w.-]+", requirement)
        if match and "extra ==" not in requirement:
            needed(match[0], seen)
    return seen


def main() -> int:
    """Print one line a distribution; return 1 if one is not permissive or the project is not installed."""
    found = needed(sys.argv[1], {})
    bad = 0 if found else 1
    for name, one in sorted(found.items()):
        stated = licences(one)
        good = all(PERMISSIVE.fullmatch(licence) for licence in stated)
        bad += not good
        print(f"{'ok ' if good else 'BAD'} {name} {one.version}: {', '.join(stated)[:200]}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
