"""Python variables that a traced body of a workload reads and then changes are refused; variables of its own and constants are not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pto_wsp import DType, InOut, P, PtoError, Scalar, Tensor, Tile, kernel, pto, workload
from pto_wsp.source import Span

I64 = DType.I64
Y = Tensor(np.zeros((64, 4), np.int64), name="Y")
LENS = Tensor(np.arange(8), name="LENS")
counted = 0


@kernel
def add(n: Scalar[I64], y: InOut[Tile[1, 4, I64]]) -> None:
    pto.store(y, y + n)


def total() -> None:
    total = 0
    for b in P(4):
        add(total, Y[b])
        total += 1  # noqa: SIM113 - here


def total_in_order() -> None:
    total = 0
    for b in P.seq(4):
        total = total + b  # here
        add(total, Y[b])


def offset() -> None:
    start = LENS[0] * 0
    for b in P(4):
        add(start, Y[b])
        start = start + LENS[b]  # here


def two_axes() -> None:
    k = 0
    for a, b in P(2, 3):
        add(k, Y[a * 3 + b])
        k += 1  # noqa: SIM113 - here


def inner() -> None:
    k = 0
    for a in P(2):
        for b in P(3):
            add(k, Y[a * 3 + b])
            k += 1  # here


def branch() -> None:
    k = 0
    for b in P(4):
        with P.when(b > 2):
            add(k, Y[b])
            k += 1  # here


def module_counter() -> None:
    global counted
    for b in P(4):
        add(counted, Y[b])
        counted += 1  # here


def enclosing() -> None:
    k = 0

    def body() -> None:
        nonlocal k
        for b in P(4):
            add(k, Y[b])
            k += 1  # here
    body()


@pytest.mark.parametrize("body", [total, total_in_order, offset, two_axes, inner, branch, module_counter, enclosing])
def test_a_counter_is_refused_where_it_counts(body: Callable[[], None]) -> None:
    with pytest.raises(PtoError) as caught:
        workload(body)()
    span = caught.value.span
    assert caught.value.code == "K109" and isinstance(span, Span) and "here" in "".join(span.excerpt())


def own_variable() -> None:
    k = 7
    for b in P(4):
        k = b * 2
        k = k + 1
        add(k, Y[b])


def python_loop() -> None:
    start = 0
    for rows in (3, 5):
        for b in P(rows):
            add(b, Y[start + b])
        start += rows


def constant() -> None:
    k, step = 3, 2
    for b in P(4):
        add(k * step, Y[b])
        step = 2


def in_front_and_behind() -> None:
    k = 0
    k += 1
    for b in P(4):
        add(k, Y[b])
    k += 1
    add(k, Y[9])


def comprehension() -> None:
    for b in P(4):
        k = sum(k for k in range(3))
        for k in range(2):
            add(k, Y[2 * b + k])


def handles() -> None:
    made = []
    for b in P(4):
        made.append(add(b, Y[b]))


@pytest.mark.parametrize("body", [own_variable, python_loop, constant, in_front_and_behind, comprehension, handles])
def test_other_variables_are_free(body: Callable[[], None]) -> None:
    workload(body)()
