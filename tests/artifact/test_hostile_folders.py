"""Folders that somebody else wrote: nothing outside them is read, written or run, and looking into one ends soon, with a coded error."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, In, Out, P, PtoError, Tensor, Tile, kernel, load, pto, workload
from pto_wsp.artifact.manifest import MANIFEST
from pto_wsp.artifact.store import cache_root
from pto_wsp.cli.main import main
from pto_wsp.cli.packages import differences, inspection
from tests.laws.mutated_json import mutated

F32 = DType.F32
X, Y = Tensor(shape=(3, 4), dtype=F32, name="X"), Tensor(shape=(3, 4), dtype=F32, name="Y")


def save(folder: Path, *, adds: int, check_finite: bool = False) -> Path:
    """Save a program that adds a number to X."""
    @kernel
    def added(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]) -> None:
        pto.store(y, pto.log(x) + adds)

    @workload
    def adding() -> None:
        for i in P(3):
            added[i](X[i:i + 1], Y[i:i + 1])
    return adding().compile(check_finite=check_finite).save(folder)


def run(program: Any, value: float = 1.0) -> np.ndarray:
    """Return Y after a run."""
    y = np.zeros((3, 4), np.float32)
    program.run(X=np.full((3, 4), value, np.float32), Y=y)
    return y


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("honest") / "adding", adds=2)


@pytest.fixture
def folder(honest: Path, tmp_path: Path) -> Path:
    shutil.copytree(honest, tmp_path / "theirs")
    (tmp_path / "outside.txt").write_text("SECRET")
    return tmp_path / "theirs"


def reseal(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a manifest and make its own checksum right again, as who sends a folder can."""
    said = json.loads((folder / MANIFEST).read_text())
    change(said)
    body = json.dumps({name: value for name, value in said.items() if name != "digest"}, sort_keys=True, separators=(",", ":"))
    said["digest"] = hashlib.sha256(body.encode()).hexdigest()
    (folder / MANIFEST).write_text(json.dumps(said))


def lists(name: str, digest: str = hashlib.sha256(b"SECRET").hexdigest()) -> Callable[[Path], object]:
    """Return what has a manifest list a file more."""
    return lambda folder: reseal(folder, lambda said: said["files"].append([name, digest]))


def replaced(name: str, make: Callable[[Path], object]) -> Callable[[Path], object]:
    """Return what puts something else in the place of a file."""
    def apply(folder: Path) -> None:
        (folder / name).unlink()
        make(folder / name)
    return apply


def in_its_place(library: str) -> Callable[[Path], object]:
    """Return what has a manifest name another library."""
    return lambda folder: reseal(folder, lambda said: said.update(library=library))


def as_if_for_another_cpu(folder: Path) -> None:
    reseal(folder, lambda said: (said["compiler"].update(cpu=["x"]),
                                 said["files"].append(["src/../../outside.txt", hashlib.sha256(b"SECRET").hexdigest()])))


def huge(path: Path) -> None:
    """Make a file of 2 GiB that takes no room."""
    with path.open("wb") as file:
        file.truncate(1 << 31)


HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "a file above": (lists("../outside.txt"), "no plain name"),
    "a file above, further in": (lists("src/../../outside.txt"), "no plain name"),
    "a rebuild of a file above": (as_if_for_another_cpu, "no plain name"),
    "an absolute file": (lists("/dev/zero"), "no plain name"),
    "a name that ends": (lists("a\0b"), "does not print"),
    "a name that steers a terminal": (lists("\x1b[2J"), "does not print"),
    "a name of no UTF-8": (lists("\ud800"), "does not print"),
    "an empty name": (lists(""), "no plain name"),
    "a folder": (lists("src"), "no regular file"),
    "a file twice": (lists("Makefile"), "one twice"),
    "the manifest": (lists(MANIFEST), "one twice"),
    "a library above": (in_its_place("../evil.so"), "its library '../evil.so'"),
    "a library that is not listed": (in_its_place("libother.so"), "its library 'libother.so'"),
    "a linked library": (replaced("libadding.so", lambda path: path.symlink_to("/dev/null")), "a link"),
    "a linked folder": (lambda folder: ((folder / "src").rename(folder / "real"), (folder / "src").symlink_to("real")), "a link|Not a dir"),
    "a pipe": (replaced("Makefile", os.mkfifo), "no regular file"),
    "a device": (replaced("Makefile", lambda path: path.symlink_to("/dev/zero")), "a link"),
    "a huge file": (replaced("Makefile", huge), "larger than"),
    "a manifest that is a device": (replaced(MANIFEST, lambda path: path.symlink_to("/dev/zero")), "a link"),
    "a manifest that is a pipe": (replaced(MANIFEST, os.mkfifo), "no regular file"),
    "a huge manifest": (replaced(MANIFEST, huge), "larger than"),
    "a manifest nested deep": (lambda folder: (folder / MANIFEST).write_text("[" * 100000), "names no format"),
    "a manifest nested deep within": (lambda folder: (folder / MANIFEST).write_text(
        '{"format_version":1,"target":"cpu_sim","arch":' + "[" * 100000), "names no format"),
    "a manifest of no UTF-8": (lambda folder: (folder / MANIFEST).write_bytes(b"\xff\xfe{"), "names no format"),
}


