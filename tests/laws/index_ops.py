"""Calls of the ops that order elements and pick them by an index: tiles, other arguments, shape and dtype of the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pto_wsp import DType
from tests.tolerances import Array

Shape = tuple[int, int]
Sample = Callable[[DType, int, Shape], Array]
Case = tuple[list[Array], tuple[Any, ...], Shape, DType]


def index_cases(name: str, dtype: DType, sample: Sample) -> Iterator[Case]:
    """Yield calls of one op on a dtype."""
    if name in ("argsort", "topk"):
        for number, shape in enumerate(((4, 24), (3, 300), (2, 1), (1, 97))):
            x = sample(dtype, number, shape)
            if name == "argsort":
                yield [x], (number % 2 == 1,), shape, DType.I32
            else:
                for k, largest in ((shape[1], False), ((shape[1] + 3) // 4, True)):
                    yield [x], (k, largest), (shape[0], k), DType.I32
    elif name in ("rowargmax", "rowargmin"):
        for number, shape in enumerate(((20, 24), (3, 300), (2, 1), (5, 64))):
            yield [sample(dtype, number, shape)], (), (shape[0], 1), DType.I32
    else:
        yield from _placed(name, dtype, sample)


def _placed(name: str, dtype: DType, sample: Sample) -> Iterator[Case]:
    rng = np.random.default_rng(5)
    places: list[tuple[Shape, Shape, Shape, int]] = [   # tile, index, what is moved, axis
        ((20, 24), (20, 7), (20, 7), 1), ((20, 24), (1, 7), (20, 7), 1), ((20, 24), (20, 1), (20, 1), 1), ((20, 24), (20, 30), (20, 30), 1),
        ((20, 24), (9, 1), (9, 24), 0), ((20, 24), (9, 24), (9, 24), 0), ((20, 24), (1, 1), (1, 24), 0), ((20, 1), (30, 1), (30, 1), 0)]
    if name == "gather":
        places.append(((1, 24), (20, 3), (20, 3), 1))
    for number, (shape, index_shape, moved, axis) in enumerate(places):
        index = rng.integers(0, shape[axis], index_shape).astype(np.int64 if number % 2 else np.int32)
        x = sample(dtype, number, shape)
        if name == "gather":
            yield [x, index], (axis,), moved, dtype
        else:
            narrow = (moved, (moved[0], 1), (1, moved[1]), (1, 1))[number // 2 % 4]
            yield [x, index, sample(dtype, 50 + number, narrow)], (axis,), shape, dtype
