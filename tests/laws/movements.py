"""Calls of the ops that move elements: shapes of the tiles, other arguments, shape of the result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Shape = tuple[int, int]

MOVEMENT_CASES: Mapping[str, list[tuple[list[Shape], tuple[Any, ...], Shape]]] = {
    "transpose": [([(20, 24)], (), (24, 20)), ([(37, 65)], (), (65, 37)), ([(1, 9)], (), (9, 1)), ([(9, 1)], (), (1, 9))],
    "reshape": [([(20, 24)], ((24, 20),), (24, 20)), ([(6, 8)], ((1, 48),), (1, 48)), ([(1, 48)], ((16, 3),), (16, 3))],
    "slice": [([(20, 24)], (slice(2, 6), slice(None, None, 2)), (4, 12)), ([(20, 24)], (slice(-3, None), slice(5, -5)), (3, 14)),
              ([(20, 24)], (slice(None, None, -1), slice(20, 3, -3)), (20, 6)), ([(20, 24)], (3, slice(None)), (1, 24)),
              ([(20, 24)], (slice(1, 19, 4), -1), (5, 1)), ([(20, 24)], (-20, 0), (1, 1))],
    "slice_even": [([(20, 24)], (), (20, 12)), ([(1, 2)], (), (1, 1))],
    "slice_odd": [([(20, 24)], (), (20, 12)), ([(3, 34)], (), (3, 17))],
    "concat": [([(20, 24), (20, 7)], (), (20, 31)), ([(4, 3), (4, 5), (4, 1)], (), (4, 9)), ([(2, 8)], (), (2, 8))],
    "interleave": [([(20, 24), (20, 24)], (), (20, 48)), ([(3, 1), (3, 1)], (), (3, 2))],
    "pad": [([(5, 6)], ((8, 9),), (8, 9)), ([(5, 6)], ((5, 6), 1), (5, 6)), ([(5, 6)], (None, 1, ((2, 1), (3, 4))), (8, 13)),
            ([(5, 6)], ((5, 16), 1), (5, 16)), ([(5, 6)], (None, 0, ((0, 0), (1, 0))), (5, 7))],
}