def kept_secrets() -> list[str]:
    """Return files of the store that were copied from outside a folder."""
    return [os.path.join(parent, name) for parent, _, names in os.walk(cache_root()) for name in names if name == "outside.txt"]


@pytest.mark.sampled(16)
@pytest.mark.parametrize("case", HOSTILE)
def test_what_leads_out_of_a_folder_is_refused(folder: Path, case: str, capsys: pytest.CaptureFixture[str]) -> None:
    change, message = HOSTILE[case]
    change(folder)
    assert not kept_secrets()
    with pytest.raises(PtoError, match=message) as raised:
        load(folder)
    assert raised.value.code == "C111"
    for look in (["inspect", str(folder)], ["diff", str(folder), str(folder)], ["run", str(folder)]):
        with pytest.raises(SystemExit) as ended:
            main(look)
        text = capsys.readouterr().err
        assert ended.value.code == 2 and text.startswith("error[C") and "\x1b" not in text and "\0" not in text
    assert not kept_secrets()


@pytest.mark.slow
def test_a_folder_that_is_saved_anew_is_loaded_anew(tmp_path: Path) -> None:
    folder = tmp_path / "adding"
    save(folder, adds=1)
    first = load(folder)
    assert (run(first) == 1).all()
    shutil.rmtree(folder)
    save(folder, adds=5)
    assert (run(load(folder)) == 5).all() and (run(first) == 1).all()
    shutil.rmtree(folder)
    save(folder, adds=5, check_finite=True)
    with pytest.raises(PtoError, match=r"R105"):
        run(load(folder), 0.0)


def test_a_loaded_program_runs_when_its_folder_has_gone(tmp_path: Path) -> None:
    program = load(save(tmp_path / "adding", adds=3))
    (tmp_path / "adding" / "libadding.so").write_bytes(b"")     # a library that is mapped from here would end the process
    assert (run(program) == 3).all()
    shutil.rmtree(tmp_path / "adding")
    assert (run(program) == 3).all()
    with pytest.raises(PtoError) as raised:
        program.save(tmp_path / "again")
    assert raised.value.code == "C103" and not (tmp_path / "again").exists()


def test_a_program_is_not_saved_with_the_files_of_another(tmp_path: Path) -> None:
    folder = save(tmp_path / "adding", adds=3)
    program = load(folder)
    shutil.rmtree(folder)
    save(folder, adds=4)
    with pytest.raises(PtoError, match="of another program, written there since"):
        program.save(tmp_path / "again")


def test_a_plan_that_is_not_the_librarys_is_refused(folder: Path) -> None:
    said = json.loads((folder / "plan.json").read_text())
    said["plan"]["tensors"][0]["ref"]["shape"] = [9, 4]
    (folder / "plan.json").write_text(json.dumps(said))
    digest = hashlib.sha256((folder / "plan.json").read_bytes()).hexdigest()
    reseal(folder, lambda manifest: manifest.update(files=[[name, digest if name == "plan.json" else known]
                                                           for name, known in manifest["files"]]))
    with pytest.raises(PtoError, match="not the plan that the library was made of"):
        load(folder)


def test_what_is_shown_of_a_manifest_steers_no_terminal(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reseal(folder, lambda said: said.update(name="\x1b[2Jme", schedule="x", checks=[{"check": "[red]a[/b]", "verdict": "proved",
                                                                                   "detail": "\x07:smile:"}]))
    with pytest.raises(SystemExit) as ended:
        main(["inspect", str(folder)])
    assert not ended.value.code
    text = capsys.readouterr().out
    assert "\\x1b[2Jme" in text and "[red]a[/b]" in text and "\\x07:smile:" in text and "\x1b" not in text and "\x07" not in text


def mutate_files(folder: Path, numbers: range) -> None:
    """Raise AssertionError unless each mutation of manifest.json or plan.json is refused with a code, or loads and shows."""
    texts = {name: (folder / name).read_text() for name in (MANIFEST, "plan.json")}
    data = {name: json.loads(text) for name, text in texts.items()}
    for number in numbers:
        rng = random.Random(number)
        name = rng.choice(sorted(data))
        changed = mutated(data[name], [data[name]], rng)
        (folder / name).write_text(json.dumps(changed))
        digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        if name != MANIFEST:
            (folder / MANIFEST).write_text(texts[MANIFEST])
            reseal(folder, lambda said, digest=digest: said.update(   # type: ignore[misc]
                files=[[file, digest if file == "plan.json" else known] for file, known in said["files"]]))
        elif isinstance(changed, dict):
            reseal(folder, lambda said: None)
        for look in (lambda: load(folder), lambda: list(inspection(folder, "")), lambda: differences(folder, folder, False)):
            try:
                look()
            except PtoError as refused:
                assert refused.code != "E000" and str(refused)
        for file, text in texts.items():
            (folder / file).write_text(text)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*was built for")
def test_mutated_files_are_refused_or_load(folder: Path) -> None:
    mutate_files(folder, range(12))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*was built for")
@pytest.mark.parametrize("part", range(2))
def test_many_mutated_files_are_refused_or_load(folder: Path, part: int) -> None:
    mutate_files(folder, range(100 + 40 * part, 140 + 40 * part))
