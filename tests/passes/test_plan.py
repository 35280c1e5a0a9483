"""Plans: what a workload becomes before anything is generated, and that it is the same in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Protocol

import numpy as np
import pytest

from pto_wsp import (
    Dense,
    DenseDyn,
    Deps,
    DispatchPolicy,
    DType,
    In,
    InOut,
    Out,
    P,
    Ragged,
    Scalar,
    Symbol,
    TaskWindow,
    Tensor,
    Tile,
    Workload,
    combine,
    kernel,
    pto,
    workload,
)
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.errors import KeyTraceError
from pto_wsp.ir.digest import plan_digest
from pto_wsp.ir.plan import CheckKind, Submit, TaskPlan
from pto_wsp.ir.plan_text import print_plan
from pto_wsp.ir.plan_walk import numbered_checks, submits
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.waits import handle_uses
from pto_wsp.passes.context import Context
from pto_wsp.passes.lower import lower
from pto_wsp.passes.passes import PASSES
from pto_wsp.passes.pipeline import run_passes

F32 = DType.F32
UNIT = builtin_arch("unit")
X, Y = Tensor(np.zeros((4, 6, 4), np.float32), name="X"), Tensor(np.zeros((4, 6, 4), np.float32), name="Y")
LENS = Tensor(np.array([1, 2, 0, 6], np.int32), name="lens")
batch = Dense[4]()


class Golden(Protocol):
    """The comparer of goldens."""

    def __call__(self, text: str, name: str = ..., suffix: str = ...) -> None: ...


@kernel
def move(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]) -> None:
    pto.store(y, x)


@kernel
def block(x: In[Tile[2, 4, F32]], n: Scalar[DType.I32], y: InOut[Tile[2, 4, F32]]) -> None:
    for j in pto.range(n):
        pto.store(y, y + x * j)


@workload
def ragged() -> None:
    for b in P(batch):
        for i in P(Ragged(batch, LENS)[b]):
            done = move[b, i](X[b, i], Y[b, i])
        block[b](X[b, 2:].clip(2, 4), LENS[b] + 1, Y[b, 4:6], after=done)


def context(w: Workload) -> Context:
    """The workload's schedule on the unit arch."""
    return Context(w.schedule, UNIT)


def plan_of(w: Workload) -> TaskPlan:
    """Lower and run the passes."""
    return run_passes(lower(w.node), context(w), PASSES)


def test_plan_text(golden: Golden) -> None:
    w = ragged().dispatch(DispatchPolicy.affinity(lambda t: t.b * 3 + t.params[0], 2)).task_graph(window=TaskWindow(16))
    golden(print_plan(plan_of(w)), suffix=".wsp")


def test_passes_before_and_after(golden: Golden) -> None:
    seen: list[str] = []
    w = ragged().dispatch(DispatchPolicy.round_robin(2))
    run_passes(lower(w.node), context(w), PASSES, observe=lambda name, before, after: seen.append(
        f"-- before {name}\n{print_plan(before)}-- after {name}\n{print_plan(after)}"))
    golden("\n".join(seen), suffix=".wsp")


# ---- lower ----

def test_slots_say_how_a_tensor_is_used() -> None:
    assert [(slot.ref.name, slot.reads, slot.writes, slot.scalars) for slot in lower(ragged().node).tensors] == [
        ("lens", False, False, True), ("X", True, False, False), ("Y", True, True, False)]


def test_a_kernel_used_twice_is_one_kernel() -> None:
    @workload
    def twice() -> None:
        move(X[0, 0], Y[0, 0])
        move(X[0, 1], Y[0, 1])
    plan = lower(twice().node)
    assert len(plan.kernels) == 1 and plan.n_sites == 2


def test_a_kernel_on_columns_is_another_than_on_rows() -> None:
    @workload
    def across() -> None:
        move(X[0, 0], Y[0, 0])
        move(X[0, 0:4, 0], Y[0, 0])
    assert [use.unit_inner for use in lower(across().node).kernels] == [(True, True), (False, True)]


