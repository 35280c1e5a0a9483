"""A class name stands for one idea: few names are defined twice, and each for a reason that is listed here."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "pto_wsp"

# What a user holds, and the same thing as a value of the IR.
FACADES = frozenset({"Channel", "Event", "Kernel", "Process", "Workload"})
# The same statement in kernels, in tile programs and in C.
STATEMENTS = frozenset({"For", "If"})
CLASS = re.compile(r"^ *class _*(\w+)[(:\[]", re.MULTILINE)


def definitions(folder: Path) -> dict[str, list[str]]:
    """Return the files that define each class, by its name without leading underscores."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(folder.rglob("*.py")):
        for name in CLASS.findall(path.read_text(encoding="utf-8")):
            found[name].append(path.relative_to(folder).as_posix())
    return found


def test_a_class_name_has_one_meaning() -> None:
    doubled = {name: files for name, files in definitions(PACKAGE).items() if len(files) > 1}
    assert doubled.keys() <= FACADES | STATEMENTS, f"rename the class that fewer readers meet, after its idea: {doubled}"


def test_the_walk_sees_nested_and_private_classes(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("class Part: ...\n")
    (tmp_path / "b.py").write_text("class _Part:\n    class Inner: ...\n")
    assert definitions(tmp_path) == {"Part": ["a.py", "b.py"], "Inner": ["b.py"]}
