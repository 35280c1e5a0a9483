"""What a cached artifact depends on beside the program: every module, template and C file of the package, Python, NumPy."""

from __future__ import annotations

import ast
import shutil
import time
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


@pytest.mark.slow
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


# -- the digest of a checkout, which the store keeps ---------------------------------------------------------------------
@pytest.fixture
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty store, beside sources that seem to have settled long ago."""
    monkeypatch.setenv("PTO_WSP_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(build, "stamp_sources", lambda: resources.SourceStamp("a" * 64, 1))
    return tmp_path


def digests_now() -> resources.SourceDigests:
    """Return the digests as a process would that asks for the first time."""
    return build.source_digests.__wrapped__()


def test_sources_with_the_same_stamp_are_hashed_once(own_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = digests_now()
    assert found == resources.hash_sources() and len(list((own_store / "records").iterdir())) == 1
    monkeypatch.setattr(build, "hash_sources", lambda: pytest.fail("hashed again"))
    assert digests_now() == found


def test_sources_with_another_stamp_are_hashed_and_take_the_place_of_the_old(own_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digests_now()
    changed = resources.SourceDigests("1" * 64, "2" * 64)
    monkeypatch.setattr(build, "stamp_sources", lambda: resources.SourceStamp("b" * 64, 1))
    monkeypatch.setattr(build, "hash_sources", lambda: changed)
    assert digests_now() == changed and len(list((own_store / "records").iterdir())) == 1
    monkeypatch.setattr(build, "hash_sources", lambda: pytest.fail("hashed again"))
    assert digests_now() == changed


def test_sources_that_have_just_changed_are_hashed_each_time(own_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time_ns()
    monkeypatch.setattr(build, "stamp_sources", lambda: resources.SourceStamp("a" * 64, now))
    assert digests_now() == resources.hash_sources() and not (own_store / "records").exists()


@pytest.mark.parametrize("damage", [b"", b"x" * 400, b"0" * 64 + b"\n"])
def test_a_damaged_record_of_the_digest_is_made_again(damage: bytes, own_store: Path) -> None:
    found = digests_now()
    record, = (own_store / "records").iterdir()
    right = record.read_bytes()
    record.write_bytes(damage)
    assert digests_now() == found and record.read_bytes() == right


def test_a_store_that_cannot_be_used_keeps_no_digest(own_store: Path) -> None:
    (own_store / "records").write_text("no folder")
    assert digests_now() == resources.hash_sources()
    own_store.chmod(0o777)
    assert digests_now() == resources.hash_sources()
