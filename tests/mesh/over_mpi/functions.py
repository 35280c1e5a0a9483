"""Run functions on tensors with layouts over as many ranks as there are: each rank holds its part with the bits of one process.

    mpirun -n 2 python -m mpi4py tests/mesh/over_mpi/functions.py TARGET
"""

from __future__ import annotations

import sys

import numpy as np
from mpi4py import MPI

from pto_wsp import Mesh, Tensor, TensorLayout, allgather, allreduce, broadcast, halo, jit, tt
from pto_wsp.tt.library import silu, softmax
from tests.laws.generated_meshes import cuts_of

comm, target = MPI.COMM_WORLD, sys.argv[1]
mesh = Mesh(x=comm.size // 2, y=2) if comm.size % 2 == 0 else Mesh(x=1, y=comm.size)
rng = np.random.default_rng(7)
rows, cols = TensorLayout.sharded(0, 2, "y"), TensorLayout.sharded(1, 2, "y")


def drawn(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32) / 4


@jit
def layer(x, up, down):
    return allreduce(silu(x @ up) @ down, "y")


@jit
def heads(q, k, v):
    out = tt.empty(q.shape)
    for h in tt.each(q.shape[0]):
        out[h] = softmax(q[h] @ k[h].T) @ v[h]
    return allgather(out, "y")


@jit
def steps(x, up, down):
    state = tt.zeros(x.shape)
    state[:] = x
    for _ in tt.loop(3):
        state[:] = state + allreduce((state @ up) @ down, "y")
    return state


@jit
def smoothed(x, w):
    beside = halo(x, 2)
    total = tt.zeros((w.shape[1], w.shape[2]))
    for e in tt.loop(w.shape[0]):               # the ranks along y have terms of the sum
        total += w[e] * 2
    return (beside[:-4] - beside[3:-1]) @ allreduce(total, "y")


@jit
def doubled(w):
    return broadcast(w, 1, "y") * 2


def check(function, *arguments: Tensor) -> None:
    there = function.using(mesh=mesh, comm=comm, target=target, peer_timeout=80)(*arguments)
    one = function.using(mesh=mesh, target=target)(*arguments)
    mine = cuts_of(one.shape, one.layout, mesh, comm.rank)
    np.testing.assert_array_equal(np.asarray(there)[mine], np.asarray(one)[mine])
    np.testing.assert_allclose(np.asarray(one), function.python(*map(np.asarray, arguments)), rtol=1e-4, atol=1e-4)


over_x = TensorLayout.sharded(0, 2, "x")
check(layer, Tensor(drawn(5, 8), layout=over_x), Tensor(drawn(8, 11), layout=cols), Tensor(drawn(11, 6), layout=rows))
check(heads, *(Tensor(drawn(5, 8, 8), layout=TensorLayout.sharded(0, 3, "y")) for _ in range(3)))
check(steps, Tensor(drawn(4, 8), layout=over_x), Tensor(drawn(8, 11), layout=cols), Tensor(drawn(11, 8), layout=rows))
check(smoothed, Tensor(drawn(5 * mesh.shape[0], 8), layout=over_x), Tensor(drawn(5, 8, 6), layout=TensorLayout.sharded(0, 3, "y")))
own = np.full((3, 4), comm.rank, np.float32)         # each process has other elements: those of the root are everyone's
given = doubled.using(mesh=mesh, comm=comm, target=target, peer_timeout=80)(Tensor(own, layout=TensorLayout.replicated(2)))
np.testing.assert_array_equal(np.asarray(given), np.full((3, 4), 2 * (comm.rank - mesh.coordinates(comm.rank)[1] + 1), np.float32))
print(f"rank {comm.rank}: 5 functions", flush=True)
