"""The two homes of csrc/ and templates/, the digest of all sources, and what the build of a wheel adds."""

from __future__ import annotations

import os
import runpy
import shutil
import sys
import tempfile
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pto_wsp import resources
from pto_wsp.artifact import build
from pto_wsp.artifact.abi import read_abi
from pto_wsp.artifact.build import load_runtime

ROOT = Path(__file__).resolve().parents[1]


def test_finds_the_abi_header() -> None:
    assert (resources.csrc_dir() / "include" / "pto_abi.h").is_file()


def test_finds_the_templates() -> None:
    assert resources.templates_dir().is_dir()


def test_prefers_the_wheels_home(tmp_path: Path) -> None:
    package = tmp_path / "pto_wsp"
    (package / "_data" / "csrc").mkdir(parents=True)
    (tmp_path / "csrc").mkdir()
    assert resources.find_data("csrc", package) == package / "_data" / "csrc"


def test_names_both_homes_when_neither_is_there(tmp_path: Path) -> None:
    package = tmp_path / "pto_wsp"
    with pytest.raises(FileNotFoundError) as caught:
        resources.find_data("templates", package)
    assert str(package / "_data" / "templates") in str(caught.value)
    assert str(tmp_path / "templates") in str(caught.value)


def test_a_digest_of_a_folder_knows_names_and_contents_of_what_is_neither_hidden_nor_compiled(tmp_path: Path) -> None:
    def digest(**files: str) -> str:
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        for name, text in files.items():
            path = folder / name.replace("__", "/").replace("_", ".")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        (folder / "__pycache__").mkdir()
        (folder / "__pycache__" / "a.py").write_text(folder.name)
        (folder / ".git").mkdir()
        (folder / ".git" / "HEAD").write_text(folder.name)
        return resources.tree_digest(folder, "left_out")

    first = digest(a_c="x", b__a_h="y")
    assert first == digest(b__a_h="y", a_c="x", _hidden="z", b__a_o="z", b__m_pyc="z")
    others = (digest(a_c="x"), digest(a_c="y", b__a_h="y"), digest(b_c="x", b__a_h="y"), digest(a_c="x", c__a_h="y"),
              digest(a_c="x", b__a_h="y", a_txt=""), digest(a_c="xb/a.h", b__a_h=""))
    assert len({first, *others}) == 1 + len(others)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the package as a wheel lays it out."""
    package = tmp_path_factory.mktemp("site") / "pto_wsp"
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(resources.__file__).parent, package, ignore=without)
    shutil.copytree(resources.csrc_dir(), package / "_data" / "csrc", ignore=without)
    shutil.copytree(resources.templates_dir(), package / "_data" / "templates", ignore=without)
    return package


def test_a_wheel_and_the_checkout_that_it_was_built_of_have_the_same_digests(package: Path) -> None:
    assert resources.hash_sources(package) == resources.hash_sources() == build.source_digests()


@pytest.fixture(scope="module")
def digests(package: Path) -> resources.SourceDigests:
    """Return the digests of the copy."""
    return resources.hash_sources(package)


def changed(package: Path, path: Path) -> resources.SourceDigests:
    """Return the digests of a package with one file changed in its last byte, and change it back."""
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]) if data else b"\n")
    try:
        return resources.hash_sources(package)
    finally:
        path.write_bytes(data)


def sources_of(package: Path) -> list[Path]:
    """Return every file of a package, by path."""
    return sorted(path for path in package.rglob("*") if path.is_file())


@pytest.mark.slow
@given(data=st.data())
def test_any_changed_file_changes_the_digest(package: Path, digests: resources.SourceDigests, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sources_of(package)))
    after = changed(package, path)
    assert after.package != digests.package
    assert (after.csrc != digests.csrc) == ("csrc" in path.relative_to(package).parts)


@pytest.mark.slow
def test_each_changed_file_changes_the_digest(package: Path, digests: resources.SourceDigests) -> None:
    assert not [path for path in sources_of(package) if changed(package, path).package == digests.package]


@pytest.mark.parametrize(("text", "is_used"), [("a" * 64 + "\n" + "b" * 64 + "\n", True), ("", False), ("a" * 64 + "\n", False),
                                               ("a" * 64 + "\n" + "g" * 64 + "\n", False), ("ä" * 64 + "\n" + "b" * 64, False)])
def test_digests_that_a_wheel_carries_are_used_when_they_are_some(text: str, is_used: bool, package: Path,
                                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    (package / "_data" / resources.DIGESTS).write_text(text)
    monkeypatch.setattr(resources, "PACKAGE_DIR", package)
    assert resources.carried_digests() == (("a" * 64, "b" * 64) if is_used else None)


@pytest.mark.parametrize("change", ["size", "times", "times set back", "name", "another file", "one less"])
def test_a_stamp_notices_a_changed_file_without_reading_it(change: str, package: Path) -> None:
    file = package / "values.py"
    before, known, data = resources.stamp_sources(package), file.stat(), file.read_bytes()
    assert before == resources.stamp_sources(package) and before.latest_ns >= known.st_ctime_ns
    added = package / "values_2.py"
    match change:
        case "size":
            file.write_bytes(data + b"\n")
        case "times":
            os.utime(file, ns=(known.st_atime_ns, known.st_mtime_ns + 10**9))
        case "times set back":
            file.write_bytes(data[:-2] + b"#\n")      # as long as before
            while file.stat().st_ctime_ns == known.st_ctime_ns or file.stat().st_mtime_ns != known.st_mtime_ns:      # a tick of the clock
                os.utime(file, ns=(known.st_atime_ns, known.st_mtime_ns))
            assert (file.stat().st_size, file.stat().st_mtime_ns) == (known.st_size, known.st_mtime_ns)
        case "name":
            file.rename(added)
        case "another file":
            added.write_bytes(b"")
        case _:
            file.unlink()
    try:
        assert resources.stamp_sources(package).digest != before.digest
    finally:
        added.unlink(missing_ok=True)
        file.write_bytes(data)


def test_a_stamp_is_of_the_files_that_are_hashed(package: Path) -> None:
    before = resources.stamp_sources(package).digest
    (package / "__pycache__").mkdir(exist_ok=True)
    for name in ("__pycache__/values.py", ".hidden.py", "values.o"):
        (package / name).write_text("")
    digests = resources.hash_sources(package)
    assert resources.stamp_sources(package).digest == before
    shutil.rmtree(package / "__pycache__")
    for name in (".hidden.py", "values.o"):
        (package / name).unlink()
    assert resources.hash_sources(package) == digests


def test_the_build_of_a_wheel_writes_the_digests_and_the_parsed_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    hook = ModuleType("hatchling.builders.hooks.plugin.interface")
    hook.BuildHookInterface = object   # type: ignore[attr-defined]
    for name in ("hatchling", "hatchling.builders", "hatchling.builders.hooks", "hatchling.builders.hooks.plugin"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, hook.__name__, hook)
    built = runpy.run_path(str(ROOT / ".ci" / "wheel_data.py"))
    made, build_data = built["made_data"](ROOT), {"force_include": dict[str, str]()}
    assert tuple(made[resources.DIGESTS].split()) == resources.hash_sources()
    assert read_abi(made[resources.PARSED_ABI]).sizeof("pto_run_options") == load_runtime().ffi.sizeof("pto_run_options")
    wheel = built["WheelData"]()
    wheel.root = str(ROOT)
    wheel.initialize("editable", build_data)
    assert not build_data["force_include"]
    wheel.initialize("standard", build_data)
    assert {path: Path(path).read_text() for path in build_data["force_include"]} == {
        path: made[Path(to).name] for path, to in build_data["force_include"].items()}
    wheel.finalize("standard", build_data, "")
    assert sorted(build_data["force_include"].values()) == [f"pto_wsp/_data/{name}" for name in sorted(made)]
    assert not any(Path(path).exists() for path in build_data["force_include"])
