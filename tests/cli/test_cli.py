"""The command: packages from a file, what is in them, how two differ, and every mistake as a message with exit code 2."""

from __future__ import annotations

import ast
import io
import json
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from pto_wsp import cli
from pto_wsp.cli.main import main
from pto_wsp.doors import TARGETS
from pto_wsp.passes.tensor.passes import TENSOR_PASSES
from pto_wsp.targets.options import CompileOptions
from pto_wsp.targets.table import find_target

MODEL = """\
import numpy as np
from pto_wsp import DType, In, Out, P, Scalar, Tensor, Tile, kernel, pto, workload

F32 = DType.F32
X, Y = Tensor(np.ones((4, 8, 16), np.float32)), Tensor(np.zeros((4, 8, 16), np.float32))

@kernel
def scaled(x: In[Tile[8, 16, F32]], by: Scalar[F32], y: Out[Tile[8, 16, F32]]):
    pto.store(y, x * by + 1)

@workload
def scale_all():
    for b in P(4):
        scaled[b](X[b], 0.5, Y[b])

@workload
def scale_some(n):
    for b in P(n):
        scaled[b](X[b], 0.25, Y[b])
"""


def run(folder: Path, *arguments: str, code: int = 0) -> str:
    """Run the command in a folder and return what it prints; errors go to stderr, results to stdout."""
    out, err = io.StringIO(), io.StringIO()
    with chdir(folder), redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as left:
        main(list(arguments))
    assert (left.value.code or 0) == code, f"{left.value.code}\n{out.getvalue()}\n{err.getvalue()}"
    return err.getvalue() if code == 2 else out.getvalue()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder with model.py."""
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


def test_compile_inspect_and_diff_a_package(model: Path) -> None:
    text = run(model, "compile", "model.py", "--out", "package")
    assert "scale_all  ascend_npu, ascend_910b" in text and "scaled  aiv   IN OUT   by" in text and text.endswith("package\n")
    manifest = json.loads((model / "package" / "manifest.json").read_text())
    assert {path for path, _ in manifest["files"]} == {path.relative_to(model / "package").as_posix()
                                                       for path in (model / "package").rglob("*")
                                                       if path.is_file() and path.name != "manifest.json"}

    shown = run(model, "inspect", "package")
    for part in ("launch 0 scaled[b]", "TMULS", "TADDS", "buffer x", "0     X", "proved"):
        assert part in shown, part
    alone = run(model, "inspect", "package", "--kernel", "scaled")
    assert "\nvector program scaled" in alone and "launch" not in alone

    run(model, "compile", "model.py", "--out", "same")
    assert run(model, "diff", "package", "same").endswith("\nthe packages are the same\n")
    (model / "model.py").write_text(MODEL.replace("* by + 1", "* by + 2"))
    run(model, "compile", "model.py", "--out", "other")
    changed = run(model, "diff", "package", "other", code=1)
    assert any(line.startswith("-    TADDS(") and "1.0f" in line for line in changed.splitlines())
    assert any(line.startswith("+    TADDS(") and "2.0f" in line for line in changed.splitlines())
    assert "differs: kernels/aiv/scaled.cpp\n" in run(model, "diff", "--brief", "package", "other", code=1)


def test_dump_ir_writes_what_every_pass_did(model: Path) -> None:
    run(model, "compile", "model.py", "--out", "package", "--dump-ir")
    names = {path.name.split("_", 2)[2] for path in (model / "package" / "ir").rglob("*_after_*.wsp")}
    assert {"drop_repeated_checks.wsp", "number_guards.wsp", "plan_memory.wsp", "insert_sync.wsp"} <= names


@pytest.mark.slow
def test_targets_arches_and_runtimes(model: Path) -> None:
    assert "scale_all  ascend_npu, ascend_950" in run(model, "compile", "model.py", "--arch", "ascend_950")
    run(model, "compile", "model.py", "--runtime", "host_build_graph", "--out", "package")
    assert '"runtime": "host_build_graph"' in (model / "package" / "kernel_config.py").read_text()
    assert "scaled" in run(model, "compile", "model.py", "--target", "cpu_sim")


@pytest.mark.parametrize(("arguments", "said"), [
    (["compile", "missing.py"], "error[C108]: there is no file missing.py"),
    (["compile", "model.py", "--workload", "scale_al"], "error[C108]: model.py has no workload `scale_al`"),
    (["compile", "model.py", "--workload", "scaled"], "found:    a Kernel"),
    (["compile", "model.py", "--workload", "scale_some"], "workload `scale_some` takes parameters"),
    (["compile", "model.py", "--target", "ascend"], "there is no target 'ascend'"),
    (["compile", "model.py", "--arch", "unit"], "arch `unit` is no machine of this target"),
    (["compile", "model.py", "--runtime", "host"], "compile() option `options"),
    (["compile", "model.py", "--out", "."], "error[C107]: . is not empty"),
    (["inspect", "nowhere"], "error[C108]: nowhere is no artifact"),
    (["diff", ".", "."], "error[C108]: . is no artifact"),
])
def test_a_mistake_is_a_message(model: Path, arguments: list[str], said: str) -> None:
    assert said in run(model, *arguments, code=2)


@pytest.mark.parametrize(("text", "said"), [
    ("x = (\n", "error[C108]: broken.py could not be loaded\n  --> broken.py:1"),
    ("import nothing_of_that_name\n", "found:    ModuleNotFoundError"),
    ("raise SystemExit(3)\n", "ended the process while it was loaded"),
    ("x = 1\n", "broken.py has no workloads at its top level"),
    ("from pto_wsp import jit\n@jit\ndef twice(x):\n    return x * 2\n", "layer = twice.lower(None, ...), with its arrays by name"),
    (MODEL + "\none, two = scale_some(1), scale_some(2)\n", "broken.py has 2 workloads at its top level"),
])
def test_a_file_that_gives_no_workload(model: Path, text: str, said: str) -> None:
    (model / "broken.py").write_text(text)
    assert said in run(model, "compile", "broken.py", code=2)


def test_a_mistake_on_the_command_line_has_no_line(model: Path) -> None:
    """What calls compile() here is the machinery of commands, which is no place of the user's; a line of the file is."""
    for arguments in (["--target", "ascend"], ["--arch", "unit"], ["--target", "interp", "--out", "package"]):
        said = run(model, "compile", "model.py", *arguments, code=2)
        assert said.startswith("error[") and "-->" not in said and "typer" not in said, said
    (model / "model.py").write_text(MODEL.replace("x * by + 1", "pto.cast(x, DType.I32)"))
    assert "--> model.py:9:" in run(model, "compile", "model.py", code=2)


