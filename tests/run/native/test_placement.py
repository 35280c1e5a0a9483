"""Host threads follow homes by a key and priorities: which thread ran what, in which order, by the wall-clock trace."""

from __future__ import annotations

import numpy as np

from pto_wsp import DispatchPolicy, DType, Out, P, ReadyPolicy, Scalar, Tensor, Tile, TracePolicy, Workload, kernel, workload

I64 = DType.I64
Y = Tensor(np.zeros((12, 1), np.int64), name="Y")


# Wait until so many of the run's tasks have begun, some seconds at most: those that wait have a thread each.
@kernel(c_src="""
    extern int sched_yield(void);
    static int64_t n_begun;
    int64_t before = __atomic_fetch_add(&n_begun, 1, __ATOMIC_SEQ_CST) / n_tasks * n_tasks, k = 0;
    while (k < 10000000 && __atomic_load_n(&n_begun, __ATOMIC_SEQ_CST) < before + until) {
        sched_yield();
        k++;
    }
    y[0] = k < 10000000;
""")
def meet(until: Scalar[I64], n_tasks: Scalar[I64], y: Out[Tile[1, 1, I64]]) -> None: ...


def meeting(n_tasks: int, n_waiting: int) -> Workload:
    """Return so many tasks, the first of which wait until all, or all of them, have begun."""
    @workload
    def tasks() -> None:
        for k in P(n_tasks):
            meet[k]((k < n_waiting).where(n_waiting if n_waiting > 1 else n_tasks, 0), n_tasks, Y[k])
    return tasks().task_graph(trace=TracePolicy.cycles(lambda t: 100_000))     # so long that both threads run from the start


def threads_of(w: Workload, times: int = 5) -> set[tuple[int, ...]]:
    """Run on two threads, some times, and return on which thread each task ran."""
    program = w.compile(threads=2, wall_trace=True)
    found = set()
    for _ in range(times):
        Y.data[:] = 0
        program.run()
        assert Y.data[:program.stats.task_count].all(), "a task waited for others in vain"
        found.add(tuple(int(thread) for thread in program.wall_trace.executor))
    return found


def test_tasks_run_on_the_thread_of_their_home() -> None:
    pair = meeting(2, 2)
    assert threads_of(pair.dispatch(DispatchPolicy.affinity(lambda t: 1 - t.k, 2))) == {(1, 0)}
    assert threads_of(pair.dispatch(DispatchPolicy.dispatch_by(lambda t: 3 - t.k, 4))) == {(1, 0)}     # home mod threads


def test_a_thread_without_work_takes_what_is_at_home_elsewhere() -> None:
    assert threads_of(meeting(2, 2).dispatch(DispatchPolicy.affinity(lambda t: t.k * 0 + 1, 2))) <= {(0, 1), (1, 0)}


def test_the_highest_priority_goes_first() -> None:
    # one thread waits in task 0 for all the others, so the other one runs these
    key = ReadyPolicy.priority(lambda t: (t.k == 0).where(100, t.k * 5 % 7))
    program = meeting(12, 1).task_graph(ready=key).compile(threads=2, wall_trace=True)
    for _ in range(5):
        program.run()
        order = sorted(range(1, 12), key=lambda k: int(program.wall_trace.start[k]))
        assert order == [4, 11, 1, 8, 5, 2, 9, 6, 3, 10, 7]     # 5 k mod 7: 6 6 5 5 4 3 3 2 1 1 0
