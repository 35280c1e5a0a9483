"""Small workloads whose times under a schedule can be worked out by hand, and what runs them in NumPy."""

from __future__ import annotations

import numpy as np

from pto_wsp import (
    DispatchPolicy,
    DType,
    In,
    Out,
    P,
    Program,
    Scalar,
    TaskWindow,
    Tensor,
    Tile,
    TracePolicy,
    WindowMode,
    Workload,
    builtin_arch,
    kernel,
    pto,
    workload,
)

F32, I64 = DType.F32, DType.I64
Y = Tensor(np.zeros((8, 1), np.int64), name="Y")
A = Tensor(np.eye(16, dtype=np.float32), name="A")
B = Tensor(np.zeros((3, 16, 16), np.float32), name="B")
BUSY = builtin_arch("unit").with_aicpu(submit_cycles=10)     # an AICPU submits a task each 10 cycles


@kernel
def fill(n: Scalar[I64], y: Out[Tile[1, 1, I64]]) -> None:
    pto.store(y, pto.full((1, 1), n, I64))


@kernel
def copy(x: In[Tile[1, 1, I64]], y: Out[Tile[1, 1, I64]]) -> None:
    pto.store(y, x)


@kernel
def double(x: In[Tile[16, 16, F32]], y: Out[Tile[16, 16, F32]]) -> None:
    pto.store(y, x * 2)


@kernel
def product(a: In[Tile[16, 16, F32]], b: In[Tile[16, 16, F32]], c: Out[Tile[16, 16, F32]]) -> None:
    pto.store(c, pto.matmul(a, b))


@workload
def eight() -> None:
    """Eight tasks that share nothing, k = 0 … 7."""
    for k in P(8):
        fill[k](k, Y[k])


@workload
def made() -> None:
    """Four times: 10 cycles fill a tensor made there, 8 bytes; 1 cycle copies it out."""
    for k in P(4):
        t = Tensor.empty((1, 1), I64)
        fill[k, 10](k, t)
        copy[k, 1](t, Y[k])


@workload
def units() -> None:
    """10 cycles for the cube unit, 4 and 3 for the vector unit."""
    product[10](A, A, B[0])
    double[4](A, B[1])
    double[3](A, B[2])


@workload
def pair() -> None:
    """Two tasks that touch different elements."""
    fill[0](1, Y[0])
    fill[1](2, Y[1])


@workload
def chain() -> None:
    """Two tasks on the same element."""
    fill[0](1, Y[0])
    fill[1](2, Y[0])


@kernel
def clear(y: Out[Tile[2, 1, I64]]) -> None:
    pto.store(y, pto.full((2, 1), 0, I64))


@workload
def halves() -> None:
    """Two tasks whose regions share one element."""
    clear(Y[0:2])
    clear(Y[1:3])


def of_k(w: Workload) -> Workload:
    """Let tasks take 1 … 8 cycles, 36 in all, without the order of the program."""
    return w.task_graph(trace=TracePolicy.cycles(lambda t: t.k + 1))


def of_last(w: Workload) -> Workload:
    """Let tasks take as many cycles as their last bracket index says."""
    return w.task_graph(trace=TracePolicy.cycles(lambda t: t.params[1] if w.node.name == "made" else t.params[0]))


APART = DispatchPolicy.round_robin(8)     # each of eight tasks has an executor of its own


def run(w: Workload, **options: object) -> Program:
    """Return the program after a run in NumPy."""
    return w.compile(target="interp", **options).run()


def total(w: Workload, **options: object) -> int:
    """Return the makespan."""
    return run(w, **options).stats.total_cycles


def starts(w: Workload, **options: object) -> list[int]:
    """Return when each task starts."""
    return [int(start) for start in run(w, **options).trace.start]


def edges(w: Workload) -> int:
    """Return the number of edges between tasks."""
    return len(run(w).graph.edges)


def windowed(size: int, unit: str, mode: WindowMode) -> Workload:
    """Eight tasks (bytes, edges: four pairs) with an executor each (ready: with two for all), under a window."""
    w = of_last(made()) if unit in ("bytes", "edges") else of_k(eight())
    return w.dispatch(DispatchPolicy.round_robin(2) if unit == "ready" else APART).task_graph(window=TaskWindow(size, unit, mode))  # type: ignore[arg-type]
