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
ROWS = 2 if fault == "shapes" and is_faulty else 1
VALUES = np.float64 if fault == "dtypes" and is_faulty else np.float32
GIVEN = DType.F64 if fault == "dtypes" and is_faulty else F32
FACTOR = 3.0 if fault == "code" and is_faulty else 2.0


@kernel
def times(x: In[Tile[8, 16, GIVEN]], y: Out[Tile[8, 16, F32]]):
    pto.store(y, pto.cast(x, F32) * FACTOR if GIVEN != F32 else x * FACTOR)


@kernel(c_src="""
    extern int usleep(unsigned int us);
    while (x[0] > 0)
        usleep(1000);
    y[0] = x[0];
""")
def endless(x: In[Tile[8, 16, F32]], y: Out[Tile[8, 16, F32]]):
    pto.store(y, x)


total = np.zeros((8, 16), np.float32)
if fault == "raises" and is_faulty:
    raise ValueError("rank 1 has no data")
count = np.array([1 + (fault == "elements" and is_faulty)], np.int64)
COUNT = Tensor(count, name="count", layout=TensorLayout.replicated(1))
X = Tensor(np.ones((8 * ROWS, 16), VALUES), name="X", layout=TensorLayout.replicated(2))
Z = Tensor(total, layout=TensorLayout.replicated(2))


@workload
def summed() -> None:
    n = Symbol("n", DType.I64)
    Y = Tensor.empty((8, 16), F32, name="Y", layout=TensorLayout.partial_of(2, "x"))
    for r in P(mesh):
        for _ in P.seq(n):
            for _ in P.seq(COUNT[0]):
                times[r](X.on(r)[:8], Y.on(r))
    if fault == "loops for ever":
        endless[1](X.on(1), Y.on(1))
    allreduce(Y, out=Z)


over_mpi = doors.late_module("pto_wsp.api.over_mpi")
if is_faulty and fault == "version":
    over_mpi.package_key = lambda: "another one"
if is_faulty and fault == "CPU":
    over_mpi.machine_key = lambda portable: "another one"
if fault == "compiles for long":
    at_once = over_mpi.compile_together
    wait_s = 0 if is_faulty else TIMEOUT_S + 2
    over_mpi.compile_together = lambda peers, name, here: at_once(peers, name, lambda: (time.sleep(wait_s), here())[1])
NATIVE = ("no fault", "compiles for long", "loops for ever", "hangs natively", "CPU", "compiles once", "Ctrl-C")
if fault != "raises":
    comm.Barrier()      # ranks may start at different times on a machine with other work
try:
    # with an empty cache the others wait until the library is built, too
    program = summed().compile("cpu_sim" if fault in NATIVE else "interp", mesh=mesh, comm=comm,
                               peer_timeout=60 if fault == "compiles once" else TIMEOUT_S)
    if fault == "compiles once":
        print(f"rank {comm.rank}: from cache {program.compiled.from_cache}", flush=True)
    if is_faulty and fault == "hangs natively":
        peers = program.compiled.runner.part.peers
        peers.persistent = peers.isend = peers.ireceive = lambda *_, **__: time.sleep(600)
    if fault == "loops for ever":
        program.compiled.runner.part.peers.task_timeout_s = 2 * TIMEOUT_S
    program.run(n=1)
    assert total[0, 0] == 2 * comm.size
    if is_faulty:
        match fault:
            case "hangs in a run":
                program.compiled.runner.peers.send = lambda *_: time.sleep(600)
            case "hangs":
                time.sleep(600)
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