def test_loops_that_no_bracket_names_are_indices_too() -> None:
    @workload
    def nested() -> None:
        for a in P(2):
            for b in P(3):
                move[b](X[a, b], Y[a, b])
    (task,) = submits(lower(nested().node))
    assert (task.labels, task.n_brackets) == (("b", "a"), 1)


# ---- checks ----

def test_checks_stand_in_the_order_of_evaluation() -> None:
    checks = [(n.number, n.check.kind, n.check.subject) for n in numbered_checks(lower(ragged().node))]
    assert checks[:4] == [(0, CheckKind.ELEMENT, "lens[b]"), (1, CheckKind.EXTENT, "lens[b]"), (2, CheckKind.INDEX, "X[b, i]"),
                          (3, CheckKind.INDEX, "X[b, i]")]
    assert [number for number, _, _ in checks] == list(range(len(checks)))


def test_a_constant_view_still_guards_the_shape_bound() -> None:
    @workload
    def constant() -> None:
        move(X[3, 5], Y[0, 0])
    found = {(print_scalar(n.check.value), print_scalar(n.check.upper)) for n in numbered_checks(lower(constant().node))}
    assert {("3", "X.shape[0] - 1"), ("5", "X.shape[1] - 1"), ("0", "Y.shape[0] - 1"), ("X.shape[2]", "4")} <= found


# ---- place and price ----

def worker(w: Workload) -> str:
    """Return the one task's executor."""
    (task,) = submits(plan_of(w))
    return print_scalar(task.worker)


@workload
def one_site() -> None:
    for b in P(4):
        for h in P(6):
            move[h, b](X[b, h], Y[b, h])


@pytest.mark.parametrize("policy, text", [
    (DispatchPolicy.round_robin(3), "task_index % 3"), (DispatchPolicy.affinity(lambda t: t.h, 2), "h % 2"),
    (DispatchPolicy.affinity(lambda t: t.params[0] + t.b, 2), "(h + b) % 2"), (DispatchPolicy.hash("b", 4), "hashmod(b, 4)"),
    (DispatchPolicy.dispatch_by(lambda t: 5, 4), "1"),
], ids=str)
def test_workers_are_expressions(policy: object, text: str) -> None:
    assert worker(one_site().dispatch(policy)) == text  # type: ignore[arg-type]


def test_without_dispatch_there_is_one_executor() -> None:
    assert worker(one_site()) == "0" and plan_of(one_site()).rules.n_workers == 1


@pytest.mark.parametrize("key", [lambda t: t.x, lambda t: t.params[2], "x"])
def test_a_key_that_names_what_a_task_has_not_is_refused(key: object) -> None:
    with pytest.raises(KeyTraceError) as caught:
        plan_of(one_site().dispatch(DispatchPolicy.affinity(key, 2)))  # type: ignore[arg-type]
    assert caught.value.code == "S103"


@pytest.mark.parametrize("w, infer, structure", [
    (one_site(), True, True), (one_site().task_graph(), True, False), (one_site().task_graph(deps=Deps.explicit()), False, True),
    (one_site().task_graph(deps=Deps.hybrid()), True, True),
], ids=["default", "task_graph", "explicit", "hybrid"])
def test_edges_come_from_where_the_schedule_says(w: Workload, infer: bool, structure: bool) -> None:
    plan = plan_of(w)
    assert (plan.infer, plan.structure) == (infer, structure)


def test_prices_are_in_terms_of_the_tasks_own_views_and_scalars() -> None:
    @workload
    def tail() -> None:
        for i in P(3):
            block(X[i, i * 2:].clip(2, 4), i + 1, Y[i, 0:2])
    (task,) = submits(plan_of(tail()))
    from_hand = {i: (6 - 2 * i if 6 - 2 * i < 2 else 2) for i in range(3)}
    assert from_hand == {0: 2, 1: 2, 2: 2}
    text = print_scalar(task.cost)
    assert "X.shape[1] - i * 2" in text and "i + 1" in text and "x.shape" not in text


