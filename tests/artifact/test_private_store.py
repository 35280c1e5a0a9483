"""Whose the store is: the user's alone, below folders that nobody else controls; and where it is: relative folders, ~, links."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pto_wsp.artifact.folders import open_private
from pto_wsp.artifact.store import cache_root
from pto_wsp.errors import CacheFolderError
from tests.artifact.damaged_stores import NOBODY
from tests.artifact.small_program import small
from tests.caches import with_runtime

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


def opened(path: Path, *, create: bool = False) -> None:
    """Open a store's folder and close it."""
    with open_private(path, create=create):
        pass


def refused(path: Path) -> str:
    """Return what is said of a store that is refused."""
    with pytest.raises(CacheFolderError) as found:
        opened(path)
    assert found.value.code == "C106" and "PTO_WSP_CACHE_DIR" in (found.value.help or "") and "mkdir -m 700" in (found.value.help or "")
    return str(found.value)


@pytest.mark.parametrize(("mode", "is_allowed"), [(0o700, True), (0o755, True), (0o500, True), (0o775, False), (0o770, False),
                                                  (0o777, False), (0o1777, False), (0o702, False)])
def test_nobody_else_may_write_to_the_store(mode: int, is_allowed: bool, tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    store.chmod(mode)
    if is_allowed:
        opened(store)
    else:
        assert f"mode {mode:04o}" in refused(store)


@pytest.mark.parametrize(("mode", "is_allowed"), [(0o755, True), (0o775, True), (0o1777, True), (0o777, False), (0o757, False)])
def test_not_everybody_may_write_above_the_store(mode: int, is_allowed: bool, tmp_path: Path) -> None:
    store = tmp_path / "home" / "cache" / "store"
    store.mkdir(parents=True)
    (tmp_path / "home").chmod(mode)
    if is_allowed:
        opened(store)
    else:
        text = refused(store)
        assert f"mode {mode:04o}" in text and f"others control: {tmp_path / 'home'}" in text


@as_root
@pytest.mark.parametrize("part", ["home", "home/store", "link"])
def test_a_store_or_a_folder_or_link_above_it_of_another_user_is_refused(part: str, tmp_path: Path) -> None:
    (tmp_path / "home" / "store").mkdir(parents=True)
    (tmp_path / "link").symlink_to("home")
    opened(tmp_path / "link" / "store")
    os.chown(tmp_path / part, NOBODY, NOBODY, follow_symlinks=False)
    assert f"owner {NOBODY}" in refused(tmp_path / "link" / "store")


@as_root
def test_the_library_of_another_user_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = with_runtime(tmp_path / "cache")
    monkeypatch.setenv("PTO_WSP_CACHE_DIR", str(cache))
    program, _ = small(factor=71)
    assert program.artifact_dir is not None
    for path in (cache, *cache.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    with pytest.raises(CacheFolderError, match=f"owner {NOBODY}"):
        small(factor=71)
    os.chown(cache, 0, 0)                    # the same below a store of the user's
    with pytest.raises(CacheFolderError, match=f"owner {NOBODY}"):
        small(factor=71)


def test_links_that_lead_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(OSError, match="link"):
        opened(tmp_path / "one" / "store")


@pytest.mark.parametrize("target", ["home", "../{name}/home", "{whole}/home", "./home/../home"])
def test_the_way_to_the_store_may_lead_through_links_of_the_user(target: str, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "link").symlink_to(target.format(name=tmp_path.name, whole=tmp_path))
    opened(tmp_path / "link" / "cache" / "store", create=True)
    assert (tmp_path / "home" / "cache" / "store").is_dir()


def test_what_the_store_makes_is_the_users_alone_whatever_the_umask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = with_runtime(tmp_path / "cache")
    monkeypatch.setenv("PTO_WSP_CACHE_DIR", str(cache))
    before = os.umask(0)
    try:
        opened(tmp_path / "new" / "cache", create=True)
        small(factor=72)
        program, found = small(factor=72)
    finally:
        os.umask(before)
    assert program.compiled.from_cache
    program.run()
    assert (found == 144).all()
    assert not [path for folder in (cache, tmp_path / "new") for path in (folder, *folder.rglob("*")) if path.stat().st_mode & 0o022]


def test_a_relative_folder_stays_where_it_was_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_runtime(tmp_path / "relative cache")
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PTO_WSP_CACHE_DIR", "relative cache")
    program, found = small(factor=73)
    assert program.artifact_dir is not None and program.artifact_dir.parent == tmp_path / "relative cache" / "artifacts"
    monkeypatch.chdir(tmp_path / "sub")
    saved = program.save("saved")
    assert (saved / "manifest.json").is_file()
    program.run()
    assert (found == 146).all() and small(factor=73)[0].compiled.from_cache
    assert [path.name for path in (tmp_path / "sub").iterdir()] == ["saved"]


def test_a_tilde_is_the_home_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PTO_WSP_CACHE_DIR", "~/a cache of the home")
    assert cache_root() == tmp_path / "a cache of the home"
    monkeypatch.setenv("PTO_WSP_CACHE_DIR", "~nobody-of-this-name/cache")
    with pytest.raises(CacheFolderError, match="no such user"):
        cache_root()


def test_a_relative_folder_of_a_folder_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.setenv("PTO_WSP_CACHE_DIR", "never made")
    with pytest.raises(CacheFolderError, match="the current folder"):
        cache_root()


def test_a_cache_folder_whose_name_is_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO_WSP_CACHE_DIR", os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    with pytest.raises(CacheFolderError, match="no text") as found:
        small(factor=74)
    assert str(found.value).encode() and r"caf\udce9" in str(found.value)
