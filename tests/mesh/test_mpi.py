"""Programs over MPI: equal to NumPy and to one process, bytes as said, and what the other ranks say when one fails."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("mpi4py")
ROOT = Path(__file__).resolve().parents[2]
MPIRUN = shutil.which("mpirun") or shutil.which("mpirun", path=str(Path(sys.executable).parent))
pytestmark = [pytest.mark.skipif(MPIRUN is None, reason="no mpirun"), pytest.mark.timeout(300), pytest.mark.slow]


def start(n: int, *words: str, **more: str) -> subprocess.Popen[str]:
    """Start ranks that run a script; `more`: variables of the environment."""
    assert MPIRUN is not None
    usual = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([MPIRUN, "--oversubscribe", "-n", str(n), sys.executable, *words], cwd=ROOT,
                            env={**os.environ, **usual, **more}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def run(n: int, *words: str, **more: str) -> tuple[int, str]:
    """Return the exit code and the output of ranks that run a script. A rank that hangs does so for longer than this waits."""
    ranks = start(n, *words, **more)
    try:
        text, _ = ranks.communicate(timeout=240)      # with an empty cache, on a machine with other work
    except subprocess.TimeoutExpired:
        ranks.kill()
        raise
    return ranks.returncode, text


def fault(what: str, n: int = 2) -> tuple[int, str]:
    return run(n, "tests/mesh/over_mpi/faults.py", what)


def test_generated_moves_are_numpys() -> None:
    code, text = run(4, "-m", "mpi4py", "tests/mesh/over_mpi/moves.py", "12")
    assert code == 0, text
    assert all(f"rank {rank}: 12 moves" in text for rank in range(4)), text


def test_programs_of_every_kind_are_numpys() -> None:
    n = 3       # of other numbers of ranks are the programs below and the drawn moves
    code, text = run(n, "-m", "mpi4py", "tests/mesh/over_mpi/features.py")
    assert code == 0, text
    assert all(f"rank {rank}: memory" in text for rank in range(n)), text


@pytest.mark.parametrize(("n", "target"), [(2, "cpu_sim"), (4, "interp")])
def test_functions_on_tensors_give_the_bits_of_one_process(n: int, target: str) -> None:
    code, text = run(n, "-m", "mpi4py", "tests/mesh/over_mpi/functions.py", target)
    assert code == 0, text
    assert all(f"rank {rank}: 5 functions" in text for rank in range(n)), text


def test_a_run_without_faults() -> None:
    code, text = fault("no fault")
    assert code == 0, text


def test_a_rank_that_hangs_before_a_run_is_named() -> None:
    code, text = fault("hangs")
    assert code != 0, text
    assert "rank 0 waited 5 s for rank 1" in text and "error[M106]" in text and "faults.py" in text, text


def test_a_rank_that_hangs_in_a_run_is_named_with_collective_and_line() -> None:
    code, text = fault("hangs in a run")
    assert code != 0, text
    assert "rank 0 waited 5 s for rank 1" in text and "rank 0 is at `allreduce`, tests/mesh/over_mpi/faults.py:" in text, text


@pytest.mark.parametrize(("what", "said"), [("raises", "rank 1 has no data"), ("raises later", "rank 1 is at its end")])
def test_a_rank_that_raises_ends_all(what: str, said: str) -> None:
    code, text = fault(what)
    assert code != 0, text
    assert f"ValueError: {said}" in text, text


def test_a_rank_that_leaves_is_missed() -> None:
    code, text = fault("leaves")
    assert code != 0, text
    assert "rank 1 ended the program, and rank 0 waits for it" in text, text


def test_a_killed_rank_ends_the_job() -> None:
    code, text = fault("killed")
    assert code != 0, text


def test_a_rank_that_hangs_among_kernels_is_named() -> None:
    code, text = fault("hangs natively")
    assert code != 0, text
    assert "rank 0 waited 5 s for rank 1" in text and "rank 0 is at `allreduce`, tests/mesh/over_mpi/faults.py:" in text, text


def test_an_error_of_another_rank_interrupts_a_kernel() -> None:
    """The main thread is in the kernel: the thread that says that the rank takes part is the one that hears."""
    code, text = run(2, "-m", "mpi4py", "tests/mesh/over_mpi/hears.py")
    assert code == 0, text
    assert "rank 0 saw M106: rank 1 failed; rank 1 says: rank 1 has no rows" in text, text


def test_a_compile_longer_than_peer_timeout_is_no_hang() -> None:
    code, text = fault("compiles for long")
    assert code == 0, text


def test_a_kernel_without_an_end_is_named() -> None:
    code, text = fault("loops for ever")
    assert code != 0 and "error[M106]" in text, text
    where = r"rank 1 has been in kernel `endless`, tests/mesh/over_mpi/faults.py:\d+:\d+ for \d+ s, and nothing of it has ended"
    assert re.search(where, text), text


def test_ctrl_c_to_the_launcher_ends_all() -> None:
    ranks = start(2, "tests/mesh/over_mpi/faults.py", "Ctrl-C")
    assert ranks.stdout is not None
    pids: list[int] = []
    while len(pids) < 2:
        line = ranks.stdout.readline()
        assert line, "the ranks have ended"
        pids += [int(number) for number in re.findall(r"rank is (\d+)", line)]
    ranks.send_signal(signal.SIGINT)
    ranks.communicate(timeout=120)
    for _ in range(50):
        if not any(Path(f"/proc/{pid}").exists() for pid in pids):
            break
        time.sleep(0.1)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_ranks_of_a_machine_compile_once(tmp_path: Path) -> None:
    code, text = run(3, "tests/mesh/over_mpi/faults.py", "compiles once", PTO_WSP_CACHE_DIR=str(tmp_path))
    assert code == 0, text
    assert [f"rank {rank}: from cache {rank > 0}" in text for rank in range(3)] == [True] * 3, text


@pytest.mark.parametrize(("what", "said"), [
    ("code", "differ in the plan"), ("shapes", "differ in the shape of `X`"), ("dtypes", "differ in the dtype of `X`"),
    ("symbols", "differ in the value of `n`"), ("elements", "differ in the elements of `count`"),
    ("version", "differ in the package's version"), ("CPU", "compile(portable=True)")])
def test_ranks_that_differ_all_say_so(what: str, said: str) -> None:
    code, text = fault(what)
    assert code != 0, text
    assert said in text and all(f"rank {rank} saw M107" in text for rank in range(2)), text


def test_who_catches_an_error_compiles_again() -> None:
    code, text = fault("caught")
    assert code == 0, text
    assert all(f"rank {rank} caught M107" in text and f"rank {rank} goes on" in text for rank in range(2)), text
