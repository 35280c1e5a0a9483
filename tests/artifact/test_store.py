"""The store: hits without a compiler, damage that is found and heals, several processes, unusual folders."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pto_wsp import PtoError
from pto_wsp.artifact import build, store
from pto_wsp.artifact.manifest import RuntimeManifest
from pto_wsp.errors import CacheCorruptError
from pto_wsp.targets import cpu_sim
from tests.artifact.small_program import SCRIPT, contents, finish, small, start
from tests.caches import keys_of, with_runtime


def refuse(*_: object, **__: object) -> None:
    """Stand for a compiler that must not run."""
    raise AssertionError("the compiler ran")


def test_a_second_compile_runs_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = small(value=1.0)
    monkeypatch.setattr(build, "compile_library", refuse)
    cpu_sim.open_artifact.cache_clear()
    second, found = small(value=9.0)   # other data: the same program
    assert second.compiled.from_cache and second.artifact_dir == first.artifact_dir
    second.run()
    assert (found == 6).all()


def test_data_is_not_part_of_an_artifact_and_the_kernel_is() -> None:
    folder = small(value=1.0)[0].artifact_dir
    assert small(value=2.0)[0].artifact_dir == folder
    assert small(factor=3)[0].artifact_dir != folder


@pytest.mark.slow
def test_an_artifact_cites_lines_so_they_are_part_of_it(tmp_path: Path) -> None:
    made, cache = [], with_runtime(tmp_path / "cache")
    for name, text in (("one", SCRIPT), ("two", "\n" + SCRIPT)):
        (tmp_path / name).mkdir()
        script = tmp_path / name / "model.py"
        script.write_text(text)
        made.append(finish(start(script, cache)))
    assert made[0].name != made[1].name
    assert "model.py:7" in (made[0] / "src/kernels.c").read_text() and "model.py:8" in (made[1] / "src/kernels.c").read_text()


def flip(folder: Path) -> None:
    """Change one bit of the library."""
    path = folder / "libsmall_one.so"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.unlink()                      # it is open: what is mapped stays as it is
    path.write_bytes(data)


def edit_manifest(folder: Path) -> None:
    """Change a field of the manifest."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["arch"] = "another"
    path.write_text(json.dumps(manifest))


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "library": (flip, "libsmall_one.so"),
    "source": (lambda folder: (folder / "src/kernels.c").write_text("int x;\n"), "src/kernels.c"),
    "manifest": (edit_manifest, "manifest.json"),
    "truncated": (lambda folder: (folder / "manifest.json").write_bytes((folder / "manifest.json").read_bytes()[:100]), "manifest.json"),
    "empty": (lambda folder: (folder / "manifest.json").write_text(""), "manifest.json"),
    "no manifest": (lambda folder: (folder / "manifest.json").unlink(), "manifest.json"),
    "no source": (lambda folder: (folder / "src/tables.c").unlink(), "src/tables.c"),
}


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_named_and_heals_when_the_folder_is_removed(name: str) -> None:
    damage, file = DAMAGES[name]
    factor = 100 + list(DAMAGES).index(name)
    program, _ = small(factor=factor)
    folder = program.artifact_dir
    assert folder is not None
    damage(folder)
    with pytest.raises(CacheCorruptError) as found:
        small(factor=factor)
    assert found.value.code == "C103" and str(folder) in str(found.value) and file in str(found.value)
    shutil.rmtree(folder)
    cpu_sim.open_artifact.cache_clear()
    again, array = small(factor=factor)
    again.run()
    assert (array == 2 * factor).all() and again.artifact_dir == folder


@pytest.mark.slow
def test_two_artifacts_in_each_others_places_are_refused(tmp_path: Path) -> None:
    one, two = (small(factor=factor)[0].artifact_dir for factor in (111, 112))
    assert one is not None and two is not None
    one.rename(tmp_path / "aside")
    two.rename(one)
    (tmp_path / "aside").rename(two)
    for factor, folder in ((111, one), (112, two)):
        with pytest.raises(CacheCorruptError, match=r"manifest\.json: it is that of another artifact") as found:
            small(factor=factor)
        assert f"remove {folder};" in str(found.value)
        shutil.rmtree(folder)


