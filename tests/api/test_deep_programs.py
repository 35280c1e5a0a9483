"""Programs that go deep work up to a limit; beyond it the error stands at the user's line, and none is Python's recursion limit."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pto_wsp import DType, InOut, P, Program, PtoError, Scalar, Symbol, Tensor, Tile, Workload, combine, kernel, pto, sequential, workload
from pto_wsp.ir.symbolic import DEEPEST, Symbolic
from pto_wsp.source import Span

I64 = DType.I64
Y = Tensor(np.zeros((8, 4), np.int64), name="Y")
LENS = Tensor(np.arange(8), name="LENS")
N = Symbol("n")


@kernel
def add(n: Scalar[I64], y: InOut[Tile[1, 4, I64]]) -> None:
    pto.store(y, y + n)


def made_of(body: Callable[[], object]) -> Workload:
    @workload
    def w() -> None:
        body()
    return w()


def loops(depth: int) -> None:
    if depth == 0:
        add(1, Y[0])
    else:
        for _ in P.seq(1):
            loops(depth - 1)


def branches(depth: int) -> None:
    if depth == 0:
        add(1, Y[0])
    else:
        with P.when(depth < N):
            branches(depth - 1)


def workloads(depth: int) -> Workload:
    @workload
    def inner() -> None:
        if depth:
            workloads(depth - 1)
        else:
            add(1, Y[0])
    return inner()


def kernel_of(depth: int, loop: bool) -> Workload:
    @kernel
    def deep(n: Scalar[I64], y: InOut[Tile[1, 4, I64]]) -> None:
        def go(left: int) -> None:
            if left == 0:
                y[:] = y + n
            elif loop:
                for _ in pto.range(1):
                    go(left - 1)
            else:
                with pto.when(n > -left):
                    go(left - 1)
        go(depth)
    return made_of(lambda: deep(1, Y[0]))


def parts(count: int) -> Symbolic:
    return functools.reduce(operator.and_, [-k < N for k in range(count)])


DEEP: dict[str, tuple[Callable[[int], Workload], int]] = {
    "loops": (lambda n: made_of(lambda: loops(n)), 64),
    "branches": (lambda n: made_of(lambda: branches(n)), 64),
    "workloads": (workloads, 64),
    "loops of a kernel": (lambda n: kernel_of(n, loop=True), 64),
    "branches of a kernel": (lambda n: kernel_of(n, loop=False), 64),
}


def run(w: Workload, target: str, **bindings: int) -> Program:
    Y.data[...] = 0  # type: ignore[index]
    program = w.compile(target=target).run(**bindings)
    assert (Y.data[0] == 1).all()  # type: ignore[index]
    return program


@pytest.mark.slow
@pytest.mark.parametrize("target", ["interp", "cpu_sim"])
@pytest.mark.parametrize("what", DEEP)
def test_the_deepest_program_runs(what: str, target: str) -> None:
    make, most = DEEP[what]
    run(make(most), target, **({"n": 99} if what == "branches" else {}))


@pytest.mark.parametrize("beyond", [1, 300, 3000])
@pytest.mark.parametrize("what", DEEP)
def test_a_deeper_program_is_refused_at_its_line(what: str, beyond: int) -> None:
    make, most = DEEP[what]
    with pytest.raises(PtoError, match="in each other") as caught:
        make(most + beyond)
    assert isinstance(caught.value.span, Span) and Path(caught.value.span.file).name == "test_deep_programs.py"


@pytest.mark.parametrize("target", ["interp", pytest.param("cpu_sim", marks=pytest.mark.slow)])
def test_a_condition_of_many_parts_holds(target: str) -> None:
    def body() -> None:
        with P.when(parts(3000 if target == "cpu_sim" else 600)):
            add(1, Y[0])
    run(made_of(body), target, n=1)


@pytest.mark.slow
def test_a_long_sum_of_lengths_is_the_sum() -> None:
    total = sum(LENS[k % 8] for k in range(400))
    Y.data[...] = 0  # type: ignore[index]
    made_of(lambda: add(total, Y[0])).compile(target="interp").run()
    assert (Y.data[0] == 50 * 28).all()  # type: ignore[index]


def doubled() -> object:
    n: object = N
    for _ in range(99):
        n = n + n  # type: ignore[operator]
    return n


def element_of_element() -> object:
    n: object = N
    for _ in range(300):
        n = LENS[n]
    return n


LARGE: dict[str, Callable[[], object]] = {
    "doubled": doubled,
    "elements of elements": element_of_element,
    "no chain": lambda: functools.reduce(lambda n, k: (n * 3) // 2, range(300), N),
    "a chain of floats": lambda: functools.reduce(lambda n, k: n + k, range(1, 300), N * 0.5),
    "where": lambda: functools.reduce(lambda n, k: (k > N).where(k, n), range(300), N),
    "not": lambda: functools.reduce(lambda c, k: ~c, range(300), N > 1),
}


@pytest.mark.parametrize("what", LARGE)
def test_an_expression_that_is_too_large_is_refused_where_it_grows(what: str) -> None:
    with pytest.raises(PtoError, match="a scalar expression is too large") as caught:
        LARGE[what]()
    assert isinstance(caught.value.span, Span) and Path(caught.value.span.file).name == "test_deep_programs.py"


def test_what_folds_never_grows() -> None:
    n: Symbolic = N
    for k in range(3 * DEEPEST):
        n = n + k
    assert repr(n) == f"Symbolic(n + {sum(range(3 * DEEPEST))})"


def test_many_workloads_in_a_chain_are_no_deeper_than_two() -> None:
    rows = [made_of(lambda k=k: add(1, Y[k])) for k in range(8)]  # type: ignore[misc]
    Y.data[...] = 0  # type: ignore[index]
    chain, beside = functools.reduce(operator.rshift, rows * 10), functools.reduce(operator.or_, rows)
    assert (chain, beside) == (sequential(*rows * 10), combine(*rows))
    chain.compile(target="interp").run()
    beside.compile(target="interp").run()
    assert (Y.data == 11).all()


# ---- functions that call themselves ----

def endless(value: object) -> object:
    return endless(value)


def test_a_helper_of_a_kernel_that_calls_itself_is_named() -> None:
    @kernel
    def k(y: InOut[Tile[1, 4, I64]]) -> None:
        pto.store(y, endless(y))
    with pytest.raises(PtoError) as caught:
        k.ir  # noqa: B018
    error = caught.value
    assert error.code == "K112" and "`endless` calls itself" in str(error.found)
    assert isinstance(error.span, Span) and "return endless(value)" in "".join(error.span.excerpt())


def test_a_function_of_a_workload_that_calls_itself_is_named() -> None:
    with pytest.raises(PtoError) as caught:
        made_of(lambda: endless(1))
    error = caught.value
    assert error.code == "W114" and "`endless` calls itself" in str(error.found)
    assert isinstance(error.span, Span) and "return endless(value)" in "".join(error.span.excerpt())
