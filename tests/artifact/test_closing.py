"""Libraries are closed with the last program that uses them, never before, and none while the process ends."""

from __future__ import annotations

import gc
import shutil
import sys
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from pto_wsp.artifact import build
from pto_wsp.artifact.build import load_runtime
from pto_wsp.targets import cpu_sim
from tests.artifact.small_program import SCRIPT, finish, small, start
from tests.artifact.test_toolchain import script
from tests.caches import with_runtime

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc/self/maps is Linux's")


def mapped(folder: Path | None) -> int:
    """Return how many maps of the process are of files below a folder."""
    return sum(f"{folder}/" in line for line in Path("/proc/self/maps").read_text().splitlines())


@pytest.mark.slow
def test_a_library_is_closed_with_the_last_program_that_uses_it() -> None:
    one, found = small(factor=121)
    two, _ = small(factor=121)
    folder = one.artifact_dir
    assert mapped(folder) > 0
    cpu_sim.open_artifact.cache_clear()
    del two
    gc.collect()
    assert mapped(folder) > 0
    one.run()
    assert (found == 242).all()
    del one
    gc.collect()
    assert mapped(folder) == 0
    again, found = small(factor=121)
    again.run()
    assert (found == 242).all() and mapped(folder) > 0


@pytest.mark.slow
def test_what_a_run_left_can_be_read_when_its_program_is_gone() -> None:
    program, _ = small(factor=122)
    program.run()
    folder, stats, trace, recorder = program.artifact_dir, program.stats, program.trace, program.compiled.runner.recorder  # type: ignore[union-attr]
    cpu_sim.open_artifact.cache_clear()
    del program
    gc.collect()
    assert mapped(folder) > 0      # a record keeps the library that wrote it
    assert stats.task_count == 2 and trace is not None and recorder.raw_columns().n_nodes == 2
    del stats, trace, recorder
    gc.collect()
    assert mapped(folder) == 0


@pytest.mark.slow
def test_many_programs_that_are_dropped_leave_few_maps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = load_runtime()
    monkeypatch.setattr(build, "load_runtime", lambda: opened)
    monkeypatch.setenv("CC", script(tmp_path / "quick", f'exec {shutil.which("cc")} "$@" -O0'))
    monkeypatch.setattr(cpu_sim, "open_artifact", lru_cache(maxsize=4)(cpu_sim.open_artifact.__wrapped__))   # 32 take eight times as long
    artifacts, counts = Path(str(opened.path.parent)), []
    for factor in range(200, 214):
        program, found = small(factor=factor)
        program.run()
        assert (found == 2 * factor).all()
        del program
        gc.collect()
        counts.append(mapped(artifacts))
    assert max(counts[6:]) == counts[6] and np.diff(counts[6:]).max() == 0


@pytest.mark.slow
@pytest.mark.parametrize("last", [
    "", "import gc; gc.disable(); loop = [program]; loop.append(loop); del program",
    "import threading\nran = lambda: [program.run() for _ in range(99)]\nthreading.Thread(target=ran, daemon=True).start()"])
def test_a_process_ends_well_with_programs_that_are_still_there(last: str, tmp_path: Path) -> None:
    model = tmp_path / "model.py"
    model.write_text(f"{SCRIPT}\n{last}\n")
    finish(start(model, with_runtime(tmp_path / "cache")))
