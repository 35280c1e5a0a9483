"""Programs that are saved and loaded: the same bytes from any process, and a program that has everything without its source."""

from __future__ import annotations

import json
import pickle
import re
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import pto_wsp
from pto_wsp import Program, PtoError, load
from pto_wsp.artifact.manifest import Manifest, read_manifest
from pto_wsp.errors import LoadError
from pto_wsp.ir.digest import plan_digest
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.targets import load as loading
from tests.artifact.saved_program import expected, inputs, save
from tests.artifact.small_program import contents, small


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two processes' folders of one program: other folder and hash seed."""
    made = [save(tmp_path_factory.mktemp(name), seed) for name, seed in (("one", "1"), ("the other, ünï", "2"))]
    return made[0], made[1]


@pytest.fixture(scope="module")
def saved(twins: tuple[Path, Path]) -> Path:
    """A folder that nobody changes."""
    return twins[0]


@pytest.fixture
def copied(saved: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(saved, tmp_path / "copied"))


@pytest.fixture(scope="module")
def program(saved: Path) -> Program:
    """The program as it is loaded."""
    return load(saved)


def run(program: Program, **more: object) -> np.ndarray:
    """Run on `inputs()` and return Sums."""
    given = inputs()
    program.run(**given, **more)
    return given["Sums"]


@pytest.mark.slow
def test_a_saved_folder_is_the_same_bytes_from_any_process(twins: tuple[Path, Path]) -> None:
    one, other = map(contents, twins)
    assert one.keys() == other.keys() and {"manifest.json", "plan.json", "libtotals.so", "src/kernels.c"} <= one.keys()
    assert not [name for name in one if one[name] != other[name]]
    paths = {str(twin.parent) for twin in twins} | {str(Path.home()), str(Path(pto_wsp.__file__).parent)}
    assert not [(name, path) for name, data in one.items() for path in paths if path.encode() in data]


@pytest.mark.slow
def test_saving_what_was_loaded_gives_the_same_bytes(saved: Path, program: Program, tmp_path: Path) -> None:
    again = contents(program.save(tmp_path / "again"))
    assert again == contents(saved)


@pytest.mark.slow
def test_a_loaded_program_runs_as_numpy_says(program: Program) -> None:
    assert (run(program, scale=0.5) == expected(0.5)).all()
    assert (run(program, scale=2.0, rows=3) == expected(2.0, 3)).all()
    given = inputs()
    program.execute(**given, scale=0.25)
    program.synchronize()
    assert program.is_complete() and (given["Sums"] == expected(0.25)).all()
    program.set_symbol_f32("scale", 3.0)
    assert (run(program) == expected(3.0)).all()


@pytest.mark.slow
def test_a_loaded_program_tells_all_of_itself(program: Program, saved: Path) -> None:
    run(program, scale=1.0)
    assert program.stats.task_count == 16 and len(program.stats.executors) == 2
    # on unit: 32 elements in, one operation, 32 out for each of two tiles or three; the longest chain is twice, then four times add_to
    assert program.stats.critical_path == 96 + 4 * 128
    assert program.trace.names[0] == "twice[b=0]" and "add_to[b=5, i=3]" in program.graph.tasks
    assert "RAW on Half[1, 0:4, 0:8]" in str(program.graph) and "(model.py:23 → model.py:25)" in str(program.graph)
    assert repr(program) == f"Program(totals, cpu_sim, {saved.name})"
    assert repr(program.schedule) == "Schedule(DispatchPolicy.affinity(lambda t: t.b, 2))"
    assert "proved: races on `Sums` (iterations of b touch different elements)" in program.checks
    assert program.artifact_dir == saved and program.manifest == read_manifest(saved, Manifest)
    assert plan_digest(program.plan) == read_manifest(saved, Manifest).plan_digest


def test_a_loaded_program_is_timed_under_other_schedules(program: Program) -> None:
    run(program, scale=1.0)
    one = program.simulate(schedule=Schedule())
    assert one.stats.total_cycles == 6 * 96 + 10 * 128 and len(one.stats.executors) == 1


def test_errors_name_the_line_that_is_not_here(program: Program) -> None:
    given = inputs() | {"X": np.ones((4, 4, 8), np.float32)}
    with pytest.raises(PtoError, match="an index lies outside its tensor: `X\\[b\\]`") as raised:
        program.run(**given, scale=1.0)
    assert "--> model.py:23\n" in str(raised.value) and "^" not in str(raised.value)
    with pytest.raises(PtoError, match="symbol `scale` has no value"):
        load(program.artifact_dir).run(**inputs())      # type: ignore[arg-type]
    with pytest.raises(PtoError, match="tensor `X` has no data"):
        program.run(Sums=inputs()["Sums"], Lens=inputs()["Lens"], scale=1.0)
    assert (run(program, scale=0.5) == expected(0.5)).all()


def test_threads_are_as_compiled_or_as_asked(saved: Path) -> None:
    assert load(saved, threads=1).compiled.options.threads == 1 and load(saved).compiled.options.threads is None
    with pytest.raises(PtoError, match="compile\\(\\) option `threads`") as raised:
        load(saved, threads=0)
    assert raised.value.code == "C104"


