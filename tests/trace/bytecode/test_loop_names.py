"""What a `for` does with what P gives it: names, and values that P does not give."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pto_wsp import DType, Out, P, PtoError, Scalar, Tensor, Tile, kernel, pto, workload

I64 = DType.I64
Y = Tensor(np.zeros((6, 1), np.int64), name="Y")


@kernel
def fill(n: Scalar[I64], y: Out[Tile[1, 1, I64]]) -> None:
    pto.store(y, pto.full((1, 1), n, I64))


def counted() -> None:
    for k, b in enumerate(P(3)):
        fill(k, Y[b])


def zipped() -> None:
    for b, k in zip(P(3), (5, 6, 7), strict=False):
        fill(k, Y[b])


def counted_pairs() -> None:
    for k, (b, h) in enumerate(P(2, 3)):
        fill(k, Y[3 * b + h])


def three_of_two() -> None:
    for b, h, k in P(2, 3):
        fill(k, Y[3 * b + h])


@pytest.mark.parametrize("body", [counted, zipped, counted_pairs, three_of_two])
def test_values_that_P_does_not_give_are_refused(body: Callable[[], None]) -> None:
    with pytest.raises(PtoError) as caught:
        workload(body)()
    error = caught.value
    assert error.code == "W102" and error.message.startswith("the `for` takes other values than P gives")
    assert error.span is not None and error.span.line == body.__code__.co_firstlineno + 1


def test_one_variable_taken_apart_says_that_it_is_one_number() -> None:
    def body() -> None:
        for b, h in P(3):
            fill(b, Y[h])
    with pytest.raises(PtoError) as caught:
        workload(body)()
    assert caught.value.code == "K103"


def whole() -> None:
    for both in P(2, 3):
        fill(both[0], Y[3 * both[0] + both[1]])


def starred() -> None:
    for b, *rest in P(2, 3):
        fill(b, Y[3 * b + rest[0]])


def unpacked_in_the_body() -> None:
    for b, h in P(2, 3):
        x, y = b, h
        fill(x, Y[3 * x + y])


@pytest.mark.parametrize("body", [whole, starred, unpacked_in_the_body])
def test_other_ways_to_take_the_variables_of_P_work(body: Callable[[], None]) -> None:
    workload(body)().compile(target="interp").run()
    assert Y.data[:, 0].tolist() == [0, 0, 0, 1, 1, 1]
