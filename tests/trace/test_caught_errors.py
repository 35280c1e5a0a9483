# ruff: noqa: F821, UP037
"""An error that the body of a kernel, a workload or a function on tensors catches comes out at the end of the trace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np
import pytest

from pto_wsp import DType, In, Out, P, Tensor, Tile, jit, kernel, pto, tt, workload
from pto_wsp.errors import EscapedValueError, ExtentError, PtoError

F32 = DType.F32
X, W = np.ones((2, 8), np.float32), np.ones((4, 8), np.float32)


@contextmanager
def own_suppress() -> Iterator[None]:
    try:
        yield
    except Exception:
        return


@pytest.mark.parametrize("catching", [lambda: suppress(Exception), own_suppress], ids=["contextlib", "generator"])
def test_a_with_that_catches(catching) -> None:
    @jit
    def f(x: Tensor["t", 8, F32], w: Tensor["n", 8, F32]):
        with catching():
            x = x @ w
        return x * 2
    with pytest.raises(ExtentError, match="`f` catches this error"):
        f(X, W)


def test_a_bare_except_and_a_return_in_finally() -> None:
    @jit
    def bare(x: Tensor["t", 8, F32], w: Tensor["n", 8, F32]):
        try:
            x = x @ w
        except:      # noqa: E722
            x = x + 1
        return x

    @jit
    def left(x: Tensor["t", 8, F32], w: Tensor["n", 8, F32]):
        try:
            x = x @ w
        finally:
            return x * 2      # noqa: B012
    for function in (bare, left):
        with pytest.raises(ExtentError):
            function(X, W)


def test_a_function_that_the_body_calls() -> None:
    def product_or_sum(x, w):
        try:
            return x @ w
        except PtoError:
            return x + 1

    @jit
    def f(x: Tensor["t", 8, F32], w: Tensor["n", 8, F32]):
        return product_or_sum(x, w)
    with pytest.raises(ExtentError):
        f(X, W)


def test_the_caught_error_comes_before_its_consequence() -> None:
    @jit
    def f(x: Tensor["t", 8, F32], w: Tensor["n", 8, F32]):
        for i in tt.loop(x.shape[0]):
            row = x[i] * 2
            with suppress(PtoError):
                row = x @ w
        return row
    with pytest.raises(ExtentError) as caught:
        f(X, W)
    assert not isinstance(caught.value, EscapedValueError)


def test_an_error_that_is_raised_again_is_itself() -> None:
    @jit
    def again(x: Tensor["t", 8, F32], w: Tensor["n", 8, F32]):
        try:
            return x @ w
        except PtoError:
            raise

    @jit
    def other(x: Tensor["t", 8, F32], w: Tensor["n", 8, F32]):
        try:
            return x @ w
        except PtoError as problem:
            raise ValueError("shapes of the checkpoint") from problem
    with pytest.raises(ExtentError) as caught:
        again(X, W)
    assert not caught.value.notes
    with pytest.raises(ValueError, match="checkpoint"):
        other(X, W)


def test_errors_of_python_may_be_caught_and_names_be_asked_for() -> None:
    scales = {"a": 2.0}

    @jit
    def f(x: Tensor["t", 8, F32]):
        try:
            scale = scales["b"]
        except KeyError:
            scale = scales["a"]
        with suppress(ZeroDivisionError):
            scale = scale / 0
        return x * (scale if not hasattr(x, "no_such_name") else 0)
    np.testing.assert_array_equal(f(X), X * 2)


def test_a_kernel() -> None:
    @kernel
    def scaled(x: In[Tile[2, 8, F32]], w: In[Tile[4, 8, F32]], y: Out[Tile[2, 8, F32]]):
        pto.store(y, x)
        with suppress(Exception):
            pto.store(y, x * w)

    @workload
    def once():
        scaled(A, B, C)
    A, B, C = Tensor(data=X), Tensor(data=W), Tensor(data=X)
    with pytest.raises(PtoError, match="kernel `scaled` catches this error"):
        once()


def test_a_workload_that_catches_an_error_of_a_kernel() -> None:
    @kernel
    def wrong(x: In[Tile[2, 8, F32]], y: Out[Tile[2, 8, F32]]):
        pto.store(y, x @ x)

    @kernel
    def right(x: In[Tile[2, 8, F32]], y: Out[Tile[2, 8, F32]]):
        pto.store(y, x)

    @workload
    def once():
        for i in P(1):
            try:
                wrong[i](A, B)
            except PtoError:
                right[i](A, B)
    A, B = Tensor(data=X), Tensor(data=X)
    with pytest.raises(PtoError, match="workload `once` catches this error"):
        once()
