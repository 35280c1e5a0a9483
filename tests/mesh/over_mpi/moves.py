"""Run generated moves of the laws on the first ranks, as many as their mesh has: each rank holds its part against NumPy.

    mpirun -n 4 python -m mpi4py tests/mesh/over_mpi/moves.py HOW_MANY

Programs are compiled for cpu_sim and interp in turn, with one thread and two.
"""

from __future__ import annotations

import itertools
import sys

import numpy as np
from mpi4py import MPI

from pto_wsp import Mesh
from tests.laws.generated_meshes import cuts_of, generate, make

world = MPI.COMM_WORLD
many = int(sys.argv[1])
comms = {n: world.Split(0 if world.rank < n else MPI.UNDEFINED) for n in range(2, world.size + 1)}
HOW: tuple[tuple[str, dict[str, object]], ...] = (("cpu_sim", {"threads": 1}), ("interp", {}), ("cpu_sim", {"threads": 2}))
n = 0
for seed in itertools.count():
    move = generate(seed)
    mesh = Mesh(**dict(move.mesh))
    if not 2 <= mesh.size <= world.size:
        continue
    made = make(move)
    if made.workload.mesh is None:
        continue
    n += 1
    comm = comms[mesh.size]
    if comm != MPI.COMM_NULL:
        target, options = HOW[n % len(HOW)]
        program = made.workload.compile(target, mesh=mesh, comm=comm, peer_timeout=60, **options)
        for _ in range(2):
            made.shown[comm.rank] = -99
            program.run()
            part = made.parts[comm.rank]
            np.testing.assert_array_equal(made.shown[comm.rank][tuple(slice(0, k) for k in part.shape)], part, err_msg=f"seed {seed}")
            if made.out is not None:
                own = cuts_of(move.shape, move.after, mesh, comm.rank)
                np.testing.assert_array_equal(made.out[own], made.whole[own], err_msg=f"seed {seed}")
                made.out[...] = -99
            sent = int(program.bytes_over_mpi.sum())
            assert sent == sum(one.bytes_sent(comm.rank) for one in made.workload.collectives), f"seed {seed}"
            assert np.array_equal(np.delete(program.bytes_sent[comm.rank], comm.rank), np.delete(program.bytes_over_mpi, comm.rank))
    if n == many:
        break
print(f"rank {world.rank}: {n} moves")
