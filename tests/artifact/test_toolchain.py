"""The C compiler: none, one that fails, one with arguments, one that does not end, one that leaves no library."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pto_wsp.artifact import build, store, toolchain
from pto_wsp.artifact.build import load_runtime
from pto_wsp.artifact.folders import open_private
from pto_wsp.errors import CompileOptionError, CompilerFailedError, CompilerFlagError, NoCompilerError
from tests.artifact.small_program import SCRIPT, finish, small, start
from tests.main_thread import wait_until_in


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


@pytest.mark.slow
@pytest.mark.usefixtures("same_runtime")
def test_another_compiler_makes_another_artifact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small(factor=46)
    real = shutil.which("cc") or shutil.which("gcc")
    monkeypatch.setenv("CC", script(tmp_path / "other", f'exec {real} "$@"'))
    assert not small(factor=46)[0].compiled.from_cache


@pytest.mark.usefixtures("same_runtime")
def test_a_compiler_that_prints_no_utf_8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = shutil.which("cc") or shutil.which("gcc")
    monkeypatch.setenv("CC", script(tmp_path / "latin", rf"printf 'caf\351\n'; printf 'warning: caf\351\n' >&2; exec {real} " + '"$@"'))
    program, found = small(factor=47)
    program.run()
    assert (found == 94).all() and program.manifest.compiler.version == r"caf\xe9"   # type: ignore[attr-defined]
    monkeypatch.setenv("CC", script(tmp_path / "failing", r"printf 'error: caf\351\n' >&2; exit 1"))
    with pytest.raises(CompilerFailedError, match=r"error: caf\\xe9"):
        small(factor=48)


LEAVES = {
    "nothing": ("", "No such file or directory"),
    "an empty file": (": > $out", "an empty file"),
    "text": ("echo garbage > $out", "no ELF file"),
    "a library cut short": ("{real} -shared -o whole.so -x c /dev/null; head -c 8192 whole.so > $out", "8192 bytes of"),
    "another library": ("{real} -shared -o $out -x c /dev/null", "it has no pto_"),
    "a library that needs what is not there": (
        "echo 'int gone(void); int pto_artifact_entry(void) {{ return gone(); }} int pto_abi_layout(void) {{ return gone(); }}' > one.c; "
        "{real} -shared -fPIC -o $out one.c", "it cannot be opened"),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", LEAVES)
@pytest.mark.parametrize("runtime", [True, False], ids=["runtime", "program"])
def test_what_a_compiler_leaves_is_not_kept_unless_it_can_be_opened(name: str, runtime: bool, tmp_path: Path,
                                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    left, found = LEAVES[name]
    real = shutil.which("cc") or shutil.which("gcc")
    find = 'while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; [ "$1" = --version ] && exec echo none; [ "$1" = -c ] && exit; shift; done'
    cache = tmp_path / "cache"
    if not runtime:
        opened = load_runtime()
        monkeypatch.setattr(build, "load_runtime", lambda: opened)
    monkeypatch.setenv("CC", script(tmp_path / "lying", f"{find}; {left.format(real=real)}"))
    monkeypatch.setenv("PTO_WSP_CACHE_DIR", str(cache))
    for _ in range(2):
        with pytest.raises(CompilerFailedError, match="left no library of") as refused:
            load_runtime() if runtime else small(factor=49)
        assert refused.value.code == "C102" and found in str(refused.value) and str(cache) not in str(refused.value)
        assert not [path.name for path in (cache / "artifacts").iterdir()] and not list((cache / "keys").iterdir())


def test_a_whole_library_has_no_fault_and_each_part_of_it_has_one(tmp_path: Path) -> None:
    library = load_runtime().path / "libpto_runtime.so"
    data, part = library.read_bytes(), tmp_path / "part.so"
    assert toolchain.library_fault(library) is None
    for length in (*range(0, 200, 7), *range(200, len(data), len(data) // 50), len(data) - 1):
        part.write_bytes(data[:length])
        assert toolchain.library_fault(part) is not None, length
    stripped = data[:40] + bytes(8) + data[48:60] + bytes(2) + data[62:]      # of its section headers, which stand behind all else
    part.write_bytes(stripped)
    assert toolchain.library_fault(part) is None
    part.write_bytes(stripped[:len(data) // 2])
    assert toolchain.library_fault(part) is not None


@pytest.mark.usefixtures("same_runtime")
@pytest.mark.parametrize("text", ["sleep 60", "sleep 60 & wait", "(trap '' TERM; sleep 60) & exit 0"],
                         ids=["itself", "what it started", "what it left behind"])
def test_a_compiler_that_does_not_end_is_ended(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", script(tmp_path / "slow", f"echo $$ > {tmp_path}/group; {text}"))
    monkeypatch.setenv("PTO_WSP_CACHE_DIR", str(tmp_path / "cache"))
    started, group = time.monotonic(), tmp_path / "group"
    group.touch()
    for limit in LIMITS:
        monkeypatch.setenv("PTO_WSP_COMPILE_TIMEOUT", limit)
        with pytest.raises(CompilerFailedError, match=f"did not end compiling the generated code in {limit} s") as refused:
            small(factor=50)
        if group.read_text():      # else the compiler had not begun
            break
    assert time.monotonic() - started < 60 and "PTO_WSP_COMPILE_TIMEOUT" in str(refused.value)
    if sys.platform == "linux":
        wait_for_the_end_of(group.read_text().split()[-1])


LIMITS = ("0.3", "3", "20")      # seconds, the longer ones for a machine that others use too


def wait_for_the_end_of(*groups: str) -> None:
    """Wait until no process of some groups runs: they have been killed."""
    until = time.monotonic() + 30      # less than a compiler of these tests takes
    while running := [process for group in groups for process in running_in_group(group)]:
        assert time.monotonic() < until, running
        time.sleep(0.02)


def running_in_group(group: str) -> list[str]:
    """Return the processes of a group that are neither ended nor ending."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, of_group = path.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        found += [path.parent.name] if of_group == group and state not in "ZX" else []
    return found


