"""Branches of workloads: what stands where, and what has no meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import (
    Dense,
    DType,
    InOut,
    P,
    PtoError,
    Scalar,
    Sparse,
    Symbol,
    Tensor,
    Tile,
    Workload,
    axis,
    combine,
    kernel,
    pto,
    slot_set_u64,
    slot_u64,
    workload,
)
from pto_wsp.ir import codec, flow
from pto_wsp.ir import workload as wl
from pto_wsp.ir.rewrite import free_vars

I64 = DType.I64
Y = Tensor(np.zeros((6, 1), np.int64), name="Y")
L = Tensor(np.array([3, 0, 2, 1, 5, 0]), name="L")
flags = Tensor(np.array([True, False] * 3), name="flags")
n = Symbol("n")
routing = Sparse(Dense[2](), np.array([0, 1, 3]), np.array([4, 0, 5]))


@kernel
def add(y: InOut[Tile[1, 1, I64]], k: Scalar[I64]) -> None:
    pto.store(y, y + k)


def text(body: Callable[[], object]) -> str:
    """Trace a body and return the workload's text without its first line."""
    return "\n".join(line[4:] for line in str(workload(body)()).splitlines()[1:])


def choice(body: Callable[[], object]) -> wl.WorkloadChoice:
    """Return the one choice of a body."""
    (found,) = (node for node in flow.walk(workload(body)().node.body) if isinstance(node, flow.Choice))
    return found


@pytest.mark.parametrize("condition, shown", [
    (lambda b: b > 2, "b > 2"), (lambda b: L[b], "L[b] != 0"), (lambda b: L.item(b) + 1, "L[b] + 1 != 0"), (lambda b: flags[b], "flags[b]"),
    (lambda b: ~flags[b], "~flags[b]"), (lambda b: (L[b] > 1) & (b != n), "(L[b] > 1) & (n != b)"), (lambda b: n, "n != 0"),
    (lambda b: slot_u64(3), "slot_u64(3) != 0"), (lambda b: axis("b") == 1, "b == 1"), (lambda b: True, "True"), (lambda b: 2, "True"),
    (lambda b: 0, "False"), (lambda b: np.bool_(True), "True"), (lambda b: np.int32(0), "False"),
    (lambda b: Symbol("on", DType.BOOL), "on"), (lambda b: (b > 2).where(L[b], 1) > 0, "where(b > 2, L[b], 1) > 0"),
])
def test_conditions_are_truth_values(condition: Callable[[Any], Any], shown: str) -> None:
    def body() -> None:
        for b in P(6):
            with P.when(condition(b)):
                add(Y[b], 1)
    assert text(body).splitlines()[1] == f"    with P.when({shown}):"


def test_each_branch_has_its_body() -> None:
    def body() -> None:
        for b in P(6):
            with P.when(b > 4):
                add(Y[b], 1)
                add(Y[b], 2)
            with P.elif_(b > 2):
                pass
            with P.elif_(b > 1):
                for _ in P.seq(3):
                    add(Y[b], 3)
            with P.otherwise(), P.when(b):
                add(Y[b], 4)
            with P.when(b > 3):
                add(Y[b], 5)
    assert text(body) == """for b in P(6):
    with P.when(b > 4):
        add(y=Y[b], k=1)
        add(y=Y[b], k=2)
    with P.elif_(b > 2):
        pass
    with P.elif_(b > 1):
        for _ in P.seq(3):
            add(y=Y[b], k=3)
    with P.otherwise():
        with P.when(b != 0):
            add(y=Y[b], k=4)
    with P.when(b > 3):
        add(y=Y[b], k=5)"""


def test_an_otherwise_of_nothing_is_none() -> None:
    def body() -> None:
        with P.when(n > 0):
            add(Y[0], 1)
        with P.otherwise():
            pass

    def without() -> None:
        with P.when(n > 0):
            add(Y[0], 1)
    assert choice(body) == choice(without)


def whole() -> Workload:
    """A workload with every form of control."""
    def body() -> None:
        for b, e in P(routing):
            slot_set_u64(2, b + e.position)
            with P.when(slot_u64(2) > n):
                made = add[b, e](Y[e], L[e])
            with P.elif_(flags[e]):
                add(Y[e], slot_u64(2))
            with P.otherwise():
                slot_set_u64(2, 1)
            add[e](Y[e], 5, after=[made])
    return workload(body)()


def test_json_and_repr_read_back() -> None:
    value = whole()
    assert Workload.from_json(value.to_json()) == value
    assert eval(repr(value.node), dict(codec.NAMES)) == value.node == whole().node
    assert hash(eval(repr(value.node), dict(codec.NAMES))) == hash(value.node)


