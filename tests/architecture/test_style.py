"""The part of the house style that a machine can read: docstrings, names of files, nothing left for later."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE_FOLDERS = ("pto_wsp", "csrc", "templates", "tests", "examples")
SOURCE_SUFFIXES = frozenset({".c", ".h", ".j2", ".py", ".sh"})

BANNED_STEMS = frozenset({"base", "helper", "helpers", "legacy", "manager", "util", "utils"})
# Written in two halves so that this file does not find itself.
UNFINISHED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X|NotImplemented" r"Error)\b")


def sources(*folders: str) -> Iterator[Path]:
    """Yield the source files under some top-level folders."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix in SOURCE_SUFFIXES and "__pycache__" not in path.parts:
                yield path


def shown(path: Path) -> str:
    """Return a path as it stands in the repository."""
    return path.relative_to(ROOT).as_posix()


def undocumented(text: str) -> Iterator[str]:
    """Say which public functions, methods and classes of a file have no docstring."""
    tree = ast.parse(text)
    if not ast.get_docstring(tree):
        yield "1: the module"
    yield from _undocumented(tree)


def _undocumented(scope: ast.Module | ast.ClassDef) -> Iterator[str]:
    for node in scope.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        if not ast.get_docstring(node) and not _speaks_otherwise(node):
            yield f"{node.lineno}: {node.name}"
        if isinstance(node, ast.ClassDef):
            yield from _undocumented(node)


def _speaks_otherwise(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Tell whether `cause` (an error class) or another signature (an overload, a setter, an override) documents it."""
    if isinstance(node, ast.ClassDef):
        targets = (target for child in node.body if isinstance(child, ast.Assign) for target in child.targets)
        return any(isinstance(target, ast.Name) and target.id == "cause" for target in targets)
    names = {part.attr if isinstance(part, ast.Attribute) else getattr(part, "id", "") for part in node.decorator_list}
    return bool(names & {"overload", "override", "setter"})


def unfinished(text: str) -> Iterator[str]:
    """Say which lines put something off."""
    for number, line in enumerate(text.splitlines(), 1):
        if UNFINISHED.search(line):
            yield f"{number}: {line.strip()}"


def has_banned_name(path: Path) -> bool:
    """Tell whether a file or one of its folders has a name that says nothing."""
    return any(part.split(".")[0].strip("_").removeprefix("test_") in BANNED_STEMS for part in path.parts)


def test_public_things_have_docstrings() -> None:
    faults = [f"{shown(path)}:{fault}" for path in sources("pto_wsp") if path.suffix == ".py"
              for fault in undocumented(path.read_text())]
    assert not faults, "no docstring:\n" + "\n".join(faults)


def test_file_names_say_something() -> None:
    assert not [shown(path) for path in sources(*SOURCE_FOLDERS) if has_banned_name(path.relative_to(ROOT))]


def test_nothing_is_left_for_later() -> None:
    faults = [f"{shown(path)}:{fault}" for path in sources(*SOURCE_FOLDERS) for fault in unfinished(path.read_text())]
    assert not faults, "\n".join(faults)


# The checkers themselves.

@pytest.mark.parametrize("text, names", [
    ('"""M."""\ndef f(): ...', ["f"]),
    ('"""M."""\nclass A:\n    """A."""\n    def f(self): ...', ["f"]),
    ('"""M."""\nclass A: ...', ["A"]),
    ("x = 1", ["the module"]),
    ('"""M."""\ndef _f(): ...\nclass _A:\n    def f(self): ...', []),
    ('"""M."""\nclass E(PtoError):\n    cause = "why"', []),
    ('"""M."""\n@overload\ndef f(): ...\ndef f():\n    """F."""', []),
])
def test_a_missing_docstring_is_found(text: str, names: list[str]) -> None:
    assert [fault.split(": ")[1] for fault in undocumented(text)] == names


def test_something_left_for_later_is_found() -> None:
    assert list(unfinished("a = 1\nraise NotImplemented" "Error\n"))
    assert list(unfinished("# TO" "DO: later"))
    assert not list(unfinished("return NotImplemented"))


@pytest.mark.parametrize("name, banned", [
    ("pto_wsp/utils.py", True),
    ("pto_wsp/_helpers/tile.py", True),
    ("tests/ir/test_base.py", True),
    ("pto_wsp/ir/tile.py", False),
    ("csrc/src/database.c", False),
])
def test_a_name_that_says_nothing_is_found(name: str, banned: bool) -> None:
    assert has_banned_name(Path(name)) is banned
