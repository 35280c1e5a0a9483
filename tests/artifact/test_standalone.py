"""A saved program without pto_wsp: built with make, run as a command, linked from C, and imported as an extension; held against NumPy."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pytest

from pto_wsp import Program, load
from pto_wsp.cli.main import main
from tests.artifact.saved_program import expected, inputs, save

CC = shutil.which(os.environ.get("CC", "") or "gcc") or shutil.which("cc") or "cc"
PLAIN = "-std=gnu11 -O0 -fwrapv -ffp-contract=off -Wall -Wextra -Werror"
SANITIZED = "-std=gnu11 -O0 -fwrapv -ffp-contract=off -fsanitize=address,undefined -fno-sanitize-recover=undefined"


def away(folder: Path, *command: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, with nothing of this project in its environment."""
    done = subprocess.run(command, cwd=folder, env={"PATH": os.environ["PATH"], "LC_ALL": "C"}, capture_output=True, text=True,
                          check=False, timeout=300)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return done


def made(folder: Path, flags: str, *more: str) -> Path:
    """Build a saved program with make and return its folder."""
    away(folder, "make", "-j2", "-s", f"CC={CC}", f"CFLAGS={flags}", *more)
    return folder


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, in a folder that is not where it was saved to."""
    folder = save(tmp_path_factory.mktemp("saved"))
    return Path(shutil.move(folder, tmp_path_factory.mktemp("a folder, ünï") / "totals"))


@pytest.fixture(scope="module")
def built(saved: Path) -> Path:
    """The same, built without optimisation and with all warnings as errors."""
    return made(saved, PLAIN)


@pytest.fixture(scope="module")
def program(saved: Path) -> Program:
    """The same, loaded: what the command has to agree with."""
    return load(saved, threads=1)


def write_inputs(folder: Path) -> list[str]:
    """Write the input files and return the options that name them."""
    options = []
    for name, array in inputs().items():
        array.tofile(folder / f"{name}.raw")
        options += ["--in", f"{name}={folder / name}.raw"]
    return options


def command(folder: Path, *arguments: str, status: int = 0) -> str:
    """Run the command and return what it prints: of a failure its message."""
    done = away(folder, "build/totals", *arguments, status=status)
    return done.stdout if status == 0 else done.stderr


def fnv(data: bytes) -> int:
    """Return FNV-1a-64."""
    state = 0xCBF29CE484222325
    for byte in data:
        state = (state ^ byte) * 0x100000001B3 % (1 << 64)
    return state


@pytest.mark.slow
def test_the_command_computes_what_numpy_does(built: Path, tmp_path: Path, program: Program) -> None:
    text = command(built, *write_inputs(tmp_path), "--set", "scale=0.5", "--threads", "2", "--out", f"Sums={tmp_path}/out.raw")
    found = np.fromfile(tmp_path / "out.raw", np.float32).reshape(6, 4, 8)
    assert (found == expected(0.5)).all()
    program.run(**inputs(), scale=0.5)
    assert re.fullmatch(rf"tasks = 16\nthreads = [12]\nrun_ms = \d+\.\d+\ntotal_cycles = {program.stats.total_cycles}\n"
                        rf"checksum Sums = {fnv(expected(0.5).tobytes()):016x}\n", text), text


@pytest.mark.slow
def test_extents_and_numbers_are_arguments(built: Path, tmp_path: Path) -> None:
    write_inputs(tmp_path)
    x = inputs()["X"][:3]
    x.tofile(tmp_path / "X.raw")
    text = command(built, "--dim", "X=3,4,8", "--in", f"X={tmp_path}/X.raw", "--in", f"Lens={tmp_path}/Lens.raw", "--in",
                   f"Sums={tmp_path}/Sums.raw", "--set", "rows=3", "--set", "scale=2", "--out", f"Sums={tmp_path}/out.raw")
    assert "tasks = 7\n" in text      # rows of 0, 3 and 1, and one task for each row
    assert (np.fromfile(tmp_path / "out.raw", np.float32).reshape(6, 4, 8) == expected(2.0, 3)).all()


@pytest.mark.slow
def test_the_seed_decides_what_is_in_tensors_without_files(built: Path, tmp_path: Path) -> None:
    one, again, other = (command(built, "--set", "scale=1", "--seed", seed, "--out", f"X={tmp_path}/{k}")
                         for k, seed in enumerate(("7", "7", "8")))
    sums = [re.sub(r"run_ms.*\n", "", text) for text in (one, again, other)]
    assert sums[0] == sums[1] != sums[2]
    x = np.fromfile(tmp_path / "0", np.float32)
    assert set(x * 8) <= set(range(-8, 8)) and len(set(x)) > 8


def told(text: str) -> list[str]:
    """Return the lines that do not depend on the machine."""
    return [line for line in text.splitlines() if not line.startswith(("run_ms", "threads"))]


def told_by_card(text: str) -> list[str]:
    """Return the lines of `told` from the card of a run."""
    parts = json.loads(text)["parts"]
    values = {value["label"]: value["value"].replace(",", "") for part in parts if part["kind"] == "values" for value in part["values"]}
    outputs = [part["rows"] for part in parts if part.get("title") == "Outputs"]
    return [f"tasks = {values['tasks']}", f"total_cycles = {values['cycles']}", *(f"checksum {row[0]} = {row[-1]}" for row in outputs[0])]


def by_python(folder: Path, *arguments: str, code: int = 0) -> str:
    """Return what `pto-wsp run` prints: of a mistake its message."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as left:
        main(["run", str(folder), *arguments])
    assert (left.value.code or 0) == code, err.getvalue()
    return out.getvalue() if code == 0 else err.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [
    ("--seed", "7", "--set", "scale=0.5"), ("--set", "scale=-3", "--set", "rows=2"),
    ("--dim", "X=9,4,8", "--dim", "Sums=9,4,8", "--dim", "Half=9,4,8", "--dim", "Lens=9", "--set", "rows=9", "--set", "scale=1"),
])
def test_the_command_of_python_says_the_same(built: Path, arguments: tuple[str, ...]) -> None:
    assert told_by_card(by_python(built, *arguments, "--json")) == told(command(built, *arguments))