def test_a_workload_put_into_another_keeps_its_variables_apart() -> None:
    part = whole()
    both = part >> part
    loops = [node for node in flow.walk(both.node.body) if isinstance(node, flow.Loop)]
    bound = [var.id for loop in loops for var in flow.bound_vars(loop)]
    assert len(bound) == len(set(bound)) == 6 and not free_vars(both.node.body)
    assert str(both).count("e.position") == 2 and Workload.from_json(both.to_json()) == both


def test_a_workload_in_a_branch_is_that_branch_s() -> None:
    @workload
    def part(b: Any) -> None:
        add(Y[b], 1)

    def body() -> None:
        for b in P(6):
            with P.when(b > 2):
                combine(part(b), part(b))
            with P.otherwise():
                part(b)
    assert [len(tuple(flow.walk(branch.body))) for branch in choice(body).branches] == [7]
    assert len(choice(body).otherwise.items) == 1


def test_the_same_side_may_be_opened_twice() -> None:
    def body() -> None:
        positive = P.when(n > 0)
        with positive:
            add(Y[0], 1)
        with positive:
            add(Y[1], 1)
    assert text(body).count("with P.when(n > 0):") == 2


def test_a_branch_may_be_opened_on_one_line_with_others() -> None:
    def body() -> None:
        with P.when(n > 0), P.when(n > 1):
            add(Y[0], 1)
    assert text(body) == "with P.when(n > 0):\n    with P.when(n > 1):\n        add(y=Y[0], k=1)"


def test_an_error_in_a_branch_is_the_user_s() -> None:
    def body() -> None:
        with P.when(n > 0):
            raise ZeroDivisionError("mine")
    with pytest.raises(ZeroDivisionError, match="mine"):
        workload(body)()


# ---- what has no meaning ----

def early_return() -> None:
    for b in P(6):
        with P.when(b > 2):
            return


def early_continue() -> None:
    for b in P(6):
        with P.when(b > 2):
            continue
        add(Y[b], 1)


def break_of_a_loop_inside() -> None:
    with P.when(n > 0):
        for _ in P(6):
            break


def otherwise_in_another_body() -> None:
    with P.when(n > 0):
        add(Y[0], 1)
    for _ in P(2):
        with P.otherwise():
            add(Y[0], 2)


def otherwise_twice() -> None:
    with P.when(n > 0):
        add(Y[0], 1)
    with P.otherwise():
        add(Y[0], 2)
    with P.otherwise():
        add(Y[0], 3)


def elif_behind_a_slot() -> None:
    with P.when(n > 0):
        add(Y[0], 1)
    slot_set_u64(0, 1)
    with P.elif_(n > 1):
        add(Y[0], 2)


def elif_behind_a_workload() -> None:
    with P.when(n > 0):
        add(Y[0], 1)
    workload(lambda: add(Y[0], 2))()
    with P.elif_(n > 1):
        add(Y[0], 3)


def handle_of_a_sibling() -> None:
    with P.when(n > 0), P.when(n > 1):
        made = add(Y[0], 1)
    with P.otherwise():
        add(Y[0], 1, after=made)


def variable_of_a_walk_behind_it() -> None:
    for b, e in P(routing):
        add[b](Y[e], 1)
    with P.when(e.position > 1):
        add(Y[0], 1)


def begun_and_never_ended() -> None:
    with P.when(n > 0):
        next(iter(P(3)))


REFUSED: dict[Callable[[], object], str] = {
    early_return: "K103", early_continue: "K103", break_of_a_loop_inside: "K103", otherwise_in_another_body: "W102",
    otherwise_twice: "W102",
    elif_behind_a_slot: "W102", elif_behind_a_workload: "W102", handle_of_a_sibling: "W103", variable_of_a_walk_behind_it: "W103",
    begun_and_never_ended: "K103",
}


@pytest.mark.parametrize("body", REFUSED, ids=lambda body: body.__name__)
def test_what_has_no_meaning_is_refused(body: Callable[[], object]) -> None:
    with pytest.raises(PtoError) as caught:
        workload(body)()
    assert caught.value.code == REFUSED[body] and "test_branches.py" in str(caught.value.span)


@pytest.mark.parametrize("condition", [None, "yes", 1.5, Symbol("f", DType.F32), [True], L, Y[0]], ids=repr)
def test_what_is_no_condition_is_refused(condition: object) -> None:
    with pytest.raises(PtoError) as caught:
        workload(lambda: P.when(condition))()
    number, view = isinstance(condition, float | Symbol), condition is L or isinstance(condition, type(Y[0]))
    assert caught.value.code == ("T206" if view else "T210" if number else "T205")


def test_a_side_of_another_workload_is_refused() -> None:
    kept: list[Any] = []

    def leaks() -> None:
        kept.append(P.when(n > 0))
        with kept[0]:
            add(Y[0], 1)

    def takes() -> None:
        with kept[0]:
            add(Y[0], 1)
    workload(leaks)()
    with pytest.raises(PtoError, match="was made in another workload"):
        workload(takes)()
