"""What a program in C says of data that breaks a contract and of tasks that fail, and what it fills tensors of each dtype with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pto_wsp import (
    Channel,
    Dense,
    DType,
    In,
    Injective,
    Monotone,
    Out,
    P,
    Program,
    Sparse,
    TaskWindow,
    Tensor,
    Tile,
    WindowMode,
    Workload,
    connect,
    kernel,
    process,
    pto,
    receive,
    send,
    workload,
)
from tests.artifact.test_standalone import PLAIN, SANITIZED, away, by_python, made, told, told_by_card

F32, I32 = DType.F32, DType.I32
pytestmark = pytest.mark.slow


def picked() -> Program:
    """Return a program that walks a sparse axis, writes through a table without repeats, and picks rows by an index in a kernel."""
    @kernel
    def pick(x: In[Tile[4, 8, F32]], index: In[Tile[4, 8, I32]], y: Out[Tile[4, 8, F32]]) -> None:
        pto.store(y, pto.gather(x, index, axis=0))

    X, Y = Tensor(shape=(4, 4, 8), dtype=F32, name="X"), Tensor(shape=(5, 4, 8), dtype=F32, name="Y")
    Index = Tensor(shape=(4, 4, 8), dtype=I32, name="Index")
    table, offsets = Injective(Tensor(shape=(4,), dtype=I32, name="table")), Monotone(Tensor(shape=(4,), dtype=I32, name="offsets"))
    indptr, columns = Tensor(shape=(2,), dtype=I32, name="indptr"), Tensor(shape=(4,), dtype=I32, name="columns")
    walked = Sparse(Dense[1](), indptr, columns)

    @workload
    def picks() -> None:
        for r in P(1):
            for c in P.sel(walked[r]):
                with P.when(offsets[c] >= 0):
                    pick[r, c](x=X[c], index=Index[c], y=Y[table[c]])

    return picks().task_graph(window=TaskWindow(9, "entries", WindowMode.ABORT)).compile()       # room for three tasks


GIVEN = {"table": [4, 0, 2, 1], "offsets": [0, 1, 1, 2], "indptr": [0, 3], "columns": [0, 1, 2, 3], "Index": [1] * 128}
WRONG: dict[str, tuple[dict[str, list[int]], str]] = {
    "nothing": ({}, ""),
    "injective": ({"table": [4, 0, 4, 1]}, "`table` is declared Injective, and two of its elements are 4"),
    "monotone": ({"offsets": [0, 3, -1, 0]}, "`offsets` is declared Monotone, and falls from 3 to -1 at element 2"),
    "columns": ({"columns": [0, 2, 2, 3]}, "sparse axis `walked`: the columns of row 0 do not ascend from 0 on: `columns`[2] is 2"),
    "indptr": ({"indptr": [0, 5]}, "sparse axis `walked`: `indptr` falls, or points outside `columns`, at row 0"),
    "table": ({"table": [4, 0, 5, 1]}, "an index lies outside its tensor: `Y[table[c]]`"),
    "gather": ({"Index": [1] * 32 + [9] + [1] * 95}, "task pick[r=0, c=1] failed: gather along axis 0"),
    "window": ({"indptr": [0, 4]}, "task pick[r=0, c=3] found no room in the window of 9 entries\n  the task was made at test_standalone"),
}


@pytest.fixture(scope="module")
def picks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, built under sanitizers."""
    return made(picked().save(tmp_path_factory.mktemp("picks") / "saved"), SANITIZED)


@pytest.mark.parametrize("case", WRONG)
def test_data_that_breaks_what_was_promised(picks: Path, tmp_path: Path, case: str) -> None:
    changed, message = WRONG[case]
    options = []
    for name, values in {**GIVEN, **changed}.items():
        np.array(values, np.int32).tofile(tmp_path / name)
        options += ["--in", f"{name}={tmp_path / name}"]
    done = away(picks, "build/picks", *options, status=1 if message else 0)
    assert ("tasks = 3\n" in done.stdout) if not message else f"error: {message}" in done.stderr, done


DTYPES = (DType.F64, DType.F32, DType.F16, DType.BF16, DType.FP8E4M3, DType.FP8E5M2, DType.I8, DType.U16, DType.I64, DType.BOOL)


def test_every_dtype_is_filled_as_by_python(tmp_path: Path) -> None:
    @workload
    def copies() -> None:
        for dtype in DTYPES:
            @kernel
            def copy(x: In[Tile[4, 8, dtype]], y: Out[Tile[4, 8, dtype]]) -> None:    # type: ignore[valid-type]
                pto.store(y, x)
            copy(x=Tensor(shape=(4, 8), dtype=dtype, name=f"X_{dtype}"), y=Tensor(shape=(4, 8), dtype=dtype, name=f"Y_{dtype}"))

    folder = made(copies().compile().save(tmp_path / "saved"), PLAIN)
    assert told(command_of(folder, "copies")) == told_by_card(by_python(folder, "--json"))
    sums = {line.split()[1]: line.split()[-1] for line in told_by_card(by_python(folder, "--json")) if line.startswith("checksum")}
    assert len(sums) == len(set(sums.values())) == len(DTYPES)


def command_of(folder: Path, name: str) -> str:
    """Return what a program's command prints."""
    return away(folder, f"build/{name}").stdout


