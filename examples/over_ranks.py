"""Run an example over the ranks of a mesh: in one process, over MPI where it was started so, and hold results against each other.

What the `mesh_*` examples share. Each rank is checked: its part has the bits of the same mesh in one process, and the whole is one rank's,
and NumPy's, within the tolerance table of `verify()`.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from pto_wsp import Mesh, Program, Workload, builtin_arch, timeline

Arrays = Mapping[str, np.ndarray]
TOLERANCE = 64 * float(np.finfo(np.float32).eps)          # f32: of the element, and of the largest one
ARCH = builtin_arch("unit").with_links(bandwidth_bytes_per_cycle=0.5, latency_cycles=50)


@dataclass(frozen=True)
class Example:
    """An example: what it computes, and how.

    `draw(rng, n)`: n times the data; `layer(mesh, given, results)`: the workload that writes `results`; `reference(given)`: what NumPy
    says of each result, in float64; `cut`: by result, the dimension in which ranks have parts, None where each has all; `exact`: the
    results that have one rank's bits on every mesh; `fits`: what a number of ranks divides.
    """

    draw: Callable[[np.random.Generator, int], Arrays]
    layer: Callable[[Mesh, Arrays, Arrays], Workload]
    reference: Callable[[Arrays], Arrays]
    cut: Mapping[str, int | None]
    exact: tuple[str, ...] = ()
    fits: Mapping[str, int] = field(default_factory=dict)


def main(example: Example, description: str | None) -> int:
    """Run an example on as many ranks as there are; return 1 where a result is wrong."""
    world = importlib.import_module("mpi4py.MPI").COMM_WORLD if "mpi4py" in sys.modules else None      # `python -m mpi4py` loads it
    comm = world if world is not None and world.size > 1 else None
    parser = argparse.ArgumentParser(description=str(description).split("\n", 1)[0])
    parser.add_argument("--ranks", type=int, default=2 if comm is None else comm.size, help="of one process, default %(default)s")
    parser.add_argument("--scaling", type=int, default=0, metavar="K",
                        help="also print cycles on 1, 2 and 4 ranks, and the time that K times the data take on the ranks there are")
    options = parser.parse_args()
    n = options.ranks
    for what, number in example.fits.items():
        if n < 1 or number % n:
            parser.error(f"--ranks is a divisor of {what}, {number}")
    if comm is not None and n != comm.size:
        parser.error(f"--ranks is {comm.size} here, the number of MPI's ranks")
    given = example.draw(np.random.default_rng(0), 1)
    expected = example.reference(given)
    _, alone = run(example, 1, given, expected)
    program, found = run(example, n, given, expected)
    right = True
    for name, array in found.items():
        right &= agrees(f"{name}: {n} ranks and NumPy", array, expected[name])
        right &= agrees(f"{name}: {n} ranks and one", array, alone[name], exact=name in example.exact)
    if comm is not None:
        _, over_mpi = run(example, n, given, expected, comm)
        for name, array in over_mpi.items():
            right &= agrees(f"{name}: rank {comm.rank} of MPI and one process", own(array, example.cut[name], n, comm.rank),
                            own(found[name], example.cut[name], n, comm.rank), exact=True)
    if comm is None or comm.rank == 0:
        between = program.bytes_sent - np.diag(np.diag(program.bytes_sent))
        print(f"{program.stats.task_count} tasks, {program.stats.total_cycles:,} simulated cycles, {between.sum():,} bytes between ranks")
        print(timeline(program.trace, width=60))
    if options.scaling:
        scaling(example, n, options.scaling, comm)
    return 0 if right else 1


def run(example: Example, n: int, given: Arrays, like: Arrays, comm: object = None) -> tuple[Program, dict[str, np.ndarray]]:
    """Run an example on n ranks, and return the program and its results; NaN where nothing was written."""
    results = {name: np.full(array.shape, np.nan, np.float32) for name, array in like.items()}
    mesh = Mesh(x=n)
    return example.layer(mesh, given, results).compile(mesh=mesh, arch=ARCH, comm=comm).run(), results


def own(array: np.ndarray, dim: int | None, n: int, rank: int) -> np.ndarray:
    """Return the part of a rank."""
    return array if dim is None else np.split(array, n, axis=dim)[rank]


def agrees(what: str, found: np.ndarray, expected: np.ndarray, *, exact: bool = False) -> bool:
    """Print a line, and tell whether two arrays have the same bits, or lie within the tolerance."""
    error = float(np.abs(found - expected).max())
    allowed = TOLERANCE * (np.abs(expected) + np.abs(expected).max())
    right = found.tobytes() == expected.tobytes() if exact else bool((np.abs(found - expected) <= allowed).all())      # not so for NaN
    said = "the same bits" if exact else f"at most {error:.1e} apart"
    print(f"{what}: {said if right else f'FAILED, {error:.1e} apart'}", flush=True)
    return right


def scaling(example: Example, n: int, times: int, comm: object) -> None:
    """Print a line for the same data on more ranks (strong scaling), and for data that grow with the ranks (weak scaling)."""
    for kind, grows in (("strong", False), ("weak", True)):
        cycles, seconds = [], []
        for ranks in (1, 2, 4):
            given = example.draw(np.random.default_rng(0), ranks if grows else 1)
            cycles.append(run(example, ranks, given, example.reference(given))[0].stats.total_cycles)
        given = example.draw(np.random.default_rng(0), times * (n if grows else 1))
        program, _ = run(example, n, given, example.reference(given), comm)
        for _ in range(7):
            start = time.perf_counter()
            program.run()
            seconds.append(time.perf_counter() - start)
        if comm is None or comm.rank == 0:  # type: ignore[attr-defined]
            print(f"{kind} scaling: cycles on 1, 2, 4 ranks {', '.join(f'{one:,}' for one in cycles)}; {times} times the data on {n} ranks "
                  f"{'in one process' if comm is None else 'over MPI'}: {1e3 * min(seconds):.2f} ms"
                  f"{', on fewer cores than ranks' if comm is not None and n > (os.cpu_count() or 1) else ''}", flush=True)
