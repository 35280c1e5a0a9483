"""Fail on rank 1, and see when the others hear of it: a thread beside a kernel at once, an exchange that rank 1 has ended behind its end.

    mpirun -n 3 python -m mpi4py tests/mesh/over_mpi/hears.py
"""

from __future__ import annotations

import threading
import time
from typing import Any

from mpi4py import MPI

from pto_wsp import PtoError
from pto_wsp.run.peers import Peers
from pto_wsp.source import here

comm = MPI.COMM_WORLD
LONG_S = 200        # as long as a hang may take; an error is heard at once


class Held(MPI.Intracomm):
    """The communicator of all ranks, on which a word to rank 2 can be held back."""

    holds = False

    def Isend(self, buf: Any, dest: int, tag: int = 0) -> MPI.Request:
        if Held.holds and dest == 2:
            comm.recv(source=2)
        return super().Isend(buf, dest, tag)


def say(problem: PtoError, when: str) -> None:
    print(f"rank {comm.rank} saw {problem.code} {when}: {problem.message}; {' '.join(problem.notes)}", flush=True)


def in_a_kernel() -> None:
    """Be in a block in which the main thread calls neither MPI nor the ranks: the thread that beats hears of the error."""
    peers = Peers(comm, LONG_S, here())
    if comm.rank == 1:
        peers.report(ValueError("rank 1 has no rows"))
    else:
        interrupted = threading.Event()
        with peers.beating(lambda: (0, "a kernel"), interrupted.set):
            assert interrupted.wait(LONG_S), "nobody heard of the error"
        try:
            peers.listen()
        except PtoError as problem:
            say(problem, "in a kernel")
    comm.Barrier()      # rank 1 leaves when the error has been heard


def behind_an_exchange() -> None:
    """Hear of the error before the last word of the exchange: rank 0 sends rank 2 its word when rank 2 has looked."""
    peers = Peers(Held(comm), LONG_S, here())
    Held.holds = comm.rank == 0
    if comm.rank == 2:
        listen = peers.listen

        def look() -> None:
            peers.listen = listen       # type: ignore[method-assign]
            comm.recv(source=1)
            try:
                listen()
            finally:
                comm.send(None, dest=0)

        peers.listen = look             # type: ignore[method-assign]
    texts = peers.exchange("all are here", str(comm.rank))
    Held.holds = False
    assert texts == {rank: str(rank) for rank in range(3)}
    if comm.rank == 1:
        peers.report(ValueError("rank 1 has no columns"))
        comm.send(None, dest=2)
    else:
        end = time.monotonic() + LONG_S
        try:
            while time.monotonic() < end:
                peers.listen()
        except PtoError as problem:
            say(problem, "behind an exchange")
    comm.Barrier()


in_a_kernel()
behind_an_exchange()
