"""Run the generated moves of the laws whose mesh has as many ranks as there are: each rank holds its part against NumPy.

    mpirun -n 2 python -m mpi4py tests/mesh/over_mpi/moves.py TARGET HOW_MANY
"""

from __future__ import annotations

import itertools
import sys

import numpy as np
from mpi4py import MPI

from pto_wsp import Mesh
from tests.laws.generated_meshes import cuts_of, generate, make

comm = MPI.COMM_WORLD
target, many = sys.argv[1], int(sys.argv[2])
n = 0
for seed in itertools.count():
    move = generate(seed)
    mesh = Mesh(**dict(move.mesh))
    if mesh.size != comm.size:
        continue
    made = make(move)
    if made.workload.mesh is None:
        continue
    program = made.workload.compile(target, mesh=mesh, comm=comm, peer_timeout=30)
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
    n += 1
    if n == many:
        break
print(f"rank {comm.rank}: {n} moves")