def sources(folder: Path, **texts: str) -> list[str]:
    """Write six C sources, those of `texts` and small ones, and return their names."""
    for name in "abcdef":
        (folder / f"{name}.c").write_text(texts.get(name, f"int {name}(void) {{ return {ord(name)}; }}\n"))
    return [f"{name}.c" for name in "abcdef"]


def compiled(folder: Path, names: list[str], output: str = "lib.so") -> Path:
    """Compile sources with the compiler of the environment, as the runtime library is."""
    toolchain.compile_library(toolchain.find_toolchain(), ("-O1", "-fPIC", "-shared"), names, output, folder, what="six sources")
    return folder / output


def test_sources_compiled_at_once_make_the_same_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = sources(tmp_path)
    made = []
    for cores in (1, 2, 5):
        monkeypatch.setattr(os, "sched_getaffinity", lambda process, cores=cores: set(range(cores)), raising=False)
        made.append(compiled(tmp_path, names).read_bytes())
        assert sorted(path.name for path in tmp_path.iterdir()) == [*names, "lib.so"]      # no objects are left
    assert made[0] == made[1] == made[2]


@pytest.mark.parametrize("cores", [1, 3])
def test_the_message_of_one_source_of_many_is_quoted(cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(cores)), raising=False)
    (tmp_path / "build").mkdir()
    with pytest.raises(CompilerFailedError, match="refused six sources") as refused:
        compiled(tmp_path / "build", sources(tmp_path / "build", d='#error "not this one"\n'))
    assert "d.c:1" in str(refused.value) and "not this one" in str(refused.value) and "exit status 1" in str(refused.value)
    assert not (tmp_path / "build" / "objects").exists()
    names = sources(tmp_path / "build", d="int a(void) { return 0; }\n")
    with pytest.raises(CompilerFailedError, match="multiple definition"):
        compiled(tmp_path / "build", names)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("ended_by", ["a time limit", "Ctrl-C"])
def test_compilers_at_once_are_all_ended(ended_by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2}, raising=False)
    monkeypatch.setenv("CC", script(tmp_path / "slow", f"echo $$ >> {tmp_path}/groups; sleep 60 & wait"))
    names, groups = sources(tmp_path), tmp_path / "groups"
    if ended_by == "a time limit":
        for limit in LIMITS:
            groups.write_text("")
            monkeypatch.setenv("PTO_WSP_COMPILE_TIMEOUT", limit)
            with pytest.raises(CompilerFailedError, match=f"did not end compiling six sources in {limit} s"):
                compiled(tmp_path, names)
            if groups.read_text().count("\n") == 3:      # else not all compilers had begun
                break
    else:
        def interrupt() -> None:
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline and not (groups.exists() and groups.read_text().count("\n") == 3):
                time.sleep(0.02)
            wait_until_in("communicate", package=os.path.dirname(subprocess.__file__))      # all have been started
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            compiled(tmp_path, names)
        thread.join()
    started = groups.read_text().split()
    assert len(started) == 3
    wait_for_the_end_of(*started)
    assert not (tmp_path / "objects").exists()


