"""Run very many tasks and see that memory stays flat: `python -m tests.soak [--tasks 100000000] [--threads 2]`."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pto_wsp.artifact.build import load_runtime
from pto_wsp.resources import csrc_dir

GROWTH_KIB = 2048   # that ten times as many tasks may take: what the allocator and the system do with freed memory


def soak(n_tasks: int, threads: int) -> list[int]:
    """Return the largest resident memory in KiB after each tenth of the tasks.

    Raises: SystemExit where a result is wrong.
    """
    library = load_runtime().path
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        program = str(Path(folder) / "soak")
        subprocess.run(["cc", "-O2", f"-I{csrc_dir() / 'include'}", "-o", program, str(Path(__file__).with_name("soak.c")), f"-L{library}",
                        "-lpto_runtime", f"-Wl,-rpath,{library}", "-pthread"], check=True)
        done = subprocess.run([program, str(n_tasks), str(threads)], text=True, capture_output=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr or f"ended with {done.returncode}")
    return [int(line) for line in done.stdout.split()]


def main() -> int:
    """Run and print; 1 when memory grew."""
    parser = argparse.ArgumentParser(description="Run very many tasks and see that memory stays flat.")
    parser.add_argument("--tasks", type=int, default=100_000_000)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    started = time.perf_counter()
    kib = soak(options.tasks, options.threads)
    taken = time.perf_counter() - started
    print(f"{options.tasks:,} tasks in {taken:.0f} s, {taken / options.tasks * 1e9:.0f} ns each; KiB after each tenth: {kib}")
    return int(kib[-1] - kib[0] > GROWTH_KIB)


if __name__ == "__main__":
    sys.exit(main())
