"""Run a ring allreduce in which one rank does what the argument says.

    mpirun -n 2 python tests/mesh/over_mpi/faults.py FAULT
"""

from __future__ import annotations

import os
import signal
import sys
import time

import numpy as np
from mpi4py import MPI

from pto_wsp import DType, In, Mesh, Out, P, PtoError, Symbol, Tensor, TensorLayout, Tile, allreduce, doors, kernel, pto, workload

F32 = DType.F32
comm = MPI.COMM_WORLD
fault, is_faulty = sys.argv[1], comm.rank == 1
mesh = Mesh(x=comm.size)
TIMEOUT_S = 5
FACTOR = 3.0 if fault == "code" and is_faulty else 2.0


@kernel
def times(x: In[Tile[8, 16, F32]], y: Out[Tile[8, 16, F32]]):
    pto.store(y, x * FACTOR)


total = np.zeros((8, 16), np.float32)
if fault == "raises" and is_faulty:
    raise ValueError("rank 1 has no data")
count = np.array([1 + (fault == "elements" and is_faulty)], np.int64)
COUNT = Tensor(count, name="count", layout=TensorLayout.replicated(1))
X = Tensor(np.ones((8, 16), np.float32), name="X", layout=TensorLayout.replicated(2))
Z = Tensor(total, layout=TensorLayout.replicated(2))


@workload
def summed() -> None:
    n = Symbol("n", DType.I64)
    Y = Tensor.empty((8, 16), F32, name="Y", layout=TensorLayout.partial_of(2, "x"))
    for r in P(mesh):
        for _ in P.seq(n):
            for _ in P.seq(COUNT[0]):
                times[r](X.on(r), Y.on(r))
    allreduce(Y, out=Z)


over_mpi = doors.late_module("pto_wsp.api.over_mpi")
if is_faulty and fault == "version":
    over_mpi.package_key = lambda: "another one"
if is_faulty and fault == "CPU":
    over_mpi.machine_key = lambda portable: "another one"
NATIVE = ("no fault", "hangs natively", "CPU", "compiles once", "Ctrl-C")
try:
    # with an empty cache the others wait until the library is built, too
    program = summed().compile("cpu_sim" if fault in NATIVE else "interp", mesh=mesh, comm=comm,
                               peer_timeout=60 if fault == "compiles once" else TIMEOUT_S)
    if fault == "compiles once":
        print(f"rank {comm.rank}: from cache {program.compiled.from_cache}", flush=True)
    if is_faulty and fault == "hangs natively":
        peers = program.compiled.runner.part.peers
        peers.persistent = peers.isend = peers.ireceive = lambda *_, **__: time.sleep(60)
    program.run(n=1)
    assert total[0, 0] == 2 * comm.size
    if is_faulty:
        match fault:
            case "hangs in a run":
                program.compiled.runner.peers.send = lambda *_: time.sleep(60)
            case "hangs":
                time.sleep(60)
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
    if fault == "caught":
        try:
            program.run(n=2 if is_faulty else 1)
        except PtoError as problem:
            print(f"rank {comm.rank} caught {problem.code}", flush=True)
        summed().compile("interp", mesh=mesh, comm=comm, peer_timeout=TIMEOUT_S).run(n=1)
        print(f"rank {comm.rank} goes on", flush=True)
except PtoError as problem:
    print(f"rank {comm.rank} saw {problem.code}", flush=True)
    raise
