"""Tensors that a workload makes in a body: where they stand in the workload, what they are called, and where they end."""

from __future__ import annotations

import copy as copies
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, In, Out, P, PtoError, Tensor, Tile, Workload, combine, kernel, pto, sequential, workload
from pto_wsp.errors import WorkloadStructureError
from pto_wsp.ir import codec, flow

F32 = DType.F32
X, Y = Tensor(np.zeros((4, 1, 4), np.float32), name="X"), Tensor(np.zeros((4, 1, 4), np.float32), name="Y")


@kernel
def copy(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]) -> None:
    pto.store(y, x)


def through(b: Any, tmp: Tensor) -> None:
    """Copy a row by way of a tensor."""
    copy[b](x=X[b], y=tmp)
    copy[b](x=tmp, y=Y[b])


def text(value: Workload) -> list[str]:
    return [line.strip() for line in str(value).splitlines()[1:]]


def made(value: Workload) -> list[str]:
    return [node.tensor.name for node in flow.walk(value.node.body) if isinstance(node, flow.Fresh)]


def refused(body: Callable[[], object]) -> PtoError:
    with pytest.raises(PtoError) as caught:
        workload(body)()
    return caught.value


def test_it_stands_where_it_was_made_under_the_name_that_it_was_given() -> None:
    @workload
    def rows() -> None:
        for b in P(4):
            copy[b](x=X[b], y=Y[b])
            tmp = Tensor.empty((1, 4), F32)
            for _ in P.seq(2):
                through(b, tmp)
    assert text(rows())[:4] == ["for b in P(4):", "copy[b](x=X[b], y=Y[b])", "tmp = Tensor.empty((1, 4), DType.F32)",
                                "for _ in P.seq(2):"]


@pytest.mark.parametrize("body", ["loop", "when", "otherwise", "called", "called twice"])
def test_every_kind_of_body_makes_its_own(body: str) -> None:
    @workload
    def inner(b: Any) -> None:
        tmp = Tensor.empty((1, 4), F32)
        through(b, tmp)

    @workload
    def middle(b: Any) -> None:
        inner(b)

    @workload
    def outer() -> None:
        match body:
            case "loop":
                for b in P(4):
                    through(b, Tensor.empty((1, 4), F32, name="tmp"))
            case "when" | "otherwise":
                with P.when(X[0, 0, 0] > 0):
                    if body == "when":
                        tmp = Tensor.empty((1, 4), F32)
                        through(0, tmp)
                with P.otherwise():
                    if body == "otherwise":
                        tmp = Tensor.empty((1, 4), F32)
                        through(0, tmp)
            case "called":
                for b in P(4):
                    inner(b)
            case "called twice":
                for b in P(4):
                    middle(b)
    assert made(outer()) == ["tmp"]


def test_one_made_in_front_of_all_bodies_is_one_a_run() -> None:
    @workload
    def rows() -> None:
        tmp = Tensor.empty((4, 1, 4), F32)
        for b in P(4):
            through(b, tmp[b])

    @workload
    def calls() -> None:
        rows()
    assert made(rows()) == made(calls()) == made(sequential(rows(), rows())) == []


def test_one_made_between_the_statements_of_a_pipeline_belongs_to_the_body_around() -> None:
    @workload
    def piped(n: int) -> None:
        for _ in P(n) if n else [0]:
            with P.pipe():
                tmp = Tensor.empty((1, 4), F32)
                copy(x=X[0], y=tmp)
                copy(x=tmp, y=Y[0])
    (loop,) = piped(2).node.body.items
    assert isinstance(loop, flow.Loop) and [type(item) for item in loop.body.items] == [flow.Fresh, flow.Pipeline]
    assert made(piped(0)) == []


def test_its_data_are_nowhere() -> None:
    found: list[Tensor] = []

    @workload
    def rows() -> None:
        found.append(Tensor.empty((1, 4), F32))
        for b in P(4):
            found.append(Tensor.empty((1, 4), F32))
            through(b, found[-1])
    rows()
    assert found[0].data is not None and found[1].data is None


