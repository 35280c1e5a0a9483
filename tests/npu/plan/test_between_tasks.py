"""Which tensors a package makes by itself, where they live, and that their extents are numbers."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from pto_wsp import DType, P, Tensor, Workload, combine, workload
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.ir import scalar as s
from pto_wsp.ir.rewrite import nodes
from pto_wsp.npu.plan.arguments import allocated_by_launches, mark_between_tasks, merge_dims
from pto_wsp.npu.plan.model import NpuPlan
from pto_wsp.npu.plan.plan_for_npu import plan_for_npu
from pto_wsp.npu.plan.text import print_npu_plan
from pto_wsp.passes.lower import lower
from tests.npu.submits import intermediates, npu_plan
from tests.npu.tasks import grow, mix, move

F32 = DType.F32


X, Y = (Tensor(np.ones((4, 4, 8), np.float32), name=name) for name in "XY")
S, T, U, V = (Tensor.empty((4, 4, 8), F32, name) for name in "STUV")


def plan_of(body: Callable[[], None]) -> NpuPlan:
    """Return the plan of a workload with that body."""
    return npu_plan(workload(body)())


def outline(body: Callable[[], None]) -> list[str]:
    """Return scopes, loops and launches of a plan, without checks and arguments."""
    lines = print_npu_plan(plan_of(body)).splitlines()
    start = next(at for at, line in enumerate(lines) if re.match(r"scope|for|launch|side", line))
    return [re.sub(r"(launch) \d+ (\w+).*", r"\2", line) for line in lines[start:] if "check" not in line]


def allocated(value: Workload) -> set[str]:
    """Return the names of the tensors that a workload's package makes."""
    return {slot.ref.name for slot in mark_between_tasks(lower(value.node), intermediates(value)).tensors if slot.allocated}


def test_only_what_tasks_write_and_read_is_made() -> None:
    """S is written and read; T is only written: a result; U is only read: it is given; V is read and written by one task."""
    @workload
    def case() -> None:
        move(X[0], S[0])
        move(S[0], Y[0])
        move(X[1], T[1])
        move(U[0], Y[1])
        grow(V[0])
    assert allocated(case()) == {"S", "V"}
    assert [slot.ref.name for slot in npu_plan(case()).arguments] == ["X", "Y", "T", "U"]


def test_what_steers_is_given_and_what_is_empty_too() -> None:
    lens, nothing = Tensor.empty((2,), DType.I64, "lens"), Tensor.empty((0, 4, 8), F32, "nothing")

    @workload
    def case() -> None:
        for i in P(lens[0]):
            move[i](X[i], Y[i])
        for i in P(nothing.shape[0]):
            move[i](X[i], nothing[i])
            move[i](nothing[i], Y[i])
    assert not allocated(case())


def test_a_workload_without_its_tensors_has_none_inside() -> None:
    """JSON says nothing of buffers: all of its tensors are bound."""
    @workload
    def case() -> None:
        move(X[0], S[0])
        move(S[0], Y[0])
    assert allocated(case()) == {"S"}
    assert not allocated(Workload.from_json(case().to_json()))


def test_scopes_hold_the_statements_that_share_a_tensor() -> None:
    """S and T overlap, U is used behind both."""
    def body() -> None:
        move(X[0], Y[0])
        move(X[0], S[0])
        move(S[0], T[0])
        move(T[0], Y[1])
        move(S[0], Y[2])
        move(X[1], X[2])
        for i in P(4):
            move[i](X[i], U[i])
            move[i](U[i], Y[i])
    assert outline(body) == [
        "move", "scope:", "  S = allocate", "  T = allocate", "  move", "  move", "  move", "  move", "move",
        "scope:", "  U = allocate", "  for i in range(0, 4, 1):", "    move", "    move"]


def test_a_task_that_writes_it_whole_makes_it() -> None:
    """R by the first task; not S, which is written in part, not E, which iterations of a loop write, not T, which its task reads too."""
    R, E = (Tensor.empty((4, 8), F32, name) for name in "RE")

    def body() -> None:
        move(X[0], R)
        move(R, S[0])
        move(S[0], Y[0])
        for i in P(2):
            move[i](X[i], E)
            move[i](E, Y[i])
        grow(T[0])
    plan = plan_of(body)
    assert {plan.tensors[slot].ref.name for slot in allocated_by_launches(plan.body)} == {"R"}
    assert "launch 0 move[](x=In X[0 +1, 0 +4, 0 +8], y=Out new R)" in print_npu_plan(plan)


def test_nothing_makes_them_where_tasks_do() -> None:
    R = Tensor.empty((4, 8), F32, "R")

    def body() -> None:
        move(X[0], R)
        move(R, Y[0])
    plan = plan_of(body)
    assert {use.kernel.name for use in plan.kernels} == {"move"} and allocated_by_launches(plan.body)
    assert [slot.ref.name for slot in plan.arguments] == ["X", "Y"]


def test_a_side_has_its_own_and_what_sides_share_is_around_them() -> None:
    @workload
    def left() -> None:
        move(X[0], S[0])
        move(S[0], T[0])

    @workload
    def right() -> None:
        move(X[1], T[1])
        move(X[1], U[0])
        move(U[0], Y[1])

    def body() -> None:
        combine(left(), right())
        move(T[0], Y[0])
    assert outline(body) == [
        "scope:", "  T = allocate", "  side 0:", "    scope:", "      S = allocate", "      move", "      move",
        "  side 1:", "    move", "    scope:", "      U = allocate", "      move", "      move", "  move"]


def test_sides_that_share_one_alone_are_in_one_scope() -> None:
    @workload
    def left() -> None:
        move(X[0], S[0])

    @workload
    def right() -> None:
        grow(S[1])
        move(S[1], Y[1])

    def body() -> None:
        combine(left(), right())
        move(X[2], Y[2])
    assert outline(body) == ["scope:", "  S = allocate", "  side 0:", "    move", "  side 1:", "    grow", "    move", "move"]


def test_a_task_of_two_parts_stays_one() -> None:
    """The scope of a task's own intermediate stands in that of the tensor that it writes."""
    A, B, C = Tensor(np.ones((16, 16), np.float32), name="A"), Tensor.empty((16, 16), F32, "B"), Tensor(np.ones((16, 16), np.float32))

    def body() -> None:
        mix(A, B)
        mix(B, C)
    found = outline(body)
    assert found[:3] == ["scope:", "  B = allocate", "  scope:"]
    assert [line.strip() for line in found].count("scope:") == 3


def test_extents_are_numbers() -> None:
    """Nothing is checked of what nobody can bind, and no extent or stride of it is read."""
    deep = Tensor.empty((2, 1, 2, 2, 4, 8), F32, "deep")

    @workload
    def case() -> None:
        for i in P(2):
            move[i](X[i], deep[i, 0, 1, 1])
            move[i](deep[i, 0, 1, 1][0:deep.shape[4]], Y[i])
    merged = merge_dims(mark_between_tasks(lower(case().node), intermediates(case())))
    assert [slot.ref.shape for slot in merged.tensors if slot.allocated] == [(2, 2, 2, 4, 8)]
    plan = plan_for_npu(merged, builtin_arch("ascend_910b"))
    assert {node.tensor.name for node in nodes(plan.body) if isinstance(node, s.DimOf | s.StrideOf)} == {"X", "Y"}
