"""Generated workloads whose loops, branches, indices and scalars are what their own tasks compute, with scratch tensors in bodies.

Plain Python says what program order leaves. Both targets, any threads, any legal order and any schedule must leave the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pto_wsp import (
    Deps,
    DispatchPolicy,
    DType,
    In,
    InOut,
    Out,
    P,
    Program,
    Scalar,
    TaskWindow,
    Tensor,
    Tile,
    Workload,
    kernel,
    pto,
    workload,
)
from pto_wsp.values import dataclass
from tests.laws.generated_workloads import run_in_order_of, threads_of

I64 = DType.I64
N_CELLS, LARGEST = 4, 4       # cells hold 0 .. LARGEST-1, so that each is an index and a short loop's length


@kernel
def turn(n: Scalar[I64], x: In[Tile[1, 1, I64]], y: InOut[Tile[1, 1, I64]]) -> None:
    """No two of these commute."""
    pto.store(y, pto.mod(y * 3 + x * 2 + n, LARGEST))


@kernel
def copy(x: In[Tile[1, 1, I64]], y: Out[Tile[1, 1, I64]]) -> None:
    pto.store(y, x)


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell by number, or by what another cell holds."""

    at: int
    through: bool


@dataclass(frozen=True, slots=True)
class Turn:
    """A task: mix a cell into another, with a scalar that is a cell; by way of a scratch tensor where `staged`."""

    source: Cell
    target: Cell
    number: Cell
    staged: bool


@dataclass(frozen=True, slots=True)
class Repeat:
    """A loop in order, as long as a cell says."""

    length: Cell
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Decide:
    """Branches: a cell is large, or else another one is, or else."""

    first: Cell
    second: Cell
    bodies: tuple[tuple[Statement, ...], tuple[Statement, ...], tuple[Statement, ...]]


Statement: TypeAlias = Turn | Repeat | Decide
CELLS = st.builds(Cell, st.integers(0, N_CELLS - 1), st.booleans())
TURNS = st.builds(Turn, CELLS, CELLS, CELLS, st.booleans())


def statements(depth: int) -> st.SearchStrategy[tuple[Statement, ...]]:
    """Return bodies of at most three statements, nested at most `depth` times."""
    if depth == 0:
        return st.lists(TURNS, max_size=2).map(tuple)
    inner = statements(depth - 1)
    decide = st.builds(Decide, CELLS, CELLS, st.tuples(inner, inner, inner))
    return st.lists(st.one_of(TURNS, TURNS, st.builds(Repeat, CELLS, inner), decide), min_size=1, max_size=3).map(tuple)


def expected(body: tuple[Statement, ...], cells: list[int]) -> int:
    """Do what a body says to a list of numbers; return how many tasks that takes."""
    def value(cell: Cell) -> int:
        return cells[cells[cell.at]] if cell.through else cells[cell.at]

    def place(cell: Cell) -> int:
        return cells[cell.at] if cell.through else cell.at

    count = 0
    for item in body:
        match item:
            case Turn(source, target, number, staged):
                at = place(target)
                cells[at] = (cells[at] * 3 + cells[place(source)] * 2 + value(number)) % LARGEST
                count += 2 if staged else 1
            case Repeat(length, inner):
                for _ in range(value(length)):
                    count += expected(inner, cells)
            case Decide(first, second, bodies):
                count += expected(bodies[0 if value(first) > 1 else 1 if value(second) > 1 else 2], cells)
    return count


def traced(body: tuple[Statement, ...], cells: Tensor) -> Workload:
    """Return a body as a workload on a tensor of cells."""
    def place(cell: Cell) -> Any:
        return cells[cell.at, 0] if cell.through else cell.at

    def view(cell: Cell) -> Any:
        at = place(cell)
        return cells[at:at + 1]

    def value(cell: Cell) -> Any:
        return cells[place(cell), 0]

    def write(items: tuple[Statement, ...]) -> None:
        for item in items:
            match item:
                case Turn(source, target, number, staged):
                    found: Any = view(source)
                    if staged:
                        found = Tensor.empty((1, 1), I64)
                        copy(x=view(source), y=found)
                    turn(n=value(number), x=found, y=view(target))
                case Repeat(length, inner):
                    for _ in P.seq(value(length)):
                        write(inner)
                case Decide(first, second, bodies):
                    with P.when(value(first) > 1):
                        write(bodies[0])
                    with P.elif_(value(second) > 1):
                        write(bodies[1])
                    with P.otherwise():
                        write(bodies[2])

    @workload
    def drawn() -> None:
        write(body)
    return drawn()


SCHEDULES: dict[str, Callable[[Workload], Workload]] = {
    "default": lambda made: made,
    "overlap": lambda made: made.task_graph(deps=Deps.infer_bytes_overlap()),
    "round robin, window 1": lambda made: made.dispatch(DispatchPolicy.round_robin(3)).task_graph(
        deps=Deps.infer_bytes_overlap(), window=TaskWindow(1)),
}


def check(body: tuple[Statement, ...], start: tuple[int, ...]) -> None:
    """Raise AssertionError unless every way to run it leaves what program order leaves, and both targets keep the same record."""
    memory = np.zeros((N_CELLS, 1), np.int64)
    wanted = list(start)
    n_tasks = expected(body, wanted)
    made = traced(body, Tensor(memory, name="cells"))

    def compare(run: Callable[[], object], what: object) -> None:
        memory[:, 0] = start
        run()
        assert memory[:, 0].tolist() == wanted, (what, body, start)

    for name, scheduled in SCHEDULES.items():
        oracle, program = scheduled(made).compile("interp"), scheduled(made).compile()
        compare(oracle.run, (name, "interp"))
        for threads in (1, 3):
            with threads_of(program, threads):
                compare(program.run, (name, threads))
        assert program.stats.task_count == n_tasks == oracle.stats.task_count
        check_records(program, oracle)
        for seed in (1, 2):
            compare(lambda seed=seed, program=program: run_in_order_of(program, seed), (name, "order", seed))  # type: ignore[misc]


def check_records(program: Program, oracle: Program) -> None:
    """Hold the stream in C against the one in Python: tasks, waits, edges and cycles."""
    found, wanted = program.compiled.runner.recorder.columns(), oracle.compiled.runner.recorder.columns()
    for name in ("task_kernel", "task_site", "task_worker", "task_cost", "mark_stall", "mark_delay"):
        assert np.array_equal(getattr(found, name), getattr(wanted, name)), name
    assert program.graph.edges == oracle.graph.edges
    assert program.stats.total_cycles == oracle.stats.total_cycles and program.stats.stalls == oracle.stats.stalls


@pytest.mark.slow
@given(statements(3), st.tuples(*[st.integers(0, LARGEST - 1)] * N_CELLS))
@settings(max_examples=2)
def test_what_tasks_compute_decides_the_same_in_deeper_nests(body: tuple[Statement, ...], start: tuple[int, ...]) -> None:
    check(body, start)
