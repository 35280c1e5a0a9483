"""The benchmarks compute what they say: every work on little data, ours and each peer that is installed; nothing is timed."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks import workloads
from tests.benchmarks.page import put_between
from tests.benchmarks.peers.catalogue import PEERS, TENSORS, prepare
from tests.benchmarks.works.catalogue import WORKS, draw
from tests.benchmarks.works.work import missing_share, relative_error

ROOT = Path(__file__).resolve().parents[2]


FAST = ("softmax",)


@pytest.mark.parametrize("key", [pytest.param(key, marks=() if key in FAST else pytest.mark.slow) for key in WORKS])
def test_our_work_agrees_with_numpy(key: str) -> None:
    work = WORKS[key]
    given = draw(work, small=True)
    run, out = work.prepare(given, 2)
    run()
    assert work.error(out, work.expected(given)) <= work.tolerance


# torchc compiles for seconds a work, and the benchmark itself checks its results
@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [name for name, peer in PEERS.items() if peer.installed and name not in ("torchc", TENSORS)])
@pytest.mark.parametrize("key", WORKS)
def test_peers_agree_with_numpy(key: str, name: str) -> None:
    work = WORKS[key]
    given = draw(work, small=True)
    found = prepare(name, key, given, 2)
    if found is None:
        return
    run, result = found
    run()
    assert work.error(result(), work.expected(given)) <= work.tolerance


@pytest.mark.parametrize("key", [pytest.param(key, marks=() if key == "softmax" else pytest.mark.slow) for key in WORKS])
def test_functions_on_tensors_agree_with_numpy(key: str) -> None:
    work = WORKS[key]
    given = draw(work, small=True)
    found = prepare(TENSORS, key, given, 2)
    assert found is not None
    run, result = found
    run()
    assert work.error(result(), work.expected(given)) <= work.tolerance


@pytest.mark.parametrize("found, error", [
    ([1.0, 2.0], 0.0), ([1.0, 2.1], 0.05), ([1.0, float("nan")], float("inf")), ([1.0], float("inf")),
])
def test_relative_error(found: list[float], error: float) -> None:
    assert relative_error(np.array(found), np.array([1.0, 2.0])) == pytest.approx(error)


def test_a_table_is_put_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- t -->\nold\n<!-- /t -->\nb\n")
    put_between(page, "t", "new\nlines")
    assert page.read_text() == "a\n<!-- t -->\nnew\nlines\n<!-- /t -->\nb\n"
    with pytest.raises(SystemExit, match="no marks"):
        put_between(page, "u", "new")


def test_missing_share() -> None:
    assert missing_share(np.array([[3, 1], [5, 9]]), np.array([[1, 3], [5, 6]])) == 0.25


@pytest.mark.slow
def test_the_command_measures_and_writes_rows(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    done = subprocess.run([sys.executable, "-m", "tests.benchmarks.workloads", "--small", "--rounds", "1", "--works", "softmax,index",
                           "--peers", "numpy", "--markdown", "--json", str(file)], cwd=ROOT, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    rows = json.loads(file.read_text())
    assert sorted((row["work"], row["peer"]) for row in rows) == [
        ("index", "numpy"), ("index", "pto_wsp"), ("softmax", "numpy"), ("softmax", "pto_wsp")]
    for row in rows:
        assert row["ms"] > 0 and row["limit_fraction"] == pytest.approx(row["limit_ms"] / row["ms"]) and row["error"] <= 1e-5
    assert "| softmax of the rows of [4096, 1024] f32 |" in done.stdout


@pytest.mark.slow
def test_a_wrong_result_is_an_error_and_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = dataclasses.replace(WORKS["softmax"], error=lambda found, expected: 0.5)
    monkeypatch.setattr(workloads, "WORKS", {"softmax": wrong})
    with workloads.workers(["limit", "numpy"], 1, tmp_path) as everyone:
        monkeypatch.setattr(everyone[1], "ask", lambda **order: {"error": 0.5} if order["do"] == "prepare" else {})
        rows = workloads.measure("softmax", everyone, 1, tmp_path, small=True)
    assert [(row["peer"], row["ms"], row["limit_fraction"], row["error"]) for row in rows] == [("numpy", None, None, 0.5)]


@pytest.mark.slow
def test_a_peer_that_fails_is_a_row_with_its_last_words(tmp_path: Path) -> None:
    with workloads.workers(["limit", "no_such_peer"], 1, tmp_path) as everyone:
        rows = workloads.measure("softmax", everyone, 1, tmp_path, small=True)
    assert [(row["peer"], row["ms"]) for row in rows] == [("no_such_peer", None)]
    assert "KeyError" in rows[0]["failure"]