def test_memory_is_shown_as_a_share_of_what_there_is(model: Path) -> None:
    run(model, "compile", "model.py", "--out", "package")
    lines = run(model, "inspect", "package").splitlines()
    used = next(line for line in lines if line.startswith("scaled  UB"))
    bytes_used = json.loads((model / "package" / "manifest.json").read_text())["kernels"][0]["on_chip"][0][1]
    assert used.split() == ["scaled", "UB", "#" + "." * 31, str(bytes_used), str(184 * 1024)]


NAMES_LIKE_MARKUP = """\
import numpy as np
from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload

F32 = DType.F32
bold, b = Tensor(np.arange(3), name="bold"), 0
X, Y = Tensor(np.ones((16, 4), np.float32), name="X"), Tensor(np.zeros((3, 4), np.float32), name="[/red]:b:")

@kernel
def copy(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]):
    pto.store(y, x)

@workload
def copies():
    for b in P(3):
        copy[b](X[bold[b]:bold[b] + 1], Y[b:b + 1])
"""


def test_brackets_and_colons_are_shown_as_they_are(tmp_path: Path) -> None:
    """Names, views and checks look like markup of what draws the tables: every word of the manifest is shown."""
    (tmp_path / "model.py").write_text(NAMES_LIKE_MARKUP)
    run(tmp_path, "compile", "model.py", "--target", "cpu_sim", "--out", "saved")
    shown = "".join(run(tmp_path, "inspect", "saved").split())
    manifest = json.loads((tmp_path / "saved" / "manifest.json").read_text())
    said = [part for check in manifest["checks"] for part in check.values()] + [tensor["name"] for tensor in manifest["tensors"]]
    assert any("X[bold[b]:bold[b] + 1]" in text for text in said) and "[/red]:b:" in said
    for text in said:
        assert "".join(text.split()) in shown, text