@pytest.mark.slow
def test_the_command_of_python_reads_and_writes_files(built: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", inputs()["X"])
    options = write_inputs(tmp_path)
    by_python(built, *options[2:], "--in", f"X={tmp_path}/x.npy", "--set", "scale=0.5", "--out", f"Sums={tmp_path}/s.npy", "--out",
              f"X={tmp_path}/x.raw", "--threads", "2")
    assert (np.load(tmp_path / "s.npy") == expected(0.5)).all()
    assert (tmp_path / "x.raw").read_bytes() == (tmp_path / "X.raw").read_bytes()


@pytest.mark.parametrize(("arguments", "message"), [
    (("--in", "X"), "--in takes NAME=VALUE"), (("--in", "Z=z"), "--in: the program binds no tensor called `Z`"),
    (("--set", "scal=1"), "--set: the program has no number called `scal`"), (("--set", "rows=1.5"), "--set rows takes a whole number"),
    (("--dim", "X=3,4"), "--dim X takes 3 extents"), (("--in", "X=/absent/x"), "/absent/x cannot be read"),
    (("--in", "X=/absent/x.npy"), "/absent/x.npy cannot be read"), (("--in", f"X={__file__}"), "does not hold tensor `X`"),
    (("--set", "scale=1", "--out", "Sums=/absent/s"), "/absent/s cannot be written"),
    (("--threads", "0", "--set", "scale=1"), "option `threads`"),
])
def test_mistakes_at_the_command_of_python(saved: Path, arguments: tuple[str, ...], message: str) -> None:
    assert message in by_python(saved, *arguments, code=2)


@pytest.mark.slow
def test_help_lists_what_is_bound(built: Path) -> None:
    text = command(built, "--help")
    assert "  X                float32      [6, 4, 8]  in\n" in text and "  rows             whole  (6)\n" in text
    assert "  Half             float32      [6, 4, 8]  inout, between tasks\n" in text and text.startswith("usage: totals [--in")


MISTAKES: dict[str, tuple[tuple[str, ...], int, str]] = {
    "unknown option": (("--thread", "2"), 2, "there is no option `--thread`: --help lists them"),
    "no value": (("--threads",), 2, "--threads takes a value"),
    "no threads": (("--threads", "0"), 2, "--threads takes a whole number from 1 to 1024, found `0`"),
    "no number of threads": (("--threads", "2x"), 2, "--threads takes a whole number from 1 to 1024, found `2x`"),
    "seed": (("--seed", "-1"), 2, "--seed takes a whole number from 0 on, found `-1`"),
    "no equals": (("--in", "X"), 2, "--in takes NAME=FILE, found `X`"),
    "unknown tensor": (("--in", "Z=z.raw"), 2, "the program binds no tensor called `Z`"),
    "unknown number": (("--set", "Scale=1"), 2, "the program has no number called `Scale`"),
    "whole number": (("--set", "rows=1.5"), 2, "--set rows takes a whole number, found `1.5`"),
    "real number": (("--set", "scale=half"), 2, "--set scale takes a real number, found `half`"),
    "rank": (("--dim", "X=3,4"), 2, "--dim X takes 3 extents with commas between them, found `3,4`"),
    "huge": (("--dim", "X=2000000000,2000000000,2000000000"), 2, "tensor `X` is too large"),
    "no file": (("--in", "X=absent.raw"), 3, "absent.raw: No such file or directory"),
    "short file": (("--in", "X=Makefile", "--dim", "X=600,4,8"), 3, "Makefile holds less than the 76800 bytes of tensor `X`"),
    "long file": (("--in", "X=Makefile", "--dim", "X=1,1,1"), 3, "Makefile holds more than the 4 bytes of tensor `X`"),
    "no value of a symbol": ((), 1, "symbol `scale` has no value"),
    "negative axis": (("--set", "rows=-1", "--set", "scale=1"), 1, "symbol `rows` is -1: expected 0 .. 9223372036854775807"),
    "outside": (("--dim", "X=4,4,8", "--set", "scale=1"), 1,
                "an index lies outside its tensor: `X[b]`\n  at model.py:23\n  expected: 0 .. 3\n  found: 4\n  in the iteration b = 4\n"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_end_with_a_message_and_a_status(built: Path, case: str) -> None:
    arguments, status, message = MISTAKES[case]
    assert f"error: {message}" in command(built, *arguments, status=status)


@pytest.mark.slow
def test_a_file_that_cannot_be_written(built: Path) -> None:
    assert "/absent/out: No such file" in command(built, "--set", "scale=1", "--out", "Sums=/absent/out", status=3)


@pytest.mark.slow
def test_building_leaves_what_load_verifies(built: Path) -> None:
    assert (built / "build/libtotals.so").is_file() and load(built).plan.name == "totals"
    assert away(built, "make", "-n", "clean").stdout == "rm -rf build\n"


CALLER = r"""
#include <stdio.h>
#include "totals.h"

int main(void)
{
    float x[6 * 4 * 8], sums[6 * 4 * 8] = {0};
    int lens[6] = {1, 1, 1, 1, 1, 2};
    for (int k = 0; k < 6 * 4 * 8; ++k)
        x[k] = (float)k;
    pto_program_array arrays[4] = {{0}};
    pto_program_value values[2] = {{0}};
    const pto_program_tensor *tensors;
    for (int k = pto_program_tensors(totals_program(), &tensors) - 1; k >= 0; --k) {
        if (tensors[k].is_made)
            continue;
        void *data = tensors[k].name[0] == 'X' ? (void *)x : tensors[k].name[0] == 'L' ? (void *)lens : (void *)sums;
        arrays[k] = (pto_program_array){data, {6, 4, 8}, {32, 8, 1}, tensors[k].rank, 1};
        if (tensors[k].rank == 1)
            arrays[k].stride[0] = 1;
    }
    values[1] = (pto_program_value){.number = 0.5, .is_bound = 1};
    pto_program_result result;
    if (pto_program_run(totals_program(), arrays, values, 2, &result) != 0) {
        puts(result.message);
        return 1;
    }
    printf("%s %d %g %g\n", pto_program_name(totals_program()), (int)result.n_tasks, sums[33], sums[6 * 4 * 8 - 1]);
    return 0;
}
"""


@pytest.mark.slow
def test_c_links_the_library(built: Path, tmp_path: Path) -> None:
    (tmp_path / "caller.c").write_text(CALLER)
    away(tmp_path, CC, "-Wall", "-Wextra", "-Werror", "-o", "caller", "caller.c", f"-I{built}", f"-I{built}/csrc/include",
         f"-L{built}/build", "-ltotals")
    text = away(tmp_path, "env", f"LD_LIBRARY_PATH={built}/build", "./caller").stdout
    assert text == "totals 13 16.5 191\n"      # 33 * 0.5, and 191 * 0.5 twice


@pytest.mark.slow
def test_the_command_is_clean_under_sanitizers(saved: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(saved, tmp_path / "copied", ignore=shutil.ignore_patterns("build")))
    made(folder, SANITIZED)
    command(folder, *write_inputs(tmp_path), "--set", "scale=0.5", "--threads", "2", "--out", f"Sums={tmp_path}/out.raw")
    assert (np.fromfile(tmp_path / "out.raw", np.float32).reshape(6, 4, 8) == expected(0.5)).all()
    for arguments, status, message in MISTAKES.values():
        assert f"error: {message}" in command(folder, *arguments, status=status)


USER = """
import sys
sys.modules["pto_wsp"] = None                    # whoever imports it gets an ImportError
import numpy as np
import totals

given = dict(np.load(sys.argv[1]))
result = totals.run(threads=2, scale=0.5, **given)
np.save(sys.argv[2], given["Sums"])
print(result.tasks, result.total_cycles, [t.name for t in totals.tensors() if not t.optional], totals.symbols()[0])
for mistake in ({"Z": 1}, {"X": 3}, {"X": given["X"].astype("f8")}, {"X": given["X"][:4].copy()}, {"scale": "a"}, {"rows": -1}, {"X": None},
                {"Lens": given["Sums"].reshape(-1).view("i4")[:6]}, {"threads": -1}):
    try:
        totals.run(**{"scale": 1.0, **given, **mistake})
    except totals.ProgramError as problem:
        print(problem.status, str(problem).splitlines()[0])
"""

SAID = """\
16 {cycles} ['X', 'Lens', 'Sums'] Symbol(name='rows', kind='whole', default=6)
5 the program has nothing called `Z` to bind: it has X, Half, Lens, Sums, rows, scale
5 tensor `X` is bound to something that is no array: int
5 tensor `X` is bound to an array of another dtype: expected float32, found float64
2 an index lies outside its tensor: `X[b]`
5 symbol `scale` is bound to a value of another kind: 'a'
5 symbol `rows` is -1: expected 0 .. 9223372036854775807
5 tensor `X` is bound to something that is no array: NoneType
5 `Lens` is read as a scalar and shares memory with `Sums`, which tasks write
5 threads is a whole number from 0 to 1024, found -1
"""


@pytest.mark.slow
def test_the_extension_needs_no_pto_wsp(saved: Path, tmp_path: Path, program: Program) -> None:
    folder = Path(shutil.copytree(saved, tmp_path / "copied", ignore=shutil.ignore_patterns("build")))
    away(tmp_path, sys.executable, str(folder / "build_ffi.py"))
    np.savez(tmp_path / "given.npz", **inputs())
    (folder / "user.py").write_text(USER)
    text = away(tmp_path, sys.executable, str(folder / "user.py"), "given.npz", "sums.npy").stdout
    assert (np.load(tmp_path / "sums.npy") == expected(0.5)).all()
    program.run(**inputs(), scale=0.5)
    assert text == SAID.format(cycles=program.stats.total_cycles)
    assert load(folder).plan.name == "totals"          # what was built beside it is no part of it