@pytest.mark.slow
def test_two_keys_in_each_others_places_count_for_nothing() -> None:
    folders = [small(factor=factor)[0].artifact_dir for factor in (113, 114)]
    (one,), (two,) = (keys_of(folder) for folder in folders if folder is not None)
    text = one.read_text()
    one.write_text(two.read_text())
    two.write_text(text)
    for factor, folder in zip((113, 114), folders, strict=True):
        program, found = small(factor=factor)
        assert not program.compiled.from_cache and program.artifact_dir == folder
        program.run()
        assert (found == 2 * factor).all()


def test_a_name_of_any_length_is_a_folder() -> None:
    name = "../" + "long" * 100

    def fill(folder: Path) -> RuntimeManifest:
        (folder / "one.so").write_bytes(b"a library")
        return RuntimeManifest(abi_version=1, library="one.so")

    store.publish("0" * 64, name, RuntimeManifest, fill)
    found = store.lookup("0" * 64, name, RuntimeManifest)
    assert found is not None and found[0].parent == store.cache_root() / "artifacts" and found[0].name.startswith("___longlong")


@pytest.mark.slow
@pytest.mark.parametrize("what", ["a program", "the runtime library too"])
def test_processes_that_build_at_the_same_time_all_work(tmp_path: Path, what: str) -> None:
    script = tmp_path / "model.py"
    script.write_text(SCRIPT)
    if what == "a program":
        with_runtime(tmp_path / "cache")
    folders = {finish(process) for process in [start(script, tmp_path / "cache") for _ in range(3)]}
    assert len(folders) == 1
    left = [path.name for path in (tmp_path / "cache").rglob(".building-*")]
    assert not left


def test_a_cache_folder_with_spaces_and_unicode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "my cache 'ä' $HOME"
    monkeypatch.setenv("PTO_WSP_CACHE_DIR", str(with_runtime(cache)))
    program, found = small()
    program.run()
    assert (found == 4).all() and program.artifact_dir is not None and program.artifact_dir.is_relative_to(cache)


def test_a_read_only_cache_serves_what_it_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO_WSP_CACHE_DIR", str(with_runtime(tmp_path)))
    before, _ = small()
    assert before.artifact_dir is not None
    files = contents(before.artifact_dir)
    cpu_sim.open_artifact.cache_clear()
    with read_only(tmp_path):
        program, found = small()
        program.run()
    assert (found == 4).all() and contents(before.artifact_dir) == files


def test_a_cache_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("no folder")
    monkeypatch.setenv("PTO_WSP_CACHE_DIR", str(occupied / "cache"))
    with pytest.raises(PtoError) as found:
        small()
    assert found.value.code == "C106" and str(occupied) in str(found.value) and "PTO_WSP_CACHE_DIR" in str(found.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_read_only_cache_is_an_error_that_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO_WSP_CACHE_DIR", str(tmp_path))
    with read_only(tmp_path), pytest.raises(PtoError) as found:
        small()
    assert found.value.code == "C106" and str(tmp_path) in str(found.value)


class read_only:
    """A folder that takes no new entries meanwhile."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> None:
        for path in (self.folder, *(p for p in self.folder.rglob("*") if p.is_dir())):
            path.chmod(stat.S_IRUSR | stat.S_IXUSR)

    def __exit__(self, *_: object) -> None:
        self.folder.chmod(stat.S_IRWXU)
        for path in self.folder.rglob("*"):
            if path.is_dir():
                path.chmod(stat.S_IRWXU)


def test_interp_needs_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO_WSP_CACHE_DIR", str(tmp_path / "never made"))
    program, found = small("interp")
    program.run()
    assert np.all(found == 4) and not (tmp_path / "never made").exists()