def test_all_that_the_command_shows_goes_through_one_function() -> None:
    users = {path.name for path in Path(cli.__file__).parent.glob("*.py") for node in ast.walk(ast.parse(path.read_text()))
             if (isinstance(node, ast.Call) and ast.unparse(node.func) in ("print", "Console", "sys.stdout.write"))
             or (isinstance(node, ast.ImportFrom) and node.module == "rich")}
    assert users == {"main.py"}


def test_how_files_came_about_is_no_difference(model: Path) -> None:
    """Dumps of passes and checksums differ, the packages do not; a schedule that is only recorded does."""
    run(model, "compile", "model.py", "--out", "plain")
    run(model, "compile", "model.py", "--out", "dumped", "--dump-ir")
    assert run(model, "diff", "plain", "dumped").endswith("\nthe packages are the same\n")
    (model / "model.py").write_text(MODEL + "\nnamed = scale_all().named('other')\n")
    run(model, "compile", "model.py", "--out", "named", "--workload", "named")
    assert "other" in run(model, "diff", "plain", "named", code=1)


def test_a_damaged_package_is_not_shown(model: Path) -> None:
    run(model, "compile", "model.py", "--out", "package")
    kernel = model / "package" / "kernels" / "aiv" / "scaled.cpp"
    kernel.write_text(kernel.read_text().replace("1.0f", "2.0f"))
    assert "kernels/aiv/scaled.cpp: its checksum is not the manifest's" in run(model, "inspect", "package", code=2)
    assert "has no listing of a kernel `nothing`" in run(model, "inspect", _fresh(model), "--kernel", "nothing", code=2)


def _fresh(model: Path) -> str:
    run(model, "compile", "model.py", "--out", "fresh")
    return "fresh"


@pytest.mark.slow
def test_the_command_as_a_process_of_its_own(model: Path) -> None:
    for arguments, code in (("--help",), 0), (("compile", "model.py"), 0), (("inspect", "nowhere"), 2):
        done = subprocess.run([sys.executable, "-m", "pto_wsp", *arguments], cwd=model, text=True, capture_output=True, timeout=300)
        assert done.returncode == code and "Traceback" not in done.stderr, done.stderr


def test_passes_prints_each_pipeline(tmp_path: Path) -> None:
    shown = run(tmp_path, "passes", "--target", "pto")
    lines = [line.split() for line in shown.splitlines() if line]
    assert lines[1] == ["pto"] and lines[2] == ["level", "pass", "what", "it", "does"]
    steps = find_target("pto").passes(CompileOptions())
    tables = json.loads(run(tmp_path, "passes", "--target", "pto", "--json"))["parts"]
    assert [(step.name, step.summary) for step in steps] == [tuple(row[1:]) for row in tables[0]["rows"]]
    assert [row[0] for row in tables[0]["rows"] if row[0]] == ["plan", "kernel", "part of a kernel", "tile program"]
    assert [row[0].split()[0] for row in tables[1]["rows"]] == ["passes='default'", "passes='clean'", "passes='none'"]
    every = json.loads(run(tmp_path, "passes", "--json"))["parts"]
    assert [part["title"] for part in every if part["title"]] == ["functions on tensors, for every target", *TARGETS]
    assert [row[1] for row in every[0]["rows"]] == [step.name for step in TENSOR_PASSES]
    assert "there is no target 'cpu'" in run(tmp_path, "passes", "--target", "cpu", code=2)
