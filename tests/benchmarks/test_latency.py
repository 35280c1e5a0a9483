"""The measurement of first results runs and says what it is about; the times are not judged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.bench
@pytest.mark.slow
def test_every_measure_has_a_row(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    done = subprocess.run([sys.executable, "-m", "tests.benchmarks.latency", "--repeats", "1", "--json", str(file)], cwd=ROOT, text=True,
                          capture_output=True)
    assert done.returncode == 0, done.stderr
    rows = {row["what"]: row for row in json.loads(file.read_text())}
    assert {"python starts", "import pto_wsp", "first result, cold", "first result, cached", "first call of a decode layer, cached",
            "f.plan of a decode layer", "f.plan of two decode layers",
            "compile() from the cache, in process", "import numpy", "first result, numpy"} <= rows.keys()
    assert all(row["median_ms"] >= row["ms"] > 0 for row in rows.values())
    assert rows["compile() from the cache, in process"]["ms"] < rows["first result, cold"]["ms"]
