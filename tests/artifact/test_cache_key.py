"""What a cached artifact depends on beside the program: every module, template and C file of the package, Python, NumPy."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pto_wsp import resources
from pto_wsp.artifact import build
from tests.artifact.small_program import SCRIPT, finish, small, start
from tests.caches import with_runtime

ASK = SCRIPT.replace('print(program.artifact_dir or "none")', 'print("hit" if program.compiled.from_cache else "miss")')


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a copy of the sources that may be changed, with a script and a cache that has its artifact."""
    root = tmp_path_factory.mktemp("checkout")
    for folder in (Path(resources.__file__).parent, resources.csrc_dir(), resources.templates_dir()):
        shutil.copytree(folder, root / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "model.py").write_text(ASK)
    with_runtime(root / "cache")
    assert [ask(root), ask(root)] == ["miss", "hit"]
    yield root
    assert ask(root) == "hit"      # every change was taken back


def ask(checkout: Path, *, target: str = "cpu_sim") -> str:
    """Return what a process says of the cache: hit or miss."""
    return finish(start(checkout / "model.py", checkout / "cache", target, env={"PYTHONPATH": str(checkout)})).name


PACKAGE = Path(resources.__file__).parent
FOLDERS = sorted({path.parent.relative_to(PACKAGE).parts[:1] for path in PACKAGE.rglob("*.py") if "def " in path.read_text()})


def with_a_broken_function(folder: Path, text_of: dict[Path, str]) -> Path:
    """Change the first function of a folder's first module that has one; return the module and keep its text."""
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text()
        functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)
                     and node.body[-1].lineno > node.lineno]
        if functions:
            lines = text.splitlines(keepends=True)
            last = functions[0].body[-1]
            lines.insert(last.lineno - 1, " " * last.col_offset + "pass\n")
            text_of[path] = text
            path.write_text("".join(lines))
            return path
    raise AssertionError(f"{folder} has no function")


@pytest.mark.slow      # the digest itself is looked at in tests/test_resources.py
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda parts: "/".join(parts) or "top")
def test_a_changed_function_in_any_folder_is_a_miss(folder: tuple[str, ...], checkout: Path) -> None:
    text_of: dict[Path, str] = {}
    changed = with_a_broken_function(checkout.joinpath("pto_wsp", *folder), text_of)
    try:
        assert ask(checkout) == "miss"
    finally:
        changed.write_text(text_of[changed])


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["csrc", "templates"])
def test_a_changed_file_beside_the_package_is_a_miss(folder: str, checkout: Path) -> None:
    path = next(path for path in sorted((checkout / folder).rglob("*")) if path.is_file())
    text = path.read_text()
    path.write_text(text + "\n")
    try:
        assert ask(checkout) == "miss"
    finally:
        path.write_text(text)


@pytest.mark.parametrize(("owner", "name"), [(np, "__version__"), (build.sys, "version")])
def test_another_python_or_numpy_is_a_miss(owner: object, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    small(factor=61)
    assert small(factor=61)[0].compiled.from_cache
    key = build.package_key()
    monkeypatch.setattr(owner, name, "0.0")
    assert build.package_key() != key
    program, found = small(factor=61)
    assert not program.compiled.from_cache
    program.run()
    assert (found == 122).all()
