"""Which elements the orchestrator waits for, and when."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, In, Out, P, Scalar, Tensor, Tile, kernel, pto, workload
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.errors import InternalError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.flow import Loop, walk
from pto_wsp.ir.plan import Check, CheckKind, ElementRead, Precondition, TaskPlan
from pto_wsp.ir.plan_text import print_plan
from pto_wsp.ir.plan_walk import submits
from pto_wsp.ir.rewrite import canonical
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.waits import MAX_READS, Reads, has_waits
from pto_wsp.passes.context import Context
from pto_wsp.passes.lower import lower
from pto_wsp.passes.refine import drop_repeated_checks, verify_after_drop_repeated_checks
from pto_wsp.schedule.schedule import Schedule

I32 = DType.I32


@kernel
def put(n: Scalar[DType.I64], y: Out[Tile[1, 4, I32]]) -> None:
    pto.store(y, pto.full((1, 4), n, I32))


@kernel
def copy(x: In[Tile[1, 4, I32]], y: Out[Tile[1, 4, I32]]) -> None:
    pto.store(y, x)


def tensor(name: str) -> Tensor:
    return Tensor(np.zeros((4, 4), np.int32), name=name)


A, B, C, TABLE = tensor("A"), tensor("B"), tensor("C"), tensor("TABLE")


def plan_of(body: Any) -> TaskPlan:
    return lower(canonical(workload(body)().node).workload)


def shown(plan: TaskPlan, reads: tuple[ElementRead, ...]) -> list[str]:
    return [f"{plan.tensors[read.slot].ref.name}@{print_scalar(read.offset)}" for read in reads]


def test_a_table_that_no_task_writes_is_not_waited_for() -> None:
    def body() -> None:
        for i in P(TABLE[0, 1]):
            copy[TABLE[i, 0]](x=A[TABLE[i, 1]], y=B[i])
    plan = plan_of(body)
    assert not has_waits(plan) and all(not task.note.waits for task in submits(plan))


def test_a_bound_that_a_task_writes_is_waited_for_by_its_loop_alone() -> None:
    def body() -> None:
        put(n=1, y=A[0])
        for i in P(A[0, 2]):
            copy[i](x=B[i], y=C[i])
    plan = plan_of(body)
    (loop,) = (item for item in walk(plan.body) if isinstance(item, Loop))
    assert has_waits(plan) and shown(plan, loop.note.waits) == ["A@2 * A.strides[1]"]
    assert all(not task.note.waits for task in submits(plan))


def test_a_tensor_that_is_written_later_is_waited_for_too() -> None:
    """In the loop's next turn the later task is an earlier one."""
    def body() -> None:
        for i in P.seq(3):
            copy[i](x=B[A[i, 0]], y=C[i])
            put(n=i, y=A[i])
    first, _ = submits(plan_of(body))
    assert len(first.note.waits) == 1


@pytest.mark.parametrize("where", ["index", "offset", "extent", "scalar"])
def test_whatever_a_task_is_made_of_is_waited_for(where: str) -> None:
    def body() -> None:
        put(n=1, y=A[0])
        match where:
            case "index":
                copy[A[0, 1]](x=B[0], y=C[0])
            case "offset":
                copy(x=B[A[0, 1]], y=C[0])
            case "extent":
                copy(x=B[0, 0:A[0, 1]], y=C[0])
            case "scalar":
                put(n=A[0, 1], y=C[0])
    plan = plan_of(body)
    assert shown(plan, submits(plan)[1].note.waits) == ["A@A.strides[1]"]


def test_what_indexes_an_element_is_waited_for_first_and_checked_before() -> None:
    def body() -> None:
        put(n=1, y=A[0])
        put(n=1, y=B[0])
        for b in P(2):
            put(n=A[B[TABLE[b, 0], 1], 2], y=C[b])
    plan = plan_of(body)
    task = submits(plan)[2]
    assert [plan.tensors[read.slot].ref.name for read in task.note.waits] == ["B", "A"]
    steps = Reads.of(plan).preparation(task.note)
    found = [f"{step.subject}: {print_scalar(step.value)}" if isinstance(step, Check) else shown(plan, step) for step in steps]
    read_b, read_a = (shown(plan, (read,)) for read in task.note.waits)
    assert found.index("TABLE[b, 0]: b") < found.index("B[TABLE[b, 0], 1]: TABLE[b, 0]") < found.index(read_b)
    assert found.index(read_b) < found.index("A[B[TABLE[b, 0], 1], 2]: B[TABLE[b, 0], 1]") < found.index(read_a)


def test_elements_that_do_not_index_one_another_are_one_wait() -> None:
    def body() -> None:
        put(n=1, y=A[0])
        put(n=A[0, 0] + A[0, 1] * A[0, 0], y=C[0])
    plan = plan_of(body)
    task = submits(plan)[1]
    (wait,) = (step for step in Reads.of(plan).preparation(task.note) if not isinstance(step, Check))
    assert sorted(shown(plan, wait)) == ["A@0", "A@A.strides[1]"]


def test_a_wait_has_room_for_so_many_elements() -> None:
    written = plan_of(lambda: (put(n=A[0, 0], y=A[0]), None)[1])
    reads = tuple(ElementRead(0, s.Const(k)) for k in range(MAX_READS + 3))
    assert [len(step) for step in Reads.of(written).preparation(Precondition(waits=reads)) if not isinstance(step, Check)] == [MAX_READS, 3]


def test_an_element_without_what_indexes_it_is_a_mistake_of_ours() -> None:
    plan = plan_of(lambda: (put(n=A[A[0, 0], 1], y=A[0]), None)[1])
    (task,) = submits(plan)
    with pytest.raises(InternalError):
        Reads.of(plan).preparation(Precondition(waits=task.note.waits[1:]))


def test_a_check_of_what_tasks_write_is_made_each_time() -> None:
    def body() -> None:
        for i in P.seq(3):
            copy[i](x=B[A[i, 0]], y=C[i])
            put(n=i, y=A[i])
            copy[i](x=B[A[i, 0]], y=C[i])
    plan = drop_repeated_checks(plan_of(body), Context(Schedule(), builtin_arch("unit")))
    verify_after_drop_repeated_checks(plan)
    first, _, again = submits(plan)
    assert [c.subject for c in again.note.checks] == ["B[A[i, 0]]"]
    assert {c.kind for c in first.note.checks} >= {CheckKind.ELEMENT, CheckKind.INDEX}


def test_the_text_of_a_plan_shows_the_waits_in_their_place() -> None:
    def body() -> None:
        put(n=1, y=A[0])
        for i in P(A[0, 2]):
            put[i](n=i, y=C[i])
    lines = [line.strip() for line in print_plan(plan_of(body)).splitlines()]
    at = lines.index("wait for A@2 * A.strides[1]")
    assert lines[at + 1].startswith("check 0 <= A[0, 2] <=") and lines[at + 2].startswith("for i in range(0, A[0, 2], 1)")
