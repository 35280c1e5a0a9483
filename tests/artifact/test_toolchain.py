"""The C compiler: none, one that fails, one with arguments."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pto_wsp.artifact import build, toolchain
from pto_wsp.artifact.build import load_runtime
from pto_wsp.errors import CompilerFailedError, NoCompilerError
from tests.artifact.small_program import small


@pytest.fixture
def same_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have any compiler use the runtime library that there is: the programs are what is looked at."""
    runtime = load_runtime()
    monkeypatch.setattr(build, "load_runtime", lambda: runtime)


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the compiler that comes as a wheel."""
    real = toolchain.importlib.util.find_spec
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None if name == "ziglang" else real(name))


def script(path: Path, text: str) -> str:
    """Write an executable shell script."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.usefixtures("no_wheel")
def test_without_a_compiler_cpu_sim_says_so_and_interp_computes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoCompilerError) as refused:
        small(factor=41)
    assert refused.value.code == "C101" and "interp" in str(refused.value)
    program, found = small("interp", factor=41)
    program.run()
    assert (found == 82).all()


def test_a_cc_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "/nonexistent")
    with pytest.raises(NoCompilerError, match="CC=/nonexistent"):
        small(factor=42)


@pytest.mark.parametrize("value", ["  ", "'unclosed"])
def test_a_cc_without_meaning(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", value)
    if value.strip():
        with pytest.raises(NoCompilerError, match="CC="):
            small(factor=43)
    else:
        small(factor=43)               # blank counts as not set


def test_a_compiler_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", script(tmp_path / "failing", 'echo "kernels.c:7: there is no such instruction" >&2; exit 3'))
    monkeypatch.setenv("PTO_WSP_CACHE_DIR", str(tmp_path / "cache"))
    with pytest.raises(CompilerFailedError) as refused:
        small(factor=44)
    text = str(refused.value)
    assert refused.value.code == "C102" and "there is no such instruction" in text and "exit status 3 of failing" in text
    kept = Path(text.split("the sources are in ")[1].splitlines()[0])
    assert kept.is_dir()
    assert not list((tmp_path / "cache").rglob(".building-*"))


@pytest.mark.usefixtures("same_runtime")
def test_a_compiler_with_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = shutil.which("cc") or shutil.which("gcc")
    log = tmp_path / "log"
    monkeypatch.setenv("CC", f"{script(tmp_path / 'wrapped', f'echo $1 >> {log}; shift; exec {real} $@')} --mark")
    program, found = small(factor=45)
    program.run()
    assert (found == 90).all() and set(log.read_text().split()) == {"--mark"}


@pytest.mark.usefixtures("same_runtime")
def test_another_compiler_makes_another_artifact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small(factor=46)
    real = shutil.which("cc") or shutil.which("gcc")
    monkeypatch.setenv("CC", script(tmp_path / "other", f'exec {real} "$@"'))
    assert not small(factor=46)[0]._compiled.from_cache
