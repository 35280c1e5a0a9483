"""The measurement of task runtimes runs, has a row for each graph, and refuses a run out of order; the times are not judged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.schedulers.__main__ import GRAPHS, HERE, markdown, table

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.bench
def test_every_graph_has_a_row(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    done = subprocess.run([sys.executable, "-m", "tests.benchmarks.schedulers", "--rounds", "1", "--threads", "2", "--peers", "",
                           "--small", "--json", str(file)], cwd=ROOT, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    rows = json.loads(file.read_text())
    assert [row["graph"] for row in rows] == [*GRAPHS]
    assert all(row[phase] > 0 for row in rows for phase in ("build", "inferred", "run", "all"))
    assert all(row["all"] > row["run"] for row in rows)


def test_the_best_peer_is_the_one_compared_with() -> None:
    rows = [{"peer": "pto_wsp", "threads": 2, "graph": "chain", "build": 10.0, "inferred": 90.0, "run": 5.0, "all": 30.0},
            {"peer": "slow", "threads": 2, "graph": "chain", "run": 40.0, "all": 60.0},
            {"peer": "fast", "threads": 2, "graph": "chain", "run": 20.0, "all": 90.0},
            {"peer": "other", "threads": 1, "graph": "chain", "run": 1.0, "all": 1.0}]
    assert table(rows)[1] == ["chain", "2", "10.0", "90.0", "5.0", "10", "20.0 (fast)", "4.0", "30.0", "60.0 (slow)", "2.0"]
    assert "| chain | 2 | 10.0 | 90.0 | 5.0 | 10 | 20.0 (fast) | 4.0 | 30.0 | 60.0 (slow) | 2.0 |" in markdown(rows, "command")


def test_a_task_that_runs_early_or_twice_is_found(tmp_path: Path) -> None:
    source = tmp_path / "wrong.c"
    source.write_text('#include "graphs.h"\nint main(int argc, char **argv) { (void)argv; make_graph(1); check_order = 1; now_ns(); '
                      "report(0, graph_names[0], least(0, 0));\n"
                      "for (int i = 0; i < N_TASKS; i++) body(argc == 2 && i == 7 ? 6 : i); if (argc == 3) { body(5); }\n"
                      "if (argc == 4) { runs[4] = 0; body(5); runs[4] = 1; runs[5] = 1; } check_all(1); return 0; }\n")
    program = tmp_path / "wrong"
    subprocess.run(["cc", f"-I{HERE}", "-o", str(program), str(source)], check=True)
    found = [subprocess.run([str(program), *["x"] * n], text=True, capture_output=True) for n in range(4)]
    assert [done.returncode for done in found] == [0, 1, 1, 1]
    assert [done.stderr for done in found[1:]] == [
        "chain: task 0 ran 1 times, 1 ran before a predecessor\n", "chain: task 5 ran 2 times, 0 ran before a predecessor\n",
        "chain: task 0 ran 1 times, 1 ran before a predecessor\n"]
