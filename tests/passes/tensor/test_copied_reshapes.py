"""Reshapes that join axes of symbolic extents are copied, and give NumPy's numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, Tensor, jit

F32 = DType.F32


def flat(x: Tensor["t", 8, F32]):  # type: ignore[valid-type, no-untyped-def]
    return np.exp(x.reshape(-1))


def halves(x: Tensor["t", 8, F32]):  # type: ignore[valid-type, no-untyped-def]
    return x.reshape(x.shape[0] * 2, 4) + 1


def joined(x: Tensor["a", "b", F32]):  # type: ignore[valid-type, no-untyped-def]
    return np.sum((x * 2).reshape(-1, 1), axis=-1)


@pytest.mark.parametrize(("body", "meaning"), [
    (flat, lambda x: np.exp(x.reshape(-1))), (halves, lambda x: x.reshape(-1, 4) + 1), (joined, lambda x: (x * 2).reshape(-1))])
def test_a_reshape_that_joins_symbols_gives_the_numbers_of_numpy(body: Callable[..., Any], meaning: Callable[..., Any]) -> None:
    x = np.random.default_rng(0).standard_normal((37, 8), np.float32)
    np.testing.assert_allclose(jit(body).using(target="interp")(x), meaning(x), rtol=1e-5)
