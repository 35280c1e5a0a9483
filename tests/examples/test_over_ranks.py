"""The examples over a mesh: in one process, on several numbers of ranks, over MPI, and what makes them fail."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from textwrap import indent
from typing import Any

import numpy as np
import pytest

from tests.docs.test_blocks import blocks_of

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = {path.stem: path for path in sorted((ROOT / "examples").glob("mesh_*/*.py"))}
PAGE = ROOT / "docs" / "mesh_examples.md"
MPIRUN = shutil.which("mpirun") or shutil.which("mpirun", path=str(Path(sys.executable).parent))
NUMBER = re.compile(r"\d\.\de[+-]\d\d")
every_script = pytest.mark.parametrize("name", SCRIPTS)


def load(name: str) -> dict[str, Any]:
    return runpy.run_path(str(SCRIPTS[name]))


def ended(example: Any, *words: str) -> int:
    """Return how the `main` of the examples ends."""
    load("mesh_swiglu")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["example", *words])
        return int(sys.modules["over_ranks"].main(example, "An example."))


@pytest.mark.slow
@every_script
def test_an_example_prints_what_its_page_shows(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(load(name)["EXAMPLE"]) == 0
    found, page = NUMBER.sub("N", capsys.readouterr().out), NUMBER.sub("N", PAGE.read_text(encoding="utf-8"))
    assert f"```text\n{found}```" in page, f"docs/mesh_examples.md shows another output of {name}:\n{found}"


@pytest.mark.slow
@every_script
def test_an_example_is_right_on_four_ranks_and_on_one(name: str) -> None:
    example = load(name)["EXAMPLE"]
    assert [ended(example, "--ranks", n) for n in "14"] == [0, 0]


def test_a_number_of_ranks_that_does_not_fit_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        ended(load("mesh_pipeline")["EXAMPLE"], "--ranks", "3")
    assert refused.value.code == 2 and "--ranks is a divisor of the layers, 4" in capsys.readouterr().err


@pytest.mark.slow
def test_wrong_numbers_and_other_bits_end_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    example = load("mesh_swiglu")["EXAMPLE"]
    off = replace(example, reference=lambda given: {"y": example.reference(given)["y"] * (1 + 1e-4)})
    assert ended(off) == 1 and "2 ranks and NumPy: FAILED" in capsys.readouterr().out
    assert ended(replace(example, exact=("y",))) == 1          # a float sum over ranks has other bits than one rank's
    assert "2 ranks and one: FAILED" in capsys.readouterr().out
    layer = example.layer
    unwritten = replace(example, layer=lambda mesh, given, results: layer(mesh, given, {"y": np.empty_like(results["y"])}))
    assert ended(unwritten) == 1                                # NaN is near nothing


@pytest.mark.slow
def test_an_example_runs_without_mpi4py(tmp_path: Path) -> None:
    (tmp_path / "mpi4py.py").write_text("raise ImportError('not installed')\n")
    done = subprocess.run([sys.executable, str(SCRIPTS["mesh_pipeline"])], text=True, capture_output=True, timeout=300,
                          env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"})
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@every_script
def test_the_page_shows_how_an_example_scales(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(load(name)["EXAMPLE"], "--scaling", "1") == 0
    strong, weak = re.findall(r"cycles on 1, 2, 4 ranks (\d[\d,]*(?:, \d[\d,]*){2});", capsys.readouterr().out)
    assert re.search(rf"^\| {name} \| [^|]+ \| {strong} \| [^|]+ \| {weak} \|", PAGE.read_text(encoding="utf-8"), re.M), (strong, weak)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(MPIRUN is None, reason="no mpirun")
@every_script
@pytest.mark.parametrize("n", [2, 4])
def test_an_example_has_the_same_bits_over_mpi(name: str, n: int) -> None:
    pytest.importorskip("mpi4py")
    assert MPIRUN is not None
    usual = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([MPIRUN, "--oversubscribe", "-n", str(n), sys.executable, "-m", "mpi4py", str(SCRIPTS[name])], text=True,
                          capture_output=True, timeout=280, env={**os.environ, **usual})
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(f"rank {rank} of MPI and one process: the same bits" in done.stdout for rank in range(n)), done.stdout
    assert "FAILED" not in done.stdout


def test_the_page_shows_the_lines_of_the_files() -> None:
    sources = [path.read_text(encoding="utf-8") for path in SCRIPTS.values()]
    blocks = blocks_of(PAGE.read_text(encoding="utf-8"))
    assert blocks and all(any(indent(block.code, " " * k) in source for source in sources for k in (0, 4, 8)) for block in blocks)
