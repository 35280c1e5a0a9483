"""Run ring allreduces, in each of which one rank does what an argument says.

    mpirun -n 2 python tests/mesh/over_mpi/faults.py FAULT ...

Ranks catch the errors of all faults but the last one, and go on.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from unittest.mock import patch

import numpy as np
from mpi4py import MPI

from pto_wsp import (
    DType,
    In,
    Mesh,
    Out,
    P,
    Program,
    PtoError,
    Symbol,
    Tensor,
    TensorLayout,
    Tile,
    Workload,
    allreduce,
    doors,
    kernel,
    pto,
    workload,
)
from pto_wsp.run.peers import Peers

F32 = DType.F32
comm = MPI.COMM_WORLD
is_faulty = comm.rank == 1
mesh = Mesh(x=comm.size)
over_mpi = doors.late_module("pto_wsp.api.over_mpi")
TIMEOUT_S = 3       # where a rank hangs: longer than any other wait
LONG_S = 100        # before: ranks may be slow on a machine with other work
NATIVE = ("no fault", "compiles for long", "loops for ever", "hangs natively", "CPU", "compiles once", "Ctrl-C")


@kernel(c_src="""
    extern int usleep(unsigned int us);
    while (x[0] > 0)
        usleep(1000);
    y[0] = x[0];
""")
def endless(x: In[Tile[8, 16, F32]], y: Out[Tile[8, 16, F32]]):
    pto.store(y, x)


def summed(fault: str, total: np.ndarray) -> Workload:
    """Return an allreduce of ones, doubled on each rank, into `total`."""
    own = fault if is_faulty else ""
    values, given = (np.float64, DType.F64) if own == "dtypes" else (np.float32, F32)
    factor = 3.0 if own == "code" else 2.0
    count = Tensor(np.array([1 + (own == "elements")], np.int64), name="count", layout=TensorLayout.replicated(1))
    X = Tensor(np.ones((16 if own == "shapes" else 8, 16), values), name="X", layout=TensorLayout.replicated(2))
    Z = Tensor(total, layout=TensorLayout.replicated(2))

    @kernel
    def times(x: In[Tile[8, 16, given]], y: Out[Tile[8, 16, F32]]):
        pto.store(y, pto.cast(x, F32) * factor if given != F32 else x * factor)

    @workload
    def summed() -> None:
        n = Symbol("n", DType.I64)
        Y = Tensor.empty((8, 16), F32, name="Y", layout=TensorLayout.partial_of(2, "x"))
        for r in P(mesh):
            for _ in P.seq(n):
                for _ in P.seq(count[0]):
                    times[r](X.on(r)[:8], Y.on(r))
        if fault == "loops for ever":
            endless[1](X.on(1), Y.on(1))
        allreduce(Y, out=Z)

    return summed()


def hang(peers: Peers) -> None:
    """Hang on rank 1: until rank 0 has named the hang, or for ever if the fault is the last one."""
    comm.recv(source=0)
    while True:
        peers.listen()      # raises what rank 0 said


def ring(fault: str) -> None:
    """Compile and run the allreduce twice, the second time with the fault if it is one of a run."""
    total = np.zeros((8, 16), np.float32)
    comm.Barrier()
    if fault == "raises" and is_faulty:
        raise ValueError("rank 1 has no data")
    # with an empty cache the others wait until the library is built, too
    program = summed(fault, total).compile("cpu_sim" if fault in NATIVE else "interp", mesh=mesh, comm=comm,
                                           peer_timeout=TIMEOUT_S if fault == "raises" else LONG_S)
    runner = program.compiled.runner
    peers = runner.part.peers
    if fault == "compiles once":
        print(f"rank {comm.rank}: from cache {program.compiled.from_cache}", flush=True)
    if fault in ("hangs natively", "loops for ever"):
        peers.set_timeout(TIMEOUT_S)
    if fault == "loops for ever":
        peers.task_timeout_s = 2 * TIMEOUT_S
    if is_faulty and fault == "hangs natively":
        peers.persistent = peers.isend = peers.ireceive = lambda *_, **__: hang(peers)
    program.run(n=1)
    assert total[0, 0] == 2 * comm.size
    if fault in ("hangs", "hangs in a run"):
        comm.Barrier()
        peers.set_timeout(TIMEOUT_S)
    if is_faulty:
        match fault:
            case "hangs in a run":
                peers.send = lambda *_: hang(peers)
            case "hangs":
                hang(peers)
            case "raises later":
                raise ValueError("rank 1 is at its end")
            case "leaves":
                sys.exit(0)
            case "killed":
                os.kill(os.getpid(), signal.SIGKILL)
    if fault == "Ctrl-C":
        print(f"rank is {os.getpid()}", flush=True)
        while True:
            program.run(n=1)
    program.run(n=2 if fault == "symbols" and is_faulty else 1)


def with_patches(fault: str) -> None:
    """Run the ring on ranks of which one has another package, another CPU or a slow compiler."""
    at_once = over_mpi.compile_together

    def slowly(peers: Peers, name: str, compile_here: object) -> Program:
        wait_s = 0 if is_faulty else TIMEOUT_S + 1
        peers.set_timeout(TIMEOUT_S)
        return at_once(peers, name, lambda: (time.sleep(wait_s), compile_here())[1])

    patches = {"compiles for long": ("compile_together", slowly)}
    if is_faulty:
        patches |= {"version": ("package_key", lambda: "another one"), "CPU": ("machine_key", lambda portable: "another one")}
    if fault not in patches:
        return ring(fault)
    with patch.object(over_mpi, *patches[fault]):
        ring(fault)


for number, fault in enumerate(sys.argv[1:], 1):
    try:
        with_patches(fault)
        print(f"{fault}: rank {comm.rank} saw nothing", flush=True)
    except PtoError as problem:
        print("\n".join(f"{fault}: rank {comm.rank} {line}" for line in f"saw {problem.code}\n{problem}".splitlines()), flush=True)
        if number == len(sys.argv) - 1:
            raise
        if not is_faulty and fault.startswith("hangs"):
            comm.send(None, dest=1)
