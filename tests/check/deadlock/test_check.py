"""What is proved of pipelines before they run, and that runs bear it out."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from pto_wsp import (
    Channel,
    DType,
    Event,
    InOut,
    P,
    Program,
    PtoError,
    Scalar,
    Symbol,
    Tensor,
    Tile,
    Workload,
    connect,
    consume,
    kernel,
    process,
    pto,
    receive,
    record,
    replicate,
    send,
    synchronize,
    workload,
)

I64 = DType.I64
LENS = Tensor(np.array([3, 0, 5, 1], np.int64), name="LENS")
ACC = Tensor(np.zeros((8, 1), np.int64), name="ACC")


@kernel
def fold(x: InOut[Tile[1, 1, I64]], n: Scalar[I64]) -> None:
    pto.store(x, x * 31 + n)


def verdicts(program: Program) -> dict[str, str]:
    """Return the verdict of each check of a pipeline, by its first word."""
    found = [line.split(": ", 1) for line in program.checks if "windows" not in line]
    return {text.split(" of ")[0]: verdict for verdict, text in found if text.startswith(("deadlock of ", "tokens of "))}


def detail(program: Program, check: str) -> str:
    return next(line for line in program.checks if f": {check} of" in line)


def compiled(body: Workload | Callable[[], None]) -> Program:
    traced = body if isinstance(body, Workload) else workload(body)()
    return traced.compile(target="interp")


# ---- by structure: sizes are not known ----

def test_a_chain_cannot_deadlock_whatever_is_sent() -> None:
    a, b = Channel("a", 0), Channel("b", 3)

    def body() -> None:
        with P.pipe():
            for i in P.seq(LENS[0]):
                send(a, i)
            with consume(a) as i, P.when(LENS[i] > 0):
                send(b, i)
            with consume(b) as i:
                fold(x=ACC[0:1], n=i)

    program = compiled(body)
    assert verdicts(program) == {"deadlock": "proved", "tokens": "proved"}
    assert "form no circle" in detail(program, "deadlock") and "consumed until it is closed" in detail(program, "tokens")
    program.run()


@pytest.mark.parametrize("depth", [1, 4], ids=["its sender stands", "its sender has ended"])
def test_receives_leave_tokens_to_the_run_and_deadlock_proved(depth: int) -> None:
    a, n = Channel("a", depth), Symbol("n")

    def body() -> None:
        with P.pipe():
            for i in P.seq(n):
                send(a, i)
            for _ in P.seq(3):
                i = receive(a)
                fold(x=ACC[0:1], n=i)

    program = compiled(body)
    assert verdicts(program) == {"deadlock": "proved", "tokens": "not proved"}
    program.run(n=3)
    for wrong in (2, 4):
        with pytest.raises(PtoError) as caught:
            program.run(n=wrong)
        assert caught.value.code == "W112"


@pytest.mark.parametrize("second, verdict", [("b", "not proved"), ("event", "not proved"), ("none", "proved")])
def test_a_second_line_between_two_processes_closes_a_circle(second: str, verdict: str) -> None:
    a, b, event, n = Channel("a"), Channel("b"), Event("e"), Symbol("n")

    def body() -> None:
        with P.pipe():
            for i in P.seq(n):
                send(a, i)
                if second == "b":
                    send(b, i)
                elif second == "event":
                    record(event)
            for _ in P.seq(n):
                i = receive(a)
                if second == "b":
                    receive(b)
                elif second == "event":
                    synchronize(event)
                fold(x=ACC[0:1], n=i)

    assert verdicts(compiled(body))["deadlock"] == verdict


@pytest.mark.parametrize("even", [True, False])
def test_replicas_count_as_one_where_they_send_one_for_one(even: bool) -> None:
    a, b = Channel("a"), Channel("b")

    def sending() -> None:
        for i in P.seq(LENS[2]):
            send(a, i)

    def working() -> None:
        with consume(a) as i:
            if even:
                send(b, i)
            else:
                with P.when(LENS[i] > 1):
                    send(b, i)

    def ending() -> None:
        with consume(b) as i:
            fold(x=ACC[0:1], n=i)

    program = compiled(connect([process("from").produces(a).body(sending),
                                replicate(process("work").consumes(a).produces(b).body(working), 3),
                                process("to").consumes(b).body(ending)], [a, b]))
    assert verdicts(program)["deadlock"] == ("proved" if even else "not proved")


# ---- by running it ----

def test_what_is_known_is_run_and_decides() -> None:
    a, b = Channel("a", 2), Channel("b")

    def body() -> None:
        with P.pipe():
            for n in P.seq(3):
                send(a, n)
                send(a, n)
                send(b, n)
            with consume(b) as n:
                receive(a)
                receive(a)
                fold(x=ACC[0:1], n=n)

    program = compiled(body)
    assert verdicts(program) == {"deadlock": "proved", "tokens": "proved"}
    assert "tokens held at most: a 2, b 1" in detail(program, "deadlock")


def test_sizes_that_a_run_may_bind_are_not_taken_for_proof() -> None:
    a, b, n = Channel("a", 2), Channel("b"), Symbol("n")
    data = Tensor(np.zeros((2, 1), np.int64), name="data")

    def body(extent: object) -> Callable[[], None]:
        def whole() -> None:
            with P.pipe():
                for _ in P.seq(1):
                    for i in P.seq(extent):
                        send(a, i)
                    send(b, 0)
                with consume(b):
                    for _ in P.seq(extent):
                        i = receive(a)
                        fold(x=data[0:1], n=i)

        return whole

    declared = compiled(body(n))
    assert verdicts(declared)["deadlock"] == "not proved"
    declared.run(n=2)
    with pytest.raises(PtoError) as caught:
        declared.run(n=3)
    assert caught.value.code == "W111" and "depth=3" in str(caught.value.help)


def test_a_pipeline_that_may_never_run_is_no_error() -> None:
    a, b, n = Channel("a"), Channel("b"), Symbol("n")

    def body() -> None:
        with P.when(n > 3), P.pipe():
            for _ in P.seq(1):
                receive(b)
                send(a)
            for _ in P.seq(1):
                receive(a)
                send(b)
        fold(x=ACC[0:1], n=n)

    program = compiled(body)
    assert verdicts(program) == {"deadlock": "not proved"}
    program.run(n=1)
    with pytest.raises(PtoError) as caught:
        program.run(n=4)
    assert caught.value.code == "W111"


def test_too_much_to_run_is_said() -> None:
    a, b = Channel("a"), Channel("b")

    def body() -> None:
        with P.pipe():
            for i in P.seq(1_000_000):
                send(a, i)
                send(b, i)
            for _ in P.seq(1_000_000):
                receive(a)
                receive(b)

    program = compiled(body)
    assert verdicts(program)["deadlock"] == "not proved" and "too much" in detail(program, "deadlock")


def test_windows_are_proved_not_to_hold_anybody_for_ever() -> None:
    a = Channel("a")

    def body() -> None:
        with P.pipe():
            send(a, 1)
            with consume(a) as i:
                fold(x=ACC[0:1], n=i)

    assert any(line.startswith("proved: deadlock of windows and executors") for line in compiled(body).checks)


# ---- proved is never wrong ----

def random_body(rng: random.Random, n: Symbol) -> Workload:
    """Return processes on a random graph, often a tree, whose counts depend on a symbol; whether they fit together is left to chance."""
    size = rng.randint(2, 4)
    lines = [(rng.randrange(k), k) for k in range(1, size)]
    if rng.random() < 0.3:
        lines.append(tuple(rng.sample(range(size), 2)))  # type: ignore[arg-type]
    lines = [line if rng.random() < 0.7 else line[::-1] for line in lines]
    channels = [Channel(f"c{k}", rng.choice((0, 1, 2))) for k in range(len(lines))]
    counts = [n * rng.randint(1, 2) + rng.randint(0, 2) for _ in lines]
    parts = []
    for p in range(size):
        gives = [k for k, (source, _) in enumerate(lines) if source == p]
        takes = [k for k, (_, target) in enumerate(lines) if target == p]
        rng.shuffle(gives)
        rng.shuffle(takes)
        turned = rng.random() < 0.5
        drains = rng.random() < 0.5

        def body(gives: list[int] = gives, takes: list[int] = takes, turned: bool = turned, drains: bool = drains) -> None:
            def giving() -> None:
                for k in gives:
                    for i in P.seq(counts[k]):
                        send(channels[k], i)

            def taking() -> None:
                for k in takes:
                    if drains:
                        with consume(channels[k]) as i:
                            fold(x=ACC[0:1], n=i)
                    else:
                        for _ in P.seq(counts[k]):
                            fold(x=ACC[0:1], n=receive(channels[k]))

            first, second = (taking, giving) if turned else (giving, taking)
            first()
            second()

        parts.append(process(f"p{p}").consumes(*(channels[k] for k in takes)).produces(*(channels[k] for k in gives)).body(body))
    return connect(parts, channels)


@pytest.mark.slow
@pytest.mark.usefixtures("races_allowed")
def test_what_is_proved_never_comes_to_a_stop() -> None:
    stopped, proved = 0, 0
    for seed in range(120):
        n = Symbol("n")
        program = compiled(random_body(random.Random(seed), n))
        sure = verdicts(program)["deadlock"] == "proved"
        proved += sure
        for bound in range(4):
            try:
                program.run(n=bound)
            except PtoError as error:
                assert error.code in ("W111", "W112")
                assert not (sure and error.code == "W111"), (seed, bound, str(error))
                stopped += error.code == "W111"
    assert proved > 30 and stopped > 10
