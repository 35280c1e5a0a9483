"""Fail on rank 1 while rank 0 is in a block in which its main thread calls neither MPI nor the ranks: the thread that beats hears of it.

    mpirun -n 2 python -m mpi4py tests/mesh/over_mpi/hears.py
"""

from __future__ import annotations

import threading

from mpi4py import MPI

from pto_wsp import PtoError
from pto_wsp.run.peers import Peers
from pto_wsp.source import here

comm = MPI.COMM_WORLD
peers = Peers(comm, 300, here())
peers.exchange("both are here", "")
comm.Barrier()          # else rank 0 may hear of the error with the word of the exchange
if comm.rank == 1:
    peers.report(ValueError("rank 1 has no rows"))
    comm.Barrier()      # rank 1 leaves when the error has been heard
else:
    interrupted = threading.Event()
    with peers.beating(lambda: (0, "a kernel"), interrupted.set):
        assert interrupted.wait(200), "nobody heard of the error"      # as long as a hang may take; an error is heard at once
    comm.Barrier()
    try:
        peers.listen()
    except PtoError as problem:
        print(f"rank 0 saw {problem.code}: {problem.message}; {' '.join(problem.notes)}", flush=True)
