"""Searches by executors: processes, MPI, a cluster of dask; with progress, with a lost worker, and with Ctrl-C."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from tests.search.on_cluster import made, search

ROOT = Path(__file__).resolve().parents[2]
MPIRUN = shutil.which("mpirun") or shutil.which("mpirun", path=str(Path(sys.executable).parent))


class Losing(ProcessPoolExecutor):
    """A pool whose worker ends when the part of this number is given out."""

    def __init__(self, at: int) -> None:
        super().__init__(1, mp_context=get_context("spawn"))
        self.at, self.n = at, 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.n += 1
        if self.n == self.at:
            super().submit(os._exit, 3)
        return super().submit(fn, *args, **kwargs)


@pytest.mark.slow
@pytest.mark.parametrize("at", [1, 5])
def test_what_a_lost_worker_was_to_simulate_is_simulated_here(at: int) -> None:
    with Losing(at) as pool, pytest.warns(UserWarning, match=r"has lost work, .*BrokenProcessPool") as caught:
        found = search(pool)
    assert len(caught) == 1
    assert found.trials == search(None).trials and pool.n >= at


class Pressed(ThreadPoolExecutor):
    """A pool that presses Ctrl-C when the part of this number is given out, and says which parts it has begun."""

    def __init__(self, at: int) -> None:
        super().__init__(1)
        self.at, self.given = at, list[Future[Any]]()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.given.append(super().submit(fn, *args, **kwargs))
        if len(self.given) == self.at:
            signal.raise_signal(signal.SIGINT)
        return self.given[-1]


@pytest.mark.slow
def test_ctrl_c_ends_a_search_with_the_best_so_far() -> None:
    with Pressed(6) as pool:
        found = search(pool)
    whole = search(None)
    assert found.was_stopped and "stopped by Ctrl-C" in str(found)
    assert found.trials == whole.trials[:len(found.trials)] and 0 < len(found.trials) < len(whole.trials)
    assert all(future.done() for future in pool.given)


def test_progress_counts_what_workers_have_done(capsys: pytest.CaptureFixture[str]) -> None:
    from pto_wsp import auto_schedule

    with ThreadPoolExecutor(2) as pool:
        auto_schedule(made(), budget=20, executor=pool, progress=True)
    assert "auto_schedule" in capsys.readouterr().err


def script(*words: str) -> subprocess.CompletedProcess[str]:
    usual = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PYTHONPATH": str(ROOT)}
    return subprocess.run(words, cwd=ROOT, env={**os.environ, **usual}, text=True, capture_output=True, timeout=280)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(MPIRUN is None, reason="no mpirun")
def test_mpi_simulates_the_same() -> None:
    pytest.importorskip("mpi4py")
    done = script(str(MPIRUN), "--oversubscribe", "-n", "3", sys.executable, "-m", "mpi4py.futures", "tests/search/on_cluster.py", "mpi")
    assert done.returncode == 0 and "the same" in done.stdout, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["dask", "dask killed"])
def test_a_cluster_of_dask_simulates_the_same(kind: str) -> None:
    pytest.importorskip("distributed")
    done = script(sys.executable, "tests/search/on_cluster.py", kind)
    assert done.returncode == 0 and "the same" in done.stdout, done.stdout + done.stderr