@kernel
def root(x: In[Tile[1, 8, F32]], y: Out[Tile[1, 8, F32]]) -> None:
    pto.store(y, pto.sqrt(x))


def roots() -> Workload:
    """Return four roots, of eighths of which some are below 0."""
    x, y = Tensor(shape=(4, 8), dtype=F32, name="X"), Tensor(shape=(4, 8), dtype=F32, name="Y")

    @workload
    def rooted() -> None:
        for i in P(4):
            root[i](x=x[i:i + 1], y=y[i:i + 1])

    return rooted()


def test_a_calendar_runs_and_nan_is_found(tmp_path: Path) -> None:
    by_hand = roots().calendar(lambda t: (t.i % 2, t.i // 2)).compile(check_finite=True).save(tmp_path / "saved")
    made(by_hand, PLAIN)
    assert "error: task root[i=" in (said := away(by_hand, "build/rooted", status=1).stderr) and "made nan out of finite numbers" in said
    np.ones((4, 8), np.float32).tofile(tmp_path / "x")
    text = away(by_hand, "build/rooted", "--in", f"X={tmp_path}/x").stdout
    assert "tasks = 4\n" in text and "total_cycles = 48\n" in text       # two executors with two tasks of 8 + 8 + 8 cycles
    assert told(text) == told_by_card(by_python(by_hand, "--in", f"X={tmp_path}/x", "--json"))


def test_processes_that_wait_for_each_other(tmp_path: Path) -> None:
    one, other = Channel("one", 1), Channel("other", 1)
    x, y = Tensor(shape=(2, 8), dtype=F32, name="X"), Tensor(shape=(2, 8), dtype=F32, name="Y")
    counts = Tensor(shape=(2,), dtype=DType.I64, name="counts")

    @workload
    def left() -> None:
        for i in P.seq(counts[0]):
            send(one, root[i](x=x[0:1], y=y[0:1]))
        for _ in P.seq(counts[1]):
            receive(other)

    @workload
    def right() -> None:
        for i in P.seq(counts[1]):
            send(other, root[i](x=x[1:2], y=y[1:2]))
        for _ in P.seq(counts[0]):
            receive(one)

    both = connect([process("left").produces(one).consumes(other).body(left), process("right").produces(other).consumes(one).body(right)],
                   [one, other])
    folder = made(both.compile().save(tmp_path / "saved"), PLAIN)
    for n, status in ((1, 0), (3, 1)):
        np.array([n, n], np.int64).tofile(tmp_path / "counts")
        done = away(folder, "build/left_right", "--in", f"counts={tmp_path}/counts", status=status)
    assert done.stderr == ("error: processes wait for each other, or for what never comes\n"
                           "  process `left` sends to `one`, which is full\n  process `right` sends to `other`, which is full\n")


def chained(table: list[tuple[int, ...]]) -> Program:
    """Return a program of two tasks, of which the second reads what the first writes, under a calendar."""
    @kernel
    def more(x: In[Tile[1, 8, F32]], y: Out[Tile[1, 8, F32]]) -> None:
        pto.store(y, x + 1)

    X, Y, Z = (Tensor(shape=(1, 8), dtype=F32, name=name) for name in "XYZ")

    @workload
    def chain() -> None:
        more(x=X, y=Y)
        more(x=Y, y=Z)

    return chain().calendar(table).compile()


@pytest.mark.parametrize("table, message", [([(1, 0, 7), (0, 0, 50)], ""), ([(0, 1), (0, 0)], "the calendar does not fit the tasks")])
def test_a_calendar_is_followed_or_refused(tmp_path: Path, table: list[tuple[int, ...]], message: str) -> None:
    folder = made(chained(table).save(tmp_path / "saved"), SANITIZED)
    done = away(folder, "build/chain", "--threads", "2", status=1 if message else 0)
    # the second starts at 50, and takes 24: 8 elements loaded, added to and stored
    assert "tasks = 2\n" in done.stdout and "total_cycles = 74\n" in done.stdout if not message else message in done.stderr, done


def test_a_long_stream_that_waits_for_results_ends_where_the_window_is_full(tmp_path: Path) -> None:
    @kernel
    def count(y: Out[Tile[1, 1, I32]]) -> None:
        pto.store(y, pto.full((1, 1), 8, I32))

    X, Y = Tensor(shape=(8, 8), dtype=F32, name="X"), Tensor(shape=(8, 8), dtype=F32, name="Y")
    N = Tensor(shape=(1, 1), dtype=I32, name="N")

    @workload
    def counted() -> None:
        count(y=N)
        for i in P(N[0, 0]):
            root[i](x=X[i:i + 1], y=Y[i:i + 1])

    folder = counted().task_graph(window=TaskWindow(3, "tasks", WindowMode.ABORT)).compile().save(tmp_path / "saved")
    tables = folder / "src" / "program.c"
    text = tables.read_text()
    assert text.count(".max_tasks = 1048576") == 1
    tables.write_text(text.replace(".max_tasks = 1048576", ".max_tasks = 4"))      # else a long stream takes long
    done = away(made(folder, SANITIZED), "build/counted", status=1)
    assert "error: task root[i=3] found no room in the window of 3 tasks\n" in done.stderr, done