@pytest.mark.usefixtures("same_runtime")
@pytest.mark.parametrize("value", ["0", "-1", "soon", "nan", "inf", "1e9"])
def test_a_limit_that_is_none(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO_WSP_COMPILE_TIMEOUT", value)
    with pytest.raises(CompileOptionError, match="PTO_WSP_COMPILE_TIMEOUT is no number of seconds"):
        small(factor=51)


@pytest.mark.slow
def test_a_process_that_waits_for_another_ones_compiler_says_so(tmp_path: Path) -> None:
    real, library = shutil.which("cc") or shutil.which("gcc"), load_runtime().path / "libpto_runtime.so"
    model, cache, go = tmp_path / "model.py", tmp_path / "cache", tmp_path / "go"
    model.write_text(SCRIPT)
    quick = f'case "$*" in *libpto_runtime.so*) exec cp {library} .; esac'
    env = {"CC": script(tmp_path / "waits", f'while [ ! -e {go} ]; do sleep 0.1; done; {quick}; exec {real} "$@"')}
    builder = start(model, cache, env=env)
    while not list(cache.glob("locks/*.holder")):
        time.sleep(0.05)
        assert builder.poll() is None
    waiter = start(model, cache, env=env)
    assert waiter.stderr is not None
    line = waiter.stderr.readline()
    go.touch()
    assert re.fullmatch(rf"pto_wsp: waiting for process {builder.pid}, which builds (scripted|pto_runtime): \d+ s so far\n", line), line
    assert finish(builder) == finish(waiter)


@pytest.mark.parametrize(("holder", "said"), [(None, "process PID, which builds caf?"), ("1 it\n", "process 1, which builds it"),
                                              ("", "another process"), ("1 \x1b[2J\n", "another process"), ("x" * 300, "another process")])
def test_who_waits_for_a_lock_says_for_whom(holder: str | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                            capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(store, "TELL_AFTER_S", 0.05)
    tmp_path.chmod(0o700)
    took = threading.Event()

    def wait() -> None:
        with store.locked(folder, "key", "the other"):
            took.set()

    with open_private(tmp_path) as folder:
        waiter = threading.Thread(target=wait)
        with store.locked(folder, "key", "café"):
            if holder is not None:
                (tmp_path / "key.holder").write_text(holder)
            waiter.start()
            until, told = time.monotonic() + 30, ""
            while "\n" not in told and time.monotonic() < until:
                time.sleep(0.01)
                told += capsys.readouterr().err
            assert not took.is_set()
        waiter.join(30)
        assert took.is_set()
    assert re.fullmatch(rf"pto_wsp: waiting for {re.escape(said.replace('PID', str(os.getpid())))}: \d+ s so far\n", told), told


@pytest.mark.usefixtures("same_runtime")
@pytest.mark.parametrize("flag", ["-ffast-math", "-Ofast", "-funsafe-math-optimizations", "-ffinite-math-only", "-fno-signed-zeros",
                                  "-freciprocal-math", "-fassociative-math", "-fdenormal-fp-math=preserve-sign", "-mdaz-ftz"])
def test_flags_that_change_results_are_refused(flag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", f"cc -pipe {flag}")
    with pytest.raises(CompilerFlagError) as refused:
        small(factor=52)
    assert refused.value.code == "C112" and f"compute: {flag}\n" in str(refused.value)


@pytest.mark.usefixtures("same_runtime")
def test_flags_that_change_no_result_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "cc -pipe -fno-fast-math -O1 -ffp-contract=fast")
    program, found = small(factor=53)
    program.run()
    assert (found == 106).all()


@pytest.mark.usefixtures("same_runtime")
@pytest.mark.parametrize("flag", ["-ffast-math", "-ffinite-math-only", "-fno-signed-zeros"])
def test_flags_that_a_script_hides_are_found_by_the_code(flag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = shutil.which("cc") or shutil.which("gcc")
    monkeypatch.setenv("CC", script(tmp_path / "hiding", f'exec {real} "$@" {flag}'))
    with pytest.raises(CompilerFailedError, match="other numbers than the program says"):
        small(factor=54)
