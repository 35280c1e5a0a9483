"""Commands about this machine: the cache, what it needs, and the demo."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.cli.commands import MODEL, command


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of its own, which nobody else can write."""
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("PTO_WSP_CACHE_DIR", str(folder))
    return folder


def artifact(cache: Path, name: str, size_bytes: int, days: float = 0.0) -> Path:
    """Put a folder that looks like an artifact into the cache, built some days ago."""
    folder = cache / "artifacts" / name
    folder.mkdir(parents=True, mode=0o700)
    (cache / "artifacts").chmod(0o700)
    (folder / "data").write_bytes(b"\0" * size_bytes)
    (folder / "data").chmod(0o600)
    os.utime(folder, (time.time() - days * 86400,) * 2)
    return folder


def test_an_empty_cache_is_shown(cache: Path) -> None:
    for name in ("show", "size", "verify", "prune"):
        ended = command(cache, "cache", name, "--json")
        assert ended.code == 0 and ended.card["subtitle"] == str(cache) and "0 artifacts, 0 B" in ended.card["sentence"]


def test_what_is_damaged_is_found_and_removed(cache: Path) -> None:
    artifact(cache, "layer-0123456789ab", 3000)
    artifact(cache, ".building-abc", 10, days=1)
    young = artifact(cache, ".building-def", 10)
    assert command(cache, "cache", "show", "--json").card["parts"][0]["rows"][0][:3] == ["layer-0123456789ab", "unknown", "2.9 KiB"]
    found = command(cache, "cache", "verify", "--json")
    assert found.code == 1 and [row[0] for row in found.card["parts"][0]["rows"]] == ["layer-0123456789ab"]
    dry = command(cache, "cache", "prune", "--dry-run", "--json")
    assert "Would remove 2 artifacts" in dry.card["sentence"] and (cache / "artifacts" / "layer-0123456789ab").is_dir()
    assert "Removed 2 artifacts" in command(cache, "cache", "prune").out
    assert [path.name for path in (cache / "artifacts").iterdir()] == [young.name]


def test_a_cache_that_others_can_write_is_refused(cache: Path) -> None:
    artifact(cache, "layer-0123456789ab", 1)
    cache.chmod(0o777)
    for name in ("show", "size", "verify", "prune"):
        ended = command(cache, "cache", name)
        assert ended.code == 2 and ended.err.startswith("error[C106]")
    assert (cache / "artifacts" / "layer-0123456789ab").is_dir()
    looked = command(cache, "doctor", "--json")
    (row,) = [row for row in looked.card["parts"][0]["rows"] if row[1] == "store"]
    assert looked.code == 1 and row[0] == "fail" and "PTO_WSP_CACHE_DIR" in row[3]


def test_a_link_in_the_cache_leads_nowhere(cache: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    artifact(cache, "layer-0123456789ab", 1)
    (cache / "artifacts" / "evil-0123456789ab").symlink_to(outside)
    command(cache, "cache", "prune", "--all")
    assert (outside / "kept").read_text() == "kept"


@pytest.mark.slow
def test_what_was_built_is_listed_verified_pruned_and_built_again(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    assert command(tmp_path, "run", "model.py", "-w", "own").code == 0
    kinds = {row[1] for row in command(tmp_path, "cache", "show", "--json").card["parts"][0]["rows"]}
    assert kinds == {"runtime", "cpu_sim"} and command(tmp_path, "cache", "verify").code == 0
    (built,) = (cache / "artifacts").glob("own-*")
    (built / "src" / "kernels.c").write_text("other")
    found = command(tmp_path, "cache", "verify", "--json")
    assert found.code == 1 and "src/kernels.c" in found.card["parts"][0]["rows"][0][2]
    assert command(tmp_path, "run", "model.py", "-w", "own").err.startswith("error[C103]")
    command(tmp_path, "cache", "prune")
    assert not built.exists() and len(list((cache / "keys").iterdir())) == 1
    assert command(tmp_path, "run", "model.py", "-w", "own").code == 0 and built.is_dir()
    command(tmp_path, "cache", "prune", "--older-than", "1")
    assert built.is_dir()
    command(tmp_path, "cache", "prune", "--all")
    assert not list((cache / "artifacts").iterdir()) and not list((cache / "keys").iterdir())


@pytest.mark.slow
def test_doctor_says_what_is_there(tmp_path: Path) -> None:
    ended = command(tmp_path, "doctor", "--json")
    lines = {row[1]: row for row in ended.card["parts"][0]["rows"]}
    assert ended.code == 0 and {row[0] for row in lines.values()} <= {"ok", "warn"}
    assert {"python", "compiler", "cache", "disk", "extras", "small run"} <= set(lines)
    assert lines["small run"][2].startswith("30 tasks, the numbers of NumPy")


def test_doctor_without_a_compiler_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    ended = command(tmp_path, "doctor", "--json")
    lines = {row[1]: row for row in ended.card["parts"][0]["rows"]}
    assert ended.code == 1 and lines["compiler"][0] == "fail" and "unset CC" in lines["compiler"][3] and "CC=" in lines["environment"][2]


@pytest.mark.slow
def test_the_demo_writes_a_file_and_a_report(tmp_path: Path) -> None:
    """40, 121, ... blocks: affinity puts requests 2 and 6 on one executor, whose 23 of 30 blocks bound the run; shared, 8 rounds do."""
    folder = tmp_path / "a demo"
    ended = command(tmp_path, "demo", str(folder), "--json")
    assert ended.code == 0, ended.err
    rows = {row[0]: int(row[2].replace(",", "")) for row in ended.card["parts"][1]["rows"]}
    one = rows["by request"] // 23
    assert rows == {"by request": 23 * one, "shared": 8 * one}
    assert "<html" in (folder / "pto_wsp_demo.html").read_text() and "'" in ended.card["parts"][-1]["text"]
    again = command(tmp_path, "demo", str(folder))
    assert again.code == 2 and "is not overwritten" in again.err
    assert command(folder, "check", "pto_wsp_demo.py", "-w", "shared").code == 0


def test_a_demo_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert command(tmp_path, "demo", "file/inside").err.startswith("error[C108]")
