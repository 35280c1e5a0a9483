"""Commands on a Python file with workloads: run, simulate, tune, report, check, inspect, explain."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from pto_wsp.cli.runs import fnv
from tests.cli.commands import MODEL, command

INTERP = ("--target", "interp")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder with a blank in its name, with model.py."""
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "model.py").write_text(MODEL)
    return folder


def test_run_shows_what_it_took_and_what_came_out(model: Path) -> None:
    ended = command(model, "run", "model.py", "--workload", "own", *INTERP, "--json")
    assert ended.code == 0 and ended.card["title"] == "own" and ended.values()["tasks"] == "8"
    (row,) = ended.table("Outputs")
    assert row == ["Y", "float32", "[8, 4, 8]", "2", "2", "0", f"{fnv(np.full((8, 4, 8), 2, np.float32).tobytes()):016x}"]
    text = command(model, "run", str(model / "model.py"), "-w", "own", *INTERP).out
    assert text.startswith("own  Run · interp\n") and "executor 0 DDDD" in text and row[-1] in text


def test_run_binds_files_numbers_and_a_seed(model: Path) -> None:
    np.save(model / "a.npy", np.full((8, 4, 8), 3, np.float32))
    read = command(model, "run", "model.py", "-w", "given", *INTERP, "--in", "A=a.npy", "--set", "n=8", "--out", "B=b.npy", "--json")
    assert read.code == 0, read.err
    assert (np.load(model / "b.npy") == 6).all() and read.values()["tasks"] == "8"
    sums = [command(model, "run", "model.py", "-w", "given", *INTERP, "--set", "n=2", "--seed", seed, "--json").table("Outputs")[0][-1]
            for seed in ("7", "7", "8")]
    assert sums[0] == sums[1] != sums[2]


def test_run_on_cpu_sim_and_on_what_was_saved(model: Path) -> None:
    command(model, "compile", "model.py", "-w", "own", "--target", "cpu_sim", "--out", "saved")
    first, again = (command(model, "run", *what, "--json") for what in (("model.py", "-w", "own"), ("saved", "--in", "X=x.raw"))
                    if (model / "x.raw").write_bytes(np.ones((8, 4, 8), np.float32).tobytes()))
    assert first.table("Outputs") == again.table("Outputs") and "cpu_sim" in first.card["subtitle"]
    assert command(model, "run", "saved", "--arch", "unit").err.startswith("error[C108]: --arch does not go with a saved program")
    assert command(model, "simulate", "saved", "--arch", "ascend_910b").code == 0


def test_simulate_compares_every_combination(model: Path) -> None:
    """A task reads, doubles and writes 32 elements; 8 tasks on one executor take 8 times one, on four 2 times."""
    ended = command(model, "simulate", "model.py", "-w", "own", *INTERP, "--dispatch", "round_robin(4)", "--dispatch", "affinity(b, 2)",
                    "--window", "1", "--window", "64", "--json")
    rows = {row[0]: int(row[2].replace(",", "")) for row in ended.table("Schedules")}
    one = rows["as compiled"] // 8
    assert rows == {"as compiled": 8 * one, "dispatch=round_robin(4), window=1": 8 * one, "dispatch=round_robin(4), window=64": 2 * one,
                    "dispatch=affinity(b, 2), window=1": 8 * one, "dispatch=affinity(b, 2), window=64": 4 * one}
    assert list(rows.values()) == sorted(rows.values()) and "-75% of" in ended.card["sentence"]


def test_simulate_says_what_is_refused_and_goes_on(model: Path) -> None:
    ended = command(model, "simulate", "model.py", "-w", "own", *INTERP, "--dispatch", "affinity(z)", "--dispatch", "work_steal", "--json")
    rows = {row[0]: row for row in ended.table("Schedules")}
    assert ended.code == 0 and rows["dispatch=affinity(z)"][2] == "-" and "S103" in rows["dispatch=affinity(z)"][5]
    assert rows["dispatch=work_steal"][2] != "-"


@pytest.mark.parametrize(("arguments", "said"), [
    (("--dispatch", "round_robbin(4)"), "did you mean round_robin?"), (("--dispatch", "round_robin"), "does not take these arguments"),
    (("--dispatch", "round_robin(4)(5)"), "--dispatch does not take"), (("--window", "0"), "whole number above 0"),
    (("--ready", "fifo(3)"), "does not take these arguments"), (("--arch", "ascend_910"), "ascend_910b"),
    (("--dispatch", "__import__('os')"), "--dispatch does not take"), (("--dispatch", "affinity(b, 0)"), ""),
])
def test_directives_that_do_not_fit(model: Path, arguments: tuple[str, ...], said: str) -> None:
    ended = command(model, "simulate", "model.py", "-w", "own", *INTERP, *arguments)
    assert ended.code == 2 and ended.err.startswith("error[") and said in ended.err


