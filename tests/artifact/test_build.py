"""Artifacts: the same bytes whoever builds them where, and a handshake with whatever is loaded."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pto_wsp.artifact import build
from pto_wsp.artifact.build import load_runtime
from pto_wsp.errors import AbiMismatchError, CacheCorruptError
from pto_wsp.passes.kernel.passes import KERNEL_PASSES
from pto_wsp.passes.passes import PASSES
from pto_wsp.resources import csrc_dir
from tests.artifact.small_program import SCRIPT, contents, finish, small, start
from tests.artifact.test_toolchain import script
from tests.caches import with_runtime


@pytest.fixture(scope="module", params=["one runtime", pytest.param("two runtimes", marks=pytest.mark.slow)])
def twins(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, tuple[str, ...]]:
    """Return two artifacts of one script: other folder, cache, hash seed and process; and the paths that must not be in them."""
    made, named = [], []
    for name, seed in (("first", "1"), ("the second, ünï", "2")):
        folder = tmp_path_factory.mktemp(name)
        script, cache = folder / "model.py", folder / "a cache"
        if seed == "1" or request.param == "one runtime":      # else the second one builds its own
            with_runtime(cache)
        script.write_text(SCRIPT)
        made.append(start(script, cache, env={"PYTHONHASHSEED": seed}))
        named += [str(folder), str(cache)]
    one, two = [finish(process) for process in made]
    return one, two, (*named, str(Path.home()), str(Path.cwd()), str(csrc_dir()))


@pytest.mark.slow
def test_artifacts_are_the_same_bytes_in_any_process_folder_and_cache(twins: tuple[Path, Path, tuple[str, ...]]) -> None:
    one, two, _ = twins
    assert one != two and one.name == two.name
    first, second = contents(one), contents(two)
    assert first.keys() == second.keys()
    assert {"manifest.json", "libscripted.so", "src/kernels.c", "src/orchestrator.c"} <= first.keys()
    assert not [name for name in first if first[name] != second[name]]


@pytest.mark.slow
def test_artifacts_name_no_folder_of_this_machine(twins: tuple[Path, Path, tuple[str, ...]]) -> None:
    one, _, paths = twins
    found = [(name, path) for name, data in contents(one).items() for path in paths if len(path) > 1 and path.encode() in data]
    assert not found


@pytest.mark.slow
def test_the_folder_is_named_after_the_program(twins: tuple[Path, Path, tuple[str, ...]]) -> None:
    assert twins[0].name.startswith("scripted-")


@pytest.mark.slow
def test_the_runtime_library_is_built_while_the_program_is_compiled(tmp_path: Path) -> None:
    model = tmp_path / "model.py"
    model.write_text(SCRIPT)
    program = finish(start(model, with_runtime(tmp_path / "built")))
    runtime = next((tmp_path / "built" / "artifacts").glob("pto_runtime-*"))
    begun, linked = tmp_path / "begun", tmp_path / "linked"
    compiler = script(tmp_path / "compiler", f"""while [ $# -gt 0 ]; do
    case "$1" in
    --version) echo patient; exit ;;
    -o) case "$2" in
        objects/*) touch "{begun}" ;;
        libpto_runtime.so) touch "{begun}"; echo once >> "{linked}"; cp "{runtime}/$2" . ;;
        *) n=0      # the program's code is compiled no sooner than the library is begun
           until [ -e "{begun}" ]; do n=$((n + 1)); [ $n -lt 600 ] || exit 1; sleep 0.1; done
           cp "{program}/$2" . ;;
        esac; exit ;;
    esac
    shift
done""")
    made = finish(start(model, tmp_path / "empty", env={"CC": compiler}))
    assert made.name.startswith("scripted-") and linked.read_text() == "once\n"


@pytest.mark.parametrize("change", [
    lambda text: text.replace("PTO_ABI_VERSION 7", "PTO_ABI_VERSION 99"),
    lambda text: text.replace("    int32_t elem_bytes;\n", "    int32_t elem_bytes;\n    int64_t elem_more;\n"),
], ids=["another version", "a larger struct"])
def test_an_artifact_of_another_interface_is_refused(change: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                     ) -> None:
    load_runtime()
    other = tmp_path / "csrc"
    shutil.copytree(csrc_dir(), other)
    header = other / "include" / "pto_abi.h"
    text = header.read_text()
    assert change(text) != text
    header.write_text(change(text))
    monkeypatch.setattr(build, "csrc_dir", lambda: other)
    runtime = load_runtime()           # that of this pto_wsp: one a process
    monkeypatch.setattr(build, "load_runtime", lambda: runtime)
    with pytest.raises(AbiMismatchError) as refused:
        small(factor=31 + len(change(text)))
    assert refused.value.code == "C105" and "interface" in str(refused.value) and "remove" in str(refused.value)


@pytest.fixture
def small_runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a runtime library that does nothing but shake hands, in a cache of its own, and return the folder of its sources."""
    sources = tmp_path / "csrc"
    shutil.copytree(csrc_dir(), sources)
    for source in (sources / "src").glob("*/*.c"):
        if source.name != "layout.c":
            source.unlink()
    monkeypatch.setattr(build, "csrc_dir", lambda: sources)
    monkeypatch.setenv("PTO_WSP_CACHE_DIR", str(tmp_path / "cache"))
    return sources


