"""Meshes together with what else schedules, starts and shows a workload: priorities, processes, search, the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pto_wsp import (
    Channel,
    Deps,
    DType,
    In,
    Mesh,
    Out,
    P,
    ReadyPolicy,
    Tensor,
    TensorLayout,
    Tile,
    Workload,
    auto_schedule,
    connect,
    consume,
    copy,
    kernel,
    process,
    pto,
    relayout,
    send,
    workload,
)
from tests.cli.commands import command

MESH = Mesh(x=3)
ROWS, COLUMNS = TensorLayout.sharded(0, 2, "x"), TensorLayout.sharded(1, 2, "x")
GIVEN = np.arange(36, dtype=np.float32).reshape(6, 6)


@kernel
def scale(x: In[Tile[2, 6, DType.F32]], y: Out[Tile[2, 6, DType.F32]]) -> None:
    pto.store(y, x * 2 + 1)


def parts(n: int) -> list[Tensor]:
    """Return the given rows over ranks, then n tensors of zeros like it."""
    return [Tensor(GIVEN.copy() if not k else np.zeros((6, 6), np.float32), layout=ROWS) for k in range(n + 1)]


def order_on_rank_0(key: str) -> list[int]:
    """Return the steps of rank 0 in the order of their start, by a priority key of tasks."""
    stack = TensorLayout.sharded(1, 3, "x")
    given, made = Tensor(np.stack([GIVEN] * 4), layout=stack), Tensor(np.zeros((4, 6, 6), np.float32), layout=stack)

    @workload
    def steps() -> None:
        for r in P(MESH):
            for i in P(4):
                scale[r, i](given.on(r)[i], made.on(r)[i])

    ready = ReadyPolicy.priority({"i": lambda t: t.i, "-i": lambda t: -t.i}[key])
    program = steps().task_graph(deps=Deps.infer_bytes_overlap(), ready=ready).compile("interp").run()
    assert np.array_equal(np.asarray(made), np.stack([GIVEN * 2 + 1] * 4))
    spans, names = program.trace.spans, program.trace.names
    begun = [names[int(task)] for task in spans.task[np.argsort(spans.start, kind="stable")]]
    return [int(name[-2]) for name in begun if "r=0" in name]


def test_a_priority_orders_the_tasks_of_a_rank() -> None:
    """Submitting is free on this arch, so that all are ready at once: the highest key goes first."""
    assert order_on_rank_0("i") == [3, 2, 1, 0] and order_on_rank_0("-i") == [0, 1, 2, 3]


def through_processes() -> tuple[Workload, Tensor, np.ndarray]:
    """Return a pipeline of which one process computes and copies, another relays out, and its result."""
    (given, scaled, shifted), out = parts(2), Tensor(np.zeros((6, 6), np.float32), layout=COLUMNS)
    copied = Channel("copied", depth=1)

    def first() -> None:
        for r in P(MESH):
            scale[r](given.on(r), scaled.on(r))
        for r in P(MESH):
            copy(scaled.on(r), shifted.on((r + 1) % 3))
        send(copied, 0)

    def second() -> None:
        with consume(copied):
            relayout(shifted, COLUMNS, out=out, mesh=MESH)

    w = connect([process("first").produces(copied).body(first), process("second").consumes(copied).body(second)], [copied])
    return w, out, np.roll(GIVEN * 2 + 1, 2, axis=0)


@pytest.mark.slow
@pytest.mark.parametrize(("target", "threads"), [("interp", None), ("cpu_sim", 1), *(
    pytest.param("cpu_sim", n, marks=pytest.mark.slow) for n in (2, 3))])
def test_processes_run_over_ranks(target: str, threads: int | None) -> None:
    w, out, expected = through_processes()
    program = w.compile(target, **({} if threads is None else {"threads": threads})).run()
    assert np.array_equal(np.asarray(out), expected)
    assert [one.name for one in w.collectives] == ["all_to_all"]       # the copies of `first` are no collective
    sent = program.bytes_sent.copy()
    np.fill_diagonal(sent, 0)
    copies = 48 * np.roll(np.eye(3, dtype=int), 1, axis=1)             # each rank's two rows to the next rank
    assert np.array_equal((sent - copies).sum(axis=1), [w.collectives[0].bytes_sent(rank) for rank in range(3)])


def test_a_token_names_a_rank() -> None:
    given, scaled, again = parts(2)
    ready = Channel("ready", depth=3)

    def first() -> None:
        for r in P(MESH):
            send(ready, scale[r](given.on(r), scaled.on(r)))

    def second() -> None:
        for _ in P(MESH):
            pass
        with consume(ready) as r:
            scale[r](scaled.on(r), again.on(r))

    connect([process("first").produces(ready).body(first), process("second").consumes(ready).body(second)], [ready]).compile("interp").run()
    assert np.array_equal(np.asarray(again), (GIVEN * 2 + 1) * 2 + 1)


def test_a_search_tries_what_a_mesh_takes_and_keeps_the_numbers() -> None:
    given, scaled, shifted = parts(2)

    @workload
    def moved() -> None:
        for r in P(MESH):
            scale[r](given.on(r), scaled.on(r))
        for r in P(MESH):
            copy(scaled.on(r), shifted.on((r + 1) % 3))

    found = auto_schedule(moved(), budget=30)
    assert found.cycles <= found.default_cycles and found.schedule.spatial_map is None and found.schedule.calendar is None
    np.asarray(shifted)[:] = 0
    found.workload.compile("interp").run()
    assert np.array_equal(np.asarray(shifted), np.roll(GIVEN * 2 + 1, 2, axis=0))


FILE = '''
import numpy as np
from pto_wsp import DType, In, Mesh, Out, P, Tensor, TensorLayout, Tile, allgather, kernel, pto, workload

MESH = Mesh(x=2)
A, B = (Tensor(np.ones((4, 8), np.float32), name=name, layout=TensorLayout.sharded(0, 2, "x")) for name in "AB")
WHOLE = Tensor(np.zeros((4, 8), np.float32), name="WHOLE", layout=TensorLayout.replicated(2))

@kernel
def scale(x: In[Tile[2, 8, DType.F32]], y: Out[Tile[2, 8, DType.F32]]):
    pto.store(y, x * 2 + 1)

@workload
def layer():
    for r in P(MESH):
        scale[r](A.on(r), B.on(r))
    allgather(B, out=WHOLE)
'''


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "shown"), [
    ("run", "rank 1 link to rank 0"), ("explain", "copy_part"), ("report", "report.html"), ("tune", "auto_schedule(layer)"),
    ("check", "parts of"), ("inspect", "for r in P(MESH: 2)")])
def test_the_command_line_takes_a_program_over_ranks(name: str, shown: str, tmp_path: Path) -> None:
    """Lanes are ranks and links; what pools they are in is no concern of the user's."""
    (tmp_path / "layer.py").write_text(FILE)
    ended = command(tmp_path, name, "layer.py", *(() if name in ("check", "inspect", "tune") else ("--target", "interp")))
    assert ended.code == 0 and shown in ended.out, ended
    assert "\npool " not in ended.out, ended.out
