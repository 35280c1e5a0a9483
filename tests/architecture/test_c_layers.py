"""Includes and calls of csrc/src go down the tables below and in no circle; no header is called internal.

A unit is a header and the C file of the same name. It uses another unit by an include, or by a function that the other unit's C file
defines, so a call through a header of somebody else, or of `csrc/include`, counts as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "csrc" / "src"

# Top uses downwards only; the members of one row are independent of each other.
FOLDERS = (
    ("run",),
    ("sanitizer", "simulator"),
    ("engine",),
    ("record",),
    ("collections",),
)
SIMULATOR = (
    ("sim",),
    ("sim_step",),
    ("sim_release", "sim_service", "sim_calendar"),
    ("sim_executors",),
    ("sim_pools",),
    ("sim_front", "sim_ready", "sim_memory"),
    ("sim_nodes", "sim_trace", "sim_options", "sim_routes"),
    ("sim_clock",),
    ("sim_heap",),
)

INCLUDE = re.compile(r'^#include "(.+)"', re.MULTILINE)
DEFINITION = re.compile(r"^(?!static\b|typedef\b|extern\b)[a-z]\w*[\w \*]*?\b(pto_\w+)(?:\([^;{]*\)\n\{| = )", re.MULTILINE)
DECLARATION = re.compile(r"^(?!static\b|typedef\b)[a-z]\w*[\w \*]*?\b(pto_\w+)\([^;{]*\);", re.MULTILINE)
NOT_CODE = re.compile(r'(?P<include>^#include "[^"]+")|/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"', re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Use:
    """Unit `user` uses unit `used` by `name`: an included file or a function."""

    user: str
    used: str
    name: str

    def __str__(self) -> str:
        return f"{self.user} uses {self.name} of {self.used}"


def unit_of(path: Path, root: Path) -> str:
    """Return the name of the unit that a file belongs to: its path without the suffix."""
    return path.relative_to(root).with_suffix("").as_posix()


def code_of(path: Path) -> str:
    """Return the text of a file without comments and strings; includes stay."""
    return NOT_CODE.sub(lambda match: match["include"] or "", path.read_text(encoding="utf-8"))


def uses(root: Path) -> list[Use]:
    """Return what each unit below a folder uses of the others, by include and by name."""
    files = sorted(path for path in root.rglob("*") if path.suffix in (".c", ".h"))
    code = {path: code_of(path) for path in files}
    home = {name: unit_of(path, root) for path in files if path.suffix == ".c" for name in DEFINITION.findall(code[path])}
    found: list[Use] = []
    for path in files:
        user = unit_of(path, root)
        for name in INCLUDE.findall(code[path]):
            target = (path.parent / name).resolve()
            if target in code:
                found.append(Use(user, unit_of(target, root), name))
        named = set(re.findall(r"\bpto_\w+", code[path])) & set(home)
        declared = set(DECLARATION.findall(code[path])) if path.suffix == ".h" else set()
        found.extend(Use(user, home[name], name) for name in sorted(named - declared))
    return [use for use in found if use.user != use.used]


def circle(edges: Iterable[tuple[str, str]]) -> list[str]:
    """Return the members of some circle, in order; [] without one."""
    after: dict[str, set[str]] = {}
    for tail, head in edges:
        after.setdefault(tail, set()).add(head)
    done: set[str] = set()

    def search(at: str, way: list[str]) -> list[str]:
        if at in way:
            return way[way.index(at):]
        if at in done:
            return []
        for head in sorted(after.get(at, ())):
            if ring := search(head, [*way, at]):
                return ring
        done.add(at)
        return []

    return next((ring for start in sorted(after) if (ring := search(start, []))), [])


def rows(table: Iterable[tuple[str, ...]]) -> Mapping[str, int]:
    """Return the row of each member of a table, 0 the top."""
    return {name: row for row, names in enumerate(table) for name in names}


def misplaced(root: Path, table: tuple[tuple[str, ...], ...], part: int) -> list[str]:
    """Return the uses that do not go down a table of folders (part 0) or of units (part 1)."""
    row = rows(table)
    faults: list[str] = []
    for use in uses(root):
        user, used = use.user.split("/")[part], use.used.split("/")[part]
        if user in row and used in row and user != used and row[user] >= row[used]:
            faults.append(str(use))
    return faults


def test_every_folder_has_its_row() -> None:
    assert {path.name for path in SOURCE.iterdir()} == set(rows(FOLDERS))
    assert {path.stem for path in (SOURCE / "simulator").iterdir()} == set(rows(SIMULATOR))


def test_folders_use_only_what_stands_below() -> None:
    assert not misplaced(SOURCE, FOLDERS, 0)


def test_parts_of_the_simulator_use_only_what_stands_below() -> None:
    assert not misplaced(SOURCE, SIMULATOR, 1)


def test_no_units_use_each_other_in_a_circle() -> None:
    assert not circle((use.user, use.used) for use in uses(SOURCE))


def test_a_header_declares_what_its_own_file_defines() -> None:
    faults = []
    for header in sorted(SOURCE.rglob("*.h")):
        body = header.with_suffix(".c")
        defined = set(DEFINITION.findall(code_of(body))) if body.exists() else set()
        faults += [f"{header.relative_to(SOURCE)}: {name}" for name in DECLARATION.findall(code_of(header)) if name not in defined]
    assert not faults


def test_no_header_is_called_internal() -> None:
    assert not [path for path in (ROOT / "csrc").rglob("*.h") if "internal" in path.name]


def test_public_headers_include_each_other_in_no_circle() -> None:
    root = ROOT / "csrc" / "include"
    headers = {path.relative_to(root).as_posix(): path for path in root.rglob("*.h")}
    edges = []
    for name, path in headers.items():
        for included in INCLUDE.findall(path.read_text(encoding="utf-8")):
            beside = (path.parent / included).resolve()
            edges.append((name, beside.relative_to(root).as_posix() if beside.exists() else included))
    assert not circle(edges)


# ---- the test's own eyes ----

LOW = "int32_t pto_low(void)\n{\n    return 1;\n}\n"
HIGH = '#include "../record/low.h"\n\nint32_t pto_high(void)\n{\n    return pto_low();\n}\n'


def tree(root: Path, **files: str) -> Path:
    """Write `folder__name__suffix=text` below `root`."""
    for name, text in files.items():
        folder, stem, suffix = name.split("__")
        (root / folder).mkdir(exist_ok=True)
        (root / folder / f"{stem}.{suffix}").write_text(text)
    return root


def test_uses_are_seen_by_include_and_by_name(tmp_path: Path) -> None:
    root = tree(tmp_path, record__low__h="int32_t pto_low(void);\n", record__low__c=LOW, engine__high__c=HIGH)
    assert [str(use) for use in uses(root)] == ["engine/high uses ../record/low.h of record/low", "engine/high uses pto_low of record/low"]
    assert not misplaced(root, FOLDERS, 0)


@pytest.mark.parametrize("low", [
    pytest.param('#include "../engine/high.h"\n' + LOW, id="an include upwards"),
    pytest.param(LOW.replace("1;", "pto_high();"), id="a call upwards through a header of somebody else"),
])
def test_an_arrow_upwards_is_seen(tmp_path: Path, low: str) -> None:
    root = tree(tmp_path, record__low__h="int32_t pto_low(void);\n", record__low__c=low, engine__high__h="int32_t pto_high(void);\n",
                engine__high__c=HIGH)
    assert misplaced(root, FOLDERS, 0)
    assert circle((use.user, use.used) for use in uses(root)) == ["engine/high", "record/low"]


def test_comments_and_strings_use_nothing(tmp_path: Path) -> None:
    low = LOW.replace("1;", '"pto_high()"[0];    /* pto_high() */')
    assert not misplaced(tree(tmp_path, record__low__c=low, engine__high__c=HIGH), FOLDERS, 0)