def test_tune_finds_a_schedule_and_saves_its_program(model: Path) -> None:
    ended = command(model, "tune", "model.py", "-w", "own", "--budget", "12", "--save", "best", "--json")
    assert ended.code == 0, ended.err
    (rows,) = [part["rows"] for part in ended.card["parts"] if part["kind"] == "compared"]
    given, best = next(row for row in rows if row["name"] == "as given"), rows[0]
    assert best["cycles"] * 4 == given["cycles"] and ended.values()["tried"] == "12" and ended.card["foot"] == "saved: best"
    assert re.fullmatch(r"best = own\(\)\.dispatch\(DispatchPolicy\.\w+\(.*4\)\)", ended.card["parts"][-1]["text"])
    assert command(model, "run", "best", "--json").values()["cycles"] == f"{best['cycles']:,}"


def test_report_is_written_and_named(model: Path) -> None:
    ended = command(model, "report", "model.py", "-w", "own", *INTERP, "-o", "page.html")
    assert ended.code == 0 and ended.out.rstrip().endswith("page.html") and "<html" in (model / "page.html").read_text()
    assert "error[C108]" in command(model, "report", "model.py", "-w", "own", *INTERP, "-o", "no/page.html").err


RACE = MODEL + "\n@workload\ndef race():\n    for b in P(8):\n        doubled[b](X[b], Y[0])\n"


def test_check_ends_with_1_where_something_is_found(model: Path) -> None:
    ended = command(model, "check", "model.py", "-w", "own", "--json")
    assert ended.code == 0 and {row[0] for row in ended.table("")} == {"proved"} and ended.card["sentence"].startswith("0 findings")
    (model / "race.py").write_text(RACE)
    found = command(model, "check", "race.py", "-w", "race")
    assert found.code == 1 and "error[W201]" in found.out and "race.py:26" in found.out and found.err == ""
    assert command(model, "check", "race.py", "-w", "rac").code == 2


def test_inspect_shows_a_workload_and_its_kernels(model: Path) -> None:
    text = command(model, "inspect", "model.py", "-w", "own").out
    assert "‖ for b in P(8):" in text and "D doubled[b]  8 tasks   x in X[b]   y out Y[b]" in text and "store y" in text
    assert "store y" in command(model, "inspect", "model.py", "--kernel", "doubled").out
    assert "did you mean doubled?" in command(model, "inspect", "model.py", "--kernel", "double").err


def test_explain_says_why_a_task_ran_when_it_did(model: Path) -> None:
    text = command(model, "explain", "model.py", "doubled[b=3]", "-w", "own", *INTERP).out
    assert "doubled[b=3]" in text
    assert command(model, "explain", "model.py", "nothing", "-w", "own", *INTERP).err.startswith("error[R112]")


def test_what_a_file_prints_is_kept_out_of_json(model: Path) -> None:
    (model / "loud.py").write_text("print('hello')\n" + MODEL)
    ended = command(model, "run", "loud.py", "-w", "own", *INTERP, "--json")
    assert ended.card["title"] == "own" and "hello" in ended.err
    assert command(model, "run", "loud.py", "-w", "own", *INTERP).out.startswith("hello\nown  Run")


def test_a_file_sees_its_own_arguments_and_is_no_other_module(model: Path) -> None:
    (model / "json.py").write_text("import sys\nassert sys.argv == ['json.py'] and __name__ == 'file_json', (sys.argv, __name__)\n" + MODEL)
    assert command(model, "inspect", "json.py", "-w", "own", "--json").code == 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("text", "said"), [
    ("raise ValueError('[red]no[/red]')\n", "found:    ValueError: [red]no[/red]"), ("import sys; sys.exit()", "ended the process"),
    ("def f(:\n", "could not be loaded"), ("\x00", "could not be loaded"), ("# \xff", ""), ("x = 1", "has no workloads at its top level"),
    (MODEL + "\n@workload\ndef bad():\n    1 / 0\n", "could not be traced\n  --> broken.py:25"), ("f = lambda: f()\nf()", "RecursionError"),
    ("raise ValueError('\\x1b[2J')", "\\x1b[2J"),
])
def test_files_that_give_no_workload(model: Path, text: str, said: str) -> None:
    (model / "broken.py").write_bytes(text.encode("latin-1"))
    for name in ("run", "check", "report", "tune", "simulate", "inspect"):
        ended = command(model, name, "broken.py", *(("-w", "bad") if "def bad" in text else ()))
        assert ended.code == 2 and ended.err.startswith("error[C108]") and said in ended.err and "\x1b" not in ended.err


@pytest.mark.sampled(3)
@pytest.mark.parametrize("what", ["", ".", "absent.py", "/dev/null", "a\x1b[2Jb", "x" * 300])
def test_paths_that_are_neither_file_nor_program(model: Path, what: str) -> None:
    for name in ("run", "check", "inspect", "simulate"):
        ended = command(model, name, what)
        assert ended.code == 2 and re.match(r"error\[C1\d\d\]", ended.err) and "\x1b" not in ended.err, ended.err


def test_names_that_are_near_are_suggested(model: Path) -> None:
    assert "did you mean given?" in command(model, "run", "model.py", "-w", "givn").err
    assert "did you mean A?" not in command(model, "run", "model.py", "-w", "given", "--in", "QQQ=a").err
    assert "did you mean n?" in command(model, "run", "model.py", "-w", "given", *INTERP, "--set", "nn=3").err
    assert "'simulate'" in command(model, "simulat", "model.py").err and "--target" in command(model, "run", "model.py", "--targt", "x").err