def test_a_runtime_of_another_version_is_refused(small_runtime: Path) -> None:
    header = small_runtime / "include" / "pto_abi.h"
    header.write_text(header.read_text().replace("PTO_ABI_VERSION 7", "PTO_ABI_VERSION 99"))
    with pytest.raises(AbiMismatchError, match="version 99"):
        load_runtime()


@pytest.mark.usefixtures("small_runtime")
def test_a_damaged_runtime_is_named_and_built_again_when_removed() -> None:
    folder = load_runtime().path
    build.runtime_of.cache_clear()
    library = folder / "libpto_runtime.so"
    data = library.read_bytes()
    library.unlink()                   # the open one stays as it is
    library.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(CacheCorruptError) as damaged:
        load_runtime()
    assert damaged.value.code == "C103" and str(folder) in str(damaged.value)
    shutil.rmtree(folder)
    assert load_runtime().path == folder


@pytest.mark.usefixtures("small_runtime")
def test_a_checkout_opens_the_runtime_that_a_wheel_has_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = tmp_path / "pto_abi.json"
    shipped.write_text(build.parse_abi(build.abi_text(csrc_dir())), encoding="ascii")
    with monkeypatch.context() as wheel:
        wheel.setattr(build, "wheel_data", lambda name: shipped)
        folder = load_runtime().path
    build.runtime_of.cache_clear()
    assert load_runtime().path == folder


@pytest.mark.slow
def test_libraries_stay_open_until_the_process_ends(tmp_path: Path) -> None:
    script = tmp_path / "model.py"
    script.write_text(SCRIPT + "\nruntime = program.compiled.runner.runtime\n"
                      "runtime.ffi.dlclose(runtime.lib)   # Python may do so at exit, before it frees the record\ndel program\n")
    finish(start(script, with_runtime(tmp_path / "cache")))


def test_a_portable_build_computes_the_same() -> None:
    tuned, expected = small(value=7.0)
    plain, found = small(value=7.0, portable=True)
    tuned.run()
    plain.run()
    assert found.tobytes() == expected.tobytes() and found.any()
    flags = [program.manifest.compiler.flags for program in (tuned, plain)]   # type: ignore[attr-defined]
    assert "-march=native" in flags[0] and "-march=native" not in flags[1]
    assert plain.manifest.compiler.cpu == ("portable",)   # type: ignore[attr-defined]
    assert tuned.artifact_dir != plain.artifact_dir


def test_dump_writes_the_plan_before_and_after_every_pass() -> None:
    program, _ = small(dump=True)
    assert program.artifact_dir is not None
    ir = program.artifact_dir / "ir"
    for folder, passes in ((ir, PASSES), (ir / "scaled_0", KERNEL_PASSES)):
        names = sorted(path.name for path in folder.iterdir() if path.is_file())
        assert names == sorted(f"{number:02}_{when}_{step.name}.wsp" for number, step in enumerate(passes)
                               for when in ("before", "after"))
    assert (ir / "scaled_0" / "00_before_number_guards.wsp").read_text().startswith("kernel scaled(")
    assert "task scaled[i]" in max(ir.glob("*_after_price_tasks.wsp")).read_text()
    assert small()[0].artifact_dir != program.artifact_dir
