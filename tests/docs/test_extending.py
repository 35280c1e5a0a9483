"""What docs/extending.md says is done for real: its blocks change a copy of the package, and its programs run there.

A block tagged `diff` names the file that it changes in its first line, and has hunks between lines `@@`; one that begins with `# new file:`
is that file.
A block that begins with `# program` runs behind the changes of its section, and the `text` block below it is what it prints.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.architecture.test_layers import LAYERS
from tests.caches import with_runtime
from tests.docs.test_blocks import matches

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
LISTS = {"pto_wsp/passes/passes.py", "pto_wsp/passes/kernel/passes.py", "pto_wsp/passes/tensor/passes.py",
         "pto_wsp/npu/tiles/passes.py", "pto_wsp/doors.py"}
# Beside lists and tests, how many files of Python and of C a row may touch.
GOALS = {"An operation": (1, 1), "An operation on the NPU": (1, 0), "A dtype": (2, 2), "A pass": (1, 0), "A pass on kernels": (1, 0),
         "A pass of the tensor level": (1, 0), "A function of the library": (1, 0),
         "A pass on tile programs": (1, 0), "A target": (1, 0), "A directive": (2, 0), "An error": (1, 0)}
BEHIND = {"An operation on the NPU": ("An operation",)}      # sections whose changes a section builds on
# The project's own tests of what was added, in the copy: all of them hold without another line.
OWN_TESTS = {
    "An operation": ("tests/ops", "tests/architecture/test_op_names.py", "-k", "relu6 or not_named or formula or op_names or literal"),
    "A dtype": ("tests/ops/test_casts.py",),
    "An error": ("tests/errors/test_mistakes.py", "-k", "long_name or unbound"),
}


@dataclass(frozen=True)
class Change:
    """A file that a section changes or makes. `hunks`: the lines that go and those that stand in their place; `text`: of a new file."""

    path: str
    hunks: tuple[tuple[str, str], ...] = ()
    text: str = ""


@dataclass(frozen=True)
class Program:
    """A program of a section, and what the page says that it prints."""

    code: str
    output: str


def section_of(title: str) -> str:
    """Return the text of a section."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    assert found is not None, title
    return found[1]


def blocks_of(section: str) -> Iterator[tuple[str, str, str]]:
    """Yield the tag and the text of each block, and the `text` block right behind it, if there is one."""
    for found in re.finditer(r"^```(\w[^\n]*)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", section, re.M | re.S):
        yield found[1], found[2], found[3] or ""


def changes_of(title: str) -> list[Change]:
    """Return the changes of a section, in order."""
    changes = []
    for tag, text, _ in blocks_of(section_of(title)):
        first, _, rest = text.partition("\n")
        if tag == "diff":
            assert first.startswith("# "), f"{title}: a diff names its file first, not {first!r}"
            changes.append(Change(first[2:], tuple(hunk(part.splitlines()) for part in re.split(r"^@@\n", rest, flags=re.M))))
        elif first.startswith("# new file: "):
            changes.append(Change(first.removeprefix("# new file: "), text=rest))
    return changes


def hunk(lines: list[str]) -> tuple[str, str]:
    """Return the lines before and after a hunk."""
    assert all(line[:1] in " +-" for line in lines) and any(line[:1] in "+-" for line in lines[:]), lines
    before, after = ("".join(line[1:] + "\n" for line in lines if line[:1] != sign) for sign in "+-")
    assert before.strip(), "a hunk has lines that say where it stands"
    return before, after


def programs_of(title: str) -> list[Program]:
    """Return the programs of a section."""
    return [Program(text, output) for _, text, output in blocks_of(section_of(title)) if text.startswith("# program\n")]


def apply(change: Change, copy: Path) -> None:
    """Make a change in a copy of the package."""
    path = copy / change.path
    if not change.hunks:
        assert not path.exists(), f"{change.path} is there already"
        path.write_text(change.text, encoding="utf-8")
        return
    text = path.read_text(encoding="utf-8")
    for before, after in change.hunks:
        at = f"\n{text}".count(f"\n{before}")
        assert at == 1, f"{change.path}: these lines stand there {at} times:\n{before}"
        text = f"\n{text}".replace(f"\n{before}", f"\n{after}")[1:]
    path.write_text(text, encoding="utf-8")


