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


def fault(*faults: str) -> tuple[int, str]:
    return run(2, "tests/mesh/over_mpi/faults.py", *faults)


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


DIFFER = {"code": "differ in the plan", "shapes": "differ in the shape of `X`", "dtypes": "differ in the dtype of `X`",
          "symbols": "differ in the value of `n`", "elements": "differ in the elements of `count`",
          "version": "differ in the package's version", "CPU": "compile(portable=True)"}


def test_ranks_that_differ_all_say_so_and_compile_again() -> None:
    """No fault comes last: who catches an error goes on. A compile longer than peer_timeout is no hang."""
    code, text = fault(*DIFFER, "compiles for long", "no fault")
    assert code == 0, text
    for what, said in DIFFER.items():
        for rank in range(2):
            lines = [line for line in text.splitlines() if line.startswith(f"{what}: rank {rank}")]
            assert lines[0].endswith("saw M107") and said in "\n".join(lines), text
    assert all(f"{what}: rank {rank} saw nothing" in text for what in ("compiles for long", "no fault") for rank in range(2)), text


def test_a_rank_that_hangs_is_named_with_collective_and_line() -> None:
    in_runs = ("hangs in a run", "hangs natively")      # the second one among kernels
    code, text = fault("hangs", *in_runs, "loops for ever")
    assert code != 0, text
    waited, at = "error[M106]: rank 0 waited 3 s for rank 1", "rank 0 is at `allreduce`, tests/mesh/over_mpi/faults.py:"
    assert all(f"{what}: rank 0 {waited}" in text for what in ("hangs", *in_runs)), text
    assert all(re.search(f"{what}: rank 0 .* {at}", text) for what in in_runs), text
    where = r"rank 1 has been in kernel `endless`, tests/mesh/over_mpi/faults.py:\d+:\d+ for \d+ s, and nothing of it has ended"
    assert re.search(where, text), text


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


def test_an_error_of_another_rank_is_heard_in_a_kernel_and_behind_an_exchange() -> None:
    """In a kernel by the thread that says that the rank takes part; behind an exchange alone, if the other rank failed behind its end."""
    code, text = run(3, "-m", "mpi4py", "tests/mesh/over_mpi/hears.py")
    assert code == 0, text
    for rank in (0, 2):
        for when, what in (("in a kernel", "rows"), ("behind an exchange", "columns")):
            assert f"rank {rank} saw M106 {when}: rank 1 failed; rank 1 says: rank 1 has no {what}" in text, text


def test_ctrl_c_to_the_launcher_ends_all() -> None:
    ranks = start(2, "tests/mesh/over_mpi/faults.py", "Ctrl-C")
    assert ranks.stdout is not None
    pids: list[int] = []
    while len(pids) < 2:
        line = ranks.stdout.readline()
        assert line, "the ranks have ended"
        pids += [int(number) for number in re.findall(r"rank is (\d+)", line)]
    ranks.send_signal(signal.SIGINT)
    ranks.communicate(timeout=240)
    until = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < until, pids
        time.sleep(0.1)


def test_ranks_of_a_machine_compile_once(tmp_path: Path) -> None:
    code, text = run(3, "tests/mesh/over_mpi/faults.py", "compiles once", PTO_WSP_CACHE_DIR=str(tmp_path))
    assert code == 0, text
    assert [f"rank {rank}: from cache {rank > 0}" in text for rank in range(3)] == [True] * 3, text
