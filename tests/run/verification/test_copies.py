"""Copies lie as their originals do."""

from __future__ import annotations

from typing import Any

import numpy as np

from pto_wsp.run.bound import MADE, Bindings, alias_groups, layout_of
from pto_wsp.run.verify import copy_bindings


def bound(*arrays: np.ndarray[Any, Any]) -> Bindings:
    return Bindings(arrays, (), alias_groups(arrays), tuple(map(layout_of, arrays)))


def address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])


def partners(groups: tuple[int, ...]) -> list[int]:
    """Return for each array the first one of its group: the numbers of groups go by addresses."""
    return [groups.index(group) for group in groups]


def test_what_overlaps_still_does() -> None:
    base = np.arange(48, dtype=np.int32).reshape(6, 8)
    before = bound(base[::-2, 1:], base[1:3], base.view(np.int64)[:, 1:2], np.arange(3.0), np.zeros((0, 4), np.float32), MADE)
    after = copy_bindings(before)
    assert after.groups == before.groups and partners(alias_groups(after.arrays)) == partners(before.groups)
    for one, copy in zip(before.arrays, after.arrays, strict=True):
        assert np.array_equal(one, copy) and one.strides == copy.strides and one.dtype == copy.dtype
        assert not np.shares_memory(one, copy)
        assert (address(one) - address(copy)) % 4096 == 0 or not one.size
    assert address(after.arrays[1]) - address(after.arrays[0]) == address(before.arrays[1]) - address(before.arrays[0])
    after.arrays[1][0, 2] = -1
    after.arrays[3][:] = 0
    assert base[1, 2] == 10 and before.arrays[3][1] == 1 and after.arrays[2][1, 0] != before.arrays[2][1, 0]


def test_what_may_not_be_written_stays_so() -> None:
    fixed = np.arange(4.0)
    fixed.flags.writeable = False
    assert not copy_bindings(bound(fixed, np.broadcast_to(np.float32(3), (4, 4)))).arrays[0].flags.writeable
