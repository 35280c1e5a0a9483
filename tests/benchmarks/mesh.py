"""How fast collectives over MPI are beside mpi4py's own, and a layer over two ranks beside two threads.

    python -m tests.benchmarks.mesh [--page FILE]

It starts two ranks by itself; each figure is a ratio of medians of one run, taken in turns. What a program computes, and the bytes that it
sends, are asserted first.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pto_wsp import (
    Deps,
    DType,
    In,
    Mesh,
    Out,
    P,
    Program,
    Tensor,
    TensorLayout,
    Tile,
    Workload,
    allreduce,
    builtin_arch,
    kernel,
    pto,
    workload,
)
from tests.benchmarks.page import put_between, stamp

ROOT = Path(__file__).resolve().parents[2]
F32 = DType.F32
MESH = Mesh(x=2)
WHOLE = TensorLayout.replicated(2)
SMALL = (4, 16, 64)     # KiB
CHAIN = 64              # small allreduces of one run, one after the other


def reduced(shape: tuple[int, int], n: int) -> tuple[Workload, Workload, np.ndarray]:
    """Return a workload that fills each rank's terms with 1 + its rank, one that adds them n times, and the array of the total."""
    rows, cols = shape
    out = np.zeros(shape, np.float32)
    terms = Tensor.empty(shape, F32, name="terms", layout=TensorLayout.partial_of(2, "x"))
    total = Tensor(out, name="total", layout=WHOLE)
    height, width = min(rows, 64), min(cols, 1024)

    @kernel
    def fill(number: In[Tile[1, 1, F32]], y: Out[Tile[height, width, F32]]):
        pto.store(y, pto.full((height, width), 0.0, F32) + number)

    ranks = Tensor(np.arange(1, 3, dtype=np.float32).reshape(2, 1), layout=TensorLayout.sharded(0, 2, "x"))

    @workload
    def filled() -> None:
        for r in P(MESH):
            for i, j in P(rows // height, cols // width):
                fill[r, i, j](ranks.on(r), terms.on(r)[i * height:(i + 1) * height, j * width:(j + 1) * width])

    @workload
    def added() -> None:
        for _ in P.seq(n):
            allreduce(terms, out=total, mesh=MESH)

    return filled(), added(), out


def layer(ranks: int, tiles: int = 8, width: int = 1024) -> tuple[Workload, np.ndarray, np.ndarray]:
    """Return silu(x @ up) @ down, `tiles` blocks of 64 rows, with the inner columns cut over the ranks; the result, and NumPy's."""
    mesh = Mesh(x=ranks)
    rng = np.random.default_rng(0)
    rows = 64
    x = rng.standard_normal((rows * tiles, width)).astype(np.float32)
    up, down = (rng.standard_normal(shape).astype(np.float32) / 16 for shape in ((width, 2 * width), (2 * width, width)))
    out = np.zeros_like(x)
    part = 2 // ranks       # blocks of the inner columns of a rank: the same kernels on one rank and on two
    block = width

    @kernel
    def half(x: In[Tile[rows, width, F32]], up: In[Tile[width, block, F32]], down: In[Tile[block, width, F32]],
             y: Out[Tile[rows, width, F32]]):
        h = x @ up
        pto.store(y, (h / (1 + pto.exp(-h))) @ down)

    @kernel
    def both(x: In[Tile[rows, width, F32]], y: In[Tile[rows, width, F32]], z: Out[Tile[rows, width, F32]]):
        pto.store(z, x + y)

    X = Tensor(x, layout=WHOLE)
    U = Tensor(up, layout=TensorLayout.sharded(1, 2, "x"))
    D = Tensor(down, layout=TensorLayout.sharded(0, 2, "x"))
    Z = Tensor(out, layout=WHOLE)

    @workload
    def forward() -> None:
        Y = [Tensor.empty(x.shape, F32, layout=TensorLayout.partial_of(2, "x")) for _ in range(part)]
        for r in P(mesh):
            for t in P(tiles):
                for k in range(part):
                    half[r, t](X.on(r)[t * rows:(t + 1) * rows], U.on(r)[:, k * block:(k + 1) * block], D.on(r)[k * block:(k + 1) * block],
                               Y[k].on(r)[t * rows:(t + 1) * rows])
        if ranks == 1:
            for r in P(mesh):
                for t in P(tiles):
                    both[r, t](Y[0].on(r)[t * rows:(t + 1) * rows], Y[1].on(r)[t * rows:(t + 1) * rows], Z.on(r)[t * rows:(t + 1) * rows])
        else:
            allreduce(Y[0], out=Z)

    h = x.astype(np.float64) @ up
    return forward().task_graph(deps=Deps.infer_bytes_overlap()), out, (h / (1 + np.exp(-h))) @ down


def simulated_ring(n: int = 1024) -> tuple[float, int, int]:
    """Return the seconds from the trace of one layer with a ring allreduce over n ranks to its simulated cycles, with tasks and cycles."""
    mesh = Mesh(x=n)

    @kernel
    def product(x: In[Tile[4, 2, F32]], w: In[Tile[2, n, F32]], y: Out[Tile[4, n, F32]]):
        pto.store(y, x @ w)

    X = Tensor(np.ones((4, 2 * n), np.float32), layout=TensorLayout.sharded(1, 2, "x"))
    W = Tensor(np.ones((2 * n, n), np.float32), layout=TensorLayout.sharded(0, 2, "x"))
    Z = Tensor(np.zeros((4, n), np.float32), layout=WHOLE)

    @workload
    def forward() -> None:
        Y = Tensor.empty((4, n), F32, layout=TensorLayout.partial_of(2, "x"))
        for r in P(mesh):
            product[r](X.on(r), W.on(r), Y.on(r))
        allreduce(Y, out=Z)

    started = time.perf_counter()
    ring = builtin_arch("unit").with_links(bandwidth_bytes_per_cycle=32.0, latency_cycles=500, topology="ring")
    program = forward().compile(arch=ring)
    program.run()
    stats = program.stats
    seconds = time.perf_counter() - started
    assert np.all(np.asarray(Z) == 2 * n)
    return seconds, stats.task_count, stats.total_cycles


# -- one rank ----------------------------------------------------------------------------------------------------------
def timed(call: Callable[[], object], n: int) -> list[float]:
    """Return the seconds of n calls."""
    found = []
    for _ in range(n):
        started = time.perf_counter()
        call()
        found.append(time.perf_counter() - started)
    return found


def in_turns(ours: Callable[[], object], theirs: Callable[[], object], rounds: int, calls: int) -> tuple[float, float]:
    """Return the medians of what two calls take, in turns."""
    ours(), theirs()
    pairs = [(timed(ours, calls), timed(theirs, calls)) for _ in range(rounds)]
    return tuple(statistics.median(t for pair in pairs for t in pair[which]) for which in (0, 1))    # type: ignore[return-value]


def added_beside_allreduce(comm: Any, shape: tuple[int, int], n: int, rounds: int) -> tuple[float, float]:
    """Return the seconds of one allreduce of ours, of n in a run, and of mpi4py's."""
    filled, added, out = reduced(shape, n)
    filled.compile(mesh=MESH, comm=comm).run()
    program = added.compile(mesh=MESH, comm=comm)
    given, got = np.full(shape, 1.0 + comm.rank, np.float32), np.zeros(shape, np.float32)
    program.run()
    assert np.all(out == 3.0)
    if n == 1:
        _check_bytes(program, added)

    def theirs() -> None:
        for _ in range(n):
            comm.Allreduce(given, got)

    ours, other = in_turns(program.run, theirs, rounds, 3)
    assert np.all(got == 3.0) and np.all(out == 3.0)
    return ours / n, other / n


def _check_bytes(program: Program, added: Workload) -> None:
    simulated, measured = program.bytes_sent, program.bytes_over_mpi
    rank = int(np.argmin(measured))
    assert np.array_equal(np.delete(simulated[rank], rank), np.delete(measured, rank)), (simulated, measured)
    assert int(measured.sum()) == added.collectives[0].bytes_sent(rank)


def layers_beside_threads(comm: Any) -> tuple[float, float]:
    """Return the seconds of a layer over two ranks, a thread each, and of the same layer with two threads in one process."""
    over, out, expected = layer(2)
    program = over.compile(mesh=Mesh(x=2), comm=comm, threads=1)
    alone, alone_out, _ = layer(1)
    threads = alone.compile(threads=2)
    ranks_s, threads_s = [], []
    for _ in range(5):
        comm.Barrier()
        ranks_s += timed(program.run, 4)
        if comm.rank == 0:
            threads_s += timed(threads.run, 4)
        done = comm.Ibarrier()
        while not done.Test():          # the other rank is idle meanwhile
            time.sleep(1e-3)
    np.testing.assert_allclose(out, expected, rtol=1e-3, atol=1e-3)
    if comm.rank == 0:
        np.testing.assert_allclose(alone_out, expected, rtol=1e-3, atol=1e-3)
    return statistics.median(ranks_s), statistics.median(threads_s or [0.0])


def measure_rank() -> None:
    """Measure as one of two ranks; rank 0 prints the figures as JSON."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    found = {"allreduce": {"64 MiB": added_beside_allreduce(comm, (4096, 4096), 1, 5)}}
    for size in SMALL:
        found["allreduce"][f"{size} KiB"] = added_beside_allreduce(comm, (1, size * 256), CHAIN, 7)
    found["layer"] = {"2 ranks": layers_beside_threads(comm)}
    if comm.rank == 0:
        print("FIGURES " + json.dumps(found), flush=True)


def mpirun(n: int, module: str, *words: str) -> str:
    """Start n ranks that run a module, and return the JSON that rank 0 prints behind FIGURES.

    Raises: RuntimeError where they fail.
    """
    launcher = shutil.which("mpirun") or shutil.which("mpirun", path=str(Path(sys.executable).parent))
    if launcher is None:
        raise RuntimeError("there is no mpirun: pip install 'pto-wsp[mpi]'")
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    ran = subprocess.run([launcher, "--oversubscribe", "-n", str(n), sys.executable, "-m", "mpi4py", "-m", module, *words], cwd=ROOT,
                         env={**os.environ, **allowed}, capture_output=True, text=True, check=False)
    lines = [line for line in ran.stdout.splitlines() if line.startswith("FIGURES ")]
    if ran.returncode or not lines:
        raise RuntimeError(ran.stdout + ran.stderr)
    return lines[0].removeprefix("FIGURES ")


def main() -> None:
    """Measure, print, and with --page write the figures into a page."""
    parser = argparse.ArgumentParser(description="How fast collectives over MPI are.")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.rank:
        measure_rank()
        return
    found: dict[str, dict[str, tuple[float, float]]] = json.loads(mpirun(2, "tests.benchmarks.mesh", "--rank"))
    seconds, n_tasks, cycles = simulated_ring()
    rows = ["| what | here | beside | ratio |", "| --- | --- | --- | --- |"]
    for size, (ours, theirs) in found["allreduce"].items():
        rows.append(f"| allreduce of {size}, 2 ranks | {ours * 1e6:,.0f} µs | mpi4py's `Allreduce`: {theirs * 1e6:,.0f} µs | "
                    f"{ours / theirs:.2f}× the time |")
    ours, theirs = found["layer"]["2 ranks"]
    rows.append(f"| a layer over 2 ranks, a thread each | {ours * 1e3:.2f} ms | 2 threads of one process: {theirs * 1e3:.2f} ms | "
                f"{theirs / ours:.2f}× the speed |")
    rows.append(f"| a layer with a ring over 1,024 ranks, traced, compiled, run and simulated | {seconds:.1f} s | {n_tasks:,} tasks, "
                f"{cycles:,} cycles | |")
    text = "\n".join(rows)
    print(text)
    if asked.page is not None:
        put_between(asked.page, "mesh", f"{stamp()}\n\n{text}")


if __name__ == "__main__":
    main()
