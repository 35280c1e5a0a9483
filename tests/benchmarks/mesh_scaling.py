"""How the five mesh examples scale over MPI, measured beside simulated, on 1, 2 and 4 ranks of one thread each.

    python -m tests.benchmarks.mesh_scaling [--times K] [--only NAME ...]

Strong: K times an example's data on each number of ranks. Weak: K times the data for each rank. A speed-up is the time of one rank by the
time of n, times n for weak scaling: at best n, more where the work grows faster than the data. More ranks than cores share the cores. The
first and the last line say how loaded the machine was.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time

import numpy as np

from pto_wsp import Mesh
from tests.benchmarks.mesh import mpirun
from tests.examples.test_over_ranks import SCRIPTS, load

RANKS = (1, 2, 4)
# ms; more layers of the pipeline underflow
TIMES = {"mesh_heads": 256, "mesh_moe": 256, "mesh_pipeline": 64, "mesh_ring_attention": 16, "mesh_swiglu": 256}
ROUNDS = 9


def measure_rank(name: str, times: int) -> None:
    """Measure an example as one of the ranks there are; rank 0 prints cycles and seconds of strong and weak scaling as JSON."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    example = load(name)["EXAMPLE"]
    over_ranks = sys.modules["over_ranks"]
    mesh, found = Mesh(x=comm.size), {}
    for kind, grows in (("strong", 1), ("weak", comm.size)):
        given = example.draw(np.random.default_rng(0), times * grows)
        expected = example.reference(given)
        results = {which: np.full(array.shape, np.nan, np.float32) for which, array in expected.items()}
        program = example.layer(mesh, given, results).compile(mesh=mesh, arch=over_ranks.ARCH, comm=comm, threads=1).run()
        for which, array in expected.items():
            parts = (over_ranks.own(one, example.cut[which], comm.size, comm.rank) for one in (results[which], array))
            assert over_ranks.agrees(which, *parts)
        seconds = []
        for _ in range(ROUNDS):
            comm.Barrier()
            start = time.perf_counter()
            program.run()
            seconds.append(comm.allreduce(time.perf_counter() - start, MPI.MAX))
        found[kind] = program.stats.total_cycles, sorted(seconds)[ROUNDS // 2]
    if comm.rank == 0:
        print("FIGURES " + json.dumps(found), flush=True)


def figures(name: str, n: int, times: int) -> dict[str, tuple[int, float]]:
    """Return cycles and seconds, by kind of scaling, that n ranks measure.

    Raises: RuntimeError where they fail.
    """
    return json.loads(mpirun(n, "tests.benchmarks.mesh_scaling", "--rank", name, "--times", str(times)))  # type: ignore[no-any-return]


def speed_ups(found: dict[int, tuple[float, float]], *, grows: bool) -> list[tuple[float, float]]:
    """Return the speed-ups in cycles and in seconds, by number of ranks. `found`: cycles and seconds by ranks; `grows`: so do the data."""
    one = found[1]
    return [tuple(first / here * (n if grows else 1) for first, here in zip(one, found[n], strict=True)) for n in found]  # type: ignore[misc]


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description="How the mesh examples scale over MPI.")
    parser.add_argument("--times", type=int, help="times an example's data; by default some for each example")
    parser.add_argument("--only", nargs="*", default=list(SCRIPTS), choices=SCRIPTS)
    parser.add_argument("--rank", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.rank:
        measure_rank(asked.rank, asked.times or TIMES[asked.rank])
        return
    print(f"load before: {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} cores\n")
    print(f"| example | scaling | {' | '.join(f'{n} ranks: simulated, measured' for n in RANKS[1:])} | one rank |")
    print("| --- | --- |" + " --- |" * len(RANKS))
    for name in asked.only:
        by_ranks = {n: figures(name, n, asked.times or TIMES[name]) for n in RANKS}
        for kind in ("strong", "weak"):
            found = {n: by_ranks[n][kind] for n in RANKS}
            cells = " | ".join(f"{cycles:.2f}×, {seconds:.2f}×" for cycles, seconds in speed_ups(found, grows=kind == "weak")[1:])
            print(f"| {name} | {kind} | {cells} | {found[1][0]:,} cycles, {1e3 * found[1][1]:.2f} ms |", flush=True)
    print(f"\nload after: {os.getloadavg()[0]:.1f}", file=sys.stderr)


if __name__ == "__main__":
    main()
