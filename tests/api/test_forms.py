"""The functional forms are the statement forms: the same IR, inside a workload and outside one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import (
    Dense,
    DispatchPolicy,
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
    combine,
    cond,
    for_each,
    kernel,
    parallel_for,
    pto,
    select,
    sequential,
    slot_set_u64,
    task,
    workload,
)

I64 = DType.I64
Y = Tensor(np.zeros((4, 6, 1), np.int64), name="Y")
batch, heads = Dense[4](), Dense[6]()
indptr, indices = np.array([0, 2, 2, 3, 5]), np.array([1, 4, 0, 2, 5])
routing = Sparse(batch, indptr, indices)
n = Symbol("n")


@kernel
def add(y: InOut[Tile[1, 1, I64]], k: Scalar[I64]) -> None:
    pto.store(y, y * 3 + k)


def one(b: Any, h: Any, k: Any, **more: Any) -> Any:
    """A task by the functional form."""
    return task(add, [b, h], {"y": Y[b, h], "k": k}, **more)


def stated(body: Callable[[], object]) -> Any:
    """Trace statements and return the body of their IR."""
    return workload(body)().node.body


PAIRS: dict[str, tuple[Callable[[], Workload], Callable[[], object]]] = {}


def pair(form: Callable[[], Workload]) -> Callable[[Callable[[], object]], Callable[[], object]]:
    """Note that a form and the statements of the decorated function are to be the same."""
    def note(statements: Callable[[], object]) -> Callable[[], object]:
        PAIRS[statements.__name__] = form, statements
        return statements
    return note


@pair(lambda: task(add, [1, 2], {"y": Y[1, 2], "k": n}))
def a_task() -> None:
    add[1, 2](y=Y[1, 2], k=n)


@pair(lambda: task(add, (), [Y[1, 2], 7]))
def a_task_of_positions() -> None:
    add(Y[1, 2], 7)


@pair(lambda: parallel_for(batch, lambda b: for_each(heads, lambda h: one(b, h, 1))))
def loops() -> None:
    for b in P(batch):
        for h in P.seq(heads):
            add[b, h](y=Y[b, h], k=1)


@pair(lambda: parallel_for(batch, lambda b: select(routing[b], lambda e: one(b, e, e.position))))
def a_sparse_row() -> None:
    for b in P(batch):
        for e in P.sel(routing[b]):
            add[b, e](y=Y[b, e], k=e.position)


@pair(lambda: select(routing, lambda b, e: one(b, e, 2)))
def a_sparse_matrix() -> None:
    for b, e in P.sel(routing):
        add[b, e](y=Y[b, e], k=2)


@pair(lambda: for_each(routing, lambda b, e: one(b, e, 2)))
def a_sparse_matrix_in_order() -> None:
    for b, e in P.seq(routing):
        add[b, e](y=Y[b, e], k=2)


@pair(lambda: parallel_for(batch, lambda b: cond(b < n, lambda: one(b, 0, 1), lambda: cond(b > 2, lambda: one(b, 1, 2)))))
def conditions() -> None:
    for b in P(batch):
        with P.when(b < n):
            add[b, 0](y=Y[b, 0], k=1)
        with P.otherwise(), P.when(b > 2):
            add[b, 1](y=Y[b, 1], k=2)


@pair(lambda: parallel_for(batch, lambda row: one(row, 0, 1), names=["b"]))
def a_name_of_its_own() -> None:
    for b in P(batch):
        add[b, 0](y=Y[b, 0], k=1)


@pytest.mark.parametrize("name", PAIRS)
def test_a_form_outside_a_workload_is_the_statements(name: str) -> None:
    form, statements = PAIRS[name]
    assert form().node.body == stated(statements)


@pytest.mark.parametrize("name", PAIRS)
def test_a_form_in_a_workload_is_the_statements(name: str) -> None:
    form, statements = PAIRS[name]
    assert stated(lambda: form()) == stated(statements)


def expected_of(form: Callable[[], object]) -> Any:
    """Return what statements leave in Y."""
    assert Y.data is not None
    Y.data[...] = 0
    workload(form)().compile("interp").run()
    return Y.data.copy()


@pytest.mark.parametrize("target", ["interp", "cpu_sim"])
def test_a_form_compiles_and_runs_by_itself(target: str) -> None:
    whole = parallel_for(batch, lambda b: select(routing[b], lambda e: one(b, e, b * 10 + e)))
    assert whole.name == "add" and Y.data is not None
    Y.data[...] = 0
    program = whole.dispatch(DispatchPolicy.affinity(lambda t: t.e, 2)).compile(target).run()
    wanted = np.zeros_like(Y.data)
    for b in range(4):
        for e in indices[indptr[b]:indptr[b + 1]]:
            wanted[b, e] = b * 10 + e
    np.testing.assert_array_equal(Y.data, wanted)
    assert [event.executor for event in program.trace] == [e % 2 for e in indices]


def test_forms_are_put_together_as_workloads_are() -> None:
    def side(h: int) -> Workload:
        return parallel_for(batch, lambda b: one(b, h, h))

    def inside() -> None:
        combine(side(0), sequential(side(1), side(2)))

    outside = combine(side(0), sequential(side(1), side(2)))
    text = "for b in P(batch: 4):"
    assert str(outside).count(text) == str(workload(inside)()).count(text) == 3
    assert outside.node.body.items == stated(inside).items[0].items


def test_branches_of_workloads_take_them_along() -> None:
    def eager() -> None:
        for b in P(batch):
            cond(b > 1, one(b, 0, 1), sequential(one(b, 1, 2), one(b, 2, 3)))

    def plain() -> None:
        for b in P(batch):
            with P.when(b > 1):
                add[b, 0](y=Y[b, 0], k=1)
            with P.otherwise():
                add[b, 1](y=Y[b, 1], k=2)
                add[b, 2](y=Y[b, 2], k=3)

    assert str(workload(eager)()).splitlines()[1:] == str(workload(plain)()).splitlines()[1:]
    np.testing.assert_array_equal(expected_of(eager), expected_of(plain))


def test_a_workload_of_elsewhere_that_a_body_returns_is_put_there() -> None:
    elsewhere = one(0, 0, 1)
    loop = for_each(3, lambda i: elsewhere)
    assert str(loop).splitlines()[1:] == ["    for i in P.seq(3):", "        add[0, 0](y=Y[0, 0], k=1)"]
    assert len(workload(lambda: elsewhere)().node.body.items) == 1


def test_handles_of_tasks_order_tasks() -> None:
    def formed() -> None:
        first = one(0, 0, 1)
        parallel_for(batch, lambda b: one(b, 1, 1, after=[first]))
        one(2, 2, 1, after=first)

    def plain() -> None:
        first = add[0, 0](y=Y[0, 0], k=1)
        for b in P(batch):
            add[b, 1](y=Y[b, 1], k=1, after=[first])
        add[2, 2](y=Y[2, 2], k=1, after=first)

    assert stated(formed) == stated(plain)


def test_statements_stand_in_forms() -> None:
    def body(b: Any) -> None:
        slot_set_u64(0, b)
        with P.when(b > 1):
            add[b](Y[b, 0], b)

    def plain() -> None:
        for b in P(batch):
            slot_set_u64(0, b)
            with P.when(b > 1):
                add[b](Y[b, 0], b)

    assert parallel_for(batch, body).node.body == stated(plain)


def test_a_form_around_a_users_with_is_not_taken_for_it() -> None:
    def mixed() -> None:
        with P.when(n > 1):
            cond(n > 2, lambda: one(0, 0, 1))
            one(0, 1, 1)

    def plain() -> None:
        with P.when(n > 1):
            with P.when(n > 2):
                add[0, 0](y=Y[0, 0], k=1)
            add[0, 1](y=Y[0, 1], k=1)

    assert stated(mixed) == stated(plain)


def moved_handle() -> None:
    first = one(0, 0, 1)
    combine(first, one(0, 1, 1))
    one(0, 2, 1, after=[first])


def leaked_variable() -> Workload:
    kept: list[Workload] = []
    parallel_for(batch, lambda b: kept.append(one(b, 0, 1)))
    return kept[0]


BAD: dict[str, tuple[Callable[[], object], str, str]] = {
    "no parameter": (lambda: parallel_for(4, lambda: None), "W102", "the body of parallel_for takes the loop variable"),
    "two parameters": (lambda: for_each(4, lambda a, b: None), "W102", "the body of for_each takes the loop variable"),
    "one for a matrix": (lambda: select(routing, lambda b: None), "W102", "the body of select takes the loop variables"),
    "two for a row": (lambda: select(routing[0], lambda b, e: None), "W102", "the body of select takes the loop variable"),
    "no function": (lambda: parallel_for(4, one(0, 0, 1)), "W102", "the body of parallel_for is a function of the loop's variable"),
    "no axis": (lambda: parallel_for("abc", lambda b: None), "W106", "this is not an axis"),
    "no sparse row": (lambda: select(batch, lambda b: None), "W102", "P.sel walks the columns of a Sparse"),
    "cond of a parameter": (lambda: cond(n > 1, lambda b: None), "W102",
                            "the `then` of cond is a function without parameters, or a workload"),
    "cond of nothing": (lambda: cond(n > 1, lambda: None, 3), "W102",  # type: ignore[arg-type]
                        "the `otherwise` of cond is a function without parameters, or a workload"),
    "cond of a float": (lambda: cond(1.5, lambda: None), "T210", "`P.when` takes a condition"),
    "cond of a scheduled part": (lambda: cond(n > 1, one(0, 0, 1).dispatch(DispatchPolicy.round_robin(2))), "W102",
                                 "a part of a workload has a schedule of its own"),
    "task of no kernel": (lambda: task(one, [0], {}), "T205", "task takes a kernel"),  # type: ignore[arg-type]
    "task of one index": (lambda: task(add, 1, {}), "T205", "task takes the indices as a list"),  # type: ignore[arg-type]
    "task of a missing argument": (lambda: task(add, [1], {"y": Y[0, 0]}), "T101", "kernel `add` does not take these arguments"),
    "task of other arguments": (lambda: task(add, [1], 3), "T205",  # type: ignore[arg-type]
                                "task takes the arguments as a list, or a dict by name"),
    "handle of a moved task": (lambda: workload(moved_handle)(), "W103",
                               "after= names a task that has been put into another workload since"),
    "handle of another workload": (lambda: one(0, 0, 1, after=[one(0, 1, 1)]), "W103",
                                   "after= names a task of another workload: TaskHandle(add)"),
    "variable of a loop outside it": (lambda: leaked_variable().compile("interp"), "W103", "loop variable `b` is used outside its loop"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_has_no_meaning_is_refused(name: str) -> None:
    make, code, message = BAD[name]
    with pytest.raises(PtoError) as caught:
        make()
    assert (caught.value.code, caught.value.message) == (code, message)
    assert "test_forms.py" in str(caught.value.span)
