"""Tracing of pipelines: names from the statement, what tokens carry, which statements are processes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import pto_wsp
from pto_wsp import (
    Channel,
    DType,
    Event,
    In,
    Out,
    P,
    PtoError,
    Tensor,
    Tile,
    connect,
    consume,
    csp,
    kernel,
    process,
    pto,
    receive,
    replicate,
    send,
    workload,
)
from pto_wsp.ir import flow
from pto_wsp.ir import workload as wl
from pto_wsp.ir.scalar import print_scalar

F32 = DType.F32
X, Y = (Tensor(np.zeros((8, 4), np.float32), name=name) for name in "XY")


@kernel
def copy(x: In[Tile[1, 4, F32]], y: Out[Tile[1, 4, F32]]) -> None:
    pto.store(y, x)


def nodes(body: Callable[[], None]) -> list[wl.Item]:
    return list(flow.walk(workload(body)().node.body))


def only(kind: type, items: list[wl.Item]) -> wl.Item:
    (found,) = (item for item in items if isinstance(item, kind))
    return found


def test_names_are_those_of_the_statement() -> None:
    a = Channel("a")

    def body() -> None:
        with consume(a) as (batch, head):
            copy(x=X[batch:batch + 1], y=Y[head:head + 1])
        one = receive(a)
        two, three = receive(a)
        receive(a)
        copy[one, two](x=X[three:three + 1], y=Y[0:1])

    items = nodes(body)
    taken = only(flow.Consume, items)
    assert isinstance(taken, flow.Consume) and [var.name for var in taken.vars] == ["batch", "head"]
    received = [[var.name for var in item.vars] for item in items if isinstance(item, flow.Receive)]
    assert received == [["one"], ["two", "three"], []]


def test_a_function_names_what_it_takes_by_its_parameters() -> None:
    a = Channel("a")
    items = nodes(lambda: consume(a, lambda batch, head: copy[batch, head](x=X[batch:batch + 1], y=Y[head:head + 1])))
    taken = only(flow.Consume, items)
    assert isinstance(taken, flow.Consume) and [var.name for var in taken.vars] == ["batch", "head"]
    assert isinstance(only(flow.Do, items), flow.Do)


def test_what_a_token_carries() -> None:
    a = Channel("a")

    @workload
    def part(i: object) -> None:
        copy[i](x=X[i:i + 1], y=Y[i:i + 1])  # type: ignore[index, operator, misc]

    def body() -> None:
        for i in P.seq(4):
            handle = copy[i, 7](x=X[i:i + 1], y=Y[i:i + 1])
            send(a, handle)
            send(a, part(i))
            send(a, i + 1, i > 2, True, np.int32(5))
            send(a)

    sends = [item for item in nodes(body) if isinstance(item, flow.Send)]
    tasks = [item.leaf for item in nodes(body) if isinstance(item, flow.Do)]
    assert [[print_scalar(value) for value in item.payload] for item in sends] == [
        ["i", "7"], ["i"], ["i + 1", "where(i > 2, 1, 0)", "1", "5"], []]
    assert [item.after for item in sends] == [(tasks[0].handle,), (tasks[1].handle,), (), ()]


def test_every_statement_of_a_pipe_is_a_process_named_after_what_it_is() -> None:
    a, b, ready = Channel("a"), Channel("b"), Event("ready")

    @workload
    def loading() -> None:
        for i in P.seq(4):
            send(a, copy[i](x=X[i:i + 1], y=Y[i:i + 1]))
        pto_wsp.record(ready)

    def body() -> None:
        with P.pipe():
            loading()
            send(a, copy[5](x=X[5:6], y=Y[5:6]))
            with consume(a) as i:
                send(b, i)
            with consume(b):
                pass
            pto_wsp.synchronize(ready)

    pipeline = only(flow.Pipeline, nodes(body))
    assert isinstance(pipeline, flow.Pipeline)
    assert [process.name for process in pipeline.processes] == ["copy", "copy (2)", "consume a", "consume b", "ready"]
    assert [[c.name for c in process.consumes] for process in pipeline.processes] == [[], [], ["a"], ["b"], []]
    assert [[c.name for c in process.produces] for process in pipeline.processes] == [["a"], ["a"], ["b"], [], []]


def test_connect_gives_a_workload_that_can_be_put_together() -> None:
    a = Channel("a", depth=3)

    @workload
    def sending() -> None:
        for i in P.seq(2):
            send(a, i)

    def taking() -> None:
        with consume(a) as i:
            copy(x=X[i:i + 1], y=Y[i:i + 1])

    source = process("from").produces(a).body(sending())
    whole = connect([source, replicate(process("to").consumes(a).body(taking), 2)], [a])
    (pipeline,) = whole.node.body.items
    assert isinstance(pipeline, flow.Pipeline)
    assert [(process.name, process.replicas) for process in pipeline.processes] == [("from", 1), ("to", 2)]
    assert whole.name == "from_to" and "Pipeline" in whole.type
    twice = whole >> whole
    assert sum(isinstance(item, flow.Pipeline) for item in flow.walk(twice.node.body)) == 2

    @workload
    def around() -> None:
        for _ in P.seq(3):
            connect([process("from").produces(a).body(sending()), process("to").consumes(a).body(taking)], [a])

    inside = [type(item).__name__ for item in flow.walk(around().node.body)]
    assert inside.count("Pipeline") == 1 and inside.count("Send") == 1     # taken out of where they were called


@pytest.mark.parametrize("call", [
    lambda: Channel(""), lambda: Channel(3), lambda: Channel("a", True), lambda: Channel("a", 1 << 30),
    lambda: Event(""), lambda: process(""),
    lambda: replicate(process("p"), 0), lambda: replicate("p", 2), lambda: connect([], []), lambda: connect(["p"], []),
    lambda: connect([process("p").body(lambda: None)], ["ch"]), lambda: process("p").body(3), lambda: process("p").consumes("ch"),
    lambda: send(Channel("a"), 1.5), lambda: consume(Channel("a")), lambda: receive(Channel("a")), lambda: P.pipe(),
    lambda: iter(Channel("a")), lambda: workload(lambda: send("a", 1))(), lambda: workload(lambda: pto_wsp.record("e"))(),
    lambda: workload(lambda: consume(Channel("a"), 3))(), lambda: workload(lambda: send(Channel("a"), *range(9)))(),
    lambda: workload(lambda: send(Channel("a"), "x"))(), lambda: pto_wsp.query("e")])
def test_bad_values_are_refused_at_once(call: Callable[[], object]) -> None:
    with pytest.raises(PtoError) as caught:
        call()
    assert caught.value.span is not None and "test_csp.py" in str(caught.value)


def test_a_body_left_early_is_refused() -> None:
    a = Channel("a")

    def left() -> None:
        for _ in range(2):
            with consume(a):
                break

    with pytest.raises(PtoError) as caught:
        workload(left)()
    assert caught.value.code == "K103"


def test_the_module_has_the_names_together() -> None:
    assert all(getattr(csp, name) is getattr(pto_wsp, name) for name in csp.__all__)
    assert {"Channel", "Event", "process", "connect", "replicate", "send", "consume", "record", "synchronize", "query"} <= set(csp.__all__)