def test_a_workload_with_one_reads_back_from_its_text_and_its_json() -> None:
    @workload
    def rows() -> None:
        for b in P(4):
            tmp = Tensor.empty((1, 4), F32)
            through(b, tmp)
    value = rows()
    assert codec.loads(codec.dumps(value.node)) == value.node and Workload.from_json(value.to_json()) == value == rows()
    again = Workload.from_json(value.to_json()).compile(target="interp")
    x, y = np.arange(16, dtype=np.float32).reshape(4, 1, 4), np.zeros((4, 1, 4), np.float32)
    again.run(X=x, Y=y)
    assert (x == y).all()


def test_two_that_are_made_side_by_side_are_apart() -> None:
    @workload
    def rows() -> None:
        for b in P(4):
            first, second = Tensor.empty((1, 4), F32), Tensor.empty((1, 4), F32)
            copy[b](x=X[b], y=first)
            copy[b](x=X[b], y=second)
    fresh = [node.tensor for node in flow.walk(rows().node.body) if isinstance(node, flow.Fresh)]
    assert len({tensor.id for tensor in fresh}) == 2
    assert [tensor.name for tensor in fresh] == ["first", "second"]      # found where they are used


LEAKED: list[Tensor] = []


@pytest.mark.parametrize("how", ["behind its loop", "in the next loop", "in another branch", "in another workload", "as a scalar",
                                 "made in a workload that was called"])
def test_it_ends_with_its_body(how: str) -> None:
    @workload
    def inner(b: Any) -> None:
        LEAKED.append(Tensor.empty((1, 4), F32, name="tmp"))
        through(b, LEAKED[-1])

    def body() -> None:
        if how == "in another branch":
            with P.when(X[0, 0, 0] > 0):
                tmp = Tensor.empty((1, 4), F32)
            with P.otherwise():
                copy(x=X[0], y=tmp)
        for b in P(4):
            tmp = Tensor.empty((1, 4), DType.I64 if how == "as a scalar" else F32)
            if how != "as a scalar":
                through(b, tmp)
            if how == "made in a workload that was called":
                inner(b)
                copy(x=X[0], y=LEAKED[-1])
        match how:
            case "behind its loop":
                copy(x=X[0], y=tmp)
            case "in the next loop":
                for b in P(4):
                    copy[b](x=X[b], y=tmp)
            case "as a scalar":
                for b in P(4):
                    copy[b](x=X[tmp[0, 0]], y=Y[b])
            case _:
                LEAKED.append(tmp)
    if how == "in another workload":
        workload(body)()
        error = refused(lambda: copy(x=X[0], y=LEAKED[-1]))
    else:
        error = refused(body)
    assert isinstance(error, WorkloadStructureError) and "`tmp` is used behind the body that makes it" in error.message


def test_what_is_only_read_is_refused() -> None:
    @workload
    def rows() -> None:
        for b in P(4):
            tmp = Tensor.empty((1, 4), F32)
            copy[b](x=tmp, y=Y[b])
    with pytest.raises(WorkloadStructureError, match="`tmp` is read and no task writes it"):
        rows().compile(target="interp")


@pytest.mark.slow
def test_a_part_that_a_combinator_moves_takes_its_own_along() -> None:
    @workload
    def side(b: Any) -> None:
        tmp = Tensor.empty((1, 4), F32)
        through(b, tmp)

    @workload
    def rows() -> None:
        for b in P(2):
            combine(side(b), side(b + 2))
    Y.data[:] = 0  # type: ignore[index]
    X.data[:] = np.arange(16).reshape(4, 1, 4)  # type: ignore[index]
    assert made(rows()) == ["tmp", "tmp"]
    for target in ("interp", "cpu_sim"):
        program = rows().compile(target=target).run()
        assert (Y.data == X.data).all() and program.stats.task_count == 8
        assert [(edge.source, edge.target) for edge in program.graph.edges] == [(0, 1), (2, 3), (4, 5), (6, 7)]


def test_a_copy_of_one_is_a_tensor_of_its_own() -> None:
    found: list[Tensor] = []

    @workload
    def rows() -> None:
        for _ in P(4):
            found.append(copies.copy(Tensor.empty((1, 4), F32)))
    rows()
    assert found[0].made_in is None and found[0].intermediate
