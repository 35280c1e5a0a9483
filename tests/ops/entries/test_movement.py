"""Movements: the blocks that C copies give what NumPy gives, and each means what its name says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pto_wsp import DType, In, Out, Tile, kernel, pto
from pto_wsp.ir.tile import TileType
from pto_wsp.ops.entries.movement import ENTRIES
from pto_wsp.ops.spec import evaluate
from pto_wsp.ops.whole import Movement
from tests.tolerances import Array

F32 = DType.F32
X = np.arange(12, dtype=np.float32).reshape(3, 4)


def by_blocks(entry: Movement, operands: list[Array], attrs: Any) -> Array:
    """Return the result as its blocks make it, with NaN where none writes."""
    types = [TileType(*o.shape, F32) for o in operands]
    result = entry.infer(types, attrs)
    out = np.full(result.n_elements, np.nan, np.float32)
    for copy in entry.copies(types, result, attrs):
        for r in range(copy.rows):
            for c in range(copy.cols):
                row = copy.source[0] + r * copy.down[0] + c * copy.across[0]
                col = copy.source[1] + r * copy.down[1] + c * copy.across[1]
                assert row >= 0 and col >= 0
                out[copy.target + r * copy.steps[0] + c * copy.steps[1]] = operands[copy.operand][row, col]
    return out.reshape(result.shape)


CALLS: list[tuple[str, list[tuple[int, int]], Any]] = [
    ("transpose", [(3, 4)], ()), ("reshape", [(3, 4)], (("shape", (2, 6)),)),
    ("slice", [(5, 9)], (("rows", (1, 2, 2)), ("cols", (8, 3, -3)))), ("slice_even", [(3, 4)], ()), ("slice_odd", [(3, 4)], ()),
    ("concat", [(3, 4), (3, 2), (3, 1)], (("axis", 1),)), ("concat", [(3, 4), (2, 4)], (("axis", 0),)),
    ("interleave", [(3, 4), (3, 4)], ()), ("pad", [(3, 4), (1, 1)], (("at", (2, 1)), ("shape", (6, 8)))),
    ("pad", [(3, 4), (1, 1)], (("at", (0, 0)), ("shape", (3, 4))))]


@pytest.mark.parametrize("name, shapes, attrs", CALLS)
def test_the_blocks_of_a_movement_make_what_numpy_makes(name: str, shapes: list[tuple[int, int]], attrs: Any) -> None:
    entry = next(e for e in ENTRIES if e.name == name)
    operands = [np.random.default_rng(k).standard_normal(shape).astype(np.float32) for k, shape in enumerate(shapes)]
    types = [TileType(*shape, F32) for shape in shapes]
    expected = evaluate(entry, operands, entry.infer(types, attrs), attrs)
    assert (by_blocks(entry, operands, attrs) == expected).all()


def test_every_movement_has_a_call_here() -> None:
    assert {e.name for e in ENTRIES} == {name for name, _, _ in CALLS}


def run(body: Any, rows: int, cols: int) -> Any:
    """Return what a kernel of x [3, 4] stores to y [rows, cols]."""
    def made(x: Any, y: Any) -> None:
        pto.store(y, body(x))
    made.__annotations__ = {"x": In[Tile[3, 4, F32]], "y": Out[Tile[rows, cols, F32]]}
    found = kernel(made).run(x=X)
    assert isinstance(found, np.ndarray)
    return found.tolist()


@pytest.mark.parametrize("body, expected", [
    (lambda x: x[0:1:1 << 63], [[0, 1, 2, 3]]),
    (lambda x: x[1:3, 0::2], [[4, 6], [8, 10]]), (lambda x: x[1], [[4, 5, 6, 7]]), (lambda x: x[:, -1], [[3], [7], [11]]),
    (lambda x: x[-1:], [[8, 9, 10, 11]]), (lambda x: x[..., 1:2], [[1], [5], [9]]), (lambda x: x[0:1, ...], [[0, 1, 2, 3]]),
    (lambda x: x[::-1, 3:0:-2], [[11, 9], [7, 5], [3, 1]]), (lambda x: x[::-2, 0], [[8], [0]]),
    (lambda x: pto.slice(x, slice(0, 1), 2), [[2]]), (lambda x: pto.concat(x[0], x[2], axis=0), [[0, 1, 2, 3], [8, 9, 10, 11]]),
    (lambda x: pto.concat([x[:, 0], x[:, 0], x[:, 3]]), [[0, 0, 3], [4, 4, 7], [8, 8, 11]]),
    (lambda x: pto.interleave(x[0, :2], x[0, 2:]), [[0, 2, 1, 3]]),
    (lambda x: pto.interleave(pto.slice_even(x), pto.slice_odd(x)), X.tolist()),
    (lambda x: pto.pad(x[0, :2], (2, 3), value=7), [[0, 1, 7], [7, 7, 7]]),
    (lambda x: pto.pad(x[0, :2], widths=((1, 0), (0, 1)), value=-1), [[-1, -1, -1], [0, 1, -1]]),
    (lambda x: pto.reshape(x, (6, 2)), [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11]]),
], ids=lambda value: "" if callable(value) else str(value)[:30])
def test_a_movement_by_hand(body: Any, expected: list[list[float]]) -> None:
    assert run(body, len(expected), len(expected[0])) == expected
