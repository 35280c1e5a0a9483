"""Search for a schedule in this process and by an executor, which both find the same; `main` for executors that are started otherwise.

    mpirun -n 3 python -m mpi4py.futures tests/search/on_cluster.py mpi
    python tests/search/on_cluster.py dask
"""

from __future__ import annotations

import os
import signal
import sys
from concurrent.futures import Executor
from typing import Any

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, Workload, auto_schedule, kernel, pto, workload
from pto_wsp.api.search import AutoSchedule

X, Y = Tensor(np.ones((8, 20, 4), np.float32), name="X"), Tensor(np.zeros((8, 20, 4), np.float32), name="Y")
LENGTHS = (19, 2, 3, 1, 2, 3, 1, 2)


@kernel
def double(x: In[Tile[1, 4, DType.F32]], y: Out[Tile[1, 4, DType.F32]]) -> None:
    pto.store(y, x * 2)


@workload
def rows() -> None:
    for b, length in enumerate(LENGTHS):
        for t in P(length):
            double[b, t](x=X[b, t:t + 1], y=Y[b, t:t + 1])


def made() -> Workload:
    return rows()


def search(executor: Executor | None, budget: int = 60) -> AutoSchedule:
    return auto_schedule(made(), budget=budget, seed=5, executor=executor)


def by_mpi() -> AutoSchedule:
    from mpi4py.futures import MPIPoolExecutor

    with MPIPoolExecutor() as pool:
        return search(pool)


def by_dask(*, kills: bool) -> AutoSchedule:
    """Search on a local cluster of two workers. `kills`: one of them is lost when the second part of a batch is given out."""
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster, Client(cluster) as client:
        pool: Any = client.get_executor(retries=3)
        if kills:
            pids, submit, count = list(client.run(os.getpid).values()), pool.submit, 0

            def submit_and_kill(*args: Any) -> Any:
                nonlocal count
                count += 1
                if count == 2:
                    os.kill(pids[0], signal.SIGKILL)
                return submit(*args)

            pool.submit = submit_and_kill
        return search(pool)


def main(kind: str) -> int:
    alone = search(None)
    found = by_mpi() if kind == "mpi" else by_dask(kills=kind == "dask killed")
    print("the same" if found.trials == alone.trials and str(found) == str(alone) else f"{found}\n{alone}")
    return 0 if found.trials == alone.trials else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
