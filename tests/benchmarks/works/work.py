"""What a benchmark's work is: its inputs, what comes out of them, how it reads in this language, and how much there is to do.

Sizes come from outside, so that a test runs the same code on little data:

>>> WORKS["rmsnorm"].inputs(rng, {"rows": 32, "cols": 1024})["x"].shape
(32, 1024)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]
Sizes = Mapping[str, Any]
CACHE_LINE = 64


class Bound(Enum):
    """What no implementation of a work can beat on a machine."""

    COPY = "copy"      # each byte of one array read, each of another written
    TRIAD = "triad"    # two arrays read, one written
    FMA = "fma"        # f32 multiplications and additions
    INT8 = "int8"      # multiplications and additions of bytes into i32


@dataclass(frozen=True)
class Work:
    """One of the works.

    `inputs` draws named arrays; `expected` computes what comes out, in NumPy, carefully rather than quickly; `prepare` returns our
    run of it, a call that leaves its result in the array returned beside. `amount`: bytes for COPY and TRIAD, operations otherwise
    (a multiplication and an addition are two). `error` compares a result with the expected one; more than `tolerance` is wrong.
    """

    key: str
    says: str
    bound: Bound
    full: Sizes
    small: Sizes
    inputs: Callable[[np.random.Generator, Sizes], Arrays]
    expected: Callable[[Arrays], Array]
    prepare: Callable[[Arrays, int], tuple[Callable[[], object], Array]]
    amount: Callable[[Sizes], int]
    error: Callable[[Array, Array], float]
    tolerance: float


def relative_error(found: Array, expected: Array) -> float:
    """Return the largest difference, relative to the largest expected value; NaN counts as infinitely wrong."""
    if found.shape != expected.shape:
        return float("inf")
    worst = float(np.abs(found.astype(np.float64) - expected).max() / np.abs(expected).max())
    return float("inf") if np.isnan(worst) else worst


def missing_share(found: Array, expected: Array) -> float:
    """Return which share of the expected indices, row by row and in any order, was not found."""
    if found.shape != expected.shape:
        return float("inf")
    shared = sum(len(set(f) & set(e)) for f, e in zip(found.tolist(), expected.tolist(), strict=True))
    return 1 - shared / expected.size


def aligned(array: Array) -> Array:
    """Return a copy that starts at a cache line, as an allocator for numbers would place it."""
    room = np.empty(array.nbytes + CACHE_LINE, np.uint8)
    start = -room.ctypes.data % CACHE_LINE
    copy: Array = room[start:start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def output(shape: tuple[int, ...], dtype: npt.DTypeLike = np.float32) -> Array:
    """Return a place for results, filled with what is no result."""
    return aligned(np.full(shape, np.nan if np.dtype(dtype).kind == "f" else -1, dtype))