def changed_copy(title: str, folder: Path) -> Path:
    """Return a copy of the package in which a section is done."""
    copy = folder / "copy"
    for name in ("pto_wsp", "csrc", "templates", "tests"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "goldens"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    for part in (*BEHIND.get(title, ()), title):
        for change in changes_of(part):
            apply(change, copy)
    return copy


def run(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python on a copy of the package."""
    environment = {**os.environ, "PYTHONPATH": str(copy), "PTO_WSP_CACHE_DIR": str(copy.parent / "cache")}
    return subprocess.run([sys.executable, *arguments], cwd=copy, env=environment, capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize("title", GOALS)
def test_a_row_touches_no_more_files_than_the_page_says(title: str) -> None:
    paths = {change.path for change in changes_of(title)}
    ours = {path for path in paths if path.startswith("pto_wsp/")} - LISTS
    c_files = {path for path in paths if path.startswith("csrc/")}
    tests = {path for path in paths if path.startswith("tests/")}
    assert paths == ours | c_files | tests | (paths & LISTS) and len(paths & LISTS) <= 1 and len(tests) <= 1
    assert (len(ours), len(c_files)) == GOALS[title]
    row = re.search(rf"^\| \[{title[0].lower()}{re.escape(title[1:])}\].*$", PAGE, re.M)
    assert row is not None
    stated = [cell.strip() for cell in row[0].split("|")][3]
    expected = f"{len(ours)}" + (f", and {len(c_files)} of C" if c_files else "") + (", and the list" if paths & LISTS else "")
    assert stated == expected


def test_every_change_finds_its_place(tmp_path: Path) -> None:
    """The cheap half of the slow test: the lines that the page shows are those of the files."""
    for title in GOALS:
        for part in (*BEHIND.get(title, ()), title):
            for change in changes_of(part):
                source = ROOT / change.path
                copy = tmp_path / title / change.path
                copy.parent.mkdir(parents=True, exist_ok=True)
                if source.exists() and not copy.exists():
                    shutil.copy(source, copy)
                apply(change, tmp_path / title)


@pytest.mark.slow
@pytest.mark.parametrize("title", GOALS)
def test_what_was_added_runs(title: str, tmp_path: Path) -> None:
    copy = changed_copy(title, tmp_path)
    if not any(change.path.startswith("csrc/") for change in changes_of(title)) and title not in BEHIND:
        with_runtime(tmp_path / "cache")
    programs = programs_of(title)
    assert programs and all(program.output for program in programs)
    bare = run(copy, "-c", "import pto_wsp; print(pto_wsp.__file__)")
    assert bare.stdout.startswith(str(copy)), "the programs must run on the copy"
    for number, program in enumerate(programs):
        path = tmp_path / f"program{number}.py"
        path.write_text(program.code, encoding="utf-8")
        done = run(copy, str(path))
        assert done.returncode == 0, done.stderr
        assert matches(program.output, done.stdout), f"the page says\n{program.output}\nbut the program prints\n{done.stdout}"
    if title in OWN_TESTS:
        done = run(copy, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *OWN_TESTS[title])
        assert done.returncode == 0, done.stdout[-4000:]


def test_the_statement_row_lists_the_files_that_know_a_statement() -> None:
    files = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "pto_wsp").rglob("*.py")
                   if re.search(r"\bSetSlot\b", path.read_text(encoding="utf-8")))
    assert re.findall(r"^- `(pto_wsp/.*)`$", section_of("A statement of workloads"), re.M) == files
    assert f"stands in {len(files)} files" in PAGE and f"a case a stage | {len(files)} |" in PAGE


def test_the_order_of_imports_is_that_of_the_table() -> None:
    found = re.search(r"^```text\n(cli, [^`]*)^```", PAGE, re.M)
    assert found is not None
    assert tuple(tuple(row.split(", ")) for row in found[1].replace("\n", " ").strip().split(" → ")) == LAYERS


@pytest.mark.parametrize("lines", [["+a", "b"], [" a"], ["+a"]])
def test_a_hunk_that_says_nothing_is_refused(lines: list[str]) -> None:
    with pytest.raises(AssertionError):
        hunk(lines)
