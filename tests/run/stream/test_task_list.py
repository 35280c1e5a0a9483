"""`w.tasks(…)`: the tasks of a small workload with their indices and regions, and what is too large or not known yet."""

from __future__ import annotations

import numpy as np
import pytest

from pto_wsp import (
    Dense,
    DenseDyn,
    DType,
    In,
    InOut,
    Out,
    P,
    PtoError,
    Ragged,
    Scalar,
    Symbol,
    Tensor,
    Tile,
    Workload,
    kernel,
    pto,
    workload,
)

F32 = DType.F32
X = Tensor(np.zeros((4, 6, 4), np.float32), name="X")
Y = Tensor(np.zeros((4, 6, 4), np.float32), name="Y")
LENS = Tensor(np.array([1, 0, 2, 0], np.int32), name="lens")
batch = Dense[4]()
dyn = DenseDyn(3)


@kernel
def copy(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]) -> None:
    pto.store(y, x)


@kernel
def scaled(x: In[Tensor], n: Scalar[F32], y: InOut[Tile[2, 4, F32]]) -> None:
    pto.store(y, y + pto.load(x, (0, 0), shape=(2, 4)) * n)


def test_tasks_have_indices_and_regions() -> None:
    @workload
    def w() -> None:
        for b in P(2):
            copy[b, 7](X[b, 0], Y[b, b + 1])
    tasks = w().tasks()
    assert str(tasks) == "copy[b=0, 7](x=X[0, 0, 0:4], y=Y[0, 1, 0:4])\ncopy[b=1, 7](x=X[1, 0, 0:4], y=Y[1, 2, 0:4])"
    assert (tasks[1].kernel, tasks[1].index, tasks[1].name) == ("copy", (1, 7), "copy[b=1, 7]")
    assert tasks[1].arguments == (("x", "X[1, 0, 0:4]"), ("y", "Y[1, 2, 0:4]"))


def test_scalars_blocks_and_steps() -> None:
    n = Symbol("n")

    @workload
    def w() -> None:
        scaled(X[1, 1:5], n / 2, Y[2, 4:6])
        copy(X[3].T[2, 0:4], Y[3, 0:1].clip(1, 4))
    assert str(w().tasks(n=3)) == "scaled(x=X[1, 1:5, 0:4], n=1.5, y=Y[2, 4:6, 0:4])\ncopy(x=X[3, 0:4, 2], y=Y[3, 0, 0:4])"


def test_sizes_are_bound_by_name() -> None:
    @workload
    def w() -> None:
        for i in P(dyn):
            copy[i](X[0, i], Y[0, i])
    assert [task.index for task in w().tasks()] == [(0,), (1,), (2,)]
    assert [task.index for task in w().tasks(dyn=1)] == [(0,)]


def test_ragged_rows_and_tensors_that_are_bound() -> None:
    rows = Ragged(batch, LENS)

    @workload
    def w() -> None:
        for b in P(batch):
            for i in P(rows[b]):
                copy[b, i](X[b, i], Y[b, i])
    assert [task.index for task in w().tasks()] == [(0, 0), (2, 0), (2, 1)]
    assert [task.index for task in w().tasks(lens=np.array([0, 0, 0, 1], np.int32))] == [(3, 0)]


def test_choices_and_fresh_tensors() -> None:
    @workload
    def w() -> None:
        for b in P(3):
            t = Tensor.empty((2, 4), F32, name="t")
            with P.when(LENS[b] > 0):
                copy[b](X[b, 0], t[1])
            with P.otherwise():
                copy[b](X[b, 1], t[0])
    assert str(w().tasks()).split("\n")[1] == "copy[b=1](x=X[1, 1, 0:4], y=t[0, 0:4])"


def test_a_region_of_no_elements() -> None:
    @workload
    def w() -> None:
        copy(X[0, 0:LENS[1]].clip(1, 4), Y[0, 0])
    assert w().tasks()[0].arguments[0] == ("x", "X[nothing]")


def test_a_workload_from_json_needs_no_arrays_that_tasks_do_not_read() -> None:
    @workload
    def w() -> None:
        copy(X[1, 2], Y[3, 4])
    assert str(Workload.from_json(w().to_json()).tasks()) == "copy(x=X[1, 2, 0:4], y=Y[3, 4, 0:4])"


def test_no_tasks_and_a_notebook() -> None:
    @workload
    def w() -> None:
        for b in P(0):
            copy[b](X[b, 0], Y[b, 0])

    class Printer:
        shown = ""

        def text(self, text: str) -> None:
            self.shown += text
    printer = Printer()
    w().tasks()._repr_pretty_(printer, False)
    assert printer.shown == "(no tasks)" and w().tasks() == ()


def test_tasks_of_a_workload_that_races() -> None:
    """Listing shows why: nothing is compiled."""
    @workload
    def w() -> None:
        for b in P(2):
            copy[b](X[b, 0], Y[0, 0])
    assert len(w().tasks()) == 2


# ---- what is refused ----

def test_too_many() -> None:
    @workload
    def w() -> None:
        for i in P(DenseDyn(Symbol("n"))):
            copy[i](X[0, 0], Y[0, 0])
    assert len(w().tasks(n=1000)) == 1000
    with pytest.raises(PtoError) as caught:
        w().tasks(n=1001)
    assert (caught.value.code, caught.value.message) == ("R115", "`w` has more than 1000 tasks, too many to list")


def test_what_only_tasks_know() -> None:
    counts = Tensor(np.zeros((1, 1), np.int32), name="counts")

    @kernel
    def count(y: Out[Tile[1, 1, DType.I32]]) -> None:
        pto.store(y, pto.full((1, 1), 2, DType.I32))

    @workload
    def w() -> None:
        count(counts)
        for i in P(counts[0, 0]):
            copy[i](X[0, i], Y[0, i])
    with pytest.raises(PtoError, match="depends on what its tasks compute") as caught:
        w().tasks()
    assert caught.value.code == "R103"


@pytest.mark.parametrize(("sizes", "code"), [
    ({"m": 3}, "R102"), ({"n": 2.5}, "R102"), ({}, "W101"), ({"n": -1}, "R104"), ({"n": 9}, "R104"),
])
def test_sizes_that_do_not_fit(sizes: dict[str, object], code: str) -> None:
    n = Symbol("n")

    @workload
    def w() -> None:
        for i in P(n):
            copy[i](X[0, i], Y[0, i])
    with pytest.raises(PtoError) as caught:
        w().tasks(**sizes)
    assert caught.value.code == code and caught.value.span is not None
    assert caught.value.help == "give it by name: tasks(n=...)" or sizes