# ---- handles ----

def tracked(w: Workload) -> list[tuple[int, int, int]]:
    """Return handle, body and position of every collection that a task waits for."""
    plan = lower(w.node)
    uses = handle_uses(plan)
    return [(t.handle, t.body, t.position) for task in submits(plan) for t in uses.waits(task.site)]


def test_a_handle_in_its_own_body_is_the_one_of_this_iteration() -> None:
    @workload
    def same() -> None:
        for b in P(4):
            done = move(X[b, 0], Y[b, 0])
            move(X[b, 1], Y[b, 1], after=done)
    assert tracked(same()) == [(0, 1, 0)]


def test_a_handle_behind_its_loops_is_all_of_them() -> None:
    @workload
    def behind() -> None:
        for b in P(4):
            for h in P(6):
                done = move(X[b, h], Y[b, h])
            move(X[b, 0], Y[b, 0], after=done)
        move(X[0, 0], Y[0, 0], after=done)
    assert tracked(behind()) == [(0, 1, 0), (0, 0, 0)]


def test_a_site_collects_for_each_that_waits() -> None:
    @workload
    def two() -> None:
        for b in P(4):
            done = move(X[b, 0], Y[b, 0])
            move(X[b, 1], Y[b, 1], after=done)
        move(X[0, 2], Y[0, 2], after=done)
    plan = lower(two().node)
    sites: tuple[Submit, ...] = submits(plan)
    assert [len(handle_uses(plan).collects(task.site)) for task in sites] == [2, 0, 0]


# ---- the digest ----

SCRIPT = '''
import numpy as np
from pto_wsp import *
junk = {f"k{i}" for i in range(50)} | {object() for _ in range(5)}
for _ in range(EXTRA):
    Tensor(np.zeros(1))
X, Y = Tensor(np.zeros((4, 4), np.float32), name="X"), Tensor(np.zeros((4, 4), np.float32), name="Y")
n = Symbol("n")

@kernel
def move(x: In[Tile[1, 4, DType.F32]], y: Out[Tile[1, 4, DType.F32]]):
    pto.store(y, pto.exp(x) * 0.5)

@workload
def w():
    for i in P(n):
        move[i](x=X[i], y=Y[i])
p = w().dispatch(DispatchPolicy.hash("i", 4)).streams(2).task_graph(ready=ReadyPolicy.priority("i")).compile(target="interp")
assert len(p.plan.rules.columns) == 2
from pto_wsp.ir.digest import plan_digest
print(plan_digest(p.plan))
'''


@pytest.mark.slow
def test_the_digest_is_the_same_in_every_process_and_folder(tmp_path: Path) -> None:
    found = set()
    for seed, extra in (("0", 0), ("1", 7), ("4242", 3)):
        folder = tmp_path / seed
        folder.mkdir()
        (folder / "model.py").write_text(SCRIPT.replace("EXTRA", str(extra)))
        path = os.pathsep.join((str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")))
        done = subprocess.run([sys.executable, "model.py"], cwd=folder, text=True, capture_output=True, check=True,
                              env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path})
        found.add(done.stdout)
    assert len(found) == 1 and len(found.pop().strip()) == 64


def test_the_digest_sees_what_changes_the_plan() -> None:
    w = one_site()
    plans = [w, w.dispatch(DispatchPolicy.round_robin(2)), w.dispatch(DispatchPolicy.round_robin(3)), w.task_graph(),
             w.task_graph(window=TaskWindow(4)), combine(w, w)]
    assert len({plan_digest(plan_of(each)) for each in plans}) == len(plans)


def test_symbols_and_axes_are_numbered_by_first_use() -> None:
    n, dyn = Symbol("n"), DenseDyn(3)

    @workload
    def sized() -> None:
        for i in P(dyn):
            for j in P(n):
                move(X[i, j], Y[i, j])
    assert [(s.name, s.default) for s in lower(sized().node).symbols] == [("dyn", 3), ("n", None)]