@pytest.mark.slow
def test_options_of_a_run_are_kept(tmp_path: Path) -> None:
    made, _ = small(sanitize=True)
    again = load(made.save(tmp_path / "watched"))
    y = np.zeros((4, 8), np.float32)
    again.run(X=np.full((4, 8), 9, np.float32), Y=y)
    assert (y == 6).all() and again.sanitized is not None and again.sanitized.pairs == 0


# ---- folders that cannot be loaded ----

def edit(name: str, change: Callable[[dict], object]) -> Callable[[Path], object]:
    """Return what changes a JSON file of a folder."""
    def apply(folder: Path) -> None:
        data = json.loads((folder / name).read_text())
        change(data)
        (folder / name).write_text(json.dumps(data))
    return apply


def sealed(name: str, change: Callable[[dict], object]) -> Callable[[Path], object]:
    """The same, with checksums that are right again."""
    def apply(folder: Path) -> None:
        manifest = read_manifest(folder, Manifest)
        edit(name, change)(folder)
        manifest.sealed(folder).write(folder)
    return apply


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "no folder": (shutil.rmtree, "holds no saved program"),
    "no manifest": (lambda folder: (folder / "manifest.json").unlink(), "holds no saved program"),
    "half a manifest": (lambda folder: (folder / "manifest.json").write_text("{"), "manifest.json: it names no format"),
    "another format": (edit("manifest.json", lambda said: said.update(format_version=99)), "saved in another format.*format 99"),
    "a changed field": (edit("manifest.json", lambda said: said.update(name="other")), "is damaged.*manifest.json: its digest"),
    "a changed plan": (edit("plan.json", lambda said: said.update(intermediates=[])), "is damaged.*plan.json: its checksum"),
    "a changed source": (lambda folder: (folder / "src/kernels.c").write_text(""), "is damaged.*src/kernels.c: its checksum"),
    "no library": (lambda folder: (folder / "libtotals.so").unlink(), "is damaged.*libtotals.so"),
    "no plan": (lambda folder: (folder / "plan.json").unlink(), "has no plan.json.*an artifact of the cache"),
    "a plan of another format": (sealed("plan.json", lambda said: said.update(format_version=0)), "not what this version.*format 0"),
    "a plan with an unknown part": (sealed("plan.json", lambda said: said["plan"].update(node="plan.Future")), "not what.*plan.Future"),
    "a plan that is none": (sealed("plan.json", lambda said: said.update(plan=3)), "not what this version"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_loaded_says_why(copied: Path, case: str) -> None:
    damage, message = BAD[case]
    damage(copied)
    with pytest.raises(LoadError) as raised:
        load(copied)
    text = " ".join(str(raised.value).split())
    assert re.search(message, text), text
    assert raised.value.code == "C111" and "test_save_load.py" in text
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


def test_load_takes_a_path(saved: Path) -> None:
    with pytest.raises(LoadError, match="load takes the folder"):
        load(3)                                     # type: ignore[arg-type]
    assert load(str(saved)).plan.name == "totals"


def test_the_cache_is_no_saved_program_and_a_damaged_one_is_not_passed_on(tmp_path: Path) -> None:
    made, _ = small(factor=7)
    root = made.artifact_dir
    assert root is not None
    with pytest.raises(LoadError, match=r"has no plan\.json"):
        load(root)
    text = (root / "src/tables.c").read_text()
    (root / "src/tables.c").write_text("")
    with pytest.raises(PtoError, match="is damaged"):
        made.save(tmp_path / "damaged")
    assert not (tmp_path / "damaged").exists()
    (root / "src/tables.c").write_text(text)


def test_a_package_for_a_device_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps({"format_version": 1, "target": "ascend_npu"}))
    with pytest.raises(LoadError, match="package for target ascend_npu, which does not run in this process"):
        load(folder)


# ---- another machine ----

@pytest.mark.slow
def test_another_cpu_builds_it_again_once(saved: Path, copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (copied / "manifest.json").write_text(
        (lambda m: m.model_copy(update={"compiler": m.compiler.model_copy(update={"cpu": ("another",)})}).sealed(copied))(
            read_manifest(copied, Manifest)).model_dump_json())
    with pytest.warns(UserWarning, match="was built for another CPU: it is built again from src/ for this machine, once") as warned:
        again = load(copied)
    assert len(warned) == 1 and warned[0].filename == __file__
    assert (run(again, scale=0.5) == expected(0.5)).all() and again.artifact_dir == copied
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        monkeypatch.setattr(loading, "publish", None)
        assert (run(load(copied), scale=0.5) == expected(0.5)).all()


def test_another_interface_is_built_again_or_refused(copied: Path) -> None:
    manifest = read_manifest(copied, Manifest).model_copy(update={"abi_version": 4})
    (copied / "src" / "orchestrator.c").write_text("#error made for another interface\n")
    manifest.sealed(copied).write(copied)
    with pytest.warns(UserWarning, match="interface 4"), pytest.raises(LoadError, match="its sources do not compile here") as raised:
        load(copied)
    assert "made for another interface" in str(raised.value)


def test_a_folder_may_be_named_from_inside(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(saved)
    assert load(".").artifact_dir == saved and (run(load("."), scale=0.5) == expected(0.5)).all()
